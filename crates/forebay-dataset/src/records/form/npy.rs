//! npy: a header, and the values. It may be cut anywhere.

use std::io::{self, Write};
use std::ops::Range;

use forebay_format::npy::write::header;
use forebay_workload::Element;

use super::{Draft, Form, Piece, Proof, descr};

pub(super) struct Npy {
    pub(super) element: Element,
}

impl Npy {
    fn header(&self, piece: &Piece) -> Vec<u8> {
        header(descr(self.element), &piece.array_shape())
    }
}

impl Form for Npy {
    fn proof(&self, piece: &Piece) -> Proof {
        Proof::Length(self.room(piece))
    }

    fn room(&self, piece: &Piece) -> u64 {
        self.header(piece).len() as u64 + piece.bytes()
    }

    fn grain(&self, _piece: &Piece) -> Option<u64> {
        Some(1)
    }

    fn write(&self, piece: &Piece, range: Range<u64>, draft: &mut Draft<'_>) -> io::Result<()> {
        let header = self.header(piece);
        let len = header.len() as u64;
        if let Some(rest) = header.get(range.start.min(len) as usize..range.end.min(len) as usize) {
            draft.write_all(rest)?;
        }
        let values = range.start.max(len) - len..range.end.max(len) - len;
        draft.fill(values.end - values.start, piece.noise.from(values.start))
    }
}
