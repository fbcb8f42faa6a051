//! Which files a part of the data has. Their names follow from the workload, so that half a million of them need neither a
//! list nor a look at each; only a folder made for more files than are wanted is listed.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_storage::Storage;
use forebay_units::PathText;
use forebay_workload::{Dataset, FileShape, Format, Part, Workload};

use super::super::run::Error;

/// Files that are looked for before the run; evenly spread where there are more.
const LOOKED_FOR: u64 = 2048;

/// The files of one part.
pub(crate) struct Files {
    /// What they are read through.
    pub(crate) storage: Arc<dyn Storage>,
    /// What the workload says of them.
    pub(crate) dataset: Dataset,
    /// Which part.
    pub(crate) part: Part,
    /// Whether checksums are verified.
    pub(crate) verify: bool,
    /// Bytes of one read.
    pub(crate) piece: usize,
    /// The most of one read, where the workload says so.
    pub(crate) transfer: Option<usize>,
    dir: PathBuf,
    /// Their paths, where they do not follow from the workload.
    listed: Vec<PathBuf>,
}

/// Bytes of one read where the workload says nothing. In the page cache, pieces of 1 to 8 MiB are level; this is the least
/// that keeps a disk busy.
const PIECE: usize = 2 << 20;

impl Files {
    /// Finds them.
    pub(crate) fn find(
        workload: &Workload,
        part: Part,
        storage: Arc<dyn Storage>,
        dir: PathBuf,
        verify: bool,
    ) -> Result<Self, Error> {
        let transfer = workload.reader.transfer_size.map(|bytes| bytes.clamp(1, 1 << 30) as usize);
        let piece = transfer.unwrap_or(PIECE);
        let dataset = workload.dataset.clone();
        let mut files = Self { storage, dataset, part, verify, piece, transfer, dir, listed: Vec::new() };
        if files.n_files() > u64::from(u32::MAX) {
            return Err(refused(format!("{} files are more than the 2^32 that can be read", files.n_files())));
        }
        let n = files.n_files();
        if n > 0 && !files.has(0) && files.dataset.format != Format::Synthetic {
            files.listed = files.list()?;
        }
        match files.first_missing() {
            // What is there and may not be looked at is not to be made again.
            Some(path) => match files.storage.size(&path) {
                Err(error @ forebay_storage::Error::Denied { .. }) => Err(refused(error.to_string())),
                _ => Err(missing(&path, n)),
            },
            None => Ok(files),
        }
    }

    /// How many there are.
    pub(crate) fn n_files(&self) -> u64 {
        self.dataset.n_files(self.part)
    }

    /// Where one lies.
    pub(crate) fn path_of(&self, file: u32) -> PathBuf {
        match self.listed.get(file as usize) {
            Some(path) => path.clone(),
            None => self.dir.join(self.dataset.path_of(self.part, u64::from(file))),
        }
    }

    /// What one holds, if it was made as the workload says.
    pub(crate) fn shape_of(&self, file: u32) -> FileShape {
        self.dataset.shape_of(self.part, u64::from(file))
    }

    fn has(&self, file: u32) -> bool {
        self.storage.size(&self.path_of(file)).is_ok()
    }

    /// The first of those looked for that is not there. A file between them that is missing fails its sample, by name.
    fn first_missing(&self) -> Option<PathBuf> {
        if self.dataset.format == Format::Synthetic {
            return None;
        }
        let n = self.n_files();
        let looked_for = n.min(LOOKED_FOR);
        (0..looked_for)
            .map(|i| {
                if looked_for == 1 {
                    0
                } else {
                    (u128::from(i) * u128::from(n - 1) / u128::from(looked_for - 1)) as u32
                }
            })
            .find(|file| !self.has(*file))
            .map(|file| self.path_of(file))
    }

    /// The first files of a folder that was made for another number of them, by their names, as DLIO takes them.
    fn list(&self) -> Result<Vec<PathBuf>, Error> {
        let folder = self.dir.join(self.part.folder());
        let n = self.n_files();
        let entries = self.storage.list(&folder).map_err(|_| missing(&self.path_of(0), n))?;
        let ending = format!(".{}", self.dataset.format.name());
        let mut paths: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path).collect();
        let has_ending = |path: &Path| path.as_os_str().as_bytes().to_ascii_lowercase().ends_with(ending.as_bytes());
        paths.retain(|path| has_ending(path));
        paths.sort_by(|a, b| a.file_name().cmp(&b.file_name()));
        if (paths.len() as u64) < n {
            let found = paths.len();
            let what = format!("{} holds {found} {ending} files of the {n} that the workload has", folder.escaped());
            return Err(refused(format!("{what}, and {} is not there; {MAKE}", self.path_of(0).escaped())));
        }
        paths.truncate(n as usize);
        Ok(paths)
    }
}

const MAKE: &str = "make them with `forebay workload make`";

fn missing(path: &Path, n: u64) -> Error {
    refused(format!("{} is not there, one of {n} files; {MAKE}", path.escaped()))
}

/// Data that is not what the workload says.
pub(crate) fn refused(what: String) -> Error {
    forebay_pipeline::Error::Source { what, source: None }.into()
}
