//! From a specification to the name, size and shape of every picture.
//!
//! Picture *i* depends only on the seed, the parameters and *i*. File sizes are quantiles of a log-normal distribution
//! taken in the order of a golden-ratio sequence, so that any run of pictures, however short, follows the distribution
//! far more closely than independent draws would: the median of *n* files is off by about 1/*n*, not 1/√*n*.

use std::path::PathBuf;

use forebay_units::Bytes;
use forebay_units::random::{GOLDEN, mix};
use serde::{Deserialize, Serialize};

use super::mix::SizeMix;
use super::profile::Profile;
use crate::exact::{exp2, normal_quantile};
use crate::rng::Rng;
use crate::synth::Shot;
use crate::{Error, Result};

/// Allowed median sizes. A JPEG's headers alone take 623 bytes.
const MEDIANS: (u64, u64) = (2_000, 16_000_000);
/// Shares of the distribution that are cut off at either end.
const CUT: f64 = 0.005;
/// Bits per pixel beyond which a picture gets other dimensions than the profile's.
const DENSITIES: (f64, f64) = (0.5, 6.0);
/// JPEG's frame header has 16 bits per side.
const SIDE_MAX: u32 = 65_535;

/// The requested dataset; `None` means the profile's value.
#[derive(Clone, Debug, PartialEq)]
pub struct MakeSpec {
    pub profile: Profile,
    /// Number of pictures. ImageNet's default is 1,024, Caltech-101's is 9,144.
    pub count: Option<u64>,
    /// The same seed gives the same bytes.
    pub seed: u64,
    /// Median file size; dimensions grow and shrink with it.
    pub median_size: Option<Bytes>,
    /// Standard deviation of the natural logarithm of the file size.
    pub sigma: Option<f64>,
    /// A histogram of the file sizes, instead of a median and a spread.
    pub sizes: Option<SizeMix>,
    /// Width and height of all pictures, instead of the profile's mix.
    pub dimensions: Option<(u32, u32)>,
    pub classes: Option<u32>,
}

impl MakeSpec {
    /// The unchanged profile, with seed 0.
    pub fn new(profile: Profile) -> Self {
        let (median_size, sigma, sizes) = (None, None, None);
        Self { profile, count: None, seed: 0, median_size, sigma, sizes, dimensions: None, classes: None }
    }
}

/// Everything that determines the bytes of a dataset; stored in its folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parameters {
    /// Version of the generator: pictures of one version never change.
    pub generator: u32,
    pub profile: Profile,
    pub count: u64,
    pub seed: u64,
    pub median_bytes: u64,
    /// Standard deviation of the natural logarithm of the file size.
    pub sigma: f64,
    /// The histogram of the file sizes; the median follows from it, and sigma has no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sizes: Option<SizeMix>,
    /// Width and height of all pictures, if not the profile's mix.
    pub dimensions: Option<(u32, u32)>,
    pub classes: u32,
}

/// A validated plan: every picture can be named and made.
#[derive(Clone, Debug)]
pub struct MakePlan {
    parameters: Parameters,
    /// The classes of successive pictures, to be repeated.
    classes: Vec<u32>,
    /// The classes with at least one picture, in order: a picture's label is the index of its class here, as in any tree of
    /// folders.
    present: Vec<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    pub path: PathBuf,
    pub label: u32,
    pub shot: Shot,
}

impl MakePlan {
    /// Validates the specification.
    ///
    /// # Errors
    /// [`Error::Parameter`] with the invalid value.
    pub fn new(spec: &MakeSpec) -> Result<Self> {
        let figures = spec.profile.figures();
        let count = spec.count.unwrap_or(figures.count);
        if let (Some(sizes), true) = (&spec.sizes, spec.median_size.is_some() || spec.sigma.is_some()) {
            check("sizes", sizes, false, "have a median and a spread of their own: give one or the other")?;
        }
        let of_sizes = spec.sizes.as_ref().map(|sizes| Bytes(sizes.size_at(0.5)));
        let median = spec.median_size.or(of_sizes).unwrap_or(Bytes(figures.median_bytes));
        let sigma = spec.sigma.unwrap_or(figures.sigma);
        let classes = spec.classes.unwrap_or(spec.profile.usual_classes(count));
        check("count", count, count > 0, "must be at least 1")?;
        check("median size", median, (MEDIANS.0..=MEDIANS.1).contains(&median.0), "must be 2 KB to 16 MB")?;
        check("sigma", sigma, (0.0..=1.5).contains(&sigma), "must be 0 to 1.5")?;
        check("classes", classes, (1..=100_000).contains(&classes), "must be 1 to 100,000")?;
        if let Some((width, height)) = spec.dimensions {
            let fits = |side: u32| (8..=16_384).contains(&side);
            check("dimensions", format!("{width}x{height}"), fits(width) && fits(height), "must be 8 to 16,384 each")?;
        }
        let parameters = Parameters {
            generator: 1,
            profile: spec.profile,
            count,
            seed: spec.seed,
            median_bytes: median.0,
            sigma,
            sizes: spec.sizes.clone(),
            dimensions: spec.dimensions,
            classes,
        };
        let classes = spec.profile.labels(classes);
        let used = usize::try_from(count).unwrap_or(usize::MAX).min(classes.len());
        let mut present = classes[..used].to_vec();
        present.sort_unstable();
        present.dedup();
        Ok(Self { parameters, classes, present })
    }

    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    pub fn count(&self) -> u64 {
        self.parameters.count
    }

    /// Expected size of all files, within a few per cent.
    pub fn expected_bytes(&self) -> Bytes {
        Bytes((0..self.count()).map(|index| self.target(index)).sum())
    }

    /// Folders of the classes that have at least one picture, in the order of their labels.
    pub fn folders(&self) -> Vec<String> {
        self.present.iter().map(|&class| self.parameters.profile.folder(class)).collect()
    }

    pub fn picture(&self, index: u64) -> Picture {
        let class = self.classes[(index % self.classes.len() as u64) as usize];
        let label = self.present.binary_search(&class).expect("a class of a picture is present") as u32;
        let folder = self.parameters.profile.folder(class);
        let path = PathBuf::from(format!("{folder}/{folder}_{index:06}.jpg"));
        let bytes = self.target(index);
        let (width, height) = self.parameters.dimensions.unwrap_or_else(|| self.shape(index, bytes));
        Picture { path, label, shot: Shot { seed: self.parameters.seed, index, width, height, bytes } }
    }

    fn target(&self, index: u64) -> u64 {
        let place = mix(self.parameters.seed).wrapping_add(index.wrapping_mul(GOLDEN));
        let quantile = (place >> 11) as f64 / (1u64 << 53) as f64;
        if let Some(sizes) = &self.parameters.sizes {
            return sizes.size_at(quantile);
        }
        let deviation = normal_quantile(quantile.clamp(CUT, 1.0 - CUT));
        let factor = exp2(self.parameters.sigma * deviation * std::f64::consts::LOG2_E);
        ((self.parameters.median_bytes as f64 * factor) as u64).max(1_000)
    }

    /// Width and height: one of the profile's shapes, scaled with the requested median.
    fn shape(&self, index: u64, bytes: u64) -> (u32, u32) {
        let figures = self.parameters.profile.figures();
        let mut draw = Rng::new(self.parameters.seed ^ 0x53_4841_5045, index);
        let mut left = draw.below(figures.shapes.iter().map(|shape| shape.2).sum());
        let chosen = figures.shapes.iter().find(|shape| {
            let hit = left < shape.2;
            left = left.wrapping_sub(shape.2);
            hit
        });
        let &(width, height, _) = chosen.expect("the draw is below the sum of the weights");
        let (width, height) = (f64::from(width), f64::from(height));
        let pixels = width * height * growth(self.parameters.median_bytes as f64 / figures.median_bytes as f64);
        let density = 8.0 * bytes as f64 / pixels;
        let wanted = pixels * density / density.clamp(DENSITIES.0, DENSITIES.1);
        let factor = (wanted / (width * height)).sqrt();
        let side = |length: f64| ((length * factor + 0.5) as u32).clamp(8, SIDE_MAX);
        (side(width), side(height))
    }
}

/// How the number of pixels grows with the file size: small pictures have fewer bits per pixel, large ones the same.
fn growth(ratio: f64) -> f64 {
    exp2(crate::exact::log2(ratio) * if ratio < 1.0 { 0.85 } else { 1.05 })
}

fn check(parameter: &'static str, value: impl ToString, holds: bool, reason: &'static str) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::Parameter { parameter, value: value.to_string(), reason }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(spec: MakeSpec) -> MakePlan {
        MakePlan::new(&spec).unwrap()
    }

    fn median(mut values: Vec<u64>) -> u64 {
        values.sort_unstable();
        values[values.len() / 2]
    }

    #[test]
    fn planned_sizes_follow_the_distribution_even_in_small_sets() {
        for count in [25, 400] {
            let plan = plan(MakeSpec { count: Some(count), seed: 9, ..MakeSpec::new(Profile::Caltech101) });
            let sizes: Vec<u64> = (0..count).map(|i| plan.picture(i).shot.bytes).collect();
            let mean = sizes.iter().sum::<u64>() / count;
            let middle = median(sizes);
            assert!((11_400..12_600).contains(&middle), "median {middle} of {count}");
            assert!((13_000..15_000).contains(&mean), "mean {mean} of {count}");
        }
    }

    #[test]
    fn imagenet_pictures_have_imagenets_mean_dimensions() {
        let plan = plan(MakeSpec::new(Profile::Imagenet));
        let shots: Vec<Shot> = (0..1024).map(|i| plan.picture(i).shot).collect();
        let mean = |side: fn(&Shot) -> u32| shots.iter().map(|shot| f64::from(side(shot))).sum::<f64>() / 1024.0;
        let (width, height) = (mean(|shot| shot.width), mean(|shot| shot.height));
        assert!((width - 484.0).abs() < 25.0 && (height - 420.0).abs() < 25.0, "{width}x{height}");
    }

    #[test]
    fn dimensions_grow_with_the_median_size() {
        let area = |median| {
            let plan = plan(MakeSpec { median_size: Some(Bytes(median)), ..MakeSpec::new(Profile::Imagenet) });
            let shot = plan.picture(0).shot;
            shot.width * shot.height
        };
        assert!(area(4_000) < area(112_000) / 10 && area(1_000_000) > 7 * area(112_000));
    }

    #[test]
    fn a_picture_does_not_depend_on_how_many_there_are() {
        let few = plan(MakeSpec { count: Some(10), classes: Some(4), ..MakeSpec::new(Profile::Imagenet) });
        let many = plan(MakeSpec { count: Some(1000), classes: Some(4), ..MakeSpec::new(Profile::Imagenet) });
        assert_eq!(few.picture(7), many.picture(7));
        assert_eq!(few.picture(7).path, PathBuf::from("n0003/n0003_000007.jpg"));
    }

    #[test]
    fn impossible_values_are_refused_by_name() {
        let refuse = |spec: MakeSpec| MakePlan::new(&spec).unwrap_err().to_string();
        let base = || MakeSpec::new(Profile::Imagenet);
        assert_eq!(refuse(MakeSpec { count: Some(0), ..base() }), "count 0: must be at least 1");
        let tiny = MakeSpec { median_size: Some(Bytes(500)), ..base() };
        assert_eq!(refuse(tiny), "median size 500 B: must be 2 KB to 16 MB");
        assert_eq!(refuse(MakeSpec { sigma: Some(-1.0), ..base() }), "sigma -1: must be 0 to 1.5");
        let flat = MakeSpec { dimensions: Some((0, 5)), ..base() };
        assert_eq!(refuse(flat), "dimensions 0x5: must be 8 to 16,384 each");
    }
}
