//! The store on the model file system, and on real files.

mod campaign;
mod damaged;
mod device;
mod drains;
mod files;
mod formats;
mod parts;
mod policies;
mod sequence;
mod stopped;

use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::format::Layout;
use crate::{Dtype, FilePlan, Fs, Header, Keep, ModelFs, Piece, Snapshot, Tensor};

/// Bytes of the tensor: two whole chunks and a bit.
const TENSOR: usize = 2 * 4096 + 100;

/// A state that no other step or take has.
pub(super) struct Sample {
    header: Header,
    values: Vec<u8>,
}

impl Sample {
    pub(super) fn of(seed: u64) -> Self {
        let header = Header { name: "w".to_owned(), dtype: Dtype::U8, shape: vec![TENSOR as u64] };
        let values = (0..TENSOR as u64).map(|i| (seed.wrapping_mul(131) + i * i % 251) as u8 | 1).collect();
        Self { header, values }
    }

    pub(super) fn snapshot(&self) -> Snapshot<'_> {
        Snapshot { tensors: vec![Tensor::new(&self.header, &self.values)], ..Snapshot::default() }
    }

    pub(super) fn layout(&self) -> Layout {
        Layout::from_plans(self.plans())
    }

    /// A file with a header and most of the tensor, and one with the rest.
    pub(super) fn plans(&self) -> Vec<FilePlan> {
        let tensor = |range| Piece::Tensor { index: 0, range };
        let cut = TENSOR as u64 - 10;
        let first = FilePlan::new("model", vec![Piece::Bytes(b"header".to_vec()), tensor(0..cut)]);
        vec![first, FilePlan::new("rest", vec![tensor(cut..TENSOR as u64)])]
    }

    /// Whether a restored checkpoint is this state.
    pub(super) fn is_in(&self, restored: &Restored) -> bool {
        let (model, rest) = (restored.file("model"), restored.file("rest"));
        model.is_some_and(|m| m.starts_with(b"header") && m[6..] == self.values[..TENSOR - 10])
            && rest.is_some_and(|r| *r == self.values[TENSOR - 10..])
    }
}

pub(super) fn save(store: &Store, step: u64) -> Result<Handle> {
    save_as(store, step, step)
}

pub(super) fn save_as(store: &Store, step: u64, seed: u64) -> Result<Handle> {
    let sample = Sample::of(seed);
    store.save(step, None, &sample.snapshot(), &sample.layout())
}

pub(super) fn options(mode: Mode) -> Options {
    Options { mode, chunk_bytes: 4096, ..Options::default() }
}

/// A fast tier that keeps one, and a slow one that keeps two.
pub(super) fn two_tiers(fs: Arc<dyn Fs>) -> Vec<Tier> {
    let keeping = |dir: &str, last| Tier { keep: Keep::last(last), ..Tier::new(Arc::clone(&fs), dir) };
    vec![keeping("/fast", 1), keeping("/slow", 2)]
}

pub(super) fn model() -> ModelFs {
    ModelFs::with_dirs(&["fast", "slow"])
}

pub(super) fn steps(fs: &dyn Fs, dir: &str) -> Vec<u64> {
    let names = fs.list(Path::new(dir)).unwrap();
    names.iter().filter_map(|name| Name::parse(name)).map(|name| name.step).collect()
}
