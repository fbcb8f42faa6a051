//! Where the bytes of a checkpoint go.

use std::fmt;
use std::sync::Arc;

use super::Sums;
use crate::{FilePlan, Piece, Snapshot};

/// Makes the last files of a checkpoint from the crc32c of each tensor.
type Closing = dyn Fn(&[u32]) -> Vec<FilePlan> + Send + Sync;

/// The files of a checkpoint: those that hold the values, and small ones that are written after them.
#[derive(Clone)]
pub struct Layout {
    /// The files that hold the tensors' bytes.
    pub files: Vec<FilePlan>,
    closing: Option<Arc<Closing>>,
    n_tensors: usize,
}

impl Layout {
    /// Files of no format's making, in this order.
    pub fn from_plans(files: Vec<FilePlan>) -> Self {
        Self::new(files, 0)
    }

    /// Files that are known without a look at the values.
    pub(super) fn new(files: Vec<FilePlan>, n_tensors: usize) -> Self {
        Self { files, closing: None, n_tensors }
    }

    /// The same, and files to be made from the checksums.
    pub(super) fn closed_by(self, closing: impl Fn(&[u32]) -> Vec<FilePlan> + Send + Sync + 'static) -> Self {
        Self { closing: Some(Arc::new(closing)), ..self }
    }

    /// The files that can be written only now, from the crc32c of each tensor in the snapshot's order; to be written in
    /// this order. None when the format has no checksums. Their names and lengths do not depend on the checksums.
    ///
    /// # Panics
    /// When the format has checksums, and there are not as many as tensors.
    pub fn close(&self, sums: &[u32]) -> Vec<FilePlan> {
        let Some(closing) = &self.closing else { return Vec::new() };
        assert_eq!(sums.len(), self.n_tensors, "a checksum for each tensor");
        closing(sums)
    }

    /// The checksums that [`close`](Self::close) needs, none of the bytes seen yet; `None` where it needs none.
    pub fn sums(&self) -> Option<Sums> {
        self.closing.as_ref().map(|_| Sums::planned(&self.files, self.n_tensors))
    }

    /// The files that are written last, with checksums that are not yet right.
    pub(crate) fn last_files(&self) -> Vec<FilePlan> {
        self.close(&vec![0; self.n_tensors])
    }

    /// Whether it was planned for so many tensors.
    pub(crate) fn is_of(&self, n_tensors: usize) -> bool {
        self.closing.is_none() || self.n_tensors == n_tensors
    }

    /// All files at once, for a writer that wants to know every byte beforehand. Where the format has checksums, that
    /// costs a pass over the values.
    ///
    /// # Panics
    /// When the snapshot has other tensors than the one that was planned, or values that are not in memory.
    pub fn complete(mut self, snapshot: &Snapshot<'_>) -> Vec<FilePlan> {
        if self.closing.is_some() {
            let sums = Sums::of(snapshot).finish().expect("every tensor was seen whole");
            self.files.extend(self.close(&sums));
        }
        self.files
    }

    /// Bytes of all files, those written last included.
    pub fn n_bytes(&self) -> u64 {
        self.files.iter().chain(&self.last_files()).map(|file| file.len).sum()
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layout").field("files", &self.files).field("n_tensors", &self.n_tensors).finish_non_exhaustive()
    }
}

/// A small file whose bytes are known.
pub(super) fn small_file(name: String, bytes: Vec<u8>) -> FilePlan {
    FilePlan::new(name, vec![Piece::Bytes(bytes)])
}
