//! Trains a small network from the pipeline, then replaces it with an emulated accelerator.

use std::sync::Arc;

use anyhow::Result;
use forebay_format::image::ImageSpec;
use forebay_pipeline::{Dataset, DecodeImage, Source, Threads};
use forebay_storage::Local;
use forebay_train::{Cpu, EmulatedAccelerator, Labels, Model, Network, Normalize, Settings};
use forebay_units::SystemClock;

const BATCH: usize = 16;

fn main() -> Result<()> {
    let folder = forebay_examples::photographs(64)?;
    let source = Source::discover(Arc::new(Local::default()), folder.path())?;
    let model = Model::named("resnet-small", source.n_classes().unwrap_or(1))?;
    let (width, height) = (model.input.width as u32, model.input.height as u32);
    let pipeline = Dataset::new(source)
        .shuffle(1)
        .repeat(15)
        .map(DecodeImage(ImageSpec { width, height, ..ImageSpec::default() }))
        .threads(Threads::Fixed(2))
        .batch(BATCH)
        .drop_remainder()
        .prefetch(1);

    let normalize = Some(Normalize::of(&[128.0; 3], &[64.0; 3]));
    let mut network = Network::new(Cpu::new(2)?, &model, Settings { normalize, ..Settings::new(BATCH, 1) })?;
    let mut losses = Vec::new();
    for batch in pipeline.iter()? {
        let batch = batch?;
        losses.push(network.step(batch.as_f32(), Labels::Index(batch.labels()))?);
    }
    println!("{} on {}: {} steps", model.name, network.describe_device(), losses.len());
    println!("loss {:.3} at the first step, {:.3} at the last", losses[0], losses[losses.len() - 1]);

    let emulation = "emulated:normal(20ms,2ms)".parse()?;
    let mut accelerator = EmulatedAccelerator::new(emulation, 1, Arc::new(SystemClock::default()));
    let mut batches = pipeline.iter()?;
    while batches.next().transpose()?.is_some() {
        accelerator.step();
    }
    let stats = batches.stats();
    let wait = 100.0 * stats.wait_ns as f64 / stats.wall_ns as f64;
    println!("{emulation}: {} steps, {wait:.1} % of the time waiting for data", stats.n_batches);
    Ok(())
}
