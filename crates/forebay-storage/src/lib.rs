//! Storage backends (local files, memory, null, object stores) and wrappers that slow them down, count their traffic or inject faults.
//!
//! [`Storage`] is small and object-safe; a backend is one file, a wrapper is a `Storage` around a `Storage`, and all of
//! them obey the laws in [`contract`](self#laws). It moves bytes and knows no format. Page-cache control with proof is
//! in [`cache`], emulated devices that stay up between runs in [`tier`].
//!
//! # Laws
//! - `size` and `open` find everything that `list` names, or say why not: a dangling link is [`Error::NotFound`], like
//!   every path that does not exist; a pipe or a device is [`Error::Unsupported`], and is never waited for.
//! - Reading returns exactly the object's bytes, or an error; a range past the end is [`Error::Truncated`], an object larger
//!   than the caller's limit is [`Error::TooLarge`].
//! - In a read-only backend, `create` returns [`Error::Unsupported`].
//! - An object being written is invisible until `commit` returns; a dropped writer leaves nothing.
//! - Once `commit` of a durable backend has returned, the object survives a power cut.
//! - Every error names the path.
//!
//! # Limits
//! Linux only. Object stores need the feature `object`; their paths are URLs, and [`Routed`] takes both kinds.
//!
//! ```
//! use std::path::Path;
//! use forebay_storage::{Buffer, Memory, Storage};
//!
//! let storage = Memory::default();
//! storage.insert("a/1.bin", b"hello".to_vec());
//! let mut buffer = Buffer::default();
//! storage.open(Path::new("a/1.bin"))?.read_all(&mut buffer)?;
//! assert_eq!(buffer.as_slice(), b"hello");
//! # Ok::<(), forebay_storage::Error>(())
//! ```

pub mod access;
mod ahead;
mod bucket;
mod buffer;
pub mod cache;
mod cache_place;
#[cfg(feature = "contract")]
pub mod contract;
mod counted;
mod error;
mod faulty;
mod local;
mod memory;
mod null;
#[cfg(feature = "object")]
mod object;
mod reader;
mod requests;
mod routed;
mod shaped;
pub mod tier;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use access::Access;
pub use ahead::{Ahead, NextRead, Reads};
pub use bucket::{Bucket, Upload, Version, Versioned};
pub use buffer::Buffer;
pub use cache_place::CachePlace;
pub use counted::{Counted, Counters, OpCounts};
pub use error::{Error, Operation, Result};
pub use faulty::{Effect, Fault, Faulty};
pub use local::{CHOICE_LIMIT, Capabilities, Choice, Local, Mode, Support, choose_mode, n_listed};
pub use memory::Memory;
pub use null::Null;
#[cfg(feature = "object")]
pub use object::Objects;
pub use reader::ObjectReader;
pub use requests::{CacheCounts, Requests};
pub use routed::{Reading, Routed, SCHEMES, beside, bucket, is_url};
pub use shaped::{Device, Profile, Shaped, Tail};

/// The storage of an experiment: local files, slowed down to the profile if one is given, and objects.
pub fn files(mode: Mode, tier: Option<&Profile>) -> Arc<dyn Storage> {
    match tier {
        Some(profile) => Arc::new(Shaped::on(Local::new(mode), Device::of(profile.clone()))),
        None => Arc::new(Routed::of_mode(mode)),
    }
}

/// Like [`files`], on a device that others may use too; says how objects are read ahead and kept.
///
/// # Errors
/// When the near cache cannot be opened.
pub fn files_and_objects(mode: Mode, device: Option<&Arc<Device>>, reading: Reading) -> Result<Arc<dyn Storage>> {
    Ok(match device {
        Some(device) => Arc::new(Shaped::on(Local::new(mode), Arc::clone(device))),
        None => Arc::new(Routed::new(mode, reading)?),
    })
}

/// A file or object that `list` found.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    pub path: PathBuf,
    pub size: u64,
}

/// A storage backend. See the crate's laws.
///
/// All methods block; all are safe to call from many threads at once.
pub trait Storage: Send + Sync {
    /// A short description for the record: "local, buffered", "null", "hdd (shaped in process) over local, buffered".
    fn description(&self) -> String;

    /// All objects below `dir`, at any depth, sorted by path.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is nothing by that name.
    fn list(&self, dir: &Path) -> Result<Vec<Entry>>;

    /// The length of an object.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such object.
    fn size(&self, path: &Path) -> Result<u64>;

    /// Opens an object for reading.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such object.
    fn open(&self, path: &Path) -> Result<Box<dyn Object>>;

    /// Starts writing an object; `commit` replaces an object of the same name. Creates missing parent folders.
    ///
    /// # Errors
    /// When nothing can be written there.
    fn create(&self, path: &Path) -> Result<Box<dyn Writer>>;

    /// Removes an object.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such object.
    fn remove(&self, path: &Path) -> Result<()>;

    /// Like [`description`](Self::description), of the part that holds `path`.
    fn description_of(&self, path: &Path) -> String {
        let _ = path;
        self.description()
    }

    /// How many objects like the one at `path` to examine at the same time; 1 where that brings nothing.
    fn concurrency(&self, path: &Path) -> usize {
        let _ = path;
        1
    }

    /// The best number of objects per call of [`read_many`](Self::read_many); 1 if more bring nothing.
    fn read_many_preferred(&self) -> usize {
        1
    }

    /// Reads whole objects of at most `limit` bytes into the buffers of the same index; each has its own outcome.
    ///
    /// # Panics
    /// When there are fewer buffers than paths.
    fn read_many(&self, paths: &[&Path], limit: u64, into: &mut [Buffer]) -> Vec<Result<()>> {
        assert!(into.len() >= paths.len(), "one buffer per path");
        paths.iter().zip(into).map(|(path, buffer)| self.open(path)?.read_within(limit, buffer)).collect()
    }

    /// Requests sent so far by this program; `None` for a storage that sends none.
    fn requests(&self) -> Option<Requests> {
        None
    }

    /// Announces reads in the order in which they will be made, `spread` of them at most out of order, so that they can
    /// be requested before their readers ask. `reads` gives the order from its beginning, each time it is called. Whole
    /// objects of more than `limit` bytes are refused. `None` where that brings nothing: a local file system reads
    /// ahead by itself.
    fn read_ahead(&self, reads: &dyn Fn() -> Reads, limit: u64, spread: usize) -> Option<Ahead> {
        let _ = (reads, limit, spread);
        None
    }
}

impl<S: Storage + ?Sized> Storage for Arc<S> {
    fn description(&self) -> String {
        (**self).description()
    }

    fn description_of(&self, path: &Path) -> String {
        (**self).description_of(path)
    }

    fn list(&self, dir: &Path) -> Result<Vec<Entry>> {
        (**self).list(dir)
    }

    fn size(&self, path: &Path) -> Result<u64> {
        (**self).size(path)
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Object>> {
        (**self).open(path)
    }

    fn create(&self, path: &Path) -> Result<Box<dyn Writer>> {
        (**self).create(path)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        (**self).remove(path)
    }

    fn concurrency(&self, path: &Path) -> usize {
        (**self).concurrency(path)
    }

    fn read_many_preferred(&self) -> usize {
        (**self).read_many_preferred()
    }

    fn read_many(&self, paths: &[&Path], limit: u64, into: &mut [Buffer]) -> Vec<Result<()>> {
        (**self).read_many(paths, limit, into)
    }

    fn requests(&self) -> Option<Requests> {
        (**self).requests()
    }

    fn read_ahead(&self, reads: &dyn Fn() -> Reads, limit: u64, spread: usize) -> Option<Ahead> {
        (**self).read_ahead(reads, limit, spread)
    }
}

pub trait Object: Send + Sync {
    /// The object's length.
    ///
    /// # Errors
    /// When the length cannot be asked for.
    fn len(&self) -> Result<u64>;

    /// Whether the object has no bytes.
    ///
    /// # Errors
    /// When the length cannot be asked for.
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Replaces the buffer's content by the whole object, which may have at most `limit` bytes.
    ///
    /// # Errors
    /// [`Error::TooLarge`] when it has more; no memory is then allocated for them. When reading fails, the buffer's content
    /// is unspecified.
    fn read_within(&self, limit: u64, into: &mut Buffer) -> Result<()>;

    /// Replaces the buffer's content by the whole object, however large: for objects that this program wrote.
    ///
    /// # Errors
    /// As [`read_within`](Self::read_within).
    fn read_all(&self, into: &mut Buffer) -> Result<()> {
        self.read_within(u64::MAX, into)
    }

    /// Replaces the buffer's content by exactly `len` bytes from `offset` on.
    ///
    /// # Errors
    /// [`Error::Truncated`] when the object ends before that.
    fn read_at(&self, offset: u64, len: usize, into: &mut Buffer) -> Result<()>;

    /// Lends exactly `len` bytes from `offset` on: without a copy if the backend can, otherwise in `buffer`. For callers
    /// that read bytes once and keep none; bytes lent earlier must no longer be in use.
    ///
    /// Bytes in a mapping are faulted in before they are lent, so a read error is returned here. If another process
    /// truncates the file afterwards, this process still dies of SIGBUS: data must not be rewritten while it is read.
    ///
    /// # Errors
    /// As [`read_at`](Self::read_at).
    fn lend<'a>(&'a self, offset: u64, len: usize, buffer: &'a mut Buffer) -> Result<&'a [u8]> {
        self.read_at(offset, len, buffer)?;
        Ok(buffer.as_slice())
    }

    /// Bytes moved to read `len` bytes from `offset` on: more than `len` if only whole pages can be read. The part of a page
    /// beyond the object's end counts too, because the device moves it.
    fn moved_for(&self, offset: u64, len: u64) -> u64 {
        let _ = offset;
        len
    }

    /// The object as mapped memory; `None` if the backend cannot map it.
    ///
    /// # Errors
    /// When mapping fails.
    fn map(&self) -> Result<Option<memmap2::Mmap>> {
        Ok(None)
    }
}

/// An object being written. Dropping it without `commit` leaves nothing behind.
pub trait Writer: Send {
    /// Appends bytes.
    ///
    /// # Errors
    /// [`Error::Full`] when no space is left; the object can then no longer be committed.
    fn write(&mut self, bytes: &[u8]) -> Result<()>;

    /// Makes the object visible, and durable where the backend is.
    ///
    /// # Errors
    /// When it could not be made durable; it is then not visible.
    fn commit(self: Box<Self>) -> Result<()>;
}
