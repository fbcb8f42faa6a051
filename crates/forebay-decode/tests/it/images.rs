//! A pipeline that decodes on a GPU beside the same on the CPU, where there is a device.

use forebay_decode::GpuImages;
use forebay_format::image::{Dtype, ImageSpec, Layout, Normalize};
use forebay_pipeline::{Augment, AugmentImage, Crop, Dataset, DecodeImage, Mapped, Source, Threads};

use crate::fixtures::{files, open};

const AUGMENT: Augment =
    Augment { crop: Crop::RANDOM, flip: 0.5, antialias: false, normalize: Some(Normalize::IMAGENET), seed: 3 };

fn spec(dtype: Dtype, layout: Layout) -> ImageSpec {
    ImageSpec { width: 48, height: 40, dtype, layout, scaled_dct: false }
}

/// Fixtures of every kind, two damaged ones and no image.
fn samples() -> Vec<(Vec<u8>, i64)> {
    let mut files = files();
    let half = files[3].len() / 2;
    let cut = files[3][..half].to_vec();
    files.extend([cut, b"no image".to_vec()]);
    files.into_iter().zip(0..).collect()
}

/// The samples in order, their labels, and the reasons of the failed ones.
fn run(mapped: Mapped) -> (Vec<u8>, Vec<i64>, Vec<String>) {
    let pipeline = mapped.threads(Threads::Fixed(3)).ignore_errors().batch(16).prefetch(2);
    let (mut bytes, mut labels, mut batches) = (Vec::new(), Vec::new(), pipeline.iter().unwrap());
    for batch in batches.by_ref() {
        let batch = batch.unwrap();
        bytes.extend_from_slice(batch.data());
        labels.extend_from_slice(batch.labels());
    }
    (bytes, labels, batches.stats().failures.iter().map(|failed| failed.reason()).collect())
}

fn dataset() -> Dataset {
    Dataset::new(Source::memory(samples())).shuffle(5).repeat(2)
}

#[test]
fn samples_labels_and_errors_are_those_of_the_cpu() {
    for (spec, augment, tolerance) in [
        (spec(Dtype::F32, Layout::Nhwc), None, 1e-3),
        (spec(Dtype::F32, Layout::Nchw), Some(AUGMENT), 1e-4),
        (spec(Dtype::U8, Layout::Nhwc), None, 1.0),
    ] {
        let Some(gpu) = open() else { return };
        let images = GpuImages::new(gpu, spec, augment).unwrap();
        let found = run(dataset().map(images.clone()));
        let expected = match augment {
            Some(augment) => run(dataset().map(AugmentImage { spec, augment, pixels: None })),
            None => run(dataset().map(DecodeImage(spec))),
        };
        assert_eq!((&found.1, &found.2), (&expected.1, &expected.2));
        let worst = found.0.iter().zip(&expected.0).map(|(a, b)| f32::from(a.abs_diff(*b))).fold(0.0, f32::max);
        let worst = if spec.dtype == Dtype::U8 { worst } else { worst_float(&found.0, &expected.0) };
        assert!(worst <= tolerance, "{spec:?}: {worst}");
        let totals = images.totals();
        assert!(totals.n_on_gpu > totals.n_on_cpu && totals.n_on_cpu > 0 && totals.kernels_s > 0.0, "{totals:?}");
    }
}

fn worst_float(found: &[u8], expected: &[u8]) -> f32 {
    let floats =
        |bytes: &[u8]| -> Vec<f32> { bytes.as_chunks::<4>().0.iter().map(|word| f32::from_ne_bytes(*word)).collect() };
    floats(found).into_iter().zip(floats(expected)).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn what_a_device_does_not_make_is_refused() {
    let Some(gpu) = open() else { return };
    let refusal = |spec, augment| GpuImages::new(gpu.sibling().unwrap(), spec, augment).err().unwrap();
    let plain = spec(Dtype::F32, Layout::Nhwc);
    assert_eq!(
        refusal(ImageSpec { scaled_dct: true, ..plain }, None),
        "images are not decoded at other sizes on a GPU"
    );
    assert_eq!(refusal(plain, Some(Augment { antialias: true, ..AUGMENT })), "images are not antialiased on a GPU");
    assert!(refusal(plain, Some(Augment { flip: 2.0, ..AUGMENT })).contains("probability"));
}
