//! What a file of a checkpoint will hold, before a byte of it is written.
//!
//! A format says which pieces follow one another: bytes of its own (a header, padding, an index) and ranges of the
//! snapshot's tensors. Whoever writes the file asks for any range of it, so that tensors are copied once, straight into
//! the aligned buffer they are written from, and a file never exists twice in memory.

use std::io;
use std::ops::Range;

use crate::values::Errand;
use crate::{Elsewhere, Fetch, Snapshot, Values};

/// Bytes copied and summed at once: source and copy stay in a core's own cache.
const FUSED: usize = 256 << 10;

/// One run of bytes of a planned file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    Bytes(Vec<u8>),
    /// A range of the bytes of the snapshot's tensor of that index.
    Tensor {
        index: usize,
        range: Range<u64>,
    },
}

impl Piece {
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
    pub name: String,
    pub len: u64,
    /// What it holds, in the order of the file.
    pub pieces: Vec<Piece>,
}

impl FilePlan {
    pub fn new(name: impl Into<String>, pieces: Vec<Piece>) -> Self {
        let len = pieces.iter().map(Piece::n_bytes).sum();
        Self { name: name.into(), len, pieces }
    }

    /// Fills `into` with the file's bytes from `offset` on. What is past the file's end is left as it was; returns how
    /// many bytes were filled.
    ///
    /// # Panics
    /// When a piece names a tensor, or bytes of one, that the snapshot does not have or that are not in memory.
    pub fn fill(&self, snapshot: &Snapshot<'_>, offset: u64, into: &mut [u8]) -> usize {
        let all_here = snapshot.tensors.iter().all(|tensor| tensor.bytes.here().is_some());
        assert!(all_here, "values are in memory");
        self.fetch(snapshot, offset, into).expect("memory does not fail")
    }

    /// The same, also of values that are on a device.
    ///
    /// # Errors
    /// What the device says.
    ///
    /// # Panics
    /// When a piece names a tensor, or bytes of one, that the snapshot does not have.
    pub fn fetch(&self, snapshot: &Snapshot<'_>, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.gather(snapshot, offset, into, |from, to| to.copy_from_slice(from)).map(|(filled, _)| filled)
    }

    /// The same for bytes that are all within the file, and their crc32c, taken while they are near the core.
    pub(crate) fn fetch_and_sum(&self, snapshot: &Snapshot<'_>, offset: u64, into: &mut [u8]) -> io::Result<u32> {
        let mut crc = 0;
        let copy = |from: &[u8], to: &mut [u8]| {
            for (from, to) in from.chunks(FUSED).zip(to.chunks_mut(FUSED)) {
                to.copy_from_slice(from);
                crc = crc32c::crc32c_append(crc, to);
            }
        };
        let (filled, is_all_here) = self.gather(snapshot, offset, into, copy)?;
        debug_assert_eq!(filled, into.len(), "a plan's length is the sum of its pieces");
        Ok(if is_all_here { crc } else { crc32c::crc32c(into) })
    }

    /// Fills `into`, with `copy` where bytes are in memory; says how much was filled, and whether all of it was there.
    fn gather(
        &self,
        snapshot: &Snapshot<'_>,
        offset: u64,
        into: &mut [u8],
        mut copy: impl FnMut(&[u8], &mut [u8]),
    ) -> io::Result<(usize, bool)> {
        let end = self.len.min(offset + into.len() as u64);
        let filled = end.saturating_sub(offset) as usize;
        let mut errand = Errand::default();
        let mut rest = &mut into[..filled];
        for (piece, range) in self.pieces_of(offset..end) {
            let (mine, others) = rest.split_at_mut((range.end - range.start) as usize);
            match at(piece, range, snapshot) {
                At::Here(bytes) => copy(bytes, mine),
                At::There { device, index, offset } => errand.add(device, Fetch { index, offset, into: mine }),
            }
            rest = others;
        }
        let is_all_here = errand.is_empty();
        errand.run()?;
        Ok((filled, is_all_here))
    }

    /// The pieces that a range of the file is made of, each with the range of its own bytes.
    pub(crate) fn pieces_of(&self, range: Range<u64>) -> impl Iterator<Item = (&Piece, Range<u64>)> {
        let mut start = 0;
        self.pieces.iter().filter_map(move |piece| {
            let (from, to) = (start.max(range.start), (start + piece.n_bytes()).min(range.end));
            let within = from.wrapping_sub(start)..to.wrapping_sub(start);
            start += piece.n_bytes();
            (from < to).then_some((piece, within))
        })
    }
}

/// Where some bytes of a file are before it is written.
pub(crate) enum At<'a> {
    Here(&'a [u8]),
    There {
        device: &'a dyn Elsewhere,
        /// The device's own number for the tensor, not an index of the snapshot.
        index: usize,
        offset: u64,
    },
}

/// Where a range of a piece's bytes is.
pub(crate) fn at<'a>(piece: &'a Piece, range: Range<u64>, snapshot: &Snapshot<'a>) -> At<'a> {
    let within = |bytes: &'a [u8], start: u64| &bytes[(start + range.start) as usize..(start + range.end) as usize];
    match piece {
        Piece::Bytes(bytes) => At::Here(within(bytes, 0)),
        Piece::Tensor { index, range: of } => match snapshot.tensors[*index].bytes {
            Values::Here(bytes) => At::Here(within(bytes, of.start)),
            Values::There { device, index, .. } => At::There { device, index, offset: of.start + range.start },
        },
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
            let tensors = values.iter().map(|bytes| Tensor::new(&header, bytes)).collect();
            let snapshot = Snapshot { tensors, ..Snapshot::default() };
            let pieces: Vec<Piece> = pieces
                .into_iter()
                .map(|(kind, start, n)| match kind {
                    0 => Piece::Bytes(vec![200 + start as u8; n as usize]),
                    _ => Piece::Tensor { index: kind as usize - 1, range: start.min(16 - n)..start.min(16 - n) + n },
                })
                .collect();
            let whole: Vec<u8> = pieces
                .iter()
                .flat_map(|piece| match piece {
                    Piece::Bytes(bytes) => bytes.clone(),
                    Piece::Tensor { index, range } => values[*index][range.start as usize..range.end as usize].to_vec(),
                })
                .collect();
            let plan = FilePlan::new("f", pieces);
            prop_assert_eq!(plan.len, whole.len() as u64);
            let mut into = vec![0; len];
            let filled = plan.fill(&snapshot, offset, &mut into);
            let from = (offset as usize).min(whole.len());
            prop_assert_eq!(&into[..filled], &whole[from..whole.len().min(from + len)]);
        }
    }
}
