//! Claiming a folder for a workload's data: the marker, the free space, and existing files.

use std::fs::{self, File};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use forebay_storage::{Error as StorageError, Operation};
use forebay_units::Bytes;
use forebay_workload::{Compression, Dataset};
use serde_json::{Map, Value, json};

use super::format::Proof;
use crate::home::{self, Home};
use crate::{Control, Error, Result};

/// The hidden file with the parameters of a workload's data.
pub const RECORDS_MARKER: &str = ".forebay-workload-data.json";

/// How long other ranks wait for rank 0 to mark the folder.
const PATIENCE: Duration = Duration::from_secs(60);
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);
/// The number of last bytes that a [`Proof::Tail`] reads.
const TAIL: u64 = 32;

/// Everything that determines the files' bytes or names.
pub(crate) fn identity(dataset: &Dataset) -> Map<String, Value> {
    let is_packed = dataset.compression != Compression::None;
    let fields = json!({
        "format": dataset.format,
        "record_length_bytes": dataset.record_length_bytes,
        "record_length_bytes_stdev": dataset.record_length_bytes_stdev,
        "record_dims": dataset.record_dims,
        "record_element_type": dataset.element,
        "num_files_train": dataset.n_files_train,
        "num_files_eval": dataset.n_files_eval,
        "num_samples_per_file": dataset.n_samples_per_file,
        "num_subfolders_train": dataset.n_subfolders_train,
        "num_subfolders_eval": dataset.n_subfolders_eval,
        "file_prefix": dataset.file_prefix,
        "compression": dataset.compression,
        "compression_level": is_packed.then_some(dataset.compression_level),
        "chunk_bytes": dataset.chunk_bytes,
        "hdf5": format!("{:?}", dataset.hdf5),
        "parquet": format!("{:?}", dataset.parquet),
        "seed": dataset.seed,
    });
    let mut fields = match fields {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    // Only if given, so that the markers of all other data do not change.
    fields.extend(dataset.sides.as_ref().map(|sides| ("sides".to_owned(), json!(sides))));
    fields
}

/// The keys that decide how a file is read, and how many bytes of it.
const READ_BY: [&str; 10] = [
    "format",
    "record_length_bytes",
    "record_length_bytes_stdev",
    "record_dims",
    "record_element_type",
    "num_samples_per_file",
    "compression",
    "chunk_bytes",
    "hdf5",
    "parquet",
];

/// How a folder's data differs from the workload, according to the folder's marker: `key: made with X, the workload says
/// Y`. Empty for a folder without a marker.
pub fn made_otherwise(dataset: &Dataset, dir: &Path) -> Vec<String> {
    let made = fs::read(dir.join(RECORDS_MARKER)).ok().and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    let (Some(made), wanted) = (made, Value::Object(identity(dataset))) else { return Vec::new() };
    let differs = READ_BY.iter().filter(|key| made.get(**key).is_some_and(|value| *value != wanted[**key]));
    differs.map(|key| format!("{key}: made with {}, the workload says {}", made[*key], wanted[*key])).collect()
}

/// Whether an earlier run, or rank 0 of this one, has marked the folder for the same data.
pub(crate) fn is_marked(dataset: &Dataset, dir: &Path) -> Result<bool> {
    home::agrees(dir, RECORDS_MARKER, &identity(dataset))
}

/// Rank 0 marks the folder and holds it while the value lives; the others wait for the marker.
pub(crate) fn claim(dataset: &Dataset, dir: &Path, rank: u64, control: &Control<'_>) -> Result<Option<Home>> {
    if rank == 0 {
        return Home::claim(dir, RECORDS_MARKER, &identity(dataset)).map(Some);
    }
    let begun = Instant::now();
    while !is_marked(dataset, dir)? {
        if control.cancel.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        if begun.elapsed() > PATIENCE {
            return Err(Error::Unclaimed { path: dir.to_owned() });
        }
        std::thread::sleep(BETWEEN_LOOKS);
    }
    Ok(None)
}

/// Bytes and inodes that files need, or that a file system has free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Room {
    pub(crate) bytes: u64,
    pub(crate) n_files: u64,
}

impl Room {
    /// `n` times as much.
    pub(crate) fn times(self, n: u64) -> Self {
        Self { bytes: self.bytes.saturating_mul(n), n_files: self.n_files.saturating_mul(n) }
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        let bytes = self.bytes.saturating_add(other.bytes);
        Self { bytes, n_files: self.n_files.saturating_add(other.n_files) }
    }

    /// Refuses data that does not fit into `dir`.
    pub(crate) fn check(self, dir: &Path) -> Result<()> {
        let (path, free) = (dir.to_owned(), Self::free(dir)?);
        if self.n_files > free.n_files {
            return Err(Error::NoInodes { path, needed: self.n_files, free: free.n_files });
        }
        if self.bytes > free.bytes {
            return Err(Error::NoRoom { path, needed: Bytes(self.bytes), free: Bytes(free.bytes) });
        }
        Ok(())
    }

    /// The free space of a folder, which need not exist yet; the maximum if its file system does not count.
    fn free(dir: &Path) -> Result<Self> {
        // A folder that does not exist yet is on the file system of its nearest existing parent.
        let there = dir.ancestors().find(|dir| dir.exists()).unwrap_or(Path::new("."));
        let found = statvfs(there)?;
        let bytes = if found.f_blocks > 0 { found.f_bavail * found.f_frsize } else { u64::MAX };
        Ok(Self { bytes, n_files: if found.f_files > 0 { found.f_favail } else { u64::MAX } })
    }
}

fn statvfs(dir: &Path) -> Result<libc::statvfs> {
    let failed = |source| StorageError::from_io(Operation::Size, dir, source);
    let name = std::ffi::CString::new(dir.as_os_str().as_bytes()).map_err(|error| failed(error.into()))?;
    let mut found = MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: a string that ends with a zero, and room for what is written.
    if unsafe { libc::statvfs(name.as_ptr(), found.as_mut_ptr()) } != 0 {
        return Err(failed(std::io::Error::last_os_error()).into());
    }
    // SAFETY: the call succeeded and has written all of it.
    Ok(unsafe { found.assume_init() })
}

/// Whether the file exists and is complete.
pub(crate) fn is_whole(path: &Path, proof: Proof) -> bool {
    let Ok(facts) = fs::metadata(path) else { return false };
    match proof {
        Proof::Length(len) => facts.len() == len,
        Proof::Presence => facts.len() > 0,
        Proof::Tail(ends) => {
            let mut tail = vec![0; facts.len().min(TAIL) as usize];
            let at = facts.len() - tail.len() as u64;
            let read = File::open(path).and_then(|file| file.read_exact_at(&mut tail, at));
            read.is_ok() && ends(&tail)
        }
    }
}

/// Waits until everything written to the file system of `dir` is durable.
pub(crate) fn sync_all(dir: &Path) -> Result<()> {
    let failed = |source| StorageError::from_io(Operation::Commit, dir, source);
    let folder = File::open(dir).map_err(failed)?;
    // SAFETY: a descriptor that is open.
    match unsafe { libc::syncfs(folder.as_raw_fd()) } {
        0 => Ok(()),
        _ => Err(failed(std::io::Error::last_os_error()).into()),
    }
}

/// Waits until the file names of a folder are durable.
pub(crate) fn sync_folder(dir: &Path) -> Result<()> {
    let synced = File::open(dir).and_then(|folder| folder.sync_all());
    Ok(synced.map_err(|source| StorageError::from_io(Operation::Commit, dir, source))?)
}
