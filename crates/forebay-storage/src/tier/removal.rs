//! Removing a tier's files: the image, the data, and finally the state file that lists them.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use super::error::Attempt;
use super::registry::is_unfinished;
use super::state::STATE;
use super::{Kind, Moment, Result, Stage, Tier, Watch, tell};

pub(super) struct Content {
    pub(super) image_bytes: Option<u64>,
    pub(super) data: Amount,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Amount {
    pub(super) n_files: u64,
    pub(super) bytes: u64,
}

/// Removes all files of a tier that is not mounted.
pub(super) fn remove(home: &Path, tier: &Tier, watch: Watch<'_>) -> Result<Content> {
    let image = tier.image();
    let image_bytes = image.metadata().ok().map(|found| found.len());
    unless_gone(&image, fs::remove_file(&image))?;
    tell(watch, Moment::Undone(Stage::Image))?;
    let data = tier.data();
    let mut amount = Amount::default();
    match tier.kind {
        // A mount point is empty; anything in it is not ours.
        Kind::Kernel => unless_gone(&data, fs::remove_dir(&data))?,
        Kind::Shaped => {
            measure(&data, &mut amount);
            unless_gone(&data, fs::remove_dir_all(&data))?;
        }
    }
    tell(watch, Moment::Undone(Stage::Folders))?;
    if tier.place != home {
        unless_gone(&tier.place, fs::remove_dir(&tier.place))?;
    }
    remove_state(home)?;
    Ok(Content { image_bytes, data: amount })
}

/// Removes the state file, unfinished ones, and their folder.
pub(super) fn remove_state(home: &Path) -> Result<()> {
    for entry in fs::read_dir(home).attempt("listing", home)?.flatten() {
        if is_unfinished(&entry.file_name().to_string_lossy()) {
            unless_gone(&entry.path(), fs::remove_file(entry.path()))?;
        }
    }
    let state = home.join(STATE);
    unless_gone(&state, fs::remove_file(&state))?;
    unless_gone(home, fs::remove_dir(home))
}

/// A missing file counts as removed, whatever the error: a read-only file system reports that it is read-only.
fn unless_gone(path: &Path, outcome: io::Result<()>) -> Result<()> {
    match outcome {
        Err(_) if fs::symlink_metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound) => Ok(()),
        outcome => outcome.attempt("removing", path),
    }
}

/// Adds up the files below a folder. Does not follow links or count what it cannot read.
fn measure(folder: &Path, amount: &mut Amount) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.metadata() {
            Ok(found) if found.is_dir() => measure(&entry.path(), amount),
            Ok(found) => {
                amount.n_files += 1;
                amount.bytes += found.len();
            }
            Err(_) => {}
        }
    }
}
