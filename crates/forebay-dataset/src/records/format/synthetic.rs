//! synthetic: files that contain only their number, for loaders that generate samples. Reading gives zeros without
//! touching a file, which leaves the cost of everything else.

use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use forebay_workload::Dataset;

use super::{DataFormat, Draft, Files, Piece, Proof, ReadError, Reader, Tools};

struct Synthetic;

pub(super) fn new(_: &Dataset) -> Box<dyn DataFormat> {
    Box::new(Synthetic)
}

impl DataFormat for Synthetic {
    fn proof(&self, piece: &Piece) -> Proof {
        Proof::Length(self.room(piece))
    }

    fn room(&self, piece: &Piece) -> u64 {
        piece.number.to_string().len() as u64
    }

    fn write(&self, piece: &Piece, _range: Range<u64>, draft: &mut Draft<'_>) -> io::Result<()> {
        write!(draft, "{}", piece.number)
    }

    fn reader(&self, _: Arc<Files>) -> Box<dyn Reader> {
        Box::new(Self)
    }
}

impl Reader for Synthetic {
    fn read(&mut self, _: u32, _: Range<u32>, out: &mut [u8], _: &mut Tools<'_>) -> Result<(), ReadError> {
        out.fill(0);
        Ok(())
    }
}
