//! Synthetic images, encoded by the tests.

use forebay_jpeg::{Decoder, Scale};
use jpeg_encoder::{ColorType, Encoder, SamplingFactor};
use proptest::prelude::*;

#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) size: (u16, u16),
    seed: u64,
    roughness: u8,
    quality: u8,
    sampling: SamplingFactor,
    pub(crate) is_progressive: bool,
    restart: u16,
    is_optimised: bool,
}

pub(crate) fn case() -> impl Strategy<Value = Case> {
    let sampling = prop::sample::select(vec![
        SamplingFactor::F_1_1,
        SamplingFactor::F_2_1,
        SamplingFactor::F_1_2,
        SamplingFactor::F_2_2,
        SamplingFactor::F_4_1,
        SamplingFactor::F_4_2,
        SamplingFactor::F_1_4,
        SamplingFactor::F_2_4,
    ]);
    let shape = ((1u16..80, 1u16..80), any::<u64>(), 0u8..64, 1u8..=100);
    (shape, sampling, any::<bool>(), 0u16..6, any::<bool>()).prop_map(
        |((size, seed, roughness, quality), sampling, is_progressive, restart, is_optimised)| Case {
            size,
            seed,
            roughness,
            quality,
            sampling,
            is_progressive,
            restart,
            is_optimised,
        },
    )
}

/// Gradients with noise of the given amplitude.
fn pixels(case: &Case) -> Vec<u8> {
    let mut state = case.seed | 1;
    let (width, height) = (usize::from(case.size.0), usize::from(case.size.1));
    let value = |x: usize, y: usize, channel: usize| (x * (3 + channel) + y * (5 - channel)) as u8;
    let noise = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8 % case.roughness.max(1)
    };
    let places = (0..height).flat_map(|y| (0..width).flat_map(move |x| (0..3).map(move |channel| (x, y, channel))));
    places.scan(noise, |noise, (x, y, channel)| Some(value(x, y, channel).wrapping_add(noise()))).collect()
}

pub(crate) fn encode(case: &Case) -> Vec<u8> {
    let mut data = Vec::new();
    let mut encoder = Encoder::new(&mut data, case.quality);
    encoder.set_sampling_factor(case.sampling);
    encoder.set_progressive(case.is_progressive);
    // The encoder cannot do both: its optimised tables lack the codes that restarts need.
    encoder.set_optimized_huffman_tables(case.is_optimised && case.restart == 0);
    encoder.set_restart_interval(case.restart);
    encoder.encode(&pixels(case), case.size.0, case.size.1, ColorType::Rgb).unwrap();
    data
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn vector_and_portable_code_give_the_same_pixels(case in case()) {
        let data = encode(&case);
        let (mut vector, mut portable) = (Decoder::new(), Decoder::new().portable());
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for scale in [Scale::Full, Scale::Half, Scale::Quarter, Scale::Eighth] {
            let info = vector.decode_rgb(&data, scale, &mut a).unwrap();
            prop_assert_eq!(info, portable.decode_rgb(&data, scale, &mut b).unwrap());
            prop_assert_eq!((info.width, info.height), (u32::from(case.size.0), u32::from(case.size.1)));
            prop_assert_eq!(&a, &b);
        }
    }

    #[test]
    fn decoder_that_has_seen_another_image_decodes_like_a_new_one(first in case(), second in case()) {
        let (first, second) = (encode(&first), encode(&second));
        let (mut used, mut a, mut b) = (Decoder::new(), Vec::new(), Vec::new());
        used.decode_rgb(&first, Scale::Full, &mut a).unwrap();
        used.decode_rgb(&second, Scale::Full, &mut a).unwrap();
        Decoder::new().decode_rgb(&second, Scale::Full, &mut b).unwrap();
        prop_assert_eq!(a, b);
    }
}

#[test]
fn high_quality_image_without_subsampling_comes_back_nearly_unchanged() {
    let case = Case {
        size: (40, 30),
        seed: 5,
        roughness: 1,
        quality: 100,
        sampling: SamplingFactor::F_1_1,
        is_progressive: false,
        restart: 0,
        is_optimised: false,
    };
    let mut smooth = case.clone();
    smooth.size = (10, 10);
    let (mut out, original) = (Vec::new(), pixels(&smooth));
    Decoder::new().decode_rgb(&encode(&smooth), Scale::Full, &mut out).unwrap();
    let worst = out.iter().zip(&original).map(|(a, b)| a.abs_diff(*b)).max();
    assert!(worst <= Some(3), "{worst:?}");
}
