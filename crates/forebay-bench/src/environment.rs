//! The machine a run takes place on.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use forebay_record::Environment;
use forebay_units::Bytes;

/// Describes this machine and the file system under `data`.
pub fn describe_environment(data: &Path, version: &str) -> Environment {
    let (data_file_system, data_mount) = file_system_of(data).unzip();
    Environment {
        version: version.to_owned(),
        started_at: utc_now(),
        cpu: field("/proc/cpuinfo", "model name"),
        n_cores: std::thread::available_parallelism().map_or(1, |n| n.get() as u64),
        memory_bytes: memory().map(|memory| memory.0),
        kernel: fs::read_to_string("/proc/sys/kernel/osrelease").ok().map(|text| text.trim().to_owned()),
        data_file_system,
        data_mount,
        data_file_system_id: crate::file_system::id_of(data),
        // SAFETY: no arguments, no memory.
        root: unsafe { libc::geteuid() } == 0,
    }
}

/// The machine's memory.
pub(crate) fn memory() -> Option<Bytes> {
    field("/proc/meminfo", "MemTotal").and_then(|text| kibibytes(&text)).map(Bytes)
}

fn field(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn kibibytes(text: &str) -> Option<u64> {
    text.strip_suffix("kB")?.trim().parse::<u64>().ok().map(|n| n * 1024)
}

/// Type and device, and mount point, of the longest mount point above the path, from `/proc/self/mounts`.
pub(crate) fn file_system_of(path: &Path) -> Option<(String, String)> {
    let path = path.canonicalize().ok()?;
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let mut best: Option<(usize, (String, String))> = None;
    for line in mounts.lines() {
        let mut words = line.split(' ');
        let (device, point, kind) = (words.next()?, words.next()?, words.next()?);
        let point = point.replace("\\040", " ");
        let depth = Path::new(&point).components().count();
        // A later mount on the same point hides the earlier one.
        if path.starts_with(&point) && best.as_ref().is_none_or(|(known, _)| depth >= *known) {
            best = Some((depth, (format!("{kind} on {device}"), point)));
        }
    }
    best.map(|(_, found)| found)
}

/// Now, in UTC, as "2026-11-15T17:03:00Z".
pub(crate) fn utc_now() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    forebay_units::format_utc(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_lies_on_some_file_system() {
        let (file_system, mount) = file_system_of(Path::new("/")).unwrap();
        assert!(file_system.contains(" on "), "{file_system}");
        assert_eq!(mount, "/");
    }
}
