//! What a file of a checkpoint will hold, before a byte of it is written.
//!
//! A format says which pieces follow one another: bytes of its own (a header, padding, an index) and ranges of the
//! snapshot's tensors. Whoever writes the file asks for any range of it, so that tensors are copied once, straight into
//! the aligned buffer they are written from, and a file never exists twice in memory.

use std::ops::Range;

use crate::Snapshot;

/// One run of bytes of a planned file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Bytes that the format made.
    Bytes(Vec<u8>),
    /// A range of the bytes of the snapshot's tensor of that index.
    Tensor {
        /// Which tensor of [`Snapshot::tensors`].
        index: usize,
        /// Which of its bytes.
        range: Range<u64>,
    },
}

impl Piece {
    /// Bytes it takes in the file.
    pub fn n_bytes(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Tensor { range, .. } => range.end.saturating_sub(range.start),
        }
    }
}

/// A file of a checkpoint: its pieces, one after the other without gaps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePlan {
    /// Its name in the checkpoint's folder.
    pub name: String,
    /// The sum of its pieces' lengths.
    pub len: u64,
    /// What it holds, in the order of the file.
    pub pieces: Vec<Piece>,
}

impl FilePlan {
    /// A file of these pieces.
    pub fn new(name: impl Into<String>, pieces: Vec<Piece>) -> Self {
        let len = pieces.iter().map(Piece::n_bytes).sum();
        Self { name: name.into(), len, pieces }
    }

    /// Fills `into` with the file's bytes from `offset` on. What is past the file's end is left as it was; returns how
    /// many bytes were filled.
    ///
    /// # Panics
    /// When a piece names a tensor, or bytes of one, that the snapshot does not have.
    pub fn fill(&self, snapshot: &Snapshot<'_>, offset: u64, into: &mut [u8]) -> usize {
        let (mut start, mut filled) = (0, 0);
        for piece in &self.pieces {
            let end = start + piece.n_bytes();
            let wanted = offset + filled as u64;
            if wanted < end && filled < into.len() {
                let bytes = bytes_of(piece, snapshot);
                let from = (wanted - start) as usize;
                let n = (bytes.len() - from).min(into.len() - filled);
                into[filled..filled + n].copy_from_slice(&bytes[from..from + n]);
                filled += n;
            }
            start = end;
        }
        filled
    }
}

fn bytes_of<'a>(piece: &'a Piece, snapshot: &'a Snapshot<'_>) -> &'a [u8] {
    match piece {
        Piece::Bytes(bytes) => bytes,
        Piece::Tensor { index, range } => &snapshot.tensors[*index].bytes[range.start as usize..range.end as usize],
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Dtype, Header, Tensor};

    proptest! {
        #[test]
        fn any_range_is_that_range_of_the_pieces_laid_end_to_end(
            pieces in proptest::collection::vec((0..3_u8, 0..9_u64, 0..9_u64), 0..8),
            offset in 0..80_u64,
            len in 0..80_usize,
        ) {
            let values: [Vec<u8>; 2] = [(0..16).collect(), (100..116).collect()];
            let header = Header { name: "w".to_owned(), dtype: Dtype::U8, shape: vec![16] };
            let tensors = values.iter().map(|bytes| Tensor { header: &header, bytes }).collect();
            let snapshot = Snapshot { tensors, ..Snapshot::default() };
            let pieces: Vec<Piece> = pieces
                .into_iter()
                .map(|(kind, start, n)| match kind {
                    0 => Piece::Bytes(vec![200 + start as u8; n as usize]),
                    _ => Piece::Tensor { index: kind as usize - 1, range: start.min(16 - n)..start.min(16 - n) + n },
                })
                .collect();
            let whole: Vec<u8> = pieces.iter().flat_map(|piece| bytes_of(piece, &snapshot).to_vec()).collect();
            let plan = FilePlan::new("f", pieces);
            prop_assert_eq!(plan.len, whole.len() as u64);
            let mut into = vec![0; len];
            let filled = plan.fill(&snapshot, offset, &mut into);
            let from = (offset as usize).min(whole.len());
            prop_assert_eq!(&into[..filled], &whole[from..whole.len().min(from + len)]);
        }
    }
}
