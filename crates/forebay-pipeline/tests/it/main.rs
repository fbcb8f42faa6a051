//! The laws of a pipeline, on whole pipelines.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod cache;
mod errors;
mod groups;
mod limits;
mod order;
mod resume;
mod shards;
mod sources;
mod streamed;
mod threads;

use forebay_pipeline::{Batched, Dataset, Mapped, Source};

/// `n` samples; the content of each is its number.
pub fn numbers(n: u32) -> Source {
    Source::memory((0..n).map(|i| (i.to_le_bytes().to_vec(), i64::from(i % 10))).collect())
}

/// Copies the four bytes of a sample.
pub fn copied(dataset: Dataset) -> Mapped {
    dataset.map_fn(4, |sample, slot| {
        slot.copy_from_slice(sample.bytes);
        Ok(())
    })
}

/// All batches of a pipeline as numbers; panics on an error.
pub fn run(pipeline: &Batched) -> Vec<Vec<u32>> {
    let batches = pipeline.iter().unwrap();
    let mut out = Vec::new();
    for batch in batches {
        out.push(content(&batch.unwrap()));
    }
    out
}

/// A batch's samples as numbers, checked against its indices.
pub fn content(batch: &forebay_pipeline::Batch) -> Vec<u32> {
    let numbers: Vec<u32> = batch.data().chunks(4).map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap())).collect();
    assert_eq!(numbers, batch.samples(), "every slot holds the sample of its index");
    let labels: Vec<i64> = numbers.iter().map(|n| i64::from(n % 10)).collect();
    assert_eq!(labels, batch.labels());
    numbers
}
