//! Every code path against a plain reading of TensorFlow's formula.

use super::*;
use proptest::prelude::*;

fn noise(len: usize, seed: u32) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2_654_435_761) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 24) as u8
    };
    (0..len).map(|_| next()).collect()
}

fn spec(width: u32, height: u32, dtype: Dtype, layout: Layout) -> ImageSpec {
    ImageSpec { width, height, dtype, layout, scaled_dct: false }
}

/// A slot of bytes that is aligned for floats.
fn resize(src: Pixels<'_>, spec: ImageSpec) -> Vec<f32> {
    let mut slot = vec![f32::NAN; spec.sample_bytes().div_ceil(4)];
    // SAFETY: floats are bytes, and the length is within the vector.
    let bytes = unsafe { std::slice::from_raw_parts_mut(slot.as_mut_ptr().cast::<u8>(), spec.sample_bytes()) };
    Resizer::new(spec).resize(src, bytes).unwrap();
    match spec.dtype {
        Dtype::F32 => slot,
        Dtype::U8 => bytes.iter().copied().map(f32::from).collect(),
        Dtype::F16 => bytes.as_chunks::<2>().0.iter().map(|word| half::f16::from_ne_bytes(*word).to_f32()).collect(),
        Dtype::Bf16 => bytes.as_chunks::<2>().0.iter().map(|word| half::bf16::from_ne_bytes(*word).to_f32()).collect(),
    }
}

/// The definition, in double precision and with clamped coordinates.
fn reference(src: Pixels<'_>, width: u32, height: u32) -> Vec<f64> {
    let value = |y: f64, x: f64, channel: usize| {
        let y = y.clamp(0.0, f64::from(src.height - 1)) as usize;
        let x = x.clamp(0.0, f64::from(src.width - 1)) as usize;
        f64::from(src.rgb[(y * src.width as usize + x) * 3 + channel])
    };
    let centre =
        |at: u32, src_len: u32, dst_len: u32| f64::from((at as f32 + 0.5) * (src_len as f32 / dst_len as f32) - 0.5);
    let mut out = Vec::new();
    for y in (0..height).map(|y| centre(y, src.height, height)) {
        for x in (0..width).map(|x| centre(x, src.width, width)) {
            for channel in 0..3 {
                let along = |y: f64| {
                    let (left, right) = (value(y, x.floor(), channel), value(y, x.floor() + 1.0, channel));
                    left + (right - left) * (x - x.floor())
                };
                let (top, bottom) = (along(y.floor()), along(y.floor() + 1.0));
                out.push(top + (bottom - top) * (y - y.floor()));
            }
        }
    }
    out
}

fn planes(interleaved: &[f32]) -> Vec<f32> {
    (0..3).flat_map(|channel| interleaved.iter().skip(channel).step_by(3).copied()).collect()
}

fn check(src_size: (u32, u32), dst_size: (u32, u32)) {
    let rgb = noise((src_size.0 * src_size.1 * 3) as usize, src_size.0 + 7 * dst_size.0);
    let src = Pixels { width: src_size.0, height: src_size.1, rgb: &rgb };
    let of = |dtype, layout| resize(src, spec(dst_size.0, dst_size.1, dtype, layout));
    let floats = of(Dtype::F32, Layout::Nhwc);
    for (at, (found, expected)) in floats.iter().zip(reference(src, dst_size.0, dst_size.1)).enumerate() {
        assert!(
            (f64::from(*found) - expected).abs() < 1e-4,
            "{src_size:?} to {dst_size:?} at {at}: {found}, {expected}"
        );
    }
    assert_eq!(of(Dtype::F32, Layout::Nchw), planes(&floats));
    let rounded: Vec<f32> = floats.iter().map(|value| value.round_ties_even()).collect();
    assert_eq!(of(Dtype::U8, Layout::Nhwc), rounded);
    assert_eq!(of(Dtype::U8, Layout::Nchw), planes(&rounded));
    let halves: Vec<f32> = floats.iter().map(|value| half::f16::from_f32(*value).to_f32()).collect();
    assert_eq!(of(Dtype::F16, Layout::Nhwc), halves);
    let brains: Vec<f32> = floats.iter().map(|value| half::bf16::from_f32(*value).to_f32()).collect();
    assert_eq!(of(Dtype::Bf16, Layout::Nchw), planes(&brains));
}

#[test]
fn every_plan_agrees_with_the_definition() {
    // Down, up, one direction only, the same size, sizes around the vectors' loads, and scales beyond each plan.
    let sizes = [1, 2, 5, 6, 7, 21, 22, 23, 64, 100, 224];
    for src in sizes {
        for dst in [1, 3, 5, 8, 16, 30, 64] {
            check((src, 9), (dst, 4));
        }
    }
    for (src, dst) in [((480, 41), (224, 22)), ((900, 5), (224, 5)), ((3000, 3), (224, 3)), ((60, 50), (224, 224))] {
        check(src, dst);
    }
}

#[test]
fn all_plans_of_one_width_give_the_same_values_within_rounding() {
    let (src_width, dst_width) = (480, 223);
    let rgb = noise(src_width as usize * 3 * 2, 3);
    let rows = columns::Rows { top: &rgb[..1440], bottom: &rgb[1440..], weight: 0.3 };
    let mut expected = vec![0.0; dst_width as usize * 3];
    portable::Plan::new(src_width, dst_width).resize_row(rows, &mut expected);
    let close = |found: &[f32]| found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-4);
    #[cfg(target_arch = "x86_64")]
    {
        let mut found = expected.clone();
        if let Some(plan) = avx2::Plan::new(src_width, dst_width) {
            found.fill(-1.0);
            plan.resize_row(rows, &mut found, Store::Cached);
            assert!(close(&found));
        }
        if let Some(plan) = avx512::Plan::new(src_width, dst_width) {
            found.fill(-1.0);
            plan.resize_row(rows, &mut found, Store::Cached);
            assert!(close(&found));
        }
    }
    assert!(close(&expected));
}

#[test]
fn a_streamed_slot_holds_the_same_values_as_a_cached_one() {
    let rgb = noise(480 * 300 * 3, 5);
    let src = Pixels { width: 480, height: 300, rgb: &rgb };
    let mut columns = Columns::default();
    columns.prepare(480, 223);
    let mut slots = vec![0.0_f32; 2 * 223 * 3 * 224 + 16];
    let start = slots.as_ptr().align_offset(64);
    for (store, slot) in [Store::Streaming, Store::Cached].iter().zip(slots[start..].chunks_exact_mut(223 * 3 * 224)) {
        let rows = slot.chunks_exact_mut(223 * 3);
        rows.zip(taps(300, 224)).for_each(|(out, tap)| columns.resize_row(src, tap, out, *store));
        store.complete();
    }
    let (streamed, cached) = slots[start..].split_at(223 * 3 * 224);
    assert_eq!(streamed, &cached[..streamed.len()]);
    assert_eq!(Store::for_slot(streamed) == Store::Streaming, cfg!(target_arch = "x86_64"));
}

#[test]
fn a_slot_of_the_wrong_size_or_alignment_is_refused() {
    let src = Pixels { width: 1, height: 1, rgb: &[1, 2, 3] };
    let mut resizer = Resizer::new(spec(2, 2, Dtype::F32, Layout::Nhwc));
    let mut floats = [0.0_f32; 13];
    // SAFETY: floats are bytes.
    let bytes = unsafe { std::slice::from_raw_parts_mut(floats.as_mut_ptr().cast::<u8>(), 52) };
    assert!(resizer.resize(src, &mut bytes[..47]).unwrap_err().to_string().contains("expected 48 bytes, found 47"));
    assert!(resizer.resize(src, &mut bytes[1..49]).unwrap_err().to_string().contains("alignment to 4 bytes"));
    resizer.resize(src, &mut bytes[4..52]).unwrap();
    assert_eq!(floats, [0.0, 1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 1.0, 2.0, 3.0]);
}

#[test]
fn tables_follow_the_width_of_each_image() {
    let mut resizer = Resizer::new(spec(10, 10, Dtype::U8, Layout::Nhwc));
    for width in [40, 40, 31, 10, 40] {
        let rgb = noise(width as usize * 12 * 3, width);
        let src = Pixels { width, height: 12, rgb: &rgb };
        let mut out = vec![0; 300];
        resizer.resize(src, &mut out).unwrap();
        let fresh = resize(src, spec(10, 10, Dtype::U8, Layout::Nhwc));
        assert_eq!(out.iter().copied().map(f32::from).collect::<Vec<_>>(), fresh);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_sizes_agree_with_the_definition(src in (1..400_u32, 1..40_u32), dst in (1..120_u32, 1..20_u32)) {
        check(src, dst);
    }
}
