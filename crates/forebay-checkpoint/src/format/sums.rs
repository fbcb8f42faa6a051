//! Checksums of tensors, collected while their bytes are processed in pieces and in any order.

use std::collections::BTreeMap;

use super::Error;
use crate::{FilePlan, Piece, Snapshot};

/// The crc32c of each tensor of a snapshot, being computed.
#[derive(Debug, Clone)]
pub struct Sums {
    tensors: Vec<Parts>,
}

#[derive(Debug, Clone, Default)]
struct Parts {
    n_bytes: u64,
    /// Length and crc32c of each part, keyed by its offset.
    parts: BTreeMap<u64, (u64, u32)>,
}

impl Sums {
    /// Starts with no bytes seen.
    pub fn new(snapshot: &Snapshot<'_>) -> Self {
        let parts = |n_bytes| Parts { n_bytes, parts: BTreeMap::new() };
        Self { tensors: snapshot.tensors.iter().map(|tensor| parts(tensor.bytes.n_bytes())).collect() }
    }

    /// Starts with no bytes seen, for tensors stored in these files.
    pub(super) fn planned(files: &[FilePlan], n_tensors: usize) -> Self {
        let mut tensors = vec![Parts::default(); n_tensors];
        for piece in files.iter().flat_map(|file| &file.pieces) {
            if let Piece::Tensor { index, .. } = piece {
                tensors[*index].n_bytes += piece.n_bytes();
            }
        }
        Self { tensors }
    }

    /// The checksums of a complete snapshot.
    ///
    /// # Panics
    /// When values are not in memory.
    pub fn of(snapshot: &Snapshot<'_>) -> Self {
        let mut sums = Self::new(snapshot);
        for (index, tensor) in snapshot.tensors.iter().enumerate() {
            let bytes = tensor.bytes.here().expect("values are in memory");
            sums.add(index, 0, bytes.len() as u64, crc32c::crc32c(bytes));
        }
        sums
    }

    /// Adds `n_bytes` of a tensor at `offset` with a known crc32c. A part with the same offset as an earlier one
    /// replaces it, so a write can be repeated.
    ///
    /// # Panics
    /// When the snapshot has no tensor with this index.
    pub fn add(&mut self, index: usize, offset: u64, n_bytes: u64, crc32c: u32) {
        if n_bytes > 0 {
            self.tensors[index].parts.insert(offset, (n_bytes, crc32c));
        }
    }

    /// Adds bytes of a planned file from `offset`, as returned by [`FilePlan::fill`].
    ///
    /// # Panics
    /// When the plan does not belong to this snapshot.
    pub fn add_filled(&mut self, plan: &FilePlan, offset: u64, bytes: &[u8]) {
        self.add_seen(&Seen::of(plan, offset, bytes, crc32c::crc32c(bytes)));
    }

    /// Adds parts that were computed separately.
    pub(crate) fn add_seen(&mut self, seen: &Seen) {
        for part in &seen.parts {
            self.add(part.index, part.offset, part.n_bytes, part.crc32c);
        }
    }

    /// Merges checksums of other parts of the same snapshot.
    pub fn merge(&mut self, other: Self) {
        for (mine, theirs) in self.tensors.iter_mut().zip(other.tensors) {
            mine.parts.extend(theirs.parts);
        }
    }

    /// The crc32c of each tensor.
    ///
    /// # Errors
    /// When a byte was not seen or belongs to two parts.
    pub fn finish(&self) -> Result<Vec<u32>, Error> {
        self.tensors.iter().enumerate().map(|(index, parts)| parts.combine(index)).collect()
    }
}

/// Checksums of parts of a planned file, kept apart from [`Sums`] so that many threads can compute at once.
pub(crate) struct Seen {
    parts: Vec<Part>,
}

struct Part {
    index: usize,
    offset: u64,
    n_bytes: u64,
    crc32c: u32,
}

impl Seen {
    /// Adds bytes of a planned file from `offset` with a known crc32c.
    pub(crate) fn of(plan: &FilePlan, offset: u64, bytes: &[u8], whole: u32) -> Self {
        let (mut parts, mut rest) = (Vec::new(), bytes);
        for (piece, within) in plan.pieces_of(offset..offset + bytes.len() as u64) {
            let (seen, others) = rest.split_at((within.end - within.start) as usize);
            if let Piece::Tensor { index, range } = piece {
                let crc32c = if seen.len() == bytes.len() { whole } else { crc32c::crc32c(seen) };
                let (offset, n_bytes) = (range.start + within.start, seen.len() as u64);
                parts.push(Part { index: *index, offset, n_bytes, crc32c });
            }
            rest = others;
        }
        Self { parts }
    }
}

impl Parts {
    fn combine(&self, index: usize) -> Result<u32, Error> {
        let (mut next, mut sum) = (0, 0);
        for (&offset, &(n_bytes, crc)) in &self.parts {
            if offset != next {
                return Err(Error::Uncovered { index, expected: next, found: offset });
            }
            sum = if next == 0 { crc } else { crc32c::crc32c_combine(sum, crc, n_bytes as usize) };
            next = offset + n_bytes;
        }
        if next != self.n_bytes {
            return Err(Error::Uncovered { index, expected: next, found: self.n_bytes });
        }
        Ok(sum)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Dtype, Header, Tensor};

    fn header(n: usize) -> Header {
        Header { name: format!("w{n}"), dtype: Dtype::U8, shape: vec![n as u64] }
    }

    proptest! {
        #[test]
        fn any_pieces_in_any_order_give_the_checksum_of_the_whole(
            lens in proptest::collection::vec(0..300_usize, 1..5),
            step in 1..200_usize,
            backwards in any::<bool>(),
        ) {
            let headers: Vec<_> = lens.iter().map(|&n| header(n)).collect();
            let values: Vec<Vec<u8>> = lens.iter().map(|&n| (0..n).map(|i| (i * 7 + n) as u8).collect()).collect();
            let tensors = headers.iter().zip(&values).map(|(header, bytes)| Tensor::new(header, bytes)).collect();
            let snapshot = Snapshot { tensors, ..Snapshot::default() };
            let mut pieces = vec![Piece::Bytes(vec![9; 13])];
            pieces.extend(lens.iter().enumerate().map(|(index, &n)| Piece::Tensor { index, range: 0..n as u64 }));
            let plan = FilePlan::new("f", pieces);
            let mut offsets: Vec<u64> = (0..plan.len).step_by(step).collect();
            if backwards {
                offsets.reverse();
            }
            let (mut even, mut odd) = (Sums::new(&snapshot), Sums::new(&snapshot));
            for (n, offset) in offsets.into_iter().enumerate() {
                let mut buffer = vec![0; step];
                let filled = plan.fill(&snapshot, offset, &mut buffer);
                let sums = if n % 2 == 0 { &mut even } else { &mut odd };
                sums.add_filled(&plan, offset, &buffer[..filled]);
            }
            even.merge(odd);
            let whole: Vec<u32> = values.iter().map(|bytes| crc32c::crc32c(bytes)).collect();
            prop_assert_eq!(even.finish().expect("every byte was seen"), whole);
        }
    }

    #[test]
    fn bytes_that_were_not_seen_or_seen_twice_are_named() {
        let header = header(10);
        let tensors = vec![Tensor::new(&header, &[0; 10])];
        let snapshot = Snapshot { tensors, ..Snapshot::default() };
        let finish = |parts: &[(u64, u64)]| {
            let mut sums = Sums::new(&snapshot);
            parts.iter().for_each(|&(offset, n)| sums.add(0, offset, n, 0));
            sums.finish().expect_err("not covered").to_string()
        };
        assert_eq!(finish(&[]), "checksums of tensor 0: expected bytes from offset 0, found 10");
        assert_eq!(finish(&[(0, 4), (6, 4)]), "checksums of tensor 0: expected bytes from offset 4, found 6");
        assert_eq!(finish(&[(0, 6), (4, 6)]), "checksums of tensor 0: expected bytes from offset 6, found 4");
    }
}
