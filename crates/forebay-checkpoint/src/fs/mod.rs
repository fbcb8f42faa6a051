//! The few file-system operations that a durable save is made of.
//!
//! They are a trait so that each of them can be counted ([`CountedFs`]), paced ([`ShapedFs`]), made to fail
//! ([`FaultyFs`]), or done on a model that forgets after a crash whatever was not synced ([`ModelFs`]). Nothing above
//! knows which one it works on.
//!
//! # Laws
//! - What a file holds survives a power cut after its `sync` returned; its name does after `sync_dir` of its folder.
//! - `rename` replaces nothing: the new name must be free. It is all or nothing, also in a power cut.
//! - After a failed `sync` nothing is known about the file any more, and a second `sync` may lie.

#[cfg(test)]
mod contract;
mod counted;
mod faulty;
mod local;
mod model;
mod pass;
mod shaped;
mod stopping;

use std::path::Path;

pub use counted::{CountedFs, Counters};
pub use faulty::{Cut, FaultyFs, SyncPoint};
pub use local::{LocalFs, lower_io_priority};
pub use model::{Crash, ModelFs};
pub use shaped::ShapedFs;
pub use stopping::StoppingFs;

use crate::Result;

/// What every Linux file system accepts as alignment of direct I/O.
pub(crate) const PAGE: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// From the device, not from memory, where the file system can.
    Direct,
    /// Through the page cache.
    Cached,
}

/// What a name leads to, without following it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Folder,
    File,
    /// Anything else: a link, a pipe, a device.
    Other,
}

/// A file system with checkpoints on it. All methods block; all may be called from many threads.
pub trait Fs: Send + Sync {
    /// What this is, in a few words, for the record.
    fn description(&self) -> String;

    /// How many writes or reads at once serve it best.
    fn in_flight(&self) -> usize;

    /// Makes a new file, to write and to read.
    ///
    /// # Errors
    /// When there is one already, or it cannot be made.
    fn create(&self, path: &Path) -> Result<Box<dyn File>>;

    /// Opens a plain file for reading; no link is followed.
    ///
    /// # Errors
    /// [`Error::NotFound`](crate::Error::NotFound) when there is none.
    fn open(&self, path: &Path, reading: Reading) -> Result<Box<dyn File>>;

    /// Makes a folder; its parent must be there.
    ///
    /// # Errors
    /// When there is one already, or it cannot be made.
    fn make_dir(&self, path: &Path) -> Result<()>;

    /// Removes an empty folder.
    ///
    /// # Errors
    /// When it is not empty or not there.
    fn remove_dir(&self, path: &Path) -> Result<()>;

    /// The names in a folder, sorted.
    ///
    /// # Errors
    /// [`Error::NotFound`](crate::Error::NotFound) when there is no such folder.
    fn list(&self, dir: &Path) -> Result<Vec<String>>;

    /// What a name leads to; a link is not followed.
    ///
    /// # Errors
    /// [`Error::NotFound`](crate::Error::NotFound) when there is nothing by that name.
    fn kind(&self, path: &Path) -> Result<Kind>;

    /// Gives a file or folder another name, which must be free.
    ///
    /// # Errors
    /// When it cannot; both names are then as before.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;

    /// Removes a file, or a link without what it leads to.
    ///
    /// # Errors
    /// When it is not there or cannot be removed.
    fn remove(&self, path: &Path) -> Result<()>;

    /// Makes the names in a folder durable.
    ///
    /// # Errors
    /// When that failed; nothing is then known about names changed since the last time.
    fn sync_dir(&self, dir: &Path) -> Result<()>;

    /// Makes everything on the file system of this folder durable, whoever wrote it.
    ///
    /// # Errors
    /// When that failed.
    fn sync_all(&self, dir: &Path) -> Result<()>;

    /// Bytes that may still be written in this folder.
    ///
    /// # Errors
    /// When the system does not say.
    fn free_bytes(&self, dir: &Path) -> Result<u64>;

    /// Takes the lock file, and writes its holder's name into it. It is free again when the guard is dropped, and when
    /// the process ends, however it ends.
    ///
    /// # Errors
    /// [`Error::Locked`](crate::Error::Locked) with the name of the one who has it.
    fn lock(&self, path: &Path, holder: &str) -> Result<Box<dyn Guard>>;
}

/// Holds a lock until it is dropped.
pub trait Guard: Send + Sync + std::fmt::Debug {}

/// An open file. Threads may read and write different ranges of it at once.
pub trait File: Send + Sync {
    /// Reserves space for that many bytes, which is also the file's length from now on.
    ///
    /// # Errors
    /// [`Error::Full`](crate::Error::Full) when there is not that much.
    fn allocate(&self, len: u64) -> Result<()>;

    /// Writes all the bytes at an offset. Page-aligned memory at a page-aligned offset goes straight to the device.
    ///
    /// # Errors
    /// When not all could be written.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()>;

    /// Reads until the slice is full or the file ends; returns how much there was. A direct read needs page-aligned
    /// memory, offset and length, and is a cached one otherwise.
    ///
    /// # Errors
    /// When reading fails.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize>;

    /// The file's length.
    ///
    /// # Errors
    /// When it cannot be asked for.
    fn n_bytes(&self) -> Result<u64>;

    /// Makes what was written durable.
    ///
    /// # Errors
    /// When that failed. The file is then lost: see the laws.
    fn sync(&self) -> Result<()>;
}
