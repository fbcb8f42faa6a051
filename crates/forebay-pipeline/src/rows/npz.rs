//! The rows of an npz archive: stored members lie in the file as they are, deflated ones are decoded whole.

use std::path::{Path, PathBuf};

use forebay_format::npy::read::{Header, PREFIX_LEN, header_len, parse};
use forebay_format::npz::read::{Content, Entry, Finder, LOCAL_LEN, Method};
use forebay_storage::{Buffer, Object};

use super::arrays::{Arrays, Part, Piece, choose, damaged, refused};
use super::npy::{at_start, lane_of};
use super::packed::Packed;
use crate::error::Error;

/// Bytes of a member that are read to find its header; more only where it is longer.
const START: u64 = 4096;

pub(super) fn open(object: &dyn Object, path: &Path, names: Option<&[String]>) -> Result<Arrays, Error> {
    let wrong = |error| damaged(path, error);
    let mut finder = Finder::new(object.len()?).map_err(wrong)?;
    let mut buffer = Buffer::default();
    while let Some(want) = finder.want() {
        object.read_at(want.offset, want.len, &mut buffer)?;
        finder.feed(buffer.as_slice()).map_err(wrong)?;
    }
    let mut entries = finder.finish();
    entries.retain(|entry| entry.name.ends_with(".npy"));
    let there: Vec<String> = entries.iter().map(|entry| entry.name.trim_end_matches(".npy").to_owned()).collect();
    let mut arrays = Arrays { files: vec![PathBuf::from(path)], ..Arrays::default() };
    for place in choose(path, &there, names)? {
        let entry = &entries[place];
        object.read_at(entry.offset, LOCAL_LEN, &mut buffer)?;
        let start = entry.data_offset(buffer.as_slice(), object.len()?).map_err(wrong)?;
        let header = header_of(object, entry, start, path)?;
        if header.data_offset.saturating_add(header.n_bytes()) != entry.bytes {
            let (needed, found) = (header.n_bytes(), entry.bytes - header.data_offset);
            return Err(refused(
                path,
                format_args!("{}: {needed} bytes of values needed, {found} found", there[place]),
            ));
        }
        let part = match entry.method {
            Method::Stored => Part { offset: start + header.data_offset, ..at_start() },
            Method::Deflated => {
                let packed = Packed::Member { entry: entry.clone(), start };
                arrays.pieces.push(Piece { file: 0, packed, n_bytes: entry.bytes });
                Part { piece: Some(arrays.pieces.len() as u32 - 1), offset: header.data_offset, ..at_start() }
            }
        };
        arrays.lanes.push(lane_of(&header, &there[place], path, part)?);
    }
    Ok(arrays)
}

/// The array header at the start of a member.
fn header_of(object: &dyn Object, entry: &Entry, start: u64, path: &Path) -> Result<Header, Error> {
    let wrong = |error| damaged(path, error);
    let (mut buffer, mut wanted) = (Buffer::default(), START);
    loop {
        object.read_at(start, entry.packed_bytes.min(wanted) as usize, &mut buffer)?;
        let mut head = Vec::new();
        let take = |bytes: &[u8]| {
            head.extend_from_slice(bytes);
            Ok(())
        };
        Content::new(entry, false).feed(buffer.as_slice(), take).map_err(wrong)?;
        let is_all = wanted >= entry.packed_bytes;
        let long_enough = head.len() >= PREFIX_LEN && head.len() >= header_len(&head).map_err(wrong)?;
        if long_enough || is_all {
            return parse(&head).map_err(wrong);
        }
        wanted *= 16;
    }
}
