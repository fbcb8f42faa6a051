//! Tests the storage at a path. If nothing can be written there, an existing file is read instead.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use forebay_measure::{FileSystem, Scratch, remove_left_overs};
use forebay_record::Environment;
use forebay_storage::{Capabilities, Support, cache};
use forebay_units::Bytes;

use super::Check;

const PREFIX: &str = ".forebay-doctor-";
/// Length of the file to evict: a few pages.
const LEN: usize = 256 << 10;
/// Maximum number of entries to search for a readable file.
const MOST_ENTRIES: usize = 1000;

const SPACE: &str = "file system";
const DIRECT: &str = "direct I/O";
const COLD: &str = "cold files";

pub(super) fn checks(path: &Path, environment: &Environment) -> Vec<Check> {
    let space = space(path, environment);
    let scratch = scratch(path);
    let (file, untried) = match &scratch {
        Ok((_, file)) => (Some(file.clone()), None),
        Err(why) => (existing(path), Some(why.as_str())),
    };
    let found = file.as_deref().map(Capabilities::probe);
    vec![space, direct(found.as_ref().map(|found| &found.direct)), cold(file.as_deref(), found.as_ref(), untried)]
}

/// Creates a scratch file in a folder; it is removed with its scratch folder. The error says why this is impossible.
fn scratch(path: &Path) -> Result<(Scratch, PathBuf), String> {
    if !path.is_dir() {
        return Err("PATH is a file, which is only read".to_owned());
    }
    remove_left_overs(path, PREFIX);
    let made = Scratch::create(path, PREFIX).map_err(|error| forebay_units::chain(&error))?;
    let file = made.path().join("file");
    fs::write(&file, vec![1; LEN]).map_err(|error| error.to_string())?;
    Ok((made, file))
}

/// An existing, readable file.
fn existing(path: &Path) -> Option<PathBuf> {
    let is_readable =
        |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|found| found.is_file()) && File::open(path).is_ok();
    if path.is_file() {
        return Some(path.to_owned()).filter(|path| File::open(path).is_ok());
    }
    let entries = fs::read_dir(path).into_iter().flatten().take(MOST_ENTRIES).flatten();
    entries.map(|entry| entry.path()).find(is_readable)
}

fn space(path: &Path, environment: &Environment) -> Check {
    let system = match FileSystem::of(path) {
        Ok(system) => system,
        Err(error) => {
            return Check::missing(SPACE, error.to_string(), "everything at this path", "name another PATH");
        }
    };
    let named = environment.data_file_system.as_deref().unwrap_or("unknown");
    let free = system.free_bytes.map_or_else(String::new, |free| format!(", {} free", Bytes(free)));
    let found = format!("{named}{free}");
    if system.read_only {
        let costs = "cannot write here: probe, data make, checkpoints; reading works";
        return Check::limited(SPACE, format!("{found}, mounted read-only"), costs, "name a writable PATH");
    }
    if system.in_memory().is_some() {
        let costs = "no cold reads: probe and ingest measure memory here";
        return Check::limited(SPACE, format!("{found}, in memory"), costs, "name a PATH on a disk");
    }
    if let Some(name) = system.network() {
        let costs = "--cold drops this machine's cache, not the server's";
        let hint = "read at least twice as much data as the server has memory";
        return Check::limited(SPACE, format!("{found}, behind a server ({name})"), costs, hint);
    }
    if !is_writable(path) {
        let costs = "cannot write here: probe, data make, checkpoints; reading works";
        return Check::limited(
            SPACE,
            format!("{found}, not writable for this user"),
            costs,
            "name a PATH that you own",
        );
    }
    Check::ok(SPACE, found)
}

fn is_writable(path: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let Ok(name) = std::ffi::CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: the string is NUL-terminated and outlives the call.
    unsafe { libc::faccessat(libc::AT_FDCWD, name.as_ptr(), libc::W_OK, libc::AT_EACCESS) == 0 }
}

fn direct(support: Option<&Support>) -> Check {
    let costs = "no --io direct; probe reads through the page cache";
    match support {
        Some(Support::Yes) => Check::ok(DIRECT, "files open with O_DIRECT"),
        Some(Support::No(why)) => {
            Check::missing(DIRECT, format!("O_DIRECT: {why}"), costs, "use a disk file system: ext4, xfs, btrfs")
        }
        None => {
            Check::limited(DIRECT, "not tested: no file can be created or read here", costs, "name a PATH with a file")
        }
    }
}

fn cold(file: Option<&Path>, found: Option<&Capabilities>, untried: Option<&str>) -> Check {
    let costs = "results of --cold are marked warm, or their cache state is unknown";
    let proof = match found.map(|found| &found.cachestat) {
        Some(Support::Yes) => "cachestat",
        _ => "mincore",
    };
    if let Some(why) = untried {
        return Check::limited(COLD, format!("not tested: {why}"), costs, "name a writable folder");
    }
    match file.map(evicted) {
        Some(Ok(0)) => Check::ok(COLD, format!("single files can be evicted; verified with {proof}")),
        Some(Ok(left)) => {
            let found = format!("{} of {} stayed in memory", Bytes(left), Bytes(LEN as u64));
            Check::missing(COLD, found, costs, "use a disk file system; --io direct bypasses the cache")
        }
        Some(Err(why)) => Check::missing(COLD, why, costs, "--io direct bypasses the cache"),
        None => Check::limited(COLD, "not tested: there is no file", costs, "name a writable folder"),
    }
}

/// Bytes of a file that stayed in memory after eviction.
fn evicted(file: &Path) -> Result<u64, String> {
    let in_words = |error: forebay_storage::Error| forebay_units::chain(&error);
    let read = |path: &Path| -> io::Result<Vec<u8>> { fs::read(path) };
    read(file).map_err(|error| error.to_string())?;
    cache::evict([file]).map_err(in_words)?;
    Ok(cache::residency([file]).map_err(in_words)?.cached_bytes)
}
