//! indexed_binary: nothing but the values, and two files beside them. It may be cut anywhere.

use std::io::{self, Write};
use std::ops::Range;

use forebay_format::indexed::write::{OFFSETS, SIZES, offsets, sizes};

use super::{Beside, Draft, Form, Piece, Proof};

/// Samples whose places are written at a time.
const SAMPLES: u64 = 16 << 10;

pub(super) struct Indexed;

impl Form for Indexed {
    fn proof(&self, piece: &Piece) -> Proof {
        Proof::Length(piece.bytes())
    }

    fn room(&self, piece: &Piece) -> u64 {
        piece.bytes()
    }

    fn grain(&self, _piece: &Piece) -> Option<u64> {
        Some(1)
    }

    fn write(&self, piece: &Piece, range: Range<u64>, draft: &mut Draft<'_>) -> io::Result<()> {
        draft.fill(range.end - range.start, piece.noise.from(range.start))
    }

    fn beside(&self, piece: &Piece) -> Vec<Beside> {
        let room = 8 * piece.shape.n_samples;
        [OFFSETS, SIZES]
            .map(|ending| Beside { path: format!("{}{ending}", piece.path), proof: Proof::Length(room), room })
            .into()
    }

    fn write_beside(&self, piece: &Piece, which: usize, draft: &mut Draft<'_>) -> io::Result<()> {
        let (n, bytes) = (piece.shape.n_samples, piece.shape.sample_bytes);
        let mut numbers = Vec::new();
        for from in (0..n).step_by(SAMPLES as usize) {
            let to = (from + SAMPLES).min(n);
            numbers.clear();
            match which {
                0 => offsets(from, to, bytes, &mut numbers),
                _ => sizes(to - from, bytes, &mut numbers),
            }
            draft.write_all(&numbers)?;
        }
        Ok(())
    }
}
