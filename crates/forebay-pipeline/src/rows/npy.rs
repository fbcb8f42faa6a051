//! The rows of an npy file: the header says where they begin.

use std::path::{Path, PathBuf};

use forebay_format::npy::read::{Header, PREFIX_LEN, header_len, parse};
use forebay_storage::{Buffer, Object};
use forebay_units::Element;

use super::arrays::{Arrays, Lane, Part, choose, damaged, refused};
use crate::error::Error;

/// The name of the array of a file that does not name it.
const NAME: &str = "data";

pub(super) fn open(object: &dyn Object, path: &Path, names: Option<&[String]>) -> Result<Arrays, Error> {
    choose(path, &[NAME.to_owned()], names)?;
    let header = header_at(object, path)?;
    let (len, needed) = (object.len()?, header.data_offset.saturating_add(header.n_bytes()));
    if len < needed {
        return Err(refused(path, format_args!("truncated: {needed} bytes needed, {len} found")));
    }
    let lane = lane_of(&header, NAME, path, Part { offset: header.data_offset, ..at_start() })?;
    Ok(Arrays { files: vec![PathBuf::from(path)], lanes: vec![lane], pieces: Vec::new() })
}

/// A part at the start of the first file, to be filled in.
pub(super) fn at_start() -> Part {
    Part { first_row: 0, n_rows: 0, file: 0, piece: None, offset: 0, stride: 0 }
}

pub(super) fn header_at(object: &dyn Object, path: &Path) -> Result<Header, Error> {
    let (mut buffer, len) = (Buffer::default(), object.len()?);
    object.read_at(0, len.min(PREFIX_LEN as u64) as usize, &mut buffer)?;
    let wanted = header_len(buffer.as_slice()).map_err(|error| damaged(path, error))?;
    object.read_at(0, len.min(wanted as u64) as usize, &mut buffer)?;
    parse(buffer.as_slice()).map_err(|error| damaged(path, error))
}

/// An array whose first side counts rows; `part` says where it begins.
pub(super) fn lane_of(header: &Header, name: &str, path: &Path, part: Part) -> Result<Lane, Error> {
    let element = element_of(header, name, path)?;
    let Some((n_rows, shape)) = header.shape.split_first() else {
        return Err(refused(path, format_args!("{name} is a single number, not an array of rows")));
    };
    if header.fortran_order && header.shape.len() > 1 {
        let hint = "save it with numpy.ascontiguousarray";
        return Err(refused(path, format_args!("{name} is in Fortran's order, where rows are not together: {hint}")));
    }
    let mut lane = Lane { name: name.to_owned(), element, shape: shape.to_vec(), parts: Vec::new() };
    lane.parts.push(Part { n_rows: *n_rows, stride: lane.row_bytes(), ..part });
    Ok(lane)
}

/// The type of an array's numbers.
pub(super) fn element_of(header: &Header, name: &str, path: &Path) -> Result<Element, Error> {
    let found = header.element;
    let element = match (found.kind, found.bytes) {
        ('b' | 'u', 1) => Element::U8,
        ('u', 2) => Element::U16,
        ('u', 4) => Element::U32,
        ('u', 8) => Element::U64,
        ('i', 1) => Element::I8,
        ('i', 2) => Element::I16,
        ('i', 4) => Element::I32,
        ('i', 8) => Element::I64,
        ('f', 2) => Element::F16,
        ('f', 4) => Element::F32,
        ('f', 8) => Element::F64,
        (kind, bytes) => {
            let what = format_args!("{name} has values of NumPy's type {kind}{bytes}; integers and floats are read");
            return Err(refused(path, what));
        }
    };
    if found.is_big_endian {
        return Err(refused(path, format_args!("{name} has big-endian values; save it in little-endian order")));
    }
    Ok(element)
}
