//! Checks what the kernel permits this process.

use std::fs;

use forebay_observe::Capability;
use forebay_storage::tier::{has_loop_devices, kernel_support, limit_support};
use forebay_storage::{Capabilities, Support, cache};
use forebay_units::{Bytes, chain, count, group_digits};

use super::Check;

/// Open files that a run with many readers and shards may need.
const FEW_FILES: u64 = 1024;
/// The default of systemd.
const LITTLE_LOCKED: u64 = 8 << 20;

pub(super) fn checks(observed: &[Capability]) -> Vec<Check> {
    vec![
        io_uring(),
        whole_cache(),
        loop_devices(),
        mounts(),
        limits(),
        counters(observed),
        pressure(observed),
        delay(observed),
        processors(),
        open_files(),
        locked_memory(),
    ]
}

pub(crate) fn is_root() -> bool {
    // SAFETY: the call has no arguments and touches no memory.
    unsafe { libc::geteuid() == 0 }
}

/// The soft and the hard limit of this process; `None` if the kernel does not tell.
pub(crate) fn limit(of: libc::__rlimit_resource_t) -> Option<(u64, u64)> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is valid for writes.
    let code = unsafe { libc::getrlimit(of, &raw mut limit) };
    (code == 0).then_some((limit.rlim_cur, limit.rlim_max))
}

fn io_uring() -> Check {
    let name = "io_uring";
    let Support::No(why) = Capabilities::io_uring() else { return Check::ok(name, "available") };
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    // The file contains the program's name, which may be any bytes.
    let status = String::from_utf8_lossy(&fs::read("/proc/self/status").unwrap_or_default()).into_owned();
    let hint = why_no_ring(&read("/proc/sys/kernel/io_uring_disabled"), &status);
    Check::missing(name, why, "no --io uring and no probe --engine uring; --io direct works", hint)
}

/// Why io_uring is unavailable, by the kernel's switch and this process's filters.
fn why_no_ring(switch: &str, status: &str) -> &'static str {
    let is_filtered = status.lines().any(|line| line.strip_prefix("Seccomp:").is_some_and(|mode| mode.trim() == "2"));
    match switch.trim() {
        "2" => "as root: sysctl kernel.io_uring_disabled=0",
        "1" => "as root: sysctl kernel.io_uring_disabled=0, or join the group kernel.io_uring_group",
        _ if is_filtered => "blocked by a seccomp filter, as in containers: run with --security-opt seccomp=unconfined",
        _ => "needs Linux 5.19 or later",
    }
}

fn whole_cache() -> Check {
    let name = "whole page cache";
    match cache::may_drop_all() {
        Ok(()) => Check::ok(name, "can be dropped"),
        Err(why) => {
            let costs = "with --cold, files mapped by another process stay warm and are marked warm";
            Check::limited(name, format!("drop_caches: {why}"), costs, as_root("run as root"))
        }
    }
}

/// The hint if root rights are needed; a root user without them is in a container.
fn as_root(hint: &str) -> String {
    if is_root() { "in a container, run with --privileged".to_owned() } else { hint.to_owned() }
}

const TIERS: &str = "no kernel tiers; tier up creates shaped tiers, which slow down forebay only";

fn loop_devices() -> Check {
    let name = "loop devices";
    match has_loop_devices() {
        true => Check::ok(name, "/dev/loop-control exists"),
        false => Check::missing(
            name,
            "/dev/loop-control does not exist",
            TIERS,
            "modprobe loop; in a container, --privileged",
        ),
    }
}

fn mounts() -> Check {
    let name = "mounting";
    match kernel_support() {
        Ok(()) => Check::ok(name, "kernel tiers can be mounted"),
        Err(obstacle) => Check::missing(name, obstacle.to_string(), TIERS, as_root("sudo forebay tier up NAME")),
    }
}

fn limits() -> Check {
    let name = "I/O limits";
    match limit_support() {
        Ok(1) => Check::ok(name, "blkio of cgroup v1 can be set; child groups do not inherit it"),
        Ok(version) => Check::ok(name, format!("io.max of cgroup v{version} can be set")),
        Err(error) => {
            let hint = error.hint().unwrap_or_else(|| as_root("sudo forebay tier up NAME"));
            Check::missing(name, chain(&error), TIERS, hint)
        }
    }
}

/// The first missing capability among those selected by name.
fn missing(observed: &[Capability], is_asked: impl Fn(&str) -> bool) -> Option<&str> {
    observed.iter().filter(|one| is_asked(one.name)).find_map(|one| one.missing.as_deref())
}

fn counters(observed: &[Capability]) -> Check {
    let name = "counters";
    let is_plain = |name: &str| !name.starts_with("psi") && name != "gpu" && name != "process.io_delay";
    match missing(observed, is_plain) {
        None => Check::ok(name, "processors, memory, disks, network, processes"),
        Some(why) => {
            Check::limited(name, why, "missing columns in watch and in records", "mount /proc without restrictions")
        }
    }
}

fn pressure(observed: &[Capability]) -> Check {
    let name = "pressure (PSI)";
    let costs = "watch and records do not show how long tasks stalled on I/O, memory, processors";
    match missing(observed, |name| name.starts_with("psi")) {
        None => Check::ok(name, "/proc/pressure is readable"),
        Some(why) => Check::missing(name, why, costs, "boot with psi=1, on a kernel with CONFIG_PSI"),
    }
}

fn delay(observed: &[Capability]) -> Check {
    let name = "I/O delay";
    let costs = "watch does not show how long a command's processes waited for disks";
    match missing(observed, |name| name == "process.io_delay") {
        None => Check::ok(name, "counted per process"),
        Some(_) => {
            Check::missing(name, "the kernel does not count it", costs, "as root: sysctl kernel.task_delayacct=1")
        }
    }
}

fn processors() -> Check {
    // SAFETY: the call touches no memory of ours.
    let online = u64::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }).unwrap_or(0);
    let usable = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    of_processors(online, pinned_to(), usable)
}

/// The number of processors that this process may run on.
fn pinned_to() -> Option<u64> {
    // SAFETY: all zeros are a valid, empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the length is that of the set, which is valid for writes.
    let code = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) };
    // SAFETY: the call has filled the set.
    (code == 0).then(|| unsafe { libc::CPU_COUNT(&set) } as u64)
}

fn of_processors(online: u64, pinned: Option<u64>, usable: u64) -> Check {
    let name = "processors";
    if usable >= online {
        return Check::ok(name, count(usable, "core"));
    }
    let found = format!("{} of {}", group_digits(usable), count(online, "core"));
    let costs = "thread counts and \"cores\" use only these by default";
    match pinned.filter(|pinned| *pinned <= usable) {
        Some(_) => {
            Check::limited(name, format!("{found}: pinned"), costs, "unpin with taskset, mpirun --bind-to none or srun")
        }
        None => Check::limited(
            name,
            format!("{found}: the control group's quota"),
            costs,
            "raise cpu.max, or --cpus of docker",
        ),
    }
}

fn open_files() -> Check {
    let name = "open files";
    let Some((soft, hard)) = limit(libc::RLIMIT_NOFILE) else { return Check::ok(name, "limit unknown") };
    let found = format!("at most {}", group_digits(soft));
    match soft < FEW_FILES {
        false => Check::ok(name, found),
        true => {
            let hint = format!("ulimit -n {}", hard.min(65_536));
            Check::limited(name, found, "runs with many readers, shards or ranks may fail", hint)
        }
    }
}

fn locked_memory() -> Check {
    let name = "locked memory";
    match limit(libc::RLIMIT_MEMLOCK) {
        Some((soft, _)) if soft < LITTLE_LOCKED => {
            let costs = "MPI over InfiniBand, and io_uring before Linux 5.12, may fail";
            Check::limited(
                name,
                format!("at most {}", Bytes(soft)),
                costs,
                "ulimit -l unlimited, or raise memlock in limits.conf",
            )
        }
        Some((soft, _)) if soft < libc::RLIM_INFINITY => Check::ok(name, format!("at most {}", Bytes(soft))),
        _ => Check::ok(name, "unlimited"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::State;

    #[test]
    fn a_ring_is_refused_by_the_switch_then_by_a_filter_then_by_an_old_kernel() {
        let filtered = "Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t1\n";
        assert!(why_no_ring("2\n", filtered).ends_with("kernel.io_uring_disabled=0"));
        assert!(why_no_ring("1\n", "").contains("kernel.io_uring_group"));
        assert!(why_no_ring("0\n", filtered).contains("seccomp"));
        assert!(why_no_ring("", "Seccomp:\t0\n").contains("5.19"));
    }

    #[test]
    fn fewer_processors_are_pinned_or_rationed() {
        assert_eq!(of_processors(16, Some(16), 16).state, State::Ok);
        assert_eq!(of_processors(16, Some(4), 4).found, "4 of 16 cores: pinned");
        assert_eq!(of_processors(16, Some(16), 2).found, "2 of 16 cores: the control group's quota");
        assert_eq!(of_processors(16, None, 2).state, State::Limited);
    }
}
