//! Checkpoints for the tests of `forebay checkpoint`: made by the library, as a training run makes them.

use std::path::Path;
use std::sync::Arc;

use forebay_checkpoint::format::named;
use forebay_checkpoint::{Dtype, Header, Keep, LocalFs, Mode, Name, Options, Snapshot, Store, Tensor, Tier};

use crate::dir::Dir;

/// Values of each tensor: not a whole number of pages, and not the same at every step.
pub(crate) const LEN: usize = 30_000;

/// The tensors of a step.
pub(crate) fn values(step: u64) -> [Vec<u8>; 2] {
    [3, 7].map(|k| (0..LEN as u64).map(|n| ((n * k + step * n) % 251) as u8).collect())
}

pub(crate) fn tier(dir: &Path) -> Tier {
    Tier { keep: Keep::last(usize::MAX), ..Tier::new(Arc::new(LocalFs), dir) }
}

/// Saves steps into a folder, the step's tenth as the metric.
pub(crate) fn save(dir: &Dir, folder: &str, format: &str, steps: &[u64]) {
    let store =
        Store::open(vec![tier(&dir.path(folder))], Options { mode: Mode::Direct, ..Options::default() }).unwrap();
    let headers = ["layer/w", "layer/b"].map(|name| Header {
        name: name.to_owned(),
        dtype: Dtype::U8,
        shape: vec![3, LEN as u64 / 3],
    });
    for step in steps {
        let values = values(*step);
        let tensors = headers.iter().zip(&values).map(|(header, bytes)| Tensor::new(header, &bytes[..])).collect();
        let snapshot = Snapshot { tensors, notes: [("step".to_owned(), step.to_string())].into() };
        let layout = named(format).unwrap().plan("model", &snapshot).unwrap();
        store.save(*step, Some(*step as f64 / 10.0), &snapshot, &layout).unwrap();
    }
    assert!(store.close().errors.is_empty());
}

/// The folder of a step's checkpoint.
pub(crate) fn named_step(folder: &str, step: u64) -> String {
    format!("{folder}/{}", Name { step, take: 0 })
}

/// The tensors and notes of a safetensors file, read by its own rules.
pub(crate) fn read_safetensors(bytes: &[u8]) -> (serde_json::Value, Vec<u8>) {
    let len = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    (serde_json::from_slice(&bytes[8..8 + len]).unwrap(), bytes[8 + len..].to_vec())
}

/// The values of a tensor of a safetensors file.
pub(crate) fn tensor(bytes: &[u8], name: &str) -> Vec<u8> {
    let (header, values) = read_safetensors(bytes);
    let place = |k: usize| header[name]["data_offsets"][k].as_u64().unwrap() as usize;
    values[place(0)..place(1)].to_vec()
}
