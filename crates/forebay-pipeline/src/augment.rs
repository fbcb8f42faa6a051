//! Augmentation: crops, mirrored images, normalised values, with torchvision's definitions.
//!
//! What happens to a sample is a pure function of the seed, the epoch and the sample, so it does not depend on threads,
//! ranks or batches, and a resumed run repeats it.

use forebay_format::image::{ImageDecoder, ImageSpec, Normalize, Part, Pixels, Rect, Renderer, Tint, View};
use forebay_units::random::{Random, stream_seed};

mod jitter;

use crate::error::SampleError;
use crate::exec::activity::{Activity, Stopwatch};
use crate::map::{Map, MapWorker, Sample, Wants};
use crate::source::PixelShape;

pub use jitter::Jitter;

/// The part of an image that a sample shows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Crop {
    /// All of it, resized to the sample's width and height.
    Whole,
    /// Its centre: resized to this length of the shorter side, then cut. torchvision's `Resize` and `CenterCrop`.
    Center { shorter: u32 },
    /// A random rectangle, resized. torchvision's `RandomResizedCrop`.
    Random {
        /// Smallest and largest share of the image's area.
        scale: (f64, f64),
        /// Smallest and largest width divided by height.
        ratio: (f64, f64),
    },
}

impl Crop {
    /// torchvision's defaults.
    pub const RANDOM: Self = Self::Random { scale: (0.08, 1.0), ratio: (3.0 / 4.0, 4.0 / 3.0) };

    /// The usual evaluation: a sample is 224/256 of the shorter side.
    pub fn center_of(sample: (u32, u32)) -> Self {
        let longer = u64::from(sample.0.max(sample.1));
        Self::Center { shorter: ((longer * 256 + 112) / 224).min(u64::from(u32::MAX)) as u32 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Augment {
    pub crop: Crop,
    /// Probability that left and right are exchanged.
    pub flip: f64,
    /// Whether reductions are filtered, as torchvision and Pillow do; otherwise as TensorFlow does by default.
    pub antialias: bool,
    /// Random changes of colours, after the resize.
    pub jitter: Option<Jitter>,
    pub normalize: Option<Normalize>,
    pub seed: u64,
}

impl Augment {
    /// Whether the numbers are usable with samples of this kind.
    ///
    /// # Errors
    /// The reason why not.
    pub fn check(&self, spec: ImageSpec) -> Result<(), String> {
        if !(0.0..=1.0).contains(&self.flip) {
            return Err(format!("a flip probability is from 0 to 1, not {}", self.flip));
        }
        self.jitter.map_or(Ok(()), |jitter| jitter.check())?;
        match self.crop {
            Crop::Whole => {}
            Crop::Center { shorter } => {
                let longer = spec.width.max(spec.height);
                if shorter < longer {
                    return Err(format!("the shorter side is resized to {shorter}, less than the sample's {longer}"));
                }
            }
            Crop::Random { scale: (low, high), ratio: (narrow, wide) } => {
                if !(low > 0.0 && low <= high && high <= 1.0) {
                    return Err(format!(
                        "a crop's scale is two rising numbers above 0 and up to 1, not {low} and {high}"
                    ));
                }
                if !(narrow > 0.0 && narrow <= wide && wide.is_finite()) {
                    return Err(format!("a crop's ratio is two rising numbers above 0, not {narrow} and {wide}"));
                }
            }
        }
        Renderer::new(spec, self.antialias, self.normalize).map(drop).map_err(|error| error.to_string())
    }

    fn is_random(&self) -> bool {
        matches!(self.crop, Crop::Random { .. }) || self.flip > 0.0 || self.jitter.is_some()
    }

    /// The changes of colours of sample `index` in epoch `epoch`.
    pub fn tints(&self, epoch: u64, index: u32) -> Vec<Tint> {
        self.jitter.map_or_else(Vec::new, |jitter| jitter.tints(self.seed, epoch, index))
    }

    /// What sample `index` shows in epoch `epoch`, of an image of this size.
    pub fn view(&self, image: (u32, u32), sample: (u32, u32), epoch: u64, index: u32) -> View {
        // One seed per epoch, one stream per sample.
        let mut random = Random::stream(stream_seed(self.seed, epoch), u64::from(index));
        let view = match self.crop {
            Crop::Whole => View::whole(image, sample),
            Crop::Center { shorter } => center(image, sample, shorter),
            Crop::Random { scale, ratio } => {
                let crop = random_crop(&mut random, image, scale, ratio);
                View { crop, ..View::whole(image, sample) }
            }
        };
        View { mirrored: self.flip > 0.0 && random.unit() < self.flip, ..view }
    }
}

/// `Resize` takes the integer part of the longer side; `CenterCrop` rounds halves to even.
fn center(image: (u32, u32), sample: (u32, u32), shorter: u32) -> View {
    let longer = |long: u32, short: u32| {
        (u64::from(shorter) * u64::from(long) / u64::from(short)).min(u64::from(u32::MAX)) as u32
    };
    let resized = match image.0 <= image.1 {
        true => (shorter, longer(image.1, image.0)),
        false => (longer(image.0, image.1), shorter),
    };
    let offset = |all: u32, part: u32| (f64::from(all - part) / 2.0).round_ties_even() as u32;
    let offset = (offset(resized.0, sample.0), offset(resized.1, sample.1));
    View { resized, offset, ..View::whole(image, sample) }
}

/// Up to ten attempts, then the largest centred rectangle of an allowed ratio.
fn random_crop(random: &mut Random, image: (u32, u32), scale: (f64, f64), ratio: (f64, f64)) -> Rect {
    let (width, height) = (f64::from(image.0), f64::from(image.1));
    for _ in 0..10 {
        let area = width * height * (scale.0 + (scale.1 - scale.0) * random.unit());
        let aspect = random.log_uniform(ratio.0, ratio.1);
        let (w, h) = ((area * aspect).sqrt().round_ties_even(), (area / aspect).sqrt().round_ties_even());
        if w > 0.0 && w <= width && h > 0.0 && h <= height {
            let (w, h) = (w as u32, h as u32);
            let top = random.below(u64::from(image.1 - h) + 1) as u32;
            let left = random.below(u64::from(image.0 - w) + 1) as u32;
            return Rect { left, top, width: w, height: h };
        }
    }
    let own = width / height;
    let (w, h) = match () {
        () if own < ratio.0 => (image.0, ((width / ratio.0).round_ties_even() as u32).clamp(1, image.1)),
        () if own > ratio.1 => (((height * ratio.1).round_ties_even() as u32).clamp(1, image.0), image.1),
        () => image,
    };
    Rect { left: (image.0 - w) / 2, top: (image.1 - h) / 2, width: w, height: h }
}

/// Decodes images, or takes samples that are already pixels, and augments them.
#[derive(Debug, Clone)]
pub struct AugmentImage {
    pub spec: ImageSpec,
    pub augment: Augment,
    /// The shape of samples that are already pixels.
    pub pixels: Option<PixelShape>,
}

impl Map for AugmentImage {
    fn sample_bytes(&self) -> usize {
        self.spec.sample_bytes()
    }

    fn worker(&self) -> Box<dyn MapWorker> {
        let renderer = Renderer::new(self.spec, self.augment.antialias, self.augment.normalize);
        // Each sample of a map that was never checked fails with the reason.
        let renderer = renderer.map_err(|error| error.to_string());
        Box::new(AugmentWorker { map: self.clone(), decoder: ImageDecoder::new(self.spec), renderer })
    }

    fn wants(&self) -> Wants {
        if self.pixels.is_none() { Wants::Image } else { Wants::Any }
    }

    fn varies(&self) -> bool {
        self.augment.is_random()
    }

    fn description(&self) -> Option<String> {
        Some(format!("{self:?}"))
    }
}

struct AugmentWorker {
    map: AugmentImage,
    decoder: ImageDecoder,
    renderer: Result<Renderer, String>,
}

impl MapWorker for AugmentWorker {
    fn map(&mut self, sample: Sample<'_>, slot: &mut [u8], watch: &mut Stopwatch) -> Result<(), SampleError> {
        let renderer = self.renderer.as_mut().map_err(|reason| SampleError::Refused(reason.clone()))?;
        let (augment, wanted) = (&self.map.augment, (self.map.spec.width, self.map.spec.height));
        let view = |image: (u32, u32)| augment.view(image, wanted, sample.epoch, sample.index);
        let part = match self.map.pixels {
            Some(shape) => Part::from(Pixels { width: shape.width, height: shape.height, rgb: sample.bytes }),
            None => {
                watch.enter(Activity::Decoding);
                self.decoder.decode_part(sample.bytes, |image| renderer.needs(&view(image)))?
            }
        };
        watch.enter(Activity::Resizing);
        let tints = augment.tints(sample.epoch, sample.index);
        renderer.render(part, &view(part.image), &tints, slot)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
