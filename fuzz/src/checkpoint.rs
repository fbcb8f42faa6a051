//! Checkpoints in memory: written, read, and held against the laws of their format.

use std::collections::BTreeMap;

use forebay_checkpoint::format::{Error, Files, Format};
use forebay_checkpoint::{FilePlan, Header, Snapshot, Tensor};

/// A snapshot that owns its tensors.
#[derive(Debug, PartialEq)]
pub struct State {
    pub tensors: Vec<(Header, Vec<u8>)>,
    pub notes: BTreeMap<String, String>,
}

pub fn one_file(input: &[u8]) -> Files {
    Files::from([("m.safetensors".to_owned(), input.to_vec())])
}

/// An input up to the mark that ends an index is one, and what follows are the values.
pub fn index_and_values(input: &[u8]) -> Files {
    let mark = 0xdb47_7524_8b80_fb57_u64.to_le_bytes();
    let end = input.windows(8).position(|bytes| bytes == mark).map_or(input.len(), |at| at + 8);
    let (index, values) = input.split_at(end);
    let files = [("m.index", index), ("m.data-00000-of-00001", values)];
    files.map(|(name, bytes)| (name.to_owned(), bytes.to_vec())).into()
}

pub fn write(format: &dyn Format, state: &State) -> Files {
    let tensors = state.tensors.iter().map(|(header, bytes)| Tensor::new(header, bytes)).collect();
    let snapshot = Snapshot { tensors, notes: state.notes.clone() };
    let layout = format.plan("m", &snapshot).expect("can be saved");
    let fill = |plan: FilePlan| {
        let mut bytes = vec![0; plan.len as usize];
        plan.fill(&snapshot, 0, &mut bytes);
        (plan.name, bytes)
    };
    layout.complete(&snapshot).into_iter().map(fill).collect()
}

/// Reads everything. What could be read keeps the laws: it has the lengths of its shapes, is not more than the files, and
/// is the same after it was written again.
pub fn read(format: &dyn Format, files: &Files) -> Result<(), Error> {
    let (state, mut n_bytes) = (read_state(format, files)?, 0);
    for (header, bytes) in &state.tensors {
        assert_eq!(header.n_bytes(), Some(bytes.len() as u64));
        n_bytes += bytes.len();
    }
    assert!(n_bytes <= files.values().map(Vec::len).sum(), "more values than bytes");
    if state.tensors.iter().all(|(header, _)| !header.name.starts_with("_forebay/notes/")) {
        assert_eq!(sorted(read_state(format, &write(format, &state))?), sorted(state));
    }
    Ok(())
}

fn read_state(format: &dyn Format, files: &Files) -> Result<State, Error> {
    let catalog = format.open("m", files)?;
    let mut tensors = Vec::new();
    for entry in &catalog.tensors {
        assert!(entry.offset + entry.n_bytes <= files[&catalog.files[entry.file]].len() as u64, "beyond the file");
        tensors.push((entry.header.clone(), catalog.read(files, &entry.header.name)?));
    }
    Ok(State { tensors, notes: catalog.notes.clone() })
}

fn sorted(mut state: State) -> State {
    state.tensors.sort_by(|a, b| a.0.name.cmp(&b.0.name));
    state
}
