//! csv as pandas writes a frame: a row a sample, its number in front, and all of it gzipped where that is asked for.

use std::io::{self, Write};
use std::ops::Range;

use flate2::write::GzEncoder;
use forebay_format::csv::write as text;
use forebay_workload::Element;

use super::{Draft, Form, Piece, Proof};

/// Values that are turned into text at a time.
const VALUES: u64 = 16 << 10;

pub(super) struct Csv {
    pub(super) element: Element,
    /// How hard it is compressed; `None`: not at all.
    pub(super) level: Option<u32>,
}

impl Csv {
    fn write_table(&self, piece: &Piece, out: &mut dyn Write) -> io::Result<()> {
        let n_columns = piece.shape.sample_bytes / self.element.bytes();
        let (mut line, mut bytes) = (Vec::new(), Vec::new());
        for from in (0..n_columns).step_by(VALUES as usize) {
            line.clear();
            text::header(from, (from + VALUES).min(n_columns), n_columns, &mut line);
            out.write_all(&line)?;
        }
        let mut noise = piece.noise.from(0);
        for sample in 0..piece.shape.n_samples {
            line.clear();
            text::begin_row(sample, &mut line);
            for from in (0..n_columns).step_by(VALUES as usize) {
                bytes.resize(((n_columns - from).min(VALUES) * self.element.bytes()) as usize, 0);
                noise(&mut bytes);
                text::values(self.element, &bytes, &mut line);
                out.write_all(&line)?;
                line.clear();
            }
            text::end_row(&mut line);
            out.write_all(&line)?;
        }
        Ok(())
    }
}

impl Form for Csv {
    fn proof(&self, _piece: &Piece) -> Proof {
        match self.level {
            None => Proof::Tail(|tail| tail.ends_with(b"\n")),
            Some(_) => Proof::Presence,
        }
    }

    /// The longest text of every value; what is compressed is a third of it.
    fn room(&self, piece: &Piece) -> u64 {
        let longest = match self.element {
            Element::U8 => 4,
            Element::I8 => 5,
            Element::U16 | Element::I16 => 7,
            Element::U32 | Element::I32 => 12,
            Element::U64 | Element::I64 => 21,
            Element::F16 | Element::Bf16 | Element::F32 => 16,
            Element::F64 => 25,
        };
        let n_columns = piece.shape.sample_bytes / self.element.bytes();
        let names = n_columns * (1 + u64::from(n_columns.max(1).ilog10()) + 1);
        let values = n_columns * piece.shape.n_samples * longest + piece.shape.n_samples * 21;
        if self.level.is_some() { (names + values) / 2 } else { names + values }
    }

    fn write(&self, piece: &Piece, _range: Range<u64>, draft: &mut Draft<'_>) -> io::Result<()> {
        let Some(level) = self.level else { return self.write_table(piece, draft) };
        let mut packed = GzEncoder::new(draft, flate2::Compression::new(level.min(9)));
        self.write_table(piece, &mut packed)?;
        packed.finish().map(drop)
    }
}
