//! The kernels for devices, compiled as C and run on this CPU, against the decoder.

use forebay_format::image::{Dtype as SampleType, ImageDecoder, ImageSpec, Layout};
use forebay_jpeg::device::{Batch, Division, Dtype, Prepared, Refusal, Target, View};
use forebay_jpeg::{Decoder, Error, Limits, Scale};
use proptest::prelude::*;

use crate::fixtures::{names, read};
use crate::generated::{case, encode};
use crate::shim::{MANNERS, Manner, Shim};

const LIMITS: Limits = Limits { max_pixels: 1 << 20, max_scans: 500 };
const FINE: Division = Division { chunk_bits: 64, n_rounds: 2 };

fn decoded(data: &[u8]) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    Decoder::with_limits(LIMITS).decode_rgb(data, Scale::Full, &mut out).map(|_| out)
}

/// Each file at its own size as bytes; `None` for what the device does not decode.
fn on_device(shim: &Shim, files: &[Vec<u8>], division: Division, manner: Manner) -> Vec<Option<Vec<u8>>> {
    let prepared: Vec<Option<Prepared>> = files.iter().map(|data| prepare(data).ok()).collect();
    let size = |file: &Prepared| file.info().map(|info| [info.width, info.height]).unwrap();
    let fit: Vec<_> = prepared.iter().flatten().map(|file| (file, View::whole(size(file), size(file)))).collect();
    let lengths: Vec<usize> = fit.iter().map(|(_, view)| 3 * (view.sample[0] * view.sample[1]) as usize).collect();
    if fit.is_empty() {
        return vec![None; files.len()];
    }
    let batch = Batch::new(fit, Target::plain(Dtype::U8), division).unwrap();
    let (faults, mut rest) = shim.run(&batch, manner);
    let mut samples = faults.into_iter().zip(lengths).map(|(is_marked, n)| {
        let tail = rest.split_off(n);
        let sample = std::mem::replace(&mut rest, tail);
        (!is_marked).then_some(sample)
    });
    prepared.iter().map(|file| file.as_ref().and_then(|_| samples.next().unwrap())).collect()
}

fn prepare(data: &[u8]) -> Result<Prepared, Refusal> {
    let mut file = Prepared::default();
    file.read(data, &LIMITS)?;
    Ok(file)
}

/// What must come out: the decoder's pixels, or nothing for errors and for kinds that are refused.
fn expected(data: &[u8]) -> Option<Vec<u8>> {
    match prepare(data) {
        Err(Refusal::Kind(_)) => None,
        Err(Refusal::Error(error)) => {
            assert!(decoded(data).is_err(), "refused, but valid: {error}");
            None
        }
        _ => decoded(data).ok(),
    }
}

#[test]
fn every_fixture_has_the_decoders_pixels_however_the_work_is_divided() {
    let Some(shim) = Shim::get() else { return };
    let files: Vec<Vec<u8>> = names().iter().map(|name| read(name)).collect();
    let pixels: Vec<_> = files.iter().map(|data| expected(data)).collect();
    assert!(pixels.iter().flatten().count() > 55, "most fixtures are baseline files");
    for (chunk_bits, n_rounds) in [(1024, 12), (64, 1), (64, 12), (100, 3), (4096, 1)] {
        for manner in MANNERS {
            let found = on_device(shim, &files, Division { chunk_bits, n_rounds }, manner);
            for ((name, found), pixels) in names().iter().zip(found).zip(&pixels) {
                assert!(found == *pixels, "{name}, {chunk_bits} bits per chunk, {n_rounds} rounds, {manner:?}");
            }
        }
    }
}

#[test]
fn kinds_for_the_decoder_are_refused_by_name_and_errors_as_errors() {
    let refusal = |name: &str| prepare(&read(name)).unwrap_err();
    assert_eq!(refusal("progressive-17x33.jpg"), Refusal::Kind("several scans"));
    assert_eq!(refusal("scans-noninterleaved.jpg"), Refusal::Kind("several scans"));
    assert_eq!(refusal("cmyk-plain.jpg"), Refusal::Kind("four components"));
    assert_eq!(prepare(b"GIF89a").unwrap_err(), Refusal::Error(Error::NotJpeg));
    let mut file = prepare(&read("420-16x16.jpg")).unwrap();
    assert!(file.read(b"GIF89a", &LIMITS).is_err() && file.info().is_none());
    assert!(Batch::new(vec![(&file, View::whole([16, 16], [16, 16]))], Target::plain(Dtype::U8), FINE).is_none());
}

#[test]
fn every_cut_is_marked_and_the_other_files_of_the_batch_are_decoded() {
    let Some(shim) = Shim::get() else { return };
    for name in ["420-17x33.jpg", "restart-1.jpg", "gray.jpg"] {
        let whole = read(name);
        let cuts = (whole.len() / 2..whole.len() - 4).step_by(5).map(|n| whole[..n].to_vec());
        let files: Vec<Vec<u8>> = [whole.clone()].into_iter().chain(cuts).chain([whole.clone()]).collect();
        let found = on_device(shim, &files, FINE, MANNERS[0]);
        assert_eq!(found[0], decoded(&whole).ok(), "{name}");
        assert_eq!(found.last(), found.first());
        assert!(found[1..found.len() - 1].iter().all(Option::is_none), "{name}");
    }
}

#[test]
fn a_view_that_leaves_the_image_or_the_resized_crop_is_refused() {
    let file = prepare(&read("420-40x25.jpg")).unwrap();
    let whole = View::whole([40, 25], [8, 8]);
    for view in [
        View { crop: [1, 0, 40, 25], ..whole },
        View { crop: [0, 0, 40, 0], ..whole },
        View { crop: [u32::MAX, 0, 2, 25], ..whole },
        View { offset: [1, 0], ..whole },
        View { sample: [8, 9], ..whole },
    ] {
        assert!(Batch::new(vec![(&file, view)], Target::plain(Dtype::U8), FINE).is_none(), "{view:?}");
    }
}

/// A sample of `photo-420.jpg`, as values.
fn sample(shim: &Shim, view: View, target: Target) -> Vec<u8> {
    let file = prepare(&read("photo-420.jpg")).unwrap();
    let batch = Batch::new(vec![(&file, view)], target, Division::default()).unwrap();
    let (faults, out) = shim.run(&batch, MANNERS[1]);
    assert_eq!(faults, [false]);
    out
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|word| f32::from_ne_bytes(*word)).collect()
}

#[test]
fn resized_samples_are_those_of_the_image_decoder() {
    let Some(shim) = Shim::get() else { return };
    let data = read("photo-420.jpg");
    let size = prepare(&data).unwrap().info().map(|info| [info.width, info.height]).unwrap();
    let types = [
        (SampleType::U8, Dtype::U8),
        (SampleType::F32, Dtype::F32),
        (SampleType::F16, Dtype::F16),
        (SampleType::Bf16, Dtype::Bf16),
    ];
    for (layout, (sample_type, dtype), (width, height)) in [Layout::Nhwc, Layout::Nchw]
        .into_iter()
        .flat_map(|layout| types.into_iter().map(move |types| (layout, types)))
        .flat_map(|(layout, types)| [(64, 48), (33, 300)].map(|size| (layout, types, size)))
    {
        let spec = ImageSpec { width, height, dtype: sample_type, layout, scaled_dct: false };
        let mut slot = vec![0_u32; spec.sample_bytes().div_ceil(4)];
        // SAFETY: the bytes of numbers.
        let slot = unsafe { std::slice::from_raw_parts_mut(slot.as_mut_ptr().cast(), spec.sample_bytes()) };
        ImageDecoder::new(spec).decode_into(&data, slot).unwrap();
        let target = Target { is_planar: layout == Layout::Nchw, ..Target::plain(dtype) };
        let found = sample(shim, View::whole(size, [width, height]), target);
        let worst = worst_difference(sample_type, slot, &found);
        // Rounding differs in the last place; types of fewer bits may round to the next value.
        let allowed = if sample_type == SampleType::F32 { 1e-4 } else { 1.0 };
        assert!(worst <= allowed, "{dtype:?} {layout:?} {width}x{height}: {worst}");
    }
}

/// In units of the type's last place; for floats of 32 bits in grey levels.
fn worst_difference(dtype: SampleType, expected: &[u8], found: &[u8]) -> f32 {
    assert_eq!(expected.len(), found.len());
    let words = |bytes: &[u8]| -> Vec<f32> {
        match dtype {
            SampleType::U8 => bytes.iter().copied().map(f32::from).collect(),
            SampleType::F32 => floats(bytes),
            _ => bytes.as_chunks::<2>().0.iter().map(|word| u16::from_ne_bytes(*word).into()).collect(),
        }
    };
    let pairs = words(expected).into_iter().zip(words(found));
    pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn a_mirrored_window_of_a_crop_is_normalised() {
    let Some(shim) = Shim::get() else { return };
    let rgb = decoded(&read("photo-420.jpg")).unwrap();
    let width = prepare(&read("photo-420.jpg")).unwrap().info().map(|info| info.width as usize).unwrap();
    // At its own size a crop is the pixels themselves, so the window begins at (5 + 3, 7 + 2).
    let view = View {
        crop: [5, 7, 40, 30],
        resized: [40, 30],
        offset: [3, 2],
        is_mirrored: true,
        is_precise: true,
        sample: [20, 10],
    };
    let target = Target { factors: [0.5, 1.0, 2.0], summands: [1.0, -3.0, 0.25], ..Target::plain(Dtype::F32) };
    let found = floats(&sample(shim, view, target));
    for (i, value) in found.into_iter().enumerate() {
        let (x, y, c) = (i / 3 % 20, i / 60, i % 3);
        let source = f32::from(rgb[((y + 9) * width + (19 - x) + 8) * 3 + c]);
        assert_eq!(value, source * target.factors[c] + target.summands[c], "({x}, {y})");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn generated_images_of_any_kind_have_the_decoders_pixels(
        mut cases in prop::collection::vec(case(), 1..4),
        factor in 1u16..6,
        n_rounds in 1u32..40,
        is_backwards in any::<bool>(),
    ) {
        let Some(shim) = Shim::get() else { return Ok(()) };
        for case in &mut cases {
            case.is_progressive = false;
            case.size = (case.size.0 * factor, case.size.1 * factor);
        }
        let files: Vec<Vec<u8>> = cases.iter().map(encode).collect();
        let division = Division { n_rounds, ..Division::default() };
        let found = on_device(shim, &files, division, Manner { is_backwards, poison: n_rounds as u8 });
        for (file, found) in files.iter().zip(found) {
            // The encoder sends some samplings in several scans, which are refused.
            prop_assert!(found == expected(file) && (found.is_some() || file.windows(2).filter(|w| *w == [0xFF, 0xDA]).count() > 1));
        }
    }

    #[test]
    fn changed_files_are_marked_if_and_only_if_the_decoder_refuses_them(
        changes in prop::collection::vec(
            (
                any::<prop::sample::Index>(),
                prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
                prop::option::weighted(0.2, any::<prop::sample::Index>()),
            ),
            1..6,
        ),
        (chunk_bits, n_rounds) in (64u32..300, 1u32..4),
        is_backwards in any::<bool>(),
    ) {
        let Some(shim) = Shim::get() else { return Ok(()) };
        let names = names();
        let files: Vec<Vec<u8>> = changes.iter().map(|(name, bytes, cut)| {
            let mut data = read(&names[name.index(names.len())]);
            for (at, value) in bytes {
                let n = data.len();
                data[at.index(n)] = *value;
            }
            if let Some(cut) = cut {
                data.truncate(cut.index(data.len()));
            }
            data
        }).collect();
        let manner = Manner { is_backwards, poison: chunk_bits as u8 };
        let found = on_device(shim, &files, Division { chunk_bits, n_rounds }, manner);
        for (data, found) in files.iter().zip(found) {
            prop_assert!(found == expected(data), "{} of {} bytes", found.is_some(), data.len());
        }
    }
}
