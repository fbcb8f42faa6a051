//! The mount table, mounting, unmounting, and the processes that use a mount.

use std::ffi::{CString, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::error::Attempt;
use super::{Device, Error, FileSystem, Result};

const TABLE: &str = "/proc/self/mountinfo";

/// An error names at most this many processes.
const HOLDERS_NAMED: usize = 5;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mount {
    /// Major and minor number of the device, as in `7:0`.
    pub(super) number: String,
    /// Which folder of the file system is mounted.
    pub(super) root: PathBuf,
    pub(super) point: PathBuf,
    pub(super) fs: String,
    pub(super) options: String,
}

/// All mounts that this process sees.
pub(super) fn table() -> Result<Vec<Mount>> {
    let text = fs::read(TABLE).attempt("reading", Path::new(TABLE))?;
    Ok(parse(&text))
}

/// `36 35 98:0 /root /point rw,noatime master:1 - ext3 /dev/root rw`, the part before the dash being of any length.
pub(super) fn parse(text: &(impl AsRef<[u8]> + ?Sized)) -> Vec<Mount> {
    let mount = |line: &[u8]| {
        let words: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
        let dash = words.iter().skip(6).position(|word| *word == b"-")? + 6;
        let text = |word: &[u8]| String::from_utf8_lossy(word).into_owned();
        Some(Mount {
            number: text(words.get(2)?),
            root: unescape(words.get(3)?),
            point: unescape(words.get(4)?),
            fs: text(words.get(dash + 1)?),
            options: text(words.get(dash + 3)?),
        })
    };
    text.as_ref().split(|&byte| byte == b'\n').filter_map(mount).collect()
}

/// Space, tab, line feed and backslash are written as a backslash and three octal digits.
fn unescape(text: &[u8]) -> PathBuf {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, tail)) = rest.split_first() {
        let octal = |digits: &[u8]| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok();
        match tail.get(..3).filter(|_| *first == b'\\').and_then(octal) {
            Some(byte) => {
                out.push(byte);
                rest = &tail[3..];
            }
            None => {
                out.push(*first);
                rest = tail;
            }
        }
    }
    PathBuf::from(OsString::from_vec(out))
}

/// Whether the device is visible at this folder: a later mount on the same point hides an earlier one.
pub(super) fn is_mounted(mounts: &[Mount], device: &Device, point: &Path) -> bool {
    mounts.iter().rev().find(|mount| mount.point == point).is_some_and(|mount| mount.number == device.number)
}

fn c_path(path: &Path) -> Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(io::Error::from).attempt("naming", path)
}

/// Mounts a device without device files or set-uid programs.
pub(super) fn mount(device: &Path, fs: FileSystem, point: &Path) -> Result<()> {
    let kind = CString::new(fs.to_string()).expect("the name of a file system has no zero byte");
    let (source, target) = (c_path(device)?, c_path(point)?);
    let flags = libc::MS_NODEV | libc::MS_NOSUID;
    // SAFETY: three strings that end with a zero byte and live through the call; no options are passed.
    let code = unsafe { libc::mount(source.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, std::ptr::null()) };
    match code {
        0 => Ok(()),
        _ => Err(Error::MountRefused {
            device: device.to_owned(),
            path: point.to_owned(),
            source: io::Error::last_os_error(),
        }),
    }
}

/// Unmounts the latest mount at this folder. If processes use it, they are named and nothing is unmounted.
pub(super) fn unmount(point: &Path) -> Result<()> {
    let target = c_path(point)?;
    // SAFETY: a string that ends with a zero byte and lives through the call.
    if unsafe { libc::umount2(target.as_ptr(), libc::UMOUNT_NOFOLLOW) } == 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        error if error.raw_os_error() == Some(libc::EBUSY) => {
            Err(Error::Busy { path: point.to_owned(), holders: holders(point) })
        }
        error => Err(error).attempt("unmounting", point),
    }
}

/// The processes with their working folder, program or an open file below this folder, as "sh (1234)".
fn holders(point: &Path) -> Vec<String> {
    let Ok(listed) = fs::read_dir("/proc") else { return Vec::new() };
    let is_process =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.as_bytes().iter().all(u8::is_ascii_digit));
    let processes = listed.flatten().map(|entry| entry.path()).filter(is_process);
    processes.filter(|process| holds(process, point)).take(HOLDERS_NAMED).map(|process| name_of(&process)).collect()
}

fn holds(process: &Path, point: &Path) -> bool {
    let files = fs::read_dir(process.join("fd")).into_iter().flatten().flatten().map(|entry| entry.path());
    let links = ["cwd", "root", "exe"].map(|name| process.join(name)).into_iter().chain(files);
    links.into_iter().any(|link| fs::read_link(link).is_ok_and(|path| path.starts_with(point)))
}

fn name_of(process: &Path) -> String {
    let name = fs::read_to_string(process.join("comm")).unwrap_or_default();
    let id = process.file_name().unwrap_or_default().to_string_lossy();
    format!("{} ({id})", name.trim())
}

/// Total, used and free bytes of the file system at this folder.
pub(super) fn space(path: &Path) -> Result<Space> {
    let target = c_path(path)?;
    // SAFETY: a plain structure of integers, for which all zeros is a value.
    let mut found: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the string ends with a zero byte; the structure is written by the call alone.
    if unsafe { libc::statvfs(target.as_ptr(), &raw mut found) } != 0 {
        return Err(io::Error::last_os_error()).attempt("getting the free space of", path);
    }
    let block = found.f_frsize;
    Ok(Space {
        total: found.f_blocks * block,
        used: (found.f_blocks - found.f_bfree) * block,
        free: found.f_bavail * block,
    })
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Space {
    pub(super) total: u64,
    pub(super) used: u64,
    pub(super) free: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_mount_table_has_any_number_of_tags() {
        let text = "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n\
                    60 27 7:0 / /tiers/my\\040disk/data rw shared:9 master:1 - xfs /dev/loop0 rw,attr2\n\
                    broken line\n";
        let mounts = parse(text);
        assert_eq!(mounts.len(), 2);
        assert_eq!(mounts[1].point, Path::new("/tiers/my disk/data"));
        assert_eq!((mounts[1].number.as_str(), mounts[1].fs.as_str()), ("7:0", "xfs"));
        assert_eq!(mounts[1].options, "rw,attr2");
    }

    #[test]
    fn a_later_mount_hides_the_earlier_one() {
        let mounts = parse("1 1 7:0 / /a rw - ext4 /dev/loop0 rw\n2 1 7:1 / /a rw - ext4 /dev/loop1 rw\n");
        let device = |n: u32| Device { path: format!("/dev/loop{n}").into(), number: format!("7:{n}") };
        assert!(is_mounted(&mounts, &device(1), Path::new("/a")));
        assert!(!is_mounted(&mounts, &device(0), Path::new("/a")));
        assert!(!is_mounted(&mounts, &device(1), Path::new("/b")));
    }

    #[test]
    fn a_backslash_that_escapes_nothing_stays() {
        assert_eq!(unescape(br"/a\134b\"), Path::new(r"/a\b\"));
        assert_eq!(unescape(br"/a\9x"), Path::new(r"/a\9x"));
    }

    #[test]
    fn a_process_that_holds_a_folder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let point = folder.path().canonicalize().unwrap();
        assert!(holders(&point).is_empty());
        let _open = fs::File::create(point.join("file")).unwrap();
        let found = holders(&point);
        assert!(found.len() == 1 && found[0].ends_with(&format!("({})", std::process::id())), "{found:?}");
    }
}
