//! The cost of the pipeline itself, in nanoseconds of processor time per sample: null storage and no work.

use anyhow::Result;
use forebay_pipeline::{Dataset, ReadOnly, Source, Threads};
use forebay_storage::Null;

const N_SAMPLES: usize = 100_000;

fn main() -> Result<()> {
    let source = Source::null(Null::new(N_SAMPLES, 112_000), N_SAMPLES);
    for threads in [1, 2, 4] {
        let pipeline = Dataset::new(source.clone())
            .shuffle(1)
            .map(ReadOnly)
            .threads(Threads::Fixed(threads))
            .ignore_errors()
            .batch(64)
            .prefetch(2);
        let mut batches = pipeline.iter()?;
        let before = cpu_ns();
        for batch in batches.by_ref() {
            batch?;
        }
        let each = (cpu_ns() - before) as f64 / N_SAMPLES as f64;
        println!("{threads} threads: {each:.0} ns of processor time per sample");
    }
    Ok(())
}

fn cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is valid for writes.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
