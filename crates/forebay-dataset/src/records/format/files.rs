//! The files of a part of the data. Their names follow from the workload, so half a million files need neither a listing
//! nor a check of each; only a folder made for more files than the workload has is listed.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_storage::Storage;
use forebay_units::PathText;
use forebay_workload::{Dataset, FileShape, Format, Part, Workload};

use super::reader::{ReadError, Reader, Unit};
use super::{DataFormat, of};

/// Number of files checked before the run, evenly spread over all.
const LOOKED_FOR: u64 = 2048;

pub struct Files {
    pub(super) storage: Arc<dyn Storage>,
    pub(super) dataset: Dataset,
    pub(super) part: Part,
    pub(super) verify: bool,
    /// Default bytes per read.
    pub(super) piece: usize,
    /// The workload's limit on one read, if set.
    pub(super) transfer: Option<usize>,
    format: Box<dyn DataFormat>,
    dir: PathBuf,
    /// Their paths, if these do not follow from the workload.
    listed: Vec<PathBuf>,
}

/// Default bytes per read. In the page cache, pieces of 1 to 8 MiB perform equally; this is the smallest that keeps a disk
/// busy.
const PIECE: usize = 2 << 20;

impl Files {
    /// Finds them below `dir`, which holds `train` and `valid`; `verify`: whether readers verify checksums.
    ///
    /// # Errors
    /// When one of them is missing, or this build does not support their format.
    pub fn find(
        workload: &Workload,
        part: Part,
        storage: Arc<dyn Storage>,
        dir: PathBuf,
        verify: bool,
    ) -> Result<Self, ReadError> {
        let format = of(&workload.dataset).map_err(|error| ReadError::Refused(error.to_string()))?;
        if !workload.dataset.is_read() {
            let (format, compression) = (workload.dataset.format.name(), workload.dataset.compression.name());
            return Err(ReadError::Refused(format!("{format} files with {compression} compression are not supported")));
        }
        let transfer = workload.reader.transfer_size.map(|bytes| bytes.clamp(1, 1 << 30) as usize);
        let piece = transfer.unwrap_or(PIECE);
        let dataset = workload.dataset.clone();
        let mut files = Self { storage, dataset, part, verify, piece, transfer, format, dir, listed: Vec::new() };
        if files.n_files() > u64::from(u32::MAX) {
            let n = files.n_files();
            return Err(ReadError::Refused(format!("{n} files exceed the limit of 2^32")));
        }
        let n = files.n_files();
        if n > 0 && !files.has(0) && files.dataset.format != Format::Synthetic {
            files.listed = files.list()?;
        }
        match files.first_missing() {
            // A file without read permission exists and must not be made again.
            Some(path) => match files.storage.size(&path) {
                Err(error @ forebay_storage::Error::Denied { .. }) => Err(ReadError::Refused(error.to_string())),
                _ => Err(missing(&path, n)),
            },
            None => Ok(files),
        }
    }

    pub fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    pub fn n_files(&self) -> u64 {
        self.dataset.n_files(self.part)
    }

    pub fn path_of(&self, file: u32) -> PathBuf {
        match self.listed.get(file as usize) {
            Some(path) => path.clone(),
            None => self.dir.join(self.dataset.path_of(self.part, u64::from(file))),
        }
    }

    /// The content of one file, if it was made as the workload says.
    pub(super) fn shape_of(&self, file: u32) -> FileShape {
        self.dataset.shape_of(self.part, u64::from(file))
    }

    pub fn unit(&self) -> Unit {
        self.format.unit()
    }

    /// Default bytes of a sample in a batch, if that is not its record's length.
    pub fn sample_bytes(&self) -> Option<u64> {
        self.format.sample_bytes(&self.shape_of(0))
    }

    pub fn reader(self: &Arc<Self>) -> Box<dyn Reader> {
        self.format.reader(Arc::clone(self))
    }

    fn has(&self, file: u32) -> bool {
        self.storage.size(&self.path_of(file)).is_ok()
    }

    /// The first of the checked files that is missing. If another file is missing, its sample fails with the file's name.
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

    /// The first files by name of a folder that was made for another number of files, as DLIO chooses them.
    fn list(&self) -> Result<Vec<PathBuf>, ReadError> {
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
            let what = format!("{} contains {found} {ending} files; the workload needs {n}", folder.escaped());
            let gone = self.path_of(0);
            return Err(ReadError::Refused(format!("{what}, and {} is missing; {MAKE}", gone.escaped())));
        }
        paths.truncate(n as usize);
        Ok(paths)
    }
}

const MAKE: &str = "make them with `forebay workload make`";

fn missing(path: &Path, n: u64) -> ReadError {
    ReadError::Refused(format!("{}, one of {n} files, is missing; {MAKE}", path.escaped()))
}
