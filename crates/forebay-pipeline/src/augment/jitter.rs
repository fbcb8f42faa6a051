//! Random changes of colours: torchvision's `ColorJitter`.

use forebay_format::image::Tint;
use forebay_units::random::{Random, stream_seed};

/// Keeps the draws of colours apart from those of crops, so that one does not change the other.
const STREAM: u64 = 0x6A69_7474_6572;

/// The smallest and the largest factor.
type Range = (f64, f64);

/// Ranges of factors; `None` changes nothing. All changes are made in random order.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Jitter {
    pub brightness: Option<Range>,
    pub contrast: Option<Range>,
    pub saturation: Option<Range>,
    /// Parts of a turn, within -0.5 and 0.5.
    pub hue: Option<Range>,
}

impl Jitter {
    pub(super) fn check(&self) -> Result<(), String> {
        let factors = [("brightness", self.brightness), ("contrast", self.contrast), ("saturation", self.saturation)];
        for (name, range) in factors {
            if let Some((low, high)) = range
                && !(0.0 <= low && low <= high && high.is_finite())
            {
                return Err(format!("{name} is two rising numbers from 0 on, not {low} and {high}"));
            }
        }
        match self.hue {
            Some((low, high)) if !(-0.5 <= low && low <= high && high <= 0.5) => {
                Err(format!("hue is two rising numbers from -0.5 to 0.5, not {low} and {high}"))
            }
            _ => Ok(()),
        }
    }

    /// The changes of a sample in an epoch, in their order.
    pub fn tints(&self, seed: u64, epoch: u64, index: u32) -> Vec<Tint> {
        let mut random = Random::stream(stream_seed(seed ^ STREAM, epoch), u64::from(index));
        let make: [fn(f32) -> Tint; 4] = [Tint::Brightness, Tint::Contrast, Tint::Saturation, Tint::Hue];
        let mut changes =
            [self.brightness, self.contrast, self.saturation, self.hue].into_iter().zip(make).collect::<Vec<_>>();
        random.shuffle(&mut changes);
        let drawn = changes.into_iter().filter_map(|(range, make)| {
            let ((low, high), share) = (range?, random.unit());
            Some(make((low + (high - low) * share) as f32))
        });
        drawn.collect()
    }
}
