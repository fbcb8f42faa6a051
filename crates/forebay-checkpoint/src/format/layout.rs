//! The layout of a checkpoint: which bytes go where.

use std::fmt;
use std::sync::Arc;

use super::Sums;
use crate::{FilePlan, Piece, Snapshot};

/// Creates the last files of a checkpoint from the crc32c of each tensor.
type Closing = dyn Fn(&[u32]) -> Vec<FilePlan> + Send + Sync;

/// The files of a checkpoint: those that hold the values, and small ones that are written last.
#[derive(Clone)]
pub struct Layout {
    /// The files that hold the tensors' bytes.
    pub files: Vec<FilePlan>,
    closing: Option<Arc<Closing>>,
    n_tensors: usize,
}

impl Layout {
    /// A layout of custom files, in this order, without any format.
    pub fn from_plans(files: Vec<FilePlan>) -> Self {
        Self::new(files, 0)
    }

    /// A layout whose files are all known before the values are read.
    pub(super) fn new(files: Vec<FilePlan>, n_tensors: usize) -> Self {
        Self { files, closing: None, n_tensors }
    }

    /// The same, with further files to be created from the checksums.
    pub(super) fn closed_by(self, closing: impl Fn(&[u32]) -> Vec<FilePlan> + Send + Sync + 'static) -> Self {
        Self { closing: Some(Arc::new(closing)), ..self }
    }

    /// The files that depend on the crc32c of each tensor (in the snapshot's order); write them in this order. Empty
    /// when the format has no checksums. Their names and lengths do not depend on the checksums.
    ///
    /// # Panics
    /// When the format has checksums and `sums` does not have one per tensor.
    pub fn close(&self, sums: &[u32]) -> Vec<FilePlan> {
        let Some(closing) = &self.closing else { return Vec::new() };
        assert_eq!(sums.len(), self.n_tensors, "a checksum for each tensor");
        closing(sums)
    }

    /// An empty set of the checksums that [`close`](Self::close) needs; `None` if it needs none.
    pub fn sums(&self) -> Option<Sums> {
        self.closing.as_ref().map(|_| Sums::planned(&self.files, self.n_tensors))
    }

    /// The files that are written last, with placeholder checksums.
    pub(crate) fn last_files(&self) -> Vec<FilePlan> {
        self.close(&vec![0; self.n_tensors])
    }

    /// Whether it was planned for this number of tensors.
    pub(crate) fn is_of(&self, n_tensors: usize) -> bool {
        self.closing.is_none() || self.n_tensors == n_tensors
    }

    /// All files at once, for a writer that needs every byte in advance. If the format has checksums, this reads all
    /// values once.
    ///
    /// # Panics
    /// When the snapshot has different tensors from the planned one, or values that are not in memory.
    pub fn complete(mut self, snapshot: &Snapshot<'_>) -> Vec<FilePlan> {
        if self.closing.is_some() {
            let sums = Sums::of(snapshot).finish().expect("every tensor was seen whole");
            self.files.extend(self.close(&sums));
        }
        self.files
    }

    /// Total bytes of all files, including those written last.
    pub fn n_bytes(&self) -> u64 {
        self.files.iter().chain(&self.last_files()).map(|file| file.len).sum()
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layout").field("files", &self.files).field("n_tensors", &self.n_tensors).finish_non_exhaustive()
    }
}

/// A small file whose bytes are known in advance.
pub(super) fn small_file(name: String, bytes: Vec<u8>) -> FilePlan {
    FilePlan::new(name, vec![Piece::Bytes(bytes)])
}
