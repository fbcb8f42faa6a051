//! Plans a bundle: one shard of values, then index, graph and state.

use super::entry::{DT_STRING, RANK_MAX, TensorEntry, encode_header, number_of};
use super::table_write::TableWriter;
use super::{NOTES, State, index_name, mask, meta, shard_name, strings};
use crate::format::layout::small_file;
use crate::format::{Error, Layout};
use crate::{FilePlan, Header, Piece, Snapshot};

pub(super) fn plan(stem: &str, snapshot: &Snapshot<'_>) -> Result<Layout, Error> {
    let mut pieces = Vec::new();
    let mut rows = Vec::new();
    let mut offset = 0;
    for (index, tensor) in snapshot.tensors.iter().enumerate() {
        let n_bytes = tensor.bytes.n_bytes();
        pieces.push(Piece::Tensor { index, range: 0..n_bytes });
        let entry = TensorEntry { offset, n_bytes, ..entry_of(tensor.header)? };
        rows.push(Row { key: tensor.header.name.clone(), entry, tensor: Some(index) });
        offset += n_bytes;
    }
    for (key, note) in &snapshot.notes {
        let (bytes, sum) = strings::encode(&[note.as_bytes()]);
        let n_bytes = bytes.len() as u64;
        let entry = TensorEntry { dtype: DT_STRING, offset, n_bytes, crc32c: mask(sum), ..TensorEntry::default() };
        rows.push(Row { key: format!("{NOTES}{key}"), entry, tensor: None });
        pieces.push(Piece::Bytes(bytes));
        offset += n_bytes;
    }
    rows.sort_by(|a, b| a.key.as_bytes().cmp(b.key.as_bytes()));
    let values = FilePlan::new(shard_name(stem, 0, 1), pieces);
    let graph = meta::graph(snapshot.tensors.iter().map(|tensor| tensor.header));
    let stem = stem.to_owned();
    Ok(Layout::new(vec![values], snapshot.tensors.len()).closed_by(move |sums| {
        let state = State { newest: stem.clone(), all: vec![stem.clone()] };
        vec![
            small_file(index_name(&stem), index(&rows, sums)),
            small_file(format!("{stem}.meta"), graph.clone()),
            small_file("checkpoint".to_owned(), state.encode().into_bytes()),
        ]
    }))
}

/// A row of the index. The checksum of a tensor's row is filled in later.
struct Row {
    key: String,
    entry: TensorEntry,
    tensor: Option<usize>,
}

fn index(rows: &[Row], sums: &[u32]) -> Vec<u8> {
    let mut table = TableWriter::new();
    table.add(b"", &encode_header());
    for row in rows {
        let crc32c = row.tensor.map_or(row.entry.crc32c, |index| mask(sums[index]));
        let entry = TensorEntry { crc32c, ..row.entry.clone() };
        table.add(row.key.as_bytes(), &entry.encode());
    }
    table.finish()
}

/// Type and shape of a tensor, if TensorFlow supports them.
fn entry_of(header: &Header) -> Result<TensorEntry, Error> {
    let name = &header.name;
    let unsavable = |what: String| Err(Error::Unsavable { format: "tensorflow", what });
    if name.is_empty() || name.starts_with('\0') || name.starts_with(NOTES) {
        return unsavable(format!("{name:?} is not a valid tensor name"));
    }
    if header.shape.len() > RANK_MAX {
        let rank = header.shape.len();
        return unsavable(format!("tensor {name:?} has {rank} dimensions; at most {RANK_MAX} are supported"));
    }
    if let Some(n) = header.shape.iter().find(|&&n| i64::try_from(n).is_err()) {
        return unsavable(format!("tensor {name:?} has a dimension of size {n}"));
    }
    match number_of(header.dtype) {
        Some(dtype) => Ok(TensorEntry { dtype, shape: header.shape.clone(), ..TensorEntry::default() }),
        None => unsavable(format!("tensor {name:?} has type {:?}", header.dtype)),
    }
}
