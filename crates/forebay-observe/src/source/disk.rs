//! `/proc/diskstats`: counters of each block device, and the columns of iostat and collectl derived from them.
//!
//! Two definitions of a queue length are in use: iostat's `aqu-sz` is the mean over the whole interval (`queue_mean`),
//! collectl's `QLen` the mean while the device was busy (`queue_busy`). Both are given. The service time is legacy: it
//! assumes a device that serves one request at a time.

use crate::sheet::Sheet;
use crate::source::{growth, ratio};

/// The kernel counts sectors of 512 bytes, whatever the device's sector size.
const SECTOR_BYTES: f64 = 512.0;

/// Counters of one device since it was attached.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Disk {
    /// As the kernel names it: "vda" or "cciss/c0d0".
    pub name: String,
    pub reads: Transfers,
    pub writes: Transfers,
    pub in_flight: u64,
    /// Time with at least one request in flight, in milliseconds.
    pub busy_ms: u64,
    /// Sum over requests of their time in flight, in milliseconds.
    pub weighted_ms: u64,
    pub discards: Option<Transfers>,
    /// Number of flushes, and their total time in milliseconds; since Linux 5.5.
    pub flushes: Option<(u64, u64)>,
}

/// Requests of one kind that were completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Transfers {
    /// Completed requests, after merging.
    pub requests: u64,
    /// Requests that were merged into these.
    pub merges: u64,
    /// Sectors of 512 bytes, whatever the device's sector size.
    pub sectors: u64,
    /// Sum over requests of their time, in milliseconds.
    pub ms: u64,
}

/// Reads `/proc/diskstats`. Skips lines of partitions with four counters, as written by kernels before 2.6.25.
pub fn parse(text: &str) -> Vec<Disk> {
    text.lines().filter_map(disk).collect()
}

fn disk(line: &str) -> Option<Disk> {
    let mut words = line.split_ascii_whitespace();
    let name = words.nth(2)?.to_owned();
    let counts: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
    let transfers = |at: usize| match counts.get(at..at + 4)? {
        &[requests, merges, sectors, ms] => Some(Transfers { requests, merges, sectors, ms }),
        _ => None,
    };
    Some(Disk {
        name,
        reads: transfers(0)?,
        writes: transfers(4)?,
        in_flight: *counts.get(8)?,
        busy_ms: *counts.get(9)?,
        weighted_ms: *counts.get(10)?,
        discards: transfers(11),
        flushes: counts.get(15).copied().zip(counts.get(16).copied()),
    })
}

impl Disk {
    pub fn was_used(&self) -> bool {
        self.reads.requests + self.writes.requests + self.in_flight > 0
    }
}

/// Activity of a device between two readings.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Rates {
    reads: f64,
    writes: f64,
    read_bytes: f64,
    write_bytes: f64,
    read_merges: f64,
    write_merges: f64,
    read_ms: f64,
    write_ms: f64,
    busy_ms: f64,
    weighted_ms: f64,
    span_s: f64,
}

impl Rates {
    /// `None` if a counter decreased: the name now belongs to another device.
    fn between(before: &Disk, after: &Disk, span_s: f64) -> Option<Self> {
        Some(Self {
            reads: growth(before.reads.requests, after.reads.requests)?,
            writes: growth(before.writes.requests, after.writes.requests)?,
            read_bytes: SECTOR_BYTES * growth(before.reads.sectors, after.reads.sectors)?,
            write_bytes: SECTOR_BYTES * growth(before.writes.sectors, after.writes.sectors)?,
            read_merges: growth(before.reads.merges, after.reads.merges)?,
            write_merges: growth(before.writes.merges, after.writes.merges)?,
            read_ms: milliseconds(before.reads.ms, after.reads.ms),
            write_ms: milliseconds(before.writes.ms, after.writes.ms),
            busy_ms: milliseconds(before.busy_ms, after.busy_ms),
            weighted_ms: milliseconds(before.weighted_ms, after.weighted_ms),
            span_s,
        })
    }

    fn requests(&self) -> f64 {
        self.reads + self.writes
    }

    /// Mean number of requests in flight over the whole interval: iostat's aqu-sz.
    fn queue_mean(&self) -> Option<f64> {
        ratio(Some(self.weighted_ms * 1e-3), Some(self.span_s))
    }

    /// Mean number of requests in flight while the device was busy: collectl's QLen.
    fn queue_busy(&self) -> Option<f64> {
        ratio(Some(self.weighted_ms), Some(self.busy_ms))
    }
}

/// Increase of a counter of milliseconds. The kernel prints only its lower 32 bits, which a busy disk exceeds in weeks.
fn milliseconds(before: u64, after: u64) -> f64 {
    if after >= before { (after - before) as f64 } else { f64::from((after as u32).wrapping_sub(before as u32)) }
}

/// Adds the columns of a device. Without an earlier reading, only instantaneous values are known.
pub(crate) fn put(sheet: &mut Sheet, subject: &str, before: Option<&Disk>, after: &Disk, span_s: f64) {
    let rates = before.and_then(|before| Rates::between(before, after, span_s));
    let per_s = |amount: fn(&Rates) -> f64| ratio(rates.as_ref().map(amount), Some(span_s));
    let per =
        |amount: fn(&Rates) -> f64, by: fn(&Rates) -> f64| ratio(rates.as_ref().map(amount), rates.as_ref().map(by));
    sheet.put(subject, "reads_per_s", per_s(|r| r.reads));
    sheet.put(subject, "writes_per_s", per_s(|r| r.writes));
    sheet.put(subject, "ios_per_s", per_s(Rates::requests));
    sheet.put(subject, "read_bytes_per_s", per_s(|r| r.read_bytes));
    sheet.put(subject, "write_bytes_per_s", per_s(|r| r.write_bytes));
    sheet.put(subject, "read_merges_per_s", per_s(|r| r.read_merges));
    sheet.put(subject, "write_merges_per_s", per_s(|r| r.write_merges));
    sheet.put(subject, "read_size_bytes", per(|r| r.read_bytes, |r| r.reads));
    sheet.put(subject, "write_size_bytes", per(|r| r.write_bytes, |r| r.writes));
    sheet.put(subject, "size_bytes", per(|r| r.read_bytes + r.write_bytes, Rates::requests));
    sheet.put(subject, "r_await_ms", per(|r| r.read_ms, |r| r.reads));
    sheet.put(subject, "w_await_ms", per(|r| r.write_ms, |r| r.writes));
    sheet.put(subject, "await_ms", per(|r| r.read_ms + r.write_ms, Rates::requests));
    sheet.put(subject, "queue_mean", rates.as_ref().and_then(Rates::queue_mean));
    sheet.put(subject, "queue_busy", rates.as_ref().and_then(Rates::queue_busy));
    sheet.put(subject, "util_percent", per_s(|r| r.busy_ms * 0.1));
    sheet.put(subject, "svctm_ms", per(|r| r.busy_ms, Rates::requests));
    sheet.put(subject, "in_flight", Some(after.in_flight as f64));
    put_discards(sheet, subject, before.and_then(|before| before.discards), after.discards, span_s);
    put_flushes(sheet, subject, before.and_then(|before| before.flushes), after.flushes, span_s);
}

fn put_discards(sheet: &mut Sheet, subject: &str, before: Option<Transfers>, after: Option<Transfers>, span_s: f64) {
    if let Some(after) = after {
        let grown = |of: fn(&Transfers) -> u64| growth(of(&before?), of(&after));
        sheet.put(subject, "discards_per_s", ratio(grown(|d| d.requests), Some(span_s)));
        let bytes = grown(|d| d.sectors).map(|sectors| sectors * SECTOR_BYTES);
        sheet.put(subject, "discard_bytes_per_s", ratio(bytes, Some(span_s)));
    }
}

fn put_flushes(sheet: &mut Sheet, subject: &str, before: Option<(u64, u64)>, after: Option<(u64, u64)>, span_s: f64) {
    if let Some(after) = after {
        let flushes = before.and_then(|before| growth(before.0, after.0));
        sheet.put(subject, "flushes_per_s", ratio(flushes, Some(span_s)));
        let taken_ms = flushes.and(before).map(|before| milliseconds(before.1, after.1));
        sheet.put(subject, "f_await_ms", ratio(taken_ms, flushes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: &str = " 254       0 vda 1000 50 80000 4000 200 30 16000 600 3 2500 9000 7 1 4096 5 11 22\n";

    fn row(before: Option<&Disk>, after: &Disk, span_s: f64) -> impl Fn(&str) -> Option<f64> + use<> {
        let mut sheet = Sheet::default();
        put(&mut sheet, "disk.vda", before, after, span_s);
        let values: Vec<_> = sheet.names().iter().cloned().zip(sheet.values().to_vec()).collect();
        move |name| values.iter().find(|(known, _)| *known == format!("disk.vda.{name}")).and_then(|(_, value)| *value)
    }

    #[test]
    fn every_column_of_a_new_kernel_goes_where_it_belongs() {
        let disks = parse(NEW);
        let transfers = |requests, merges, sectors, ms| Transfers { requests, merges, sectors, ms };
        let expected = Disk {
            name: "vda".to_owned(),
            reads: transfers(1000, 50, 80_000, 4_000),
            writes: transfers(200, 30, 16_000, 600),
            in_flight: 3,
            busy_ms: 2_500,
            weighted_ms: 9_000,
            discards: Some(transfers(7, 1, 4_096, 5)),
            flushes: Some((11, 22)),
        };
        assert_eq!(disks, [expected]);
    }

    #[test]
    fn old_kernels_have_fewer_columns_and_names_may_be_odd() {
        let text = "   8    0 sda 1 2 3 4 5 6 7 8 9 10 11\n   8    1 sda1 5 6 7 8\n 104    0 cciss/c0d0 1 2 3 4 5 6 7 8 9 10 11\n\
            253 3 dm-3 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\nnonsense\n\n";
        let disks = parse(text);
        let names: Vec<&str> = disks.iter().map(|disk| disk.name.as_str()).collect();
        assert_eq!(names, ["sda", "cciss/c0d0", "dm-3"]);
        assert_eq!((disks[0].discards, disks[0].flushes, disks[0].weighted_ms), (None, None, 11));
        assert_eq!(disks[2].discards.map(|discards| discards.sectors), Some(14));
        assert_eq!(disks[2].flushes, None);
        let value = row(Some(&disks[0]), &disks[0], 1.0);
        assert_eq!((value("discards_per_s"), value("flushes_per_s")), (None, None));
    }

    #[test]
    fn the_columns_are_those_of_iostat_and_of_collectl() {
        let before = parse(NEW).remove(0);
        let text = "254 0 vda 1100 60 88000 5000 250 30 24000 900 2 3500 13000 7 1 4096 5 15 32\n";
        let value = row(Some(&before), &parse(text)[0], 2.0);
        let expected = [
            ("reads_per_s", 50.0),
            ("writes_per_s", 25.0),
            ("ios_per_s", 75.0),
            ("read_bytes_per_s", 2_048_000.0),
            ("write_bytes_per_s", 2_048_000.0),
            ("read_merges_per_s", 5.0),
            ("write_merges_per_s", 0.0),
            ("read_size_bytes", 40_960.0),
            ("write_size_bytes", 81_920.0),
            ("r_await_ms", 10.0),
            ("w_await_ms", 6.0),
            ("queue_mean", 2.0),
            ("queue_busy", 4.0),
            ("util_percent", 50.0),
            ("in_flight", 2.0),
            ("discards_per_s", 0.0),
            ("flushes_per_s", 2.0),
            ("f_await_ms", 2.5),
        ];
        for (name, wanted) in expected {
            assert_eq!(value(name), Some(wanted), "{name}");
        }
        let close = |name: &str, wanted: f64| assert!((value(name).unwrap() - wanted).abs() < 1e-9, "{name}");
        close("size_bytes", 8_192_000.0 / 150.0);
        close("await_ms", 1_300.0 / 150.0);
        close("svctm_ms", 1_000.0 / 150.0);
    }

    #[test]
    fn an_idle_device_has_rates_of_nothing_and_no_means() {
        let disk = parse(NEW).remove(0);
        let value = row(Some(&disk), &disk, 1.0);
        assert_eq!(
            (value("reads_per_s"), value("util_percent"), value("queue_mean")),
            (Some(0.0), Some(0.0), Some(0.0))
        );
        assert_eq!((value("r_await_ms"), value("size_bytes"), value("queue_busy")), (None, None, None));
        assert_eq!((value("svctm_ms"), value("f_await_ms")), (None, None));
    }

    #[test]
    fn a_counter_of_milliseconds_may_run_over() {
        let mut before = parse(NEW).remove(0);
        let after = before.clone();
        before.weighted_ms = u64::from(u32::MAX) - 999;
        assert_eq!(row(Some(&before), &after, 1.0)("queue_mean"), Some(10.0));
    }

    #[test]
    fn a_device_that_is_new_or_was_changed_has_no_rates_yet() {
        let disk = parse(NEW).remove(0);
        let more = Disk { reads: Transfers { requests: 2_000, ..disk.reads }, ..disk.clone() };
        for before in [None, Some(&more)] {
            let value = row(before, &disk, 1.0);
            assert_eq!((value("reads_per_s"), value("util_percent"), value("in_flight")), (None, None, Some(3.0)));
        }
    }
}
