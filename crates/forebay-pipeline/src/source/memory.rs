//! Samples that are already in memory.

use std::path::PathBuf;
use std::sync::Arc;

use forebay_storage::Memory;

use super::{Index, Packing, Place, Source, group_of};

pub(super) fn index(samples: Vec<(Vec<u8>, i64)>) -> Source {
    let storage = Memory::default();
    let mut files = Vec::with_capacity(samples.len());
    let mut places = Vec::with_capacity(samples.len());
    for (number, (bytes, label)) in samples.into_iter().enumerate() {
        let path = PathBuf::from(format!("memory/{number:08}"));
        storage.insert(path.clone(), bytes);
        places.push(Place { offset: 0, label, len: 0, file: number as u32, group: group_of(label) });
        files.push(path);
    }
    Source::new(Arc::new(storage), Index::new(Packing::Files, files, places))
}
