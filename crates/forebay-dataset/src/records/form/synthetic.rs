//! synthetic: a file with its number in it, for loaders that make samples up.

use std::io::{self, Write};
use std::ops::Range;

use super::{Draft, Form, Piece, Proof};

pub(super) struct Synthetic;

impl Form for Synthetic {
    fn proof(&self, piece: &Piece) -> Proof {
        Proof::Length(self.room(piece))
    }

    fn room(&self, piece: &Piece) -> u64 {
        piece.number.to_string().len() as u64
    }

    fn write(&self, piece: &Piece, _range: Range<u64>, draft: &mut Draft<'_>) -> io::Result<()> {
        write!(draft, "{}", piece.number)
    }
}
