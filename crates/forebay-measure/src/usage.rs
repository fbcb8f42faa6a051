//! Resources of this process.

/// CPU time so far, user and system, of all threads.
pub fn cpu_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is valid and written by the call alone.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// `None` where the kernel does not report it.
pub fn peak_resident_bytes() -> Option<u64> {
    status_bytes("VmHWM:")
}

/// A line of `/proc/self/status` whose unit is kB, in bytes.
pub fn status_bytes(name: &str) -> Option<u64> {
    // The program's name is part of the file and may be any bytes.
    let text = std::fs::read("/proc/self/status").ok()?;
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

/// By CPU affinity; empty if the kernel does not report it.
pub fn allowed_cores() -> Vec<u32> {
    let mut set = std::mem::MaybeUninit::<libc::cpu_set_t>::zeroed();
    // SAFETY: the set is as long as is said, and all zeros is a valid one.
    let rc = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), set.as_mut_ptr()) };
    // SAFETY: zeros, or what the call wrote.
    let set = unsafe { set.assume_init() };
    // SAFETY: the macro only looks at a bit of the set, and the number is within it.
    let is_set = |core: &u32| unsafe { libc::CPU_ISSET(*core as usize, &set) };
    if rc == 0 { (0..libc::CPU_SETSIZE as u32).filter(is_set).collect() } else { Vec::new() }
}

/// How many threads can run at once: affinity and cgroup quota both count.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Whether or not this process may use them.
pub fn online_cores() -> u64 {
    // SAFETY: the call takes nothing but a number.
    unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }.max(1) as u64
}

/// Since the process started, to a hundredth; `None` where the kernel does not report it.
pub fn age_s() -> Option<f64> {
    let text = std::fs::read("/proc/self/stat").ok()?;
    let text = String::from_utf8_lossy(&text);
    // The name may contain anything, also brackets; the numbers follow the last one.
    let ticks: f64 = text.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()?;
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is valid and written by the call alone.
    let rc = unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut now) };
    // SAFETY: the call takes nothing but a number.
    let per_s = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
    (rc == 0 && per_s > 0.0).then(|| now.tv_sec as f64 + now.tv_nsec as f64 / 1e9 - ticks / per_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_processor_time() {
        let before = cpu_seconds();
        let mut x = 1u64;
        while cpu_seconds() - before < 0.002 {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
        assert!(cpu_seconds() > before);
    }

    #[test]
    fn the_kernel_tells_of_this_process() {
        let age = age_s().unwrap();
        assert!((-0.1..3600.0).contains(&age), "{age}");
        assert!(peak_resident_bytes().unwrap() > 100_000);
        let allowed = allowed_cores();
        assert!(!allowed.is_empty() && allowed.len() as u64 <= online_cores(), "{allowed:?}");
    }
}
