//! The few file-system operations that a durable save needs.
//!
//! They are a trait so that each can be counted ([`CountedFs`]), rate-limited ([`ShapedFs`]), made to fail
//! ([`FaultyFs`]), or run on a model that loses unsynced data in a crash ([`ModelFs`]). The code above does not know
//! which one it uses.
//!
//! # Laws
//! - A file's content survives a power cut once its `sync` returned; its name does once `sync_dir` of its folder
//!   returned.
//! - `rename` replaces nothing: the new name must not exist. It is atomic, even in a power cut.
//! - After a failed `sync` the file's state is unknown, and a second `sync` may falsely report success.

#[cfg(test)]
mod contract;
mod counted;
mod faulty;
mod local;
mod model;
mod objects;
mod pass;
mod shaped;
mod stopping;

use std::path::Path;

pub use counted::{CountedFs, Counters};
pub use faulty::{Cut, FaultyFs, SyncPoint};
pub use local::{LocalFs, lower_io_priority};
pub use model::{Crash, ModelFs};
pub use objects::{ObjectFs, lock_holder};
pub use shaped::ShapedFs;
pub use stopping::StoppingFs;

use crate::Result;

/// The alignment for direct I/O that every Linux file system accepts.
pub(crate) const PAGE: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// From the device, not from memory, if the file system supports it.
    Direct,
    /// Through the page cache.
    Cached,
}

/// The type of a directory entry; links are not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Folder,
    File,
    /// Anything else: a link, a pipe, a device.
    Other,
}

/// A file system that stores checkpoints. All methods block and may be called from many threads.
pub trait Fs: Send + Sync {
    /// A short description for the record.
    fn description(&self) -> String;

    /// The number of concurrent reads or writes that suits it best.
    fn in_flight(&self) -> usize;

    /// Creates a new file for writing and reading.
    ///
    /// # Errors
    /// When it exists already or cannot be created.
    fn create(&self, path: &Path) -> Result<Box<dyn File>>;

    /// Opens a regular file for reading; links are not followed.
    ///
    /// # Errors
    /// [`Error::NotFound`](crate::Error::NotFound) when it does not exist.
    fn open(&self, path: &Path, reading: Reading) -> Result<Box<dyn File>>;

    /// Creates a folder; its parent must exist.
    ///
    /// # Errors
    /// When it exists already or cannot be created.
    fn make_dir(&self, path: &Path) -> Result<()>;

    /// Removes an empty folder.
    ///
    /// # Errors
    /// When it is not empty or does not exist.
    fn remove_dir(&self, path: &Path) -> Result<()>;

    /// The names in a folder, sorted.
    ///
    /// # Errors
    /// [`Error::NotFound`](crate::Error::NotFound) when the folder does not exist.
    fn list(&self, dir: &Path) -> Result<Vec<String>>;

    /// The type of a directory entry; links are not followed.
    ///
    /// # Errors
    /// [`Error::NotFound`](crate::Error::NotFound) when nothing has this name.
    fn kind(&self, path: &Path) -> Result<Kind>;

    /// Renames a file or folder; the new name must not exist.
    ///
    /// # Errors
    /// When it fails; both names are then unchanged.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;

    /// Removes a file, or a link without its target.
    ///
    /// # Errors
    /// When it does not exist or cannot be removed.
    fn remove(&self, path: &Path) -> Result<()>;

    /// Makes the names in a folder durable.
    ///
    /// # Errors
    /// When it failed; the state of names changed since the last sync is then unknown.
    fn sync_dir(&self, dir: &Path) -> Result<()>;

    /// Makes everything on the folder's file system durable, including data of other programs.
    ///
    /// # Errors
    /// When it failed.
    fn sync_all(&self, dir: &Path) -> Result<()>;

    /// Free space in this folder, in bytes.
    ///
    /// # Errors
    /// When the system does not report it.
    fn free_bytes(&self, dir: &Path) -> Result<u64>;

    /// Takes the lock file and writes the holder's name into it. The lock is released when the guard is dropped or the
    /// process ends for any reason.
    ///
    /// # Errors
    /// [`Error::Locked`](crate::Error::Locked) with the name of the holder.
    fn lock(&self, path: &Path, holder: &str) -> Result<Box<dyn Guard>>;
}

/// Holds a lock until it is dropped.
pub trait Guard: Send + Sync + std::fmt::Debug {}

/// An open file. Threads may read and write different ranges concurrently.
pub trait File: Send + Sync {
    /// Reserves space for `n_bytes`, which also becomes the file's length.
    ///
    /// # Errors
    /// [`Error::Full`](crate::Error::Full) when the space is not available.
    fn allocate(&self, len: u64) -> Result<()>;

    /// Writes all bytes at an offset. Page-aligned memory at a page-aligned offset goes directly to the device.
    ///
    /// # Errors
    /// When not everything could be written.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()>;

    /// Reads until the slice is full or the file ends; returns the number of bytes read. A direct read needs
    /// page-aligned memory, offset and length; otherwise the read goes through the cache.
    ///
    /// # Errors
    /// When reading fails.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize>;

    /// The file's length.
    ///
    /// # Errors
    /// When it cannot be determined.
    fn n_bytes(&self) -> Result<u64>;

    /// Makes the written data durable.
    ///
    /// # Errors
    /// When it failed. The file is then lost: see the laws.
    fn sync(&self) -> Result<()>;
}
