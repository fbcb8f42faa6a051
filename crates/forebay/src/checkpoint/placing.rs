//! Writes files under temporary names, makes them durable, and renames them in an order that is safe against crashes.
//!
//! A crash leaves the former files or the new ones. A crash while a TensorFlow checkpoint is replaced may leave none that
//! opens: the index is removed first and renamed last, so an index never exists with the data of another checkpoint.
//!
//! Each temporary file is locked with `flock`, which the kernel releases when the process ends. A later run can thus tell
//! the leftovers of a killed run from files that another run is writing.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use anyhow::{Context, Result, bail};
use forebay_checkpoint::format::{Layout, Sums};
use forebay_checkpoint::{Error, FilePlan, Fs, LocalFs, Piece};
use forebay_units::PathText;

use super::files::{Target, Written, in_folder};
use crate::output::{parent, remark};

const CHUNK: usize = 4 << 20;
/// The name of TensorFlow's state file of a folder.
pub(super) const STATE: &str = "checkpoint";

pub(super) struct Placing<'a> {
    target: &'a Target<'a>,
    files: Vec<TempFile>,
    remarks: Vec<String>,
}

struct TempFile {
    temporary: PathBuf,
    path: PathBuf,
    is_temporary: bool,
    /// Open, and locked if the file system has locks, until it is renamed.
    file: File,
}

impl<'a> Placing<'a> {
    /// Refuses existing names before anything is written, and removes leftovers of killed runs.
    pub(super) fn new(target: &'a Target<'a>, layout: &Layout, n_tensors: usize) -> Result<Self> {
        create_folder(&target.dir)?;
        let closing = layout.close(&vec![0; n_tensors]);
        let plans = || layout.files.iter().chain(&closing);
        for plan in plans() {
            let path = in_folder(&target.dir, &plan.name);
            let Ok(found) = path.symlink_metadata() else { continue };
            if found.is_dir() {
                bail!("{} is a folder\nhint: choose another name", path.escaped());
            }
            if !target.force && plan.name != STATE && !is_empty(&path) {
                return Err(taken(&path));
            }
        }
        plans().for_each(|plan| remove_left_overs(&target.dir, &plan.name));
        Ok(Self { target, files: Vec::new(), remarks: Vec::new() })
    }

    pub(super) fn write(
        &mut self,
        plan: &FilePlan,
        fill: impl Fn(&Piece, u64, &mut [u8]) -> Result<()>,
        sums: &mut Sums,
    ) -> Result<()> {
        let path = in_folder(&self.target.dir, &plan.name);
        if plan.name == STATE && !self.target.force && path.exists() {
            self.remarks.push(format!("{} is unchanged: it refers to another checkpoint", path.escaped()));
            return Ok(());
        }
        let cannot = || format!("cannot write {}", path.escaped());
        let (temporary, file) = create_temporary(&self.target.dir, &plan.name).with_context(cannot)?;
        self.files.push(TempFile { temporary, path: path.clone(), is_temporary: true, file });
        let file = &self.files[self.files.len() - 1].file;
        let (mut offset, mut chunk) = (0, vec![0; CHUNK.min(plan.len.max(1) as usize)]);
        for piece in &plan.pieces {
            let mut from = 0;
            while from < piece.n_bytes() {
                if self.target.cancel.load(Ordering::Relaxed) {
                    return Err(forebay_dataset::Error::Cancelled.into());
                }
                let n = (piece.n_bytes() - from).min(chunk.len() as u64) as usize;
                fill(piece, from, &mut chunk[..n])?;
                file.write_all_at(&chunk[..n], offset).with_context(cannot)?;
                sums.add_filled(plan, offset, &chunk[..n]);
                (self.target.moved)(n as u64);
                (from, offset) = (from + n as u64, offset + n as u64);
            }
        }
        file.sync_all().with_context(cannot)
    }

    pub(super) fn commit(mut self) -> Result<Written> {
        self.files.sort_by_key(|file| turn(&file.path));
        let paths: Vec<PathBuf> = self.files.iter().map(|file| file.path.clone()).collect();
        for act in acts(&paths) {
            if let Err(error) = self.act(&act) {
                self.take_back();
                return Err(error);
            }
        }
        Ok(Written { files: paths, remarks: std::mem::take(&mut self.remarks) })
    }

    fn act(&mut self, act: &Act) -> Result<()> {
        match *act {
            Act::Sync => LocalFs.sync_dir(&self.target.dir)?,
            Act::Remove(n) => match fs::remove_file(&self.files[n].path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(error).with_context(|| format!("cannot write {}", self.files[n].path.escaped()));
                }
                _ => {}
            },
            Act::Rename(n) => {
                let TempFile { temporary, path, .. } = &self.files[n];
                if self.target.force {
                    fs::rename(temporary, path).with_context(|| format!("cannot write {}", path.escaped()))?;
                } else {
                    if is_empty(path) {
                        fs::remove_file(path).with_context(|| format!("cannot write {}", path.escaped()))?;
                    }
                    LocalFs.rename(temporary, path).map_err(|error| lost(path, error))?;
                }
                self.files[n].is_temporary = false;
            }
        }
        Ok(())
    }

    /// Removes files that were already renamed, unless they replaced others.
    fn take_back(&self) {
        if !self.target.force {
            for file in self.files.iter().filter(|file| !file.is_temporary) {
                let _ = fs::remove_file(&file.path);
            }
        }
    }
}

impl Drop for Placing<'_> {
    fn drop(&mut self) {
        for file in self.files.iter().filter(|file| file.is_temporary) {
            let _ = fs::remove_file(&file.temporary);
        }
    }
}

/// Creates a folder and its ancestors durably, or its files could be lost with it.
fn create_folder(dir: &Path) -> Result<()> {
    let missing = |above: &&Path| !above.as_os_str().is_empty() && !above.exists();
    let made: Vec<&Path> = dir.ancestors().take_while(missing).collect();
    fs::create_dir_all(dir).with_context(|| format!("cannot create the folder {}", dir.escaped()))?;
    Ok(made.into_iter().try_for_each(|made| LocalFs.sync_dir(parent(made)))?)
}

/// Whether the file exists and is empty, as `mktemp` creates it.
fn is_empty(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_file() && found.len() == 0)
}

fn taken(path: &Path) -> anyhow::Error {
    anyhow::anyhow!("{} already exists\nhint: choose another name, or replace it with --force", path.escaped())
}

/// Explains why a file could not be renamed, usually because another run was faster.
fn lost(path: &Path, error: Error) -> anyhow::Error {
    match &error {
        Error::Io { source, .. } if source.kind() == io::ErrorKind::AlreadyExists => taken(path),
        _ => error.into(),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Remove(usize),
    Rename(usize),
    Sync,
}

/// The order of renames: data, then the index that refers to it, then the state file that names the checkpoint.
fn turn(path: &Path) -> u8 {
    let is_index = path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(".index"));
    if path.ends_with(STATE) { 2 } else { u8::from(is_index) }
}

/// The steps that rename files, sorted by turn: an index is removed before its data changes, and renamed when the data is
/// durable.
fn acts(paths: &[PathBuf]) -> Vec<Act> {
    let mut acts = Vec::new();
    for (n, path) in paths.iter().enumerate().rev().filter(|(_, path)| turn(path) == 1) {
        if path.symlink_metadata().is_ok() {
            acts.extend([Act::Remove(n), Act::Sync]);
        }
    }
    for (n, path) in paths.iter().enumerate() {
        if n > 0 && turn(&paths[n - 1]) < turn(path) {
            acts.push(Act::Sync);
        }
        acts.push(Act::Rename(n));
    }
    acts.push(Act::Sync);
    acts
}

/// Attempts before giving up; one fails only if another run cleans up at that instant.
const MOST_TRIES: u32 = 100;

/// Creates a locked temporary file in the folder.
fn create_temporary(dir: &Path, name: &str) -> io::Result<(PathBuf, File)> {
    for number in 0..MOST_TRIES {
        let temporary = in_folder(dir, &format!("{}{}-{number}", prefix(name), std::process::id()));
        let file = match OpenOptions::new().write(true).create_new(true).open(&temporary) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            other => other?,
        };
        match file.try_lock() {
            // Another run removed it as a leftover before it was locked.
            Err(TryLockError::WouldBlock) => {}
            Ok(()) if !is_still(&temporary, &file)? => {}
            Ok(()) | Err(TryLockError::Error(_)) => return Ok((temporary, file)),
        }
    }
    Err(io::Error::other(format!("no free temporary name after {MOST_TRIES} attempts")))
}

fn prefix(name: &str) -> String {
    format!(".{name}.")
}

/// Removes temporary files of killed runs for this name, with a remark.
fn remove_left_overs(dir: &Path, name: &str) {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_ours = |found: &str| {
        let numbers = found.strip_prefix(&prefix(name)).and_then(|rest| rest.split_once('-'));
        numbers.is_some_and(|(process, number)| is_number(process) && is_number(number))
    };
    let Ok(entries) = fs::read_dir(dir) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if is_ours(&path.file_name().unwrap_or_default().escaped()) && remove_unlocked(&path) {
            remark(&format!("forebay: removed {}, left by a killed run", path.escaped()));
        }
    }
}

fn remove_unlocked(path: &Path) -> bool {
    let is_file = fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    let Some(file) = is_file.then(|| File::open(path).ok()).flatten() else { return false };
    file.try_lock().is_ok() && is_still(path, &file).unwrap_or(false) && fs::remove_file(path).is_ok()
}

fn is_still(path: &Path, file: &File) -> io::Result<bool> {
    let identity = |found: fs::Metadata| (found.dev(), found.ino());
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        named => Ok(identity(named?) == identity(file.metadata()?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_taken_are_passed_over_and_their_number_is_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let temporary = |number: u32| dir.path().join(format!("{}{}-{number}", prefix("m"), std::process::id()));
        (0..MOST_TRIES - 1).for_each(|number| fs::write(temporary(number), "taken").unwrap());
        let (path, _file) = create_temporary(dir.path(), "m").unwrap();
        assert_eq!(path, temporary(MOST_TRIES - 1));
        let error = create_temporary(dir.path(), "m").unwrap_err();
        assert_eq!(error.to_string(), "no free temporary name after 100 attempts");
    }

    /// A folder with an old checkpoint, and what is done to put a new one in its place.
    fn replaced(dir: &Path) -> (Vec<PathBuf>, Vec<Act>) {
        let mut paths: Vec<PathBuf> =
            [STATE, "m.index", "m.data-00000-of-00001", "m.meta"].map(|name| dir.join(name)).to_vec();
        paths.sort_by_key(|path| turn(path));
        for path in &paths {
            fs::write(path, "old").unwrap();
            fs::write(path.with_added_extension("new"), "new").unwrap();
        }
        let acts = acts(&paths);
        (paths, acts)
    }

    #[test]
    fn wherever_a_crash_cuts_off_an_index_exists_only_with_its_own_data() {
        let n_acts = replaced(tempfile::tempdir().unwrap().path()).1.len();
        assert_eq!(n_acts, 9, "an index less, four names, and a sync after each kind");
        for n in 0..=n_acts {
            let dir = tempfile::tempdir().unwrap();
            let (paths, acts) = replaced(dir.path());
            for act in &acts[..n] {
                match act {
                    Act::Remove(n) => fs::remove_file(&paths[*n]).unwrap(),
                    Act::Rename(n) => fs::rename(paths[*n].with_added_extension("new"), &paths[*n]).unwrap(),
                    Act::Sync => {}
                }
            }
            let read = |name: &str| fs::read_to_string(dir.path().join(name)).ok();
            let index = read("m.index");
            if index.is_some() {
                assert_eq!(read("m.data-00000-of-00001"), index, "after {n} of {acts:?}");
                assert_eq!(read("m.meta"), index, "after {n} of {acts:?}");
            }
            if read(STATE).as_deref() == Some("new") {
                assert_eq!(index.as_deref(), Some("new"), "after {n} of {acts:?}");
            }
        }
    }

    #[test]
    fn between_names_that_depend_on_each_other_the_folder_is_synced() {
        let dir = tempfile::tempdir().unwrap();
        let acts = replaced(dir.path()).1;
        assert_eq!(acts[..2], [Act::Remove(2), Act::Sync]);
        assert_eq!(acts[4..], [Act::Sync, Act::Rename(2), Act::Sync, Act::Rename(3), Act::Sync]);
    }

    #[test]
    fn only_files_of_that_name_that_nobody_writes_are_left_overs() {
        let dir = tempfile::tempdir().unwrap();
        let (used, _file) = create_temporary(dir.path(), "a.safetensors").unwrap();
        for name in [".a.safetensors.1-0", ".a.safetensors.1", ".a.safetensors.x-0", ".b.safetensors.1-0", "a"] {
            fs::write(dir.path().join(name), "x").unwrap();
        }
        fs::create_dir(dir.path().join(".a.safetensors.2-0")).unwrap();
        remove_left_overs(dir.path(), "a.safetensors");
        assert!(used.exists() && !dir.path().join(".a.safetensors.1-0").exists());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 6);
    }
}
