//! The same files on four devices emulated in this process: threads help a disk little, and a parallel file system fully.

use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use forebay_pipeline::{Dataset, ReadOnly, Source, Threads};
use forebay_storage::{Local, Profile, Shaped};

fn main() -> Result<()> {
    let folder = forebay_examples::photographs(64)?;
    let source = Source::discover(Arc::new(Local::default()), folder.path())?;
    for name in Profile::NAMES {
        let profile: Profile = name.parse().map_err(anyhow::Error::msg)?;
        println!("{}", profile.describe());
        let mut alone = None;
        for threads in [1, 2, 4, 8] {
            let storage = Arc::new(Shaped::new(Local::default(), profile.clone()));
            let pipeline = Dataset::new(source.clone())
                .storage(storage)
                .shuffle(1)
                .map(ReadOnly)
                .threads(Threads::Fixed(threads))
                .batch(32)
                .prefetch(1);
            let start = Instant::now();
            for batch in pipeline.iter()? {
                batch?;
            }
            let rate = source.n_samples() as f64 / start.elapsed().as_secs_f64();
            let first = *alone.get_or_insert(rate);
            println!("  {threads} threads: {rate:8.0} images/s, {:.2}×", rate / first);
        }
    }
    Ok(())
}
