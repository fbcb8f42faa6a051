//! The planned content of a checkpoint file.
//!
//! A format lists the pieces in order: its own bytes (header, padding, index) and ranges of the snapshot's tensors. The
//! writer requests any range of the file. Tensors are thus copied once, directly into the aligned write buffer, and no
//! file exists twice in memory.

use std::io;
use std::ops::Range;

use crate::values::Errand;
use crate::{Elsewhere, Fetch, Snapshot, Values};

/// Bytes copied and checksummed at a time: source and copy stay in the core's cache.
const FUSED: usize = 256 << 10;

/// One run of bytes of a planned file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    Bytes(Vec<u8>),
    /// A range of bytes of the tensor with this index.
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

/// A file of a checkpoint: a sequence of pieces without gaps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePlan {
    pub name: String,
    pub len: u64,
    /// Its pieces, in file order.
    pub pieces: Vec<Piece>,
}

impl FilePlan {
    pub fn new(name: impl Into<String>, pieces: Vec<Piece>) -> Self {
        let len = pieces.iter().map(Piece::n_bytes).sum();
        Self { name: name.into(), len, pieces }
    }

    /// Fills `into` with the file's bytes from `offset`. Bytes past the end of the file are left unchanged. Returns the
    /// number of bytes filled.
    ///
    /// # Panics
    /// When a piece refers to a tensor or a range that the snapshot does not have or that is not in memory.
    pub fn fill(&self, snapshot: &Snapshot<'_>, offset: u64, into: &mut [u8]) -> usize {
        let all_here = snapshot.tensors.iter().all(|tensor| tensor.bytes.here().is_some());
        assert!(all_here, "values are in memory");
        self.fetch(snapshot, offset, into).expect("memory does not fail")
    }

    /// The same, but also fetches values from a device.
    ///
    /// # Errors
    /// The error of the device.
    ///
    /// # Panics
    /// When a piece refers to a tensor or a range that the snapshot does not have.
    pub fn fetch(&self, snapshot: &Snapshot<'_>, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.gather(snapshot, offset, into, |from, to| to.copy_from_slice(from)).map(|(filled, _)| filled)
    }

    /// The same for a range within the file; also returns its crc32c, computed while the bytes are in the cache.
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

    /// Fills `into`, using `copy` for bytes in memory. Returns the number of bytes filled and whether all were in
    /// memory.
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

    /// The pieces that make up a range of the file, each with the range of its own bytes.
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

/// Where some bytes of a file come from.
pub(crate) enum At<'a> {
    Here(&'a [u8]),
    There {
        device: &'a dyn Elsewhere,
        /// The device's number for the tensor, not its index in the snapshot.
        index: usize,
        offset: u64,
    },
}

/// The location of a range of a piece's bytes.
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
