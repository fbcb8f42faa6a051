//! Resources of this process.

/// CPU time of all threads so far, user and system.
pub fn cpu_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is valid, and only the call writes it.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// `None` if the kernel does not report it.
pub fn peak_resident_bytes() -> Option<u64> {
    status_bytes("VmHWM:")
}

/// The value in bytes of a line of `/proc/self/status` whose unit is kB.
pub fn status_bytes(name: &str) -> Option<u64> {
    // The file contains the program's name, which may be any bytes.
    let text = std::fs::read("/proc/self/status").ok()?;
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

/// Cores by CPU affinity; empty if the kernel does not report it.
pub fn allowed_cores() -> Vec<u32> {
    let mut set = std::mem::MaybeUninit::<libc::cpu_set_t>::zeroed();
    // SAFETY: the size is that of the set, and zeros are a valid set.
    let rc = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), set.as_mut_ptr()) };
    // SAFETY: zeros, or what the call wrote.
    let set = unsafe { set.assume_init() };
    // SAFETY: the macro only reads a bit of the set, and the number is within it.
    let is_set = |core: &u32| unsafe { libc::CPU_ISSET(*core as usize, &set) };
    if rc == 0 { (0..libc::CPU_SETSIZE as u32).filter(is_set).collect() } else { Vec::new() }
}

/// Number of threads that can run at once, by affinity and cgroup quota.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Cores of the machine, including those that this process may not use.
pub fn online_cores() -> u64 {
    // SAFETY: the call takes only a number.
    unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }.max(1) as u64
}

/// Time since the process started, to a hundredth of a second; `None` if the kernel does not report it.
pub fn age_s() -> Option<f64> {
    let text = std::fs::read("/proc/self/stat").ok()?;
    let text = String::from_utf8_lossy(&text);
    // The name may contain anything, including brackets; the numbers follow the last bracket.
    let ticks: f64 = text.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()?;
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is valid, and only the call writes it.
    let rc = unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut now) };
    // SAFETY: the call takes only a number.
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
