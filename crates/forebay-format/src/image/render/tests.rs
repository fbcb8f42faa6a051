//! Views against arithmetic that can be done by hand, in every type and layout.

use super::super::{Dtype, ImageSpec, Layout, Part, Pixels};
use super::*;

fn spec(width: u32, height: u32, dtype: Dtype, layout: Layout) -> ImageSpec {
    ImageSpec { width, height, dtype, layout, scaled_dct: false }
}

/// A picture whose value is 10 per column and 1 per row, with 0, 1, 2 added per channel.
fn ramp(width: u32, height: u32) -> Vec<u8> {
    let pixel = |x: u32, y: u32| [0, 1, 2].map(|c| (10 * x + y + c) as u8);
    (0..height).flat_map(|y| (0..width).flat_map(move |x| pixel(x, y))).collect()
}

fn rendered(image: (u32, u32), view: View, spec: ImageSpec, normalize: Option<Normalize>) -> Vec<u8> {
    let rgb = ramp(image.0, image.1);
    let mut out = vec![0_u8; spec.sample_bytes() + 4];
    let start = out.as_ptr().align_offset(4);
    let slot = &mut out[start..start + spec.sample_bytes()];
    let mut renderer = Renderer::new(spec, true, normalize).unwrap();
    let whole = Pixels { width: image.0, height: image.1, rgb: &rgb };
    renderer.render(whole.into(), &view, &[], slot).unwrap();
    slot.to_vec()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|word| f32::from_ne_bytes(*word)).collect()
}

fn cut(left: u32, top: u32, width: u32, height: u32, mirrored: bool) -> View {
    let crop = Rect { left, top, width, height };
    View { crop, resized: (width, height), offset: (0, 0), mirrored }
}

#[test]
fn a_crop_of_the_sample_size_is_the_pixels_themselves() {
    let found = rendered((9, 7), cut(2, 3, 2, 2, false), spec(2, 2, Dtype::U8, Layout::Nhwc), None);
    assert_eq!(found, [23, 24, 25, 33, 34, 35, 24, 25, 26, 34, 35, 36]);
    let mirrored = rendered((9, 7), cut(2, 3, 2, 2, true), spec(2, 2, Dtype::U8, Layout::Nhwc), None);
    assert_eq!(mirrored, [33, 34, 35, 23, 24, 25, 34, 35, 36, 24, 25, 26]);
}

#[test]
fn every_type_and_layout_holds_the_same_values() {
    let view = cut(1, 1, 3, 2, false);
    let nhwc: Vec<u8> = rendered((9, 7), view, spec(3, 2, Dtype::U8, Layout::Nhwc), None);
    let planes = |values: &[f32]| -> Vec<f32> {
        (0..3).flat_map(|c| values.iter().skip(c).step_by(3).copied().collect::<Vec<_>>()).collect()
    };
    let expected: Vec<f32> = nhwc.iter().copied().map(f32::from).collect();
    let half = |bytes: &[u8], is_bf16: bool| -> Vec<f32> {
        let word = |word: &[u8; 2]| match is_bf16 {
            true => half::bf16::from_ne_bytes(*word).to_f32(),
            false => half::f16::from_ne_bytes(*word).to_f32(),
        };
        bytes.as_chunks::<2>().0.iter().map(word).collect()
    };
    for layout in [Layout::Nhwc, Layout::Nchw] {
        let wanted = if layout == Layout::Nhwc { expected.clone() } else { planes(&expected) };
        let of = |dtype| rendered((9, 7), view, spec(3, 2, dtype, layout), None);
        assert_eq!(of(Dtype::U8).into_iter().map(f32::from).collect::<Vec<_>>(), wanted);
        assert_eq!(floats(&of(Dtype::F32)), wanted);
        assert_eq!(half(&of(Dtype::F16), false), wanted);
        assert_eq!(half(&of(Dtype::Bf16), true), wanted);
    }
}

#[test]
fn values_are_normalised_per_channel() {
    let view = cut(0, 0, 1, 1, false);
    let normalize = Normalize { mean: [0.5, 0.25, 0.0], std: [0.5, 0.25, 1.0] };
    let found = floats(&rendered((9, 7), view, spec(1, 1, Dtype::F32, Layout::Nchw), Some(normalize)));
    let wanted = [-1.0, (1.0 / 255.0 - 0.25) / 0.25, 2.0 / 255.0];
    assert!(found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-6), "{found:?}");
    let spec = spec(1, 1, Dtype::U8, Layout::Nchw);
    assert!(Renderer::new(spec, true, Some(normalize)).unwrap_err().to_string().contains("float type"));
    let flat = Normalize { std: [0.0; 3], ..normalize };
    assert!(Renderer::new(ImageSpec { dtype: Dtype::F32, ..spec }, true, Some(flat)).is_err());
}

#[test]
fn a_window_of_a_resized_image_is_that_part_of_it() {
    let (image, resized) = ((24, 20), (12, 10));
    let whole =
        View { crop: Rect { left: 0, top: 0, width: 24, height: 20 }, resized, offset: (0, 0), mirrored: false };
    let all = floats(&rendered(image, whole, spec(12, 10, Dtype::F32, Layout::Nhwc), None));
    let window = View { offset: (3, 4), ..whole };
    let part = floats(&rendered(image, window, spec(5, 2, Dtype::F32, Layout::Nhwc), None));
    for (y, x) in (0..2).flat_map(|y| (0..5).map(move |x| (y, x))) {
        let (at, of) = ((y * 5 + x) * 3, ((y + 4) * 12 + x + 3) * 3);
        assert_eq!(part[at..at + 3], all[of..of + 3]);
    }
    // Inside, where the filter is whole, a ramp stays a ramp: 20 per column and 2 per row.
    assert!((all[(5 * 12 + 6) * 3] - (10.0 * 12.5 + 10.5)).abs() < 1e-3, "{}", all[(5 * 12 + 6) * 3]);
}

#[test]
fn strong_reductions_average_all_pixels() {
    let found = rendered((24, 20), View::whole((24, 20), (1, 1)), spec(1, 1, Dtype::F32, Layout::Nhwc), None);
    let found = floats(&found);
    let weight = |n: u32, x: u32| 1.0 - (f64::from(x) + 0.5 - f64::from(n) / 2.0).abs() / f64::from(n);
    let mean = |n: u32| {
        let sum: f64 = (0..n).map(|x| weight(n, x)).sum();
        (0..n).map(|x| f64::from(x) * weight(n, x) / sum).sum::<f64>()
    };
    let wanted = 10.0 * mean(24) + mean(20);
    assert!((f64::from(found[0]) - wanted).abs() < 1e-2, "{} and {wanted}", found[0]);
}

#[test]
fn views_and_slots_that_do_not_fit_are_errors() {
    let spec = spec(2, 2, Dtype::F32, Layout::Nhwc);
    let rgb = ramp(4, 4);
    let pixels = Pixels { width: 4, height: 4, rgb: &rgb };
    let mut renderer = Renderer::new(spec, true, None).unwrap();
    let mut slot = vec![0; spec.sample_bytes()];
    for view in [cut(3, 0, 2, 2, false), cut(0, 4, 2, 2, false), cut(0, 0, 1, 1, false), cut(u32::MAX, 0, 2, 2, false)]
    {
        assert!(renderer.render(pixels.into(), &view, &[], &mut slot).unwrap_err().to_string().contains("view"));
    }
    assert!(renderer.render(pixels.into(), &cut(0, 0, 2, 2, false), &[], &mut slot[..8]).is_err());
    let short = Pixels { rgb: &rgb[1..], ..pixels };
    assert!(renderer.render(short.into(), &cut(0, 0, 2, 2, false), &[], &mut slot).is_err());
}

#[test]
fn the_pixels_that_a_view_needs_give_the_same_sample() {
    let (width, height) = (24, 20);
    let rgb = ramp(width, height);
    let spec = spec(5, 4, Dtype::F32, Layout::Nhwc);
    let crop = Rect { left: 2, top: 1, width: 20, height: 18 };
    for (resized, offset) in [((5, 4), (0, 0)), ((9, 11), (3, 2)), ((40, 40), (30, 17)), ((20, 18), (15, 14))] {
        for (mirrored, aa) in [(false, true), (true, true), (true, false)] {
            let view = View { crop, resized, offset, mirrored };
            let mut renderer = Renderer::new(spec, aa, None).unwrap();
            let (mut whole, mut part) = (vec![0; spec.sample_bytes()], vec![1; spec.sample_bytes()]);
            renderer.render(Pixels { width, height, rgb: &rgb }.into(), &view, &[], &mut whole).unwrap();
            let at = renderer.needs(&view);
            let row = |y: u32| &rgb[3 * (y * width + at.left) as usize..][..3 * at.width as usize];
            let kept: Vec<u8> = (at.top..at.top + at.height).flat_map(row).copied().collect();
            let src = Part { image: (width, height), at, rgb: &kept };
            renderer.render(src, &view, &[], &mut part).unwrap();
            assert_eq!(part, whole, "{view:?}, antialiased: {aa}");
            let less = Rect { height: at.height - 1, ..at };
            let src = Part { at: less, rgb: &kept[..kept.len() - 3 * at.width as usize], ..src };
            assert!(renderer.render(src, &view, &[], &mut part).unwrap_err().to_string().contains("part of an image"));
        }
    }
}
