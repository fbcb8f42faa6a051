//! A custom map function: each sample becomes the mean colour of its image. A bad image or a panic affects only its sample.

use std::sync::Arc;

use anyhow::Result;
use forebay_format::image::{ImageDecoder, ImageSpec};
use forebay_pipeline::{Dataset, Source};
use forebay_storage::Local;

fn main() -> Result<()> {
    let folder = forebay_examples::photographs(40)?;
    std::fs::write(folder.path().join("broken.jpg"), b"\xff\xd8 not quite an image")?;
    let source = Source::discover(Arc::new(Local::default()), folder.path())?;
    let pipeline = Dataset::new(source)
        .map_fn(3, |sample, slot| {
            let mut decoder = ImageDecoder::new(ImageSpec::default());
            let pixels = decoder.decode(sample.bytes).map_err(|error| error.to_string())?;
            for (channel, mean) in slot.iter_mut().enumerate() {
                let values = pixels.rgb.iter().skip(channel).step_by(3);
                let n = values.len() as u64;
                *mean = (values.map(|value| u64::from(*value)).sum::<u64>() / n) as u8;
            }
            Ok(())
        })
        .ignore_errors()
        .batch(16);
    let mut batches = pipeline.iter()?;
    for batch in batches.by_ref() {
        println!("mean colour of the first image of the batch: {:?}", &batch?.data()[..3]);
    }
    for failed in batches.stats().failures {
        println!("left out: {}: {}", failed.name, failed.reason());
    }
    anyhow::ensure!(batches.stats().n_failed == 1, "only the broken image is left out");
    Ok(())
}
