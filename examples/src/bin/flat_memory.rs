//! Resident memory does not grow with the number of samples served: ten epochs of 100,000.

use anyhow::{Context, Result, ensure};
use forebay_pipeline::{Dataset, Source, Threads};
use forebay_storage::Null;

const N_SAMPLES: usize = 100_000;
const N_EPOCHS: usize = 10;
/// Memory that the allocator may keep between epochs.
const TOLERATED_BYTES: u64 = 2 << 20;

fn main() -> Result<()> {
    let source = Source::null(Null::new(N_SAMPLES, 112_000), N_SAMPLES);
    let pipeline = Dataset::new(source)
        .shuffle(3)
        .repeat(N_EPOCHS as u64)
        .map_fn(4096, |sample, slot| {
            slot.fill(sample.index as u8);
            Ok(())
        })
        .threads(Threads::Fixed(2))
        .readers(2)
        .ignore_errors()
        .batch(64)
        .prefetch(2);
    let mut batches = pipeline.iter()?;
    let mut resident = Vec::new();
    let mut served = 0;
    for batch in batches.by_ref() {
        served += batch?.len();
        if served / N_SAMPLES > resident.len() {
            resident.push(resident_bytes()?);
        }
    }
    for (epoch, bytes) in resident.iter().enumerate() {
        println!("after epoch {}: {:.1} MB resident", epoch + 1, *bytes as f64 / 1e6);
    }
    let (first, last) = (resident[0], resident[resident.len() - 1]);
    ensure!(last <= first + TOLERATED_BYTES, "memory grew by {} bytes over nine epochs", last - first);
    Ok(())
}

fn resident_bytes() -> Result<u64> {
    let text = std::fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = text.split(' ').nth(1).context("the second number is the resident set")?.parse()?;
    Ok(pages * 4096)
}
