//! A pipeline that decodes on a device beside the same on the CPU: on a GPU where there is one, and on the kernels
//! compiled for this CPU.

use forebay_decode::{Device, GpuImages};
use forebay_format::image::{Dtype, ImageSpec, Layout, Normalize};
use forebay_pipeline::{Augment, AugmentImage, Crop, Dataset, DecodeImage, Jitter, Mapped, Source, Threads};

use crate::emulated::Emulated;
use crate::fixtures::{files, open};

const AUGMENT: Augment = Augment {
    crop: Crop::RANDOM,
    flip: 0.5,
    antialias: false,
    jitter: None,
    normalize: Some(Normalize::IMAGENET),
    seed: 3,
};

fn spec(dtype: Dtype, layout: Layout) -> ImageSpec {
    ImageSpec { width: 48, height: 40, dtype, layout, scaled_dct: false }
}

/// Fixtures of every kind, a damaged one and no image.
fn samples() -> Vec<(Vec<u8>, i64)> {
    let mut files = files();
    let mut cut = files[3].clone();
    cut.truncate(files[3].len() - 12);
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

/// Compares with the CPU's maps, for the types and layouts that differ in code.
fn compare(device: &dyn Device) {
    for (spec, augment, tolerance) in [
        (spec(Dtype::F32, Layout::Nhwc), None, 1e-3),
        (spec(Dtype::F32, Layout::Nchw), Some(AUGMENT), 1e-4),
        (spec(Dtype::U8, Layout::Nhwc), None, 1.0),
    ] {
        let images = GpuImages::new(device.sibling().unwrap(), spec, augment).unwrap();
        let found = run(dataset().map(images.clone()));
        let expected = match augment {
            Some(augment) => run(dataset().map(AugmentImage { spec, augment, pixels: None })),
            None => run(dataset().map(DecodeImage(spec))),
        };
        assert_eq!((&found.1, &found.2), (&expected.1, &expected.2));
        let worst = worst(spec.dtype, &found.0, &expected.0);
        assert!(worst <= tolerance, "{spec:?}: {worst}");
        let totals = images.totals();
        assert_eq!(totals.n_on_gpu + totals.n_on_cpu, 2 * samples().len() as u64);
        assert!(totals.n_on_gpu > totals.n_on_cpu && totals.kernels_s > 0.0, "{totals:?}");
    }
}

fn worst(dtype: Dtype, found: &[u8], expected: &[u8]) -> f32 {
    assert_eq!(found.len(), expected.len());
    let values = |bytes: &[u8]| -> Vec<f32> {
        match dtype {
            Dtype::F32 => bytes.as_chunks::<4>().0.iter().map(|word| f32::from_ne_bytes(*word)).collect(),
            _ => bytes.iter().copied().map(f32::from).collect(),
        }
    };
    values(found).into_iter().zip(values(expected)).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn samples_labels_and_errors_are_those_of_the_cpu() {
    if let Some(device) = Emulated::new(usize::MAX) {
        compare(&device);
    }
    if let Some(gpu) = open() {
        compare(&gpu);
    }
}

#[test]
fn a_device_that_fails_fails_the_samples_after_it_with_its_reason() {
    let Some(device) = Emulated::new(2) else { return };
    let images = GpuImages::new(Box::new(device), spec(Dtype::U8, Layout::Nhwc), None).unwrap();
    let (_, labels, reasons) = run(dataset().map(images));
    assert!(!labels.is_empty() && labels.len() < samples().len(), "{}", labels.len());
    assert!(reasons.iter().any(|reason| reason == "cannot load the emulated device"), "{reasons:?}");
}

#[test]
fn what_a_device_does_not_make_is_refused() {
    let Some(device) = Emulated::new(0) else { return };
    let refusal = |spec, augment| GpuImages::new(device.sibling().unwrap(), spec, augment).err().unwrap();
    let plain = spec(Dtype::F32, Layout::Nhwc);
    assert_eq!(
        refusal(ImageSpec { scaled_dct: true, ..plain }, None),
        "images are not decoded at other sizes on a GPU"
    );
    assert_eq!(refusal(plain, Some(Augment { antialias: true, ..AUGMENT })), "images are not antialiased on a GPU");
    let jitter = Some(Jitter { hue: Some((-0.1, 0.1)), ..Jitter::default() });
    let refused = refusal(plain, Some(Augment { jitter, ..AUGMENT }));
    assert_eq!(refused, "colours are not changed on a GPU; omit the jitter");
    assert!(refusal(plain, Some(Augment { flip: 2.0, ..AUGMENT })).contains("probability"));
    let jitter = Some(Jitter { hue: Some((-0.1, 0.1)), ..Jitter::default() });
    assert!(refusal(plain, Some(Augment { jitter, ..AUGMENT })).contains("colours are not changed on a GPU"));
}
