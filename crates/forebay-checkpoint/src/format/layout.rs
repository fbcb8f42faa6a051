//! Where the bytes of a checkpoint go.

use std::fmt;

use super::Sums;
use crate::{FilePlan, Piece, Snapshot};

/// Makes the last files of a checkpoint from the crc32c of each tensor.
type Closing = dyn Fn(&[u32]) -> Vec<FilePlan> + Send + Sync;

/// The files of a checkpoint: those that hold the values, and small ones that are written after them.
pub struct Layout {
    /// The files that hold the tensors' bytes.
    pub files: Vec<FilePlan>,
    closing: Option<Box<Closing>>,
    n_tensors: usize,
}

impl Layout {
    /// Files that are known without a look at the values.
    pub(super) fn new(files: Vec<FilePlan>, n_tensors: usize) -> Self {
        Self { files, closing: None, n_tensors }
    }

    /// The same, and files to be made from the checksums.
    pub(super) fn closed_by(self, closing: impl Fn(&[u32]) -> Vec<FilePlan> + Send + Sync + 'static) -> Self {
        Self { closing: Some(Box::new(closing)), ..self }
    }

    /// The files that can be written only now, from the crc32c of each tensor in the snapshot's order; to be written in
    /// this order. None when the format has no checksums. Their names and lengths do not depend on the checksums.
    ///
    /// # Panics
    /// When there are not as many checksums as tensors.
    pub fn close(&self, sums: &[u32]) -> Vec<FilePlan> {
        assert_eq!(sums.len(), self.n_tensors, "a checksum for each tensor");
        self.closing.as_ref().map_or_else(Vec::new, |closing| closing(sums))
    }

    /// All files at once, for a writer that wants to know every byte beforehand. Where the format has checksums, that
    /// costs a pass over the values.
    ///
    /// # Panics
    /// When the snapshot has other tensors than the one that was planned.
    pub fn complete(mut self, snapshot: &Snapshot<'_>) -> Vec<FilePlan> {
        if self.closing.is_some() {
            let sums = Sums::of(snapshot).finish().expect("every tensor was seen whole");
            self.files.extend(self.close(&sums));
        }
        self.files
    }

    /// Bytes of all files, those written last included.
    pub fn n_bytes(&self) -> u64 {
        let last = self.close(&vec![0; self.n_tensors]);
        self.files.iter().chain(&last).map(|file| file.len).sum()
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
