//! The machine a run takes place on.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use forebay_record::Environment;
use forebay_units::{Bytes, PathText};

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

/// Installed memory, regardless of how much this process may use.
pub fn memory() -> Option<Bytes> {
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

/// File system type with its device, and mount point, from `/proc/self/mounts`; the deepest mount above the path
/// counts.
pub fn file_system_of(path: &Path) -> Option<(String, String)> {
    let path = path.canonicalize().ok()?;
    nearest_mount(&path, &fs::read("/proc/self/mounts").ok()?)
}

/// Mount tables may contain arbitrary bytes: one odd name must not make the other lines unreadable.
fn nearest_mount(path: &Path, mounts: &[u8]) -> Option<(String, String)> {
    let mut best: Option<(usize, (String, String))> = None;
    for line in mounts.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        let mut words = line.split(|&byte| byte == b' ').map(from_octal);
        let (device, point, kind) = (words.next()?, words.next()?, words.next()?);
        let depth = point.components().count();
        // A later mount on the same point hides the earlier one.
        if path.starts_with(&point) && best.as_ref().is_none_or(|(known, _)| depth >= *known) {
            let kind = format!("{} on {}", kind.escaped(), device.escaped());
            best = Some((depth, (kind, point.escaped().into_owned())));
        }
    }
    best.map(|(_, found)| found)
}

/// Decodes the kernel's escapes: space, tab, line feed and backslash are a backslash and three octal digits.
fn from_octal(word: &[u8]) -> PathBuf {
    let mut out = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((first, tail)) = rest.split_first() {
        let digits = tail.get(..3).filter(|_| *first == b'\\').and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        out.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &tail[3..] } else { tail };
    }
    PathBuf::from(OsString::from_vec(out))
}

/// The current time in UTC, as "2026-11-15T17:03:00Z".
pub fn utc_now() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    forebay_units::format_utc(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn a_mount_point_of_any_bytes_is_found_and_hides_no_other() {
        let table = b"/dev/a / ext4 rw 0 0\n/dev/b /mnt/ph\xffotos xfs rw 0 0\n/dev/c /mnt/a\\040\\134b btrfs rw 0 0\n";
        let found = |path: &[u8]| nearest_mount(Path::new(OsStr::from_bytes(path)), table).unwrap();
        assert_eq!(found(b"/mnt/ph\xffotos/x"), ("xfs on /dev/b".to_owned(), r"/mnt/ph\xffotos".to_owned()));
        assert_eq!(found(b"/mnt/a \\b/x"), ("btrfs on /dev/c".to_owned(), r"/mnt/a \\b".to_owned()));
        assert_eq!(found(b"/home"), ("ext4 on /dev/a".to_owned(), "/".to_owned()));
    }

    #[test]
    fn the_root_lies_on_some_file_system() {
        let (file_system, mount) = file_system_of(Path::new("/")).unwrap();
        assert!(file_system.contains(" on "), "{file_system}");
        assert_eq!(mount, "/");
    }
}
