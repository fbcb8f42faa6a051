//! The observable quantities on this machine, and why the others are missing.

use std::path::Path;

use crate::delay::DELAY_HINT;
use crate::files::ProcFile;
use crate::nvml::Nvml;

/// A quantity, and whether it can be observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capability {
    /// As in the names of the columns: "psi.io", "process.io_delay", "gpu".
    pub name: &'static str,
    /// Why it is missing; `None` if it is available.
    pub missing: Option<String>,
}

/// Checks every quantity that may be missing. Loads the GPU's library if there is one, which may take a second.
pub fn capabilities() -> Vec<Capability> {
    let file = |name, path: &str| Capability { name, missing: ProcFile::open(path.into()).trouble() };
    vec![
        file("cpu", "/proc/stat"),
        file("memory", "/proc/meminfo"),
        file("paging", "/proc/vmstat"),
        file("disk", "/proc/diskstats"),
        file("net", "/proc/net/dev"),
        file("psi.io", "/proc/pressure/io"),
        file("psi.cpu", "/proc/pressure/cpu"),
        file("psi.memory", "/proc/pressure/memory"),
        file("process", "/proc/self/io"),
        Capability { name: "process.io_delay", missing: delay(Path::new("/proc")) },
        Capability { name: "gpu", missing: Nvml::load().err() },
    ]
}

fn delay(proc: &Path) -> Option<String> {
    let text = std::fs::read_to_string(proc.join("sys/kernel/task_delayacct"));
    // Older kernels have no switch and do not report whether they count.
    text.is_ok_and(|text| text.trim() == "0").then(|| DELAY_HINT.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_switch_of_the_kernel_decides_about_delay() {
        let proc = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(proc.path().join("sys/kernel")).unwrap();
        let set = |text| std::fs::write(proc.path().join("sys/kernel/task_delayacct"), text).unwrap();
        assert_eq!(delay(proc.path()), None);
        set("1\n");
        assert_eq!(delay(proc.path()), None);
        set("0\n");
        assert_eq!(delay(proc.path()).as_deref(), Some(DELAY_HINT));
    }

    #[test]
    fn linux_has_at_least_its_disks_and_processors() {
        let all = capabilities();
        for name in ["cpu", "memory", "disk", "process"] {
            let capability = all.iter().find(|capability| capability.name == name).unwrap();
            assert_eq!(capability.missing, None, "{name}");
        }
        let gpu = all.iter().find(|capability| capability.name == "gpu").unwrap();
        let has_driver = Path::new("/proc/driver/nvidia/version").exists();
        assert!(has_driver || gpu.missing.is_some(), "no driver, and no reason given");
    }
}
