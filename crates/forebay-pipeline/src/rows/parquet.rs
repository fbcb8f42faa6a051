//! The rows of a Parquet file: a row group is decoded as a whole.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_format::parquet::{Footer, TAIL_BYTES, footer_range};
use forebay_storage::{Buffer, Object};
use forebay_units::Element;

use super::arrays::{Arrays, Lane, Part, Piece, damaged};
use super::packed::Packed;
use crate::error::Error;

pub(super) fn open(object: &dyn Object, path: &Path, names: Option<&[String]>) -> Result<Arrays, Error> {
    let wrong = |error| damaged(path, error);
    let (mut buffer, len) = (Buffer::default(), object.len()?);
    let tail = len.min(TAIL_BYTES as u64);
    object.read_at(len - tail, tail as usize, &mut buffer)?;
    let range = footer_range(buffer.as_slice(), len).map_err(wrong)?;
    object.read_at(range.start, (range.end - range.start) as usize, &mut buffer)?;
    let footer = Arc::new(Footer::parse(buffer.as_slice(), range.start, names).map_err(wrong)?);
    let stride = footer.row_bytes() as u64;
    let mut arrays = Arrays { files: vec![PathBuf::from(path)], ..Arrays::default() };
    let mut offset = 0;
    for leaf in &footer.leaves {
        let element = leaf.element.unwrap_or(Element::U8);
        let n_values = leaf.row_bytes() as u64 / element.bytes();
        // One number of a row has no sides.
        let is_number = leaf.element.is_some() && n_values == 1;
        let shape = if is_number { Vec::new() } else { vec![n_values] };
        let (mut first_row, mut parts) = (0, Vec::with_capacity(footer.groups.len()));
        for (number, group) in footer.groups.iter().enumerate().filter(|(_, group)| group.n_rows > 0) {
            let (n_rows, piece) = (group.n_rows, Some(number as u32));
            parts.push(Part { first_row, n_rows, file: 0, piece, offset, stride });
            first_row += n_rows;
        }
        arrays.lanes.push(Lane { name: leaf.name.clone(), element, shape, parts });
        offset += leaf.row_bytes() as u64;
    }
    for (number, group) in footer.groups.iter().enumerate() {
        let packed = Packed::Group { footer: Arc::clone(&footer), number };
        arrays.pieces.push(Piece { file: 0, packed, n_bytes: group.n_rows.saturating_mul(stride) });
    }
    Ok(arrays)
}
