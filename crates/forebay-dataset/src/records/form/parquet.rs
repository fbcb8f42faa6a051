//! Parquet: columns of noise in row groups. A group is written from front to back, so a file is made as a whole.

use std::collections::HashMap;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Mutex;

use forebay_format::parquet::{Codec, Column, Writer, file_bytes};
use forebay_workload::{Dataset, FileShape};

use super::{Draft, Form, Piece, Proof};

/// The columns of a file as the workload describes them, each with whether it is read. Without a description there is one, `data`,
/// of a sample's bytes.
pub fn parquet_columns(dataset: &Dataset, shape: &FileShape) -> Vec<(Column, bool)> {
    if dataset.parquet.columns.is_empty() {
        let element = forebay_format::Element::U8;
        let width = u32::try_from(shape.sample_bytes).unwrap_or(u32::MAX);
        return vec![(Column { name: "data".to_owned(), element, width }, true)];
    }
    let mut columns = Vec::new();
    for kind in &dataset.parquet.columns {
        for i in 0..kind.count {
            let name = if kind.count == 1 { kind.name.clone() } else { format!("{}{i}", kind.name) };
            let width = u32::try_from(kind.width).unwrap_or(u32::MAX);
            columns.push((Column { name, element: kind.element, width }, kind.is_read));
        }
    }
    columns
}

pub(super) struct Parquet {
    pub(super) dataset: Dataset,
    pub(super) codec: Codec,
    /// Lengths of files that are not compressed, by rows and bytes of a row: a footer of many groups takes a while to lay out.
    pub(super) lengths: Mutex<HashMap<(u64, u64), u64>>,
}

impl Parquet {
    fn columns(&self, piece: &Piece) -> Vec<(Column, forebay_workload::Element)> {
        let kinds = self.dataset.parquet.columns.iter().flat_map(|kind| (0..kind.count).map(|_| kind.element));
        let kinds = kinds.chain(std::iter::repeat(forebay_workload::Element::U8));
        parquet_columns(&self.dataset, &piece.shape).into_iter().map(|(column, _)| column).zip(kinds).collect()
    }

    fn group_rows(&self, piece: &Piece) -> u64 {
        match self.dataset.parquet.row_group_rows {
            0 => piece.shape.n_samples.max(1),
            rows => rows,
        }
    }

    /// The length without compression; of what cannot be written, that of the values.
    fn stored_len(&self, piece: &Piece) -> u64 {
        let key = (piece.shape.n_samples, piece.shape.sample_bytes);
        let mut lengths = self.lengths.lock().expect("nobody panics while laying out a footer");
        *lengths.entry(key).or_insert_with(|| {
            let columns: Vec<Column> = self.columns(piece).into_iter().map(|(column, _)| column).collect();
            file_bytes(&columns, piece.shape.n_samples, self.group_rows(piece)).unwrap_or(piece.bytes())
        })
    }
}

/// An error of either side, while a file is written.
struct Failed(io::Error);

impl From<forebay_format::Error> for Failed {
    fn from(error: forebay_format::Error) -> Self {
        Self(io::Error::other(error))
    }
}

impl Form for Parquet {
    fn proof(&self, piece: &Piece) -> Proof {
        match self.codec {
            Codec::None => Proof::Length(self.stored_len(piece)),
            _ => Proof::Tail(|tail| tail.ends_with(b"PAR1")),
        }
    }

    fn room(&self, piece: &Piece) -> u64 {
        let stored = self.stored_len(piece);
        if self.codec == Codec::None { stored } else { stored + stored / 1000 + 4096 }
    }

    fn write(&self, piece: &Piece, _range: Range<u64>, draft: &mut Draft<'_>) -> io::Result<()> {
        let columns = self.columns(piece);
        let plain = columns.iter().map(|(column, _)| column.clone()).collect();
        let mut writer = Writer::new(plain, self.codec).map_err(io::Error::other)?;
        let mut out = |bytes: &[u8]| draft.write_all(bytes).map_err(Failed);
        let (mut left, mut place) = (piece.shape.n_samples, 0);
        while left > 0 {
            let n_rows = self.group_rows(piece).min(left);
            // Where each column of the group begins among all values of the file, on a whole word, so that no float is cut.
            let mut bases = Vec::with_capacity(columns.len());
            for (column, _) in &columns {
                bases.push(place);
                place += (n_rows * row_bytes(column)).next_multiple_of(8);
            }
            let mut values = |i: usize, row: u64, values: &mut [u8]| {
                let (column, element) = &columns[i];
                piece.noise.of_element(*element).fill(bases[i] + row * row_bytes(column), values);
            };
            writer.write_group(n_rows, &mut values, &mut out).map_err(|failed| failed.0)?;
            left -= n_rows;
        }
        writer.finish(&mut out).map_err(|failed| failed.0)
    }
}

fn row_bytes(column: &Column) -> u64 {
    u64::from(column.width) * column.element.bytes()
}
