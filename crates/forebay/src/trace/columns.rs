//! Events as rows of a Parquet file.

use std::collections::HashMap;
use std::io::{self, Write};

use forebay_format::parquet::{Codec, Column, Writer};
use forebay_format::{Element, Error};
use forebay_trace::{ProcessNote, Row, Sink};

/// Rows that are held until they become a row group.
const GROUP: usize = 65_536;

const NUMBERS: [(&str, Element); 6] = [
    ("pid", Element::U32),
    ("thread", Element::U32),
    ("start_ns", Element::U64),
    ("duration_ns", Element::U64),
    ("result", Element::I64),
    // -1 where a call has none.
    ("offset", Element::I64),
];
const TEXTS: [&str; 3] = ["name", "category", "file"];

/// Writes row groups.
pub(super) struct Parquet<W> {
    out: W,
    writer: Writer,
    numbers: Vec<[i64; NUMBERS.len()]>,
    /// Texts of the group, and their places in it by row.
    texts: Vec<String>,
    places: HashMap<String, u32>,
    rows: Vec<[u32; TEXTS.len()]>,
}

/// The writer's own error or that of the output.
struct Either(io::Error);

impl From<Error> for Either {
    fn from(error: Error) -> Self {
        Self(io::Error::other(error))
    }
}

impl<W: Write> Parquet<W> {
    pub(super) fn new(out: W) -> io::Result<Self> {
        let column = |(name, element): (&str, Element)| Column { name: name.to_owned(), element, width: 1 };
        let columns = NUMBERS.into_iter().map(column).collect();
        let writer = Writer::new(columns, Codec::Snappy).map_err(io::Error::other)?.with_texts(&TEXTS);
        let (numbers, rows) = (Vec::with_capacity(GROUP), Vec::with_capacity(GROUP));
        Ok(Self { out, writer, numbers, texts: Vec::new(), places: HashMap::new(), rows })
    }

    pub(super) fn end(mut self) -> io::Result<()> {
        self.flush()?;
        let Self { mut out, writer, .. } = self;
        writer.finish(&mut |bytes: &[u8]| out.write_all(bytes))?;
        out.flush()
    }

    fn place(&mut self, text: &str) -> u32 {
        if let Some(place) = self.places.get(text) {
            return *place;
        }
        let place = self.texts.len() as u32;
        self.texts.push(text.to_owned());
        self.places.insert(text.to_owned(), place);
        place
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let Self { out, writer, numbers, texts, rows, .. } = self;
        let mut values = |column: usize, first: u64, to: &mut [u8]| {
            let n = NUMBERS[column].1.bytes() as usize;
            for (row, to) in numbers[first as usize..].iter().zip(to.chunks_exact_mut(n)) {
                to.copy_from_slice(&row[column].to_le_bytes()[..n]);
            }
        };
        let text = |column: usize, row: u64| texts[rows[row as usize][column] as usize].as_str();
        let mut put = |bytes: &[u8]| out.write_all(bytes).map_err(Either);
        writer
            .write_group_with_texts(rows.len() as u64, &mut values, &text, &mut put)
            .map_err(|Either(error)| error)?;
        self.numbers.clear();
        self.rows.clear();
        self.texts.clear();
        self.places.clear();
        Ok(())
    }
}

impl<W: Write> Sink for Parquet<W> {
    fn process(&mut self, _: &ProcessNote) -> io::Result<()> {
        Ok(())
    }

    fn row(&mut self, row: &Row<'_>) -> io::Result<()> {
        let offset = row.offset.map_or(-1, |offset| offset as i64);
        let numbers = [
            i64::from(row.pid),
            i64::from(row.thread),
            row.start_ns as i64,
            row.duration_ns as i64,
            row.result,
            offset,
        ];
        self.numbers.push(numbers);
        let places = [row.name, row.category, row.file].map(|text| self.place(text));
        self.rows.push(places);
        if self.rows.len() >= GROUP { self.flush() } else { Ok(()) }
    }
}
