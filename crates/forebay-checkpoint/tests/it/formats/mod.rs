//! Both formats against their laws, against damage, and against files that their own libraries wrote.

mod damage;
mod golden;
mod laws;

use std::collections::BTreeMap;

use forebay_checkpoint::format::{Files, Format, Sums};
use forebay_checkpoint::{Dtype, Header, Snapshot, Tensor};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct State {
    tensors: Vec<(Header, Vec<u8>)>,
    notes: BTreeMap<String, String>,
}

impl State {
    fn lend(&self) -> Snapshot<'_> {
        let tensors = self.tensors.iter().map(|(header, bytes)| Tensor::new(header, bytes)).collect();
        Snapshot { tensors, notes: self.notes.clone() }
    }

    /// The same, in the order of names.
    fn sorted(mut self) -> Self {
        self.tensors.sort_by(|a, b| a.0.name.cmp(&b.0.name));
        self
    }
}

/// Writes all files in pieces of `step` bytes, the last piece first.
fn write(format: &dyn Format, state: &State, step: usize) -> Files {
    let snapshot = state.lend();
    let layout = format.plan("model", &snapshot).expect("can be saved");
    let mut sums = Sums::new(&snapshot);
    let mut files = Files::new();
    for plan in &layout.files {
        let mut bytes = vec![0; plan.len as usize];
        for (n, piece) in bytes.chunks_mut(step).enumerate().rev() {
            let offset = (n * step) as u64;
            assert_eq!(plan.fill(&snapshot, offset, piece), piece.len());
            sums.add_filled(plan, offset, piece);
        }
        files.insert(plan.name.clone(), bytes);
    }
    for plan in layout.close(&sums.finish().expect("every byte was written")) {
        let mut bytes = vec![0; plan.len as usize];
        plan.fill(&snapshot, 0, &mut bytes);
        files.insert(plan.name.clone(), bytes);
    }
    assert_eq!(files.values().map(|bytes| bytes.len() as u64).sum::<u64>(), layout.n_bytes());
    files
}

fn read(format: &dyn Format, stem: &str, files: &Files) -> Result<State, forebay_checkpoint::format::Error> {
    let catalog = format.open(stem, files)?;
    let mut state = State { tensors: Vec::new(), notes: catalog.notes.clone() };
    for entry in &catalog.tensors {
        let bytes = catalog.read(files, &entry.header.name)?;
        state.tensors.push((entry.header.clone(), bytes));
    }
    Ok(state)
}

/// A small state with a bit of everything.
fn example() -> State {
    let tensor = |name: &str, dtype: Dtype, shape: &[u64]| {
        let header = Header { name: name.to_owned(), dtype, shape: shape.to_vec() };
        let n_bytes = header.n_bytes().expect("is small");
        (header, (0..n_bytes).map(|n| n as u8 ^ name.len() as u8).collect())
    };
    let tensors = vec![
        tensor("conv/w", Dtype::F32, &[3, 4]),
        tensor("conv/b", Dtype::F16, &[3]),
        tensor("step", Dtype::I64, &[]),
        tensor("none", Dtype::U8, &[0, 5]),
        tensor("größe", Dtype::C64, &[1]),
    ];
    State { tensors, notes: BTreeMap::from([("pipeline".to_owned(), "{\"at\":7}".to_owned())]) }
}
