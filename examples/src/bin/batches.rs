//! The paper's pipeline in six lines: list, shuffle, decode in parallel, ignore errors, batch, prefetch.

use std::sync::Arc;

use anyhow::Result;
use forebay_format::image::ImageSpec;
use forebay_pipeline::{Dataset, DecodeImage, Source, Threads};
use forebay_storage::Local;

fn main() -> Result<()> {
    let folder = forebay_examples::photographs(300)?;
    let source = Source::discover(Arc::new(Local::default()), folder.path())?;
    let n_classes = source.classes().len();
    let pipeline = Dataset::new(source)
        .shuffle(42)
        .map(DecodeImage(ImageSpec::default()))
        .threads(Threads::Fixed(2))
        .ignore_errors()
        .one_hot(n_classes)
        .batch(64)
        .prefetch(1);
    for batch in pipeline.iter()? {
        let batch = batch?;
        let mean = batch.as_f32().iter().sum::<f32>() / batch.as_f32().len() as f32;
        println!("{} images, mean value {mean:.1}, first labels {:?}", batch.len(), &batch.labels()[..4]);
    }
    Ok(())
}
