//! The laws of [`Fs`], checked against each file system and each wrapper.

use std::path::Path;
use std::sync::Arc;

use forebay_storage::Profile;
use forebay_units::ManualClock;

use super::*;
use crate::{Error, Region};

fn obeys(fs: &dyn Fs, dir: &Path) {
    names(fs, dir);
    bytes(fs, dir);
    locks(fs, dir);
    assert!(fs.free_bytes(dir).unwrap() > 0);
    fs.sync_all(dir).unwrap();
    assert!(fs.in_flight() > 0 && !fs.description().is_empty());
}

fn names(fs: &dyn Fs, dir: &Path) {
    let (a, b) = (dir.join("b"), dir.join("a"));
    fs.make_dir(&a).unwrap();
    assert!(fs.make_dir(&a).is_err(), "a folder is made once");
    fs.make_dir(&b).unwrap();
    fs.create(&a.join("file")).unwrap();
    assert!(fs.create(&a.join("file")).is_err(), "a file is made once");
    assert_eq!(fs.list(dir).unwrap(), ["a", "b"]);
    fs.create(&b.join("file")).unwrap();
    assert!(fs.rename(&a, &b).is_err(), "nothing is replaced");
    fs.rename(&a, &dir.join("c")).unwrap();
    assert_eq!(fs.list(dir).unwrap(), ["a", "c"]);
    assert!(fs.remove_dir(&b).is_err(), "a folder with something in it stays");
    assert!(fs.remove(&b).is_err(), "a folder is no file");
    assert!(matches!(fs.list(&a), Err(Error::NotFound { .. })));
    assert!(matches!(fs.open(&a.join("file"), Reading::Cached), Err(Error::NotFound { .. })));
    assert!(matches!(fs.remove(&a.join("file")), Err(Error::NotFound { .. })));
    for name in ["a", "c"] {
        fs.sync_dir(&dir.join(name)).unwrap();
        fs.remove(&dir.join(name).join("file")).unwrap();
        fs.remove_dir(&dir.join(name)).unwrap();
    }
    fs.sync_dir(dir).unwrap();
    assert_eq!(fs.list(dir).unwrap(), Vec::<String>::new());
}

/// A file of two pages and a bit, written aligned and not, read each way.
fn bytes(fs: &dyn Fs, dir: &Path) {
    let path = dir.join("file");
    let mut memory = Region::new(4 * PAGE).unwrap();
    memory.iter_mut().enumerate().for_each(|(i, byte)| *byte = (i % 251) as u8);
    let len = 2 * PAGE + 77;
    let file = fs.create(&path).unwrap();
    file.allocate(len as u64).unwrap();
    assert_eq!(file.n_bytes().unwrap(), len as u64);
    file.write_at(PAGE as u64, &memory[PAGE..len]).unwrap();
    file.write_at(1, &memory[1..PAGE]).unwrap();
    file.write_at(0, &memory[..1]).unwrap();
    file.sync().unwrap();
    for reading in [Reading::Direct, Reading::Cached] {
        let file = fs.open(&path, reading).unwrap();
        assert_eq!(file.n_bytes().unwrap(), len as u64);
        for (from, n) in
            [(0, 4 * PAGE), (0, PAGE), (PAGE, 2 * PAGE), (2 * PAGE, PAGE), (10, 20), (len - 1, 9), (len, 9)]
        {
            let mut into = Region::new(4 * PAGE).unwrap();
            let found = file.read_at(from as u64, &mut into[..n]).unwrap();
            assert_eq!(found, n.min(len - from), "{reading:?} {from} {n}");
            assert_eq!(into[..found], memory[from..from + found], "{reading:?} {from} {n}");
        }
    }
    fs.remove(&path).unwrap();
}

fn locks(fs: &dyn Fs, dir: &Path) {
    let path = dir.join("lock");
    let guard = fs.lock(&path, "the first").unwrap();
    let refused = fs.lock(&path, "the second").unwrap_err().to_string();
    assert!(refused.ends_with("lock is in use by the first"), "{refused}");
    drop(guard);
    drop(fs.lock(&path, "the third").unwrap());
}

#[test]
fn local_files_obey_the_laws() {
    let dir = tempfile::tempdir().unwrap();
    obeys(&LocalFs, dir.path());
}

#[test]
fn the_model_and_its_wrappers_obey_the_laws() {
    let model = || Arc::new(ModelFs::with_dirs(&["t"]));
    let dir = Path::new("/t");
    obeys(model().as_ref(), dir);
    obeys(&CountedFs::new(model()).0, dir);
    obeys(&FaultyFs::new(model(), Cut::Never), dir);
    obeys(&ShapedFs::with_clock(model(), Profile::ssd(), Arc::new(ManualClock::default())), dir);
}

#[test]
fn a_pipe_is_no_checkpoint_and_is_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pipe");
    let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: a NUL-terminated string that outlives the call.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    assert!(matches!(LocalFs.open(&path, Reading::Direct), Err(Error::Io { .. })));
}

#[test]
fn a_lock_is_free_again_though_another_process_still_has_its_descriptor() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lock");
    let guard = LocalFs.lock(&path, "the first").unwrap();
    let ours = std::fs::read_dir("/proc/self/fd").unwrap().map(|entry| entry.unwrap().path());
    let ours = ours.into_iter().find(|fd| std::fs::read_link(fd).is_ok_and(|to| to == path)).unwrap();
    let fd: i32 = ours.file_name().unwrap().to_str().unwrap().parse().unwrap();
    // What a process has that was forked from this one and has not yet begun its own program.
    // SAFETY: a descriptor that the guard holds open.
    let inherited = unsafe { libc::dup(fd) };
    assert!(inherited >= 0);
    drop(guard);
    drop(LocalFs.lock(&path, "the second").unwrap());
    // SAFETY: ours alone, and not used again.
    assert_eq!(unsafe { libc::close(inherited) }, 0);
}
