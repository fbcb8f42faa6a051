//! Planning a safetensors file.

use std::cmp::Reverse;

use super::{HEADER_MAX, METADATA, PREFIX, name_of};
use crate::format::{Error, Layout};
use crate::{FilePlan, Header, Piece, Snapshot};

/// Values start at a multiple of this: the largest block size that `O_DIRECT` requires on common devices.
const ALIGNMENT: u64 = 4096;

pub(super) fn plan(file: String, snapshot: &Snapshot<'_>) -> Result<Layout, Error> {
    let order = order(snapshot);
    let mut pieces = vec![Piece::Bytes(header(snapshot, &order)?)];
    pieces.extend(order.into_iter().map(|index| Piece::Tensor { index, range: 0..n_bytes(snapshot, index) }));
    Ok(Layout::new(vec![FilePlan::new(file, pieces)], snapshot.tensors.len()))
}

/// Orders tensors by type size, largest first, otherwise in their given order. Each starts at a multiple of its type's
/// size.
fn order(snapshot: &Snapshot<'_>) -> Vec<usize> {
    let mut order: Vec<usize> = (0..snapshot.tensors.len()).collect();
    order.sort_by_key(|&index| Reverse(snapshot.tensors[index].header.dtype.bits()));
    order
}

fn n_bytes(snapshot: &Snapshot<'_>, index: usize) -> u64 {
    snapshot.tensors[index].bytes.n_bytes()
}

fn header(snapshot: &Snapshot<'_>, order: &[usize]) -> Result<Vec<u8>, Error> {
    let mut items = Vec::with_capacity(order.len() + 1);
    if !snapshot.notes.is_empty() {
        items.push(format!("{}:{}", json(METADATA), json(&snapshot.notes)));
    }
    let mut begin = 0;
    for &index in order {
        let end = begin + n_bytes(snapshot, index);
        items.push(item(snapshot.tensors[index].header, begin, end)?);
        begin = end;
    }
    let json = format!("{{{}}}", items.join(","));
    let padded = (PREFIX + json.len() as u64).next_multiple_of(ALIGNMENT) - PREFIX;
    if padded > HEADER_MAX {
        return Err(unsavable(format!("the header has {padded} bytes; at most {HEADER_MAX} are allowed")));
    }
    let mut out = padded.to_le_bytes().to_vec();
    out.extend_from_slice(json.as_bytes());
    out.resize((PREFIX + padded) as usize, b' ');
    Ok(out)
}

fn item(header: &Header, begin: u64, end: u64) -> Result<String, Error> {
    if header.name == METADATA {
        return Err(unsavable(format!("{METADATA:?} is not a valid tensor name")));
    }
    let Some(dtype) = name_of(header.dtype) else {
        return Err(unsavable(format!("tensor {:?} has type {:?}", header.name, header.dtype)));
    };
    let (name, shape) = (json(&header.name), json(&header.shape));
    Ok(format!(r#"{name}:{{"dtype":"{dtype}","shape":{shape},"data_offsets":[{begin},{end}]}}"#))
}

fn unsavable(what: String) -> Error {
    Error::Unsavable { format: "safetensors", what }
}

fn json(value: &(impl serde::Serialize + ?Sized)) -> String {
    serde_json::to_string(value).expect("strings, numbers and maps of strings have a JSON form")
}
