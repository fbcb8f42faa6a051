//! Changes of brightness, contrast, saturation and hue, by the definitions of torchvision for images of bytes.
//!
//! Each change gives bytes again: values are cut off at 0 and 255 and lose their fraction, as there. The grey of a pixel is
//! 0.2989 red + 0.587 green + 0.114 blue; contrast is relative to the mean grey of the image. Hue turns in HSV.

/// One change of an image's colours.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Tint {
    /// Every value times this.
    Brightness(f32),
    /// 0 for the image's mean grey everywhere, 1 for the image.
    Contrast(f32),
    /// 0 for greys, 1 for the image.
    Saturation(f32),
    /// Part of a turn, from -0.5 to 0.5.
    Hue(f32),
}

impl Tint {
    /// Changes interleaved red, green and blue in place.
    pub fn apply(self, rgb: &mut [u8]) {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: both were detected.
            return unsafe { self.apply_fused(rgb) };
        }
        self.change(rgb);
    }

    /// With one instruction for a product and a sum, instead of a call of the C library.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    fn apply_fused(self, rgb: &mut [u8]) {
        self.change(rgb);
    }

    #[inline(always)]
    fn change(self, rgb: &mut [u8]) {
        let pixels = rgb.as_chunks_mut::<3>().0;
        match self {
            Self::Brightness(factor) => {
                pixels.as_flattened_mut().iter_mut().for_each(|value| *value = to_byte(f32::from(*value) * factor));
            }
            Self::Contrast(factor) => {
                let sum: u64 = pixels.iter().map(|pixel| u64::from(grey(*pixel) as u32)).sum();
                let mean = (sum as f64 / pixels.len().max(1) as f64) as f32;
                let rest = rest(factor);
                pixels.as_flattened_mut().iter_mut().for_each(|value| *value = blend(*value, factor, mean, rest));
            }
            Self::Saturation(factor) => {
                let rest = rest(factor);
                pixels.iter_mut().for_each(|pixel| {
                    let grey = grey(*pixel);
                    *pixel = pixel.map(|value| blend(value, factor, grey, rest));
                });
            }
            Self::Hue(0.0) => {}
            Self::Hue(turn) => pixels.iter_mut().for_each(|pixel| *pixel = turned(*pixel, turn)),
        }
    }
}

/// A float loses its fraction; what is out of range is cut off.
#[inline(always)]
fn to_byte(value: f32) -> u8 {
    value as u8
}

/// 1 less a factor, rounded once.
fn rest(factor: f32) -> f32 {
    (1.0 - f64::from(factor)) as f32
}

/// The grey of a pixel, without its fraction. Products and sums are rounded together, as PyTorch does.
#[inline(always)]
fn grey([red, green, blue]: [u8; 3]) -> f32 {
    f32::from(blue).mul_add(0.114, f32::from(green).mul_add(0.587, f32::from(red) * 0.2989)).floor()
}

#[inline(always)]
fn blend(value: u8, factor: f32, other: f32, rest: f32) -> u8 {
    to_byte(other.mul_add(rest, f32::from(value) * factor))
}

#[inline(always)]
fn turned(pixel: [u8; 3], turn: f32) -> [u8; 3] {
    let [red, green, blue] = pixel.map(|value| f32::from(value) * (1.0 / 255.0));
    let (least, most) = (red.min(green).min(blue), red.max(green).max(blue));
    let range = most - least;
    let saturation = if range == 0.0 { range } else { range / most };
    let away = |value: f32| (most - value) / if range == 0.0 { 1.0 } else { range };
    let hue = match () {
        () if most == red => away(blue) - away(green),
        () if most == green => away(red) + 2.0 - away(blue),
        () => away(green) + 4.0 - away(red),
    };
    let hue = ((hue * (1.0 / 6.0) + 1.0) % 1.0 + turn).rem_euclid(1.0) * 6.0;
    let (sector, part) = (hue.floor(), hue - hue.floor());
    let by = saturation * part;
    let value = most;
    let low = ((1.0 - saturation) * value).clamp(0.0, 1.0);
    let falling = ((1.0 - by) * value).clamp(0.0, 1.0);
    let rising = ((by + (1.0 - saturation)) * value).clamp(0.0, 1.0);
    let turned = match sector as i32 % 6 {
        0 => [value, rising, low],
        1 => [falling, value, low],
        2 => [low, value, rising],
        3 => [low, falling, value],
        4 => [rising, low, value],
        _ => [value, low, falling],
    };
    // torchvision's scale from 0..=1 to bytes.
    turned.map(|value| to_byte(value * 255.999))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tinted(tint: Tint, mut rgb: Vec<u8>) -> Vec<u8> {
        tint.apply(&mut rgb);
        rgb
    }

    /// Worked out by hand from the definitions.
    #[test]
    fn each_change_is_as_it_is_defined() {
        let rgb = vec![10, 100, 200, 255, 0, 51];
        assert_eq!(tinted(Tint::Brightness(1.5), rgb.clone()), [15, 150, 255, 255, 0, 76]);
        // Greys 84 (2.989 + 58.7 + 22.8) and 82 (76.2195 + 5.814), their mean 83.
        assert_eq!(tinted(Tint::Contrast(0.5), rgb.clone()), [46, 91, 141, 169, 41, 67]);
        assert_eq!(tinted(Tint::Saturation(0.0), rgb.clone()), [84, 84, 84, 82, 82, 82]);
        assert_eq!(tinted(Tint::Saturation(2.0), rgb.clone()), [0, 116, 255, 255, 0, 20]);
        // A third of a turn makes red green.
        assert_eq!(tinted(Tint::Hue(1.0 / 3.0), vec![255, 0, 0, 9, 9, 9]), [0, 255, 0, 9, 9, 9]);
        assert_eq!(tinted(Tint::Hue(0.5), vec![200, 100, 100]), [100, 200, 200]);
    }

    #[test]
    fn factors_that_change_nothing_change_nothing() {
        let rgb: Vec<u8> = (0..=254).flat_map(|i: u8| [i, i.wrapping_mul(7), i.wrapping_mul(31)]).collect();
        for tint in [Tint::Brightness(1.0), Tint::Contrast(1.0), Tint::Saturation(1.0), Tint::Hue(0.0)] {
            assert_eq!(tinted(tint, rgb.clone()), rgb, "{tint:?}");
        }
        // A whole turn there and back costs at most a grey level.
        let back = tinted(Tint::Hue(-0.2), tinted(Tint::Hue(0.2), rgb.clone()));
        assert!(rgb.iter().zip(back).all(|(one, other)| one.abs_diff(other) <= 3));
    }
}
