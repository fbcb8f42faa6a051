//! The causes of a stall: a consumer that computes, without and with prefetch.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use forebay_format::image::ImageSpec;
use forebay_pipeline::{Dataset, DecodeImage, Source, Threads};
use forebay_storage::{Local, Profile, Shaped};

fn main() -> Result<()> {
    let folder = forebay_examples::photographs(256)?;
    let source = Source::discover(Arc::new(Local::default()), folder.path())?;
    for prefetch in [0, 1] {
        let pipeline = Dataset::new(source.clone())
            .storage(Arc::new(Shaped::new(Local::default(), Profile::lustre())))
            .shuffle(1)
            .map(DecodeImage(ImageSpec::default()))
            .threads(Threads::Fixed(8))
            .batch(32)
            .prefetch(prefetch);
        let mut batches = pipeline.iter()?;
        for batch in batches.by_ref() {
            let batch = batch?;
            compute(Duration::from_millis(40), batch.as_f32());
        }
        let stats = batches.stats();
        let ms = |ns: u64| ns as f64 / 1e6;
        println!(
            "prefetch {prefetch}: {:.0} ms = {:.0} ms waiting + {:.0} ms in the consumer",
            ms(stats.wall_ns),
            ms(stats.wait_ns),
            ms(stats.other_ns)
        );
        for (activity, seconds) in stats.stall_time.seconds() {
            let share = seconds * 1e11 / stats.stall_time.total_ns().max(1) as f64;
            if share >= 1.0 {
                println!("  {share:3.0} % of the workers' time during the wait: {activity}");
            }
        }
    }
    Ok(())
}

/// Imitates a training step: busy for the given time.
fn compute(time: Duration, data: &[f32]) {
    let start = Instant::now();
    let mut sum = 0.0f32;
    while start.elapsed() < time {
        sum += std::hint::black_box(data[..1024.min(data.len())].iter().sum::<f32>());
    }
    std::hint::black_box(sum);
}
