//! Stops in the middle of an epoch and resumes with other threads and another batch size: exactly the remaining samples come.

use anyhow::{Result, ensure};
use forebay_pipeline::{Batched, Dataset, Source, State, Threads};

fn pipeline(threads: usize, batch: usize) -> Batched {
    let samples = (0..1000u32).map(|i| (i.to_le_bytes().to_vec(), 0)).collect();
    Dataset::new(Source::memory(samples))
        .shuffle(7)
        .repeat(3)
        .map_fn(4, |sample, slot| {
            slot.copy_from_slice(sample.bytes);
            Ok(())
        })
        .threads(Threads::Fixed(threads))
        .batch(batch)
        .prefetch(2)
}

fn main() -> Result<()> {
    let mut whole = Vec::new();
    for batch in pipeline(1, 100).iter()? {
        whole.extend_from_slice(batch?.samples());
    }
    let mut seen = Vec::new();
    let mut batches = pipeline(4, 64).iter()?;
    for batch in batches.by_ref().take(20) {
        seen.extend_from_slice(batch?.samples());
    }
    let saved = batches.state()?.to_bytes();
    drop(batches);
    println!("stopped after {} samples; the state takes {} bytes", seen.len(), saved.len());
    let state = State::from_bytes(&saved).ok_or_else(|| anyhow::anyhow!("not a state"))?;
    for batch in pipeline(2, 50).iter_from(&state)? {
        seen.extend_from_slice(batch?.samples());
    }
    ensure!(seen == whole, "both parts together are the whole epoch");
    println!("resumed with other threads and another batch size: the same {} samples in the same order", seen.len());
    Ok(())
}
