//! The use of the machine by other processes during a repeat.
//!
//! CPU time counts only in user mode: kernel threads that write back, journal or serve a loop device for our own I/O
//! cannot be told from those that serve others. On the data's device only reads count: writeback may still be ours,
//! from an earlier repeat. I/O pressure has no owner, so it counts only if this process moved nothing to or from a
//! device.

use std::fs;
use std::os::linux::fs::MetadataExt;
use std::path::Path;
use std::time::Instant;

use forebay_observe::source::cpu::{self, Cpu};
use forebay_observe::source::process::{self, Io};
use forebay_observe::source::{disk, pressure};
use forebay_record::{Disturbed, Taken};

/// Repeats of fewer seconds are not judged, because the kernel counts CPU time in ticks of 10 ms.
const SHORT_S: f64 = 0.05;
/// Less CPU time of others, in seconds, is ignored: it is five ticks, more than the sampling error.
const LEAST_CPU_S: f64 = 0.05;
/// A repeat counts as disturbed above this share of CPU time, of the device's reads or of I/O pressure. A quiet machine
/// of 16 cores showed at most 0.3 % of other programs over 50 ms and 0.02 % over 3 s while it wrote and synced 3 GB,
/// read them past the page cache, created 400 files or kept all cores busy; its kernel threads took up to 3 %.
const LIMIT: f64 = 0.10;
/// The limit for steal is higher: the same (virtual) machine lost 16 % of 0.1 s and 3 % of 1 s when it began to use all
/// its cores.
const STEAL_LIMIT: f64 = 0.25;
const LEAST_BYTES: u64 = 8 << 20;

/// `None` if the kernel does not report a quantity. Shares are fractions of 1.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Disturbance {
    pub span_s: f64,
    /// User time of other processes.
    pub other_cpu_s: Option<f64>,
    /// Share of the time of all cores.
    pub other_cpu_share: Option<f64>,
    /// CPU time that the hypervisor gave to other machines, as a share of the time of all cores.
    pub steal_share: Option<f64>,
    pub other_device_bytes: Option<u64>,
    /// Share of all bytes read from the device; `None` if this process read none.
    pub other_device_share: Option<f64>,
    /// Share of the repeat in which any task waited for I/O; `None` if that task may have been ours.
    pub other_io_pressure: Option<f64>,
}

impl Disturbance {
    pub fn judge(&self) -> Option<Disturbed> {
        if self.span_s < SHORT_S {
            return None;
        }
        let has_run = self.other_cpu_s.is_some_and(|seconds| seconds >= LEAST_CPU_S);
        let has_read = self.other_device_bytes.is_some_and(|bytes| bytes >= LEAST_BYTES);
        let judged = [
            (Taken::Processors, self.other_cpu_share.filter(|_| has_run), LIMIT),
            (Taken::Steal, self.steal_share, STEAL_LIMIT),
            (Taken::Reads, self.other_device_share.filter(|_| has_read), LIMIT),
            (Taken::IoWait, self.other_io_pressure, LIMIT),
        ];
        let found = judged.into_iter().find_map(|(taken, share, limit)| Some((taken, share.filter(|of| *of > limit)?)));
        found.map(|(taken, share)| Disturbed { repeats: 1, taken, share })
    }
}

#[derive(Debug, Clone, Default)]
struct Counters {
    cpu: Option<Cpu>,
    /// User time of this process and of the children it has waited for.
    own_user_s: f64,
    device_read_bytes: Option<u64>,
    own_io: Option<Io>,
    io_pressure_us: Option<u64>,
}

impl Counters {
    fn now(device: Option<&str>) -> Self {
        let read = |path: &str| fs::read_to_string(path).ok();
        let disks = device.and_then(|_| read("/proc/diskstats")).map(|text| disk::parse(&text)).unwrap_or_default();
        let disk = disks.into_iter().find(|disk| Some(disk.name.as_str()) == device);
        Self {
            cpu: read("/proc/stat").and_then(|text| cpu::parse(&text)),
            own_user_s: own_user_s(),
            device_read_bytes: disk.map(|disk| disk.reads.sectors * 512),
            own_io: read("/proc/self/io").and_then(|text| process::parse_io(&text)),
            io_pressure_us: read("/proc/pressure/io").and_then(|text| pressure::parse(&text)?.some_us),
        }
    }

    fn until(&self, after: &Self, span_s: f64, ticks_per_s: f64) -> Disturbance {
        let cpu = self.cpu.zip(after.cpu);
        let all_s = cpu.map(|(_, after)| after.n_cores as f64 * span_s).filter(|seconds| *seconds > 0.0);
        let seconds = |before: u64, after: u64| after.saturating_sub(before) as f64 / ticks_per_s;
        let own_s = after.own_user_s - self.own_user_s;
        // Ticks are sampled, the process's own time is exact: the difference may be slightly negative.
        let other_cpu_s = cpu.map(|(before, after)| (seconds(before.user, after.user) - own_s).max(0.0));
        let steal_s = cpu.and_then(|(before, after)| Some(seconds(before.steal?, after.steal?)));
        let share = |part: Option<f64>| Some(part? / all_s?);
        let io = self.own_io.zip(after.own_io);
        let own_read = io.map(|(before, after)| after.read_bytes.saturating_sub(before.read_bytes));
        let own_written = io.map(|(before, after)| after.write_bytes.saturating_sub(before.write_bytes));
        let read = self.device_read_bytes.zip(after.device_read_bytes);
        let read = read.map(|(before, after)| after.saturating_sub(before));
        let other_device_bytes = read.zip(own_read).map(|(all, own)| all.saturating_sub(own));
        let is_still = own_read == Some(0) && own_written == Some(0);
        let pressure_us = self.io_pressure_us.zip(after.io_pressure_us).filter(|_| is_still && span_s > 0.0);
        Disturbance {
            span_s,
            other_cpu_s,
            other_cpu_share: share(other_cpu_s),
            steal_share: share(steal_s),
            other_device_bytes,
            other_device_share: other_device_bytes
                .zip(own_read.filter(|own| *own > 0))
                .map(|(other, own)| other as f64 / (other + own) as f64),
            other_io_pressure: pressure_us.map(|(before, after)| after.saturating_sub(before) as f64 / 1e6 / span_s),
        }
    }
}

fn own_user_s() -> f64 {
    let of = |who| {
        // SAFETY: all zeros is a valid structure.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: the structure is valid, and only the call writes it.
        unsafe { libc::getrusage(who, &raw mut usage) };
        usage.ru_utime.tv_sec as f64 + usage.ru_utime.tv_usec as f64 / 1e6
    };
    of(libc::RUSAGE_SELF) + of(libc::RUSAGE_CHILDREN)
}

#[derive(Debug)]
pub struct Watch {
    device: Option<String>,
    before: Counters,
    start: Instant,
}

impl Watch {
    /// Reads of the device under `file` are attributed too.
    pub fn start(file: Option<&Path>) -> Self {
        let device = file.and_then(device_of);
        Self { before: Counters::now(device.as_deref()), device, start: Instant::now() }
    }

    pub fn finish(self) -> Disturbance {
        let span_s = self.start.elapsed().as_secs_f64();
        // SAFETY: the call takes only a number.
        let ticks_per_s = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as f64;
        self.before.until(&Counters::now(self.device.as_deref()), span_s, ticks_per_s)
    }
}

/// Name of the disk under a file: the whole disk if the file is on a partition, `None` if no block device is below it.
fn device_of(file: &Path) -> Option<String> {
    let device = fs::metadata(file).ok()?.st_dev();
    let folder = format!("/sys/dev/block/{}:{}", libc::major(device), libc::minor(device));
    let folder = fs::canonicalize(folder).ok()?;
    let disk = if folder.join("partition").exists() { folder.parent()? } else { folder.as_path() };
    Some(disk.file_name()?.to_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Disturbance {
        fn cause(&self) -> Option<String> {
            self.judge().map(|found| found.cause())
        }
    }

    /// Counters after `user` ticks in programs on a machine of four cores, `own_user_s` seconds of them in this
    /// process.
    fn counters(user: u64, own_user_s: f64) -> Counters {
        let cpu = Cpu { user, system: 0, idle: 0, iowait: Some(0), steal: Some(0), n_cores: 4 };
        let io = Io { read_bytes: 0, write_bytes: 0, ..Io::default() };
        let own_io = Some(io);
        Counters { cpu: Some(cpu), own_user_s, device_read_bytes: Some(0), own_io, io_pressure_us: Some(0) }
    }

    #[test]
    fn programs_of_others_disturb_and_the_kernel_and_this_process_do_not() {
        let before = counters(1_000, 5.0);
        let mut after = counters(1_300, 7.0);
        let other = before.until(&after, 1.0, 100.0);
        assert_eq!((other.other_cpu_s, other.other_cpu_share), (Some(1.0), Some(0.25)));
        assert_eq!(other.cause().unwrap(), "other processes used 25 % of the processors");
        after.own_user_s = 8.01;
        after.cpu.as_mut().unwrap().system = 100;
        let quiet = before.until(&after, 1.0, 100.0);
        assert_eq!((quiet.other_cpu_s, quiet.cause()), (Some(0.0), None), "kernel threads work for our own I/O");
    }

    #[test]
    fn a_few_ticks_and_short_repeats_are_not_judged() {
        let before = counters(0, 0.0);
        let of = |ticks, span_s| before.until(&counters(ticks, 0.0), span_s, 100.0).cause();
        assert_eq!((of(4, 0.06), of(15, 0.049)), (None, None));
        assert!(of(15, 0.06).is_some());
        assert_eq!(of(39, 1.0), None, "less than a tenth of four cores");
    }

    #[test]
    fn what_the_host_takes_is_told() {
        let (before, mut after) = (counters(0, 0.0), counters(0, 0.0));
        after.cpu.as_mut().unwrap().steal = Some(100);
        assert_eq!(before.until(&after, 1.0, 100.0).cause(), None);
        after.cpu.as_mut().unwrap().steal = Some(120);
        assert_eq!(before.until(&after, 1.0, 100.0).cause().unwrap(), "the host took 30 % of the processors");
    }

    #[test]
    fn reads_of_others_disturb_those_who_read_from_the_same_device() {
        let (before, mut after) = (counters(0, 0.0), counters(0, 0.0));
        after.device_read_bytes = Some(40 << 20);
        assert_eq!(before.until(&after, 1.0, 100.0).cause(), None, "nothing was read here");
        after.own_io = Some(Io { read_bytes: 30 << 20, ..Io::default() });
        let other = before.until(&after, 1.0, 100.0);
        assert_eq!((other.other_device_bytes, other.other_device_share), (Some(10 << 20), Some(0.25)));
        assert_eq!(other.cause().unwrap(), "other processes did 25 % of the reads of the device");
        after.own_io = Some(Io { read_bytes: 35 << 20, ..Io::default() });
        assert_eq!(before.until(&after, 1.0, 100.0).cause(), None, "a few megabytes are ignored");
    }

    #[test]
    fn pressure_on_io_is_that_of_others_where_this_process_does_none() {
        let (before, mut after) = (counters(0, 0.0), counters(0, 0.0));
        after.io_pressure_us = Some(500_000);
        let cause = before.until(&after, 1.0, 100.0).cause();
        assert_eq!(cause.unwrap(), "other processes waited for I/O for 50 % of the time");
        after.own_io = Some(Io { write_bytes: 4_096, ..Io::default() });
        assert_eq!(before.until(&after, 1.0, 100.0).other_io_pressure, None);
    }

    #[test]
    fn a_kernel_that_does_not_tell_says_nothing() {
        let nothing = Counters::default().until(&Counters::default(), 1.0, 100.0);
        assert_eq!(nothing, Disturbance { span_s: 1.0, ..Disturbance::default() });
        assert_eq!(nothing.cause(), None);
    }
}
