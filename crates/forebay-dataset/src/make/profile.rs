//! The imitated datasets: sizes, shapes and classes.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// ImageNet's training set: median 112 KB, quartiles about 80 and 157 KB, about 480×415 pixels.
    Imagenet,
    /// Caltech-101 with its background class: 102 folders, median 12 KB, mean 14 KB, about 300×200 to 300×300 pixels.
    Caltech101,
}

pub(super) struct Figures {
    pub(super) count: u64,
    pub(super) median_bytes: u64,
    /// Standard deviation of the size's natural logarithm.
    pub(super) sigma: f64,
    /// Width, height and frequency of the usual shapes.
    pub(super) shapes: &'static [(u32, u32, u32)],
}

/// Most photographs of ImageNet have 500 pixels on their longer side; the largest files get more, and the mean becomes
/// about 485×420.
const IMAGENET: Figures = Figures {
    count: 1024,
    median_bytes: 112_000,
    sigma: 0.5,
    shapes: &[
        (500, 375, 46),
        (375, 500, 17),
        (500, 333, 13),
        (333, 500, 7),
        (500, 500, 6),
        (640, 480, 4),
        (400, 300, 7),
    ],
};

/// A log-normal distribution with median 12 KB and sigma 0.555 has mean 14 KB.
const CALTECH101: Figures = Figures {
    count: 9144,
    median_bytes: 12_000,
    sigma: 0.555,
    shapes: &[
        (300, 200, 35),
        (300, 225, 20),
        (300, 240, 8),
        (300, 300, 12),
        (200, 300, 10),
        (240, 300, 5),
        (300, 180, 10),
    ],
};

/// Pictures of Caltech-101's twelve largest classes, its background class first; the other ninety have 99 down to 31.
const CALTECH101_LARGEST: [u64; 12] = [467, 800, 798, 435, 435, 239, 200, 128, 123, 114, 107, 100];
/// The 101 categories and the background.
const CALTECH101_CLASSES: usize = 102;

impl Profile {
    pub const ALL: [Self; 2] = [Self::Imagenet, Self::Caltech101];

    /// The name used in flags and records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Imagenet => "imagenet",
            Self::Caltech101 => "caltech101",
        }
    }

    pub(super) fn figures(self) -> &'static Figures {
        match self {
            Self::Imagenet => &IMAGENET,
            Self::Caltech101 => &CALTECH101,
        }
    }

    /// Default number of classes: ImageNet's thousand, but at least sixteen pictures per class.
    pub(super) fn usual_classes(self, count: u64) -> u32 {
        match self {
            Self::Imagenet => (count / 16).clamp(1, 1000) as u32,
            Self::Caltech101 => CALTECH101_CLASSES as u32,
        }
    }

    /// Name of the folder of class `label`.
    pub(super) fn folder(self, label: u32) -> String {
        match self {
            Self::Imagenet => format!("n{label:04}"),
            Self::Caltech101 if label == 0 => "background".to_owned(),
            Self::Caltech101 => format!("class_{label:03}"),
        }
    }

    /// The labels of successive pictures, to be repeated: every class as often as in the original, evenly mixed.
    pub(super) fn labels(self, classes: u32) -> Vec<u32> {
        match self {
            Self::Caltech101 if classes as usize == CALTECH101_CLASSES => evenly_mixed(&caltech_sizes()),
            _ => (0..classes).collect(),
        }
    }
}

impl FromStr for Profile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|profile| profile.name() == text);
        known.ok_or_else(|| format!("\"{text}\" is not one of imagenet, caltech101"))
    }
}

/// Pictures per class; 9,144 in all.
fn caltech_sizes() -> Vec<u64> {
    let small = (CALTECH101_CLASSES - CALTECH101_LARGEST.len()) as u64;
    // Between a line and a parabola from 99 to 31, close to the true sizes; the remainder is spread evenly.
    let tail = (0..small).rev().map(|k| 31 + (136 * k * k / small + 68 * k) / (3 * small));
    let mut sizes: Vec<u64> = CALTECH101_LARGEST.into_iter().chain(tail).collect();
    let missing = CALTECH101.count - sizes.iter().sum::<u64>();
    (0..missing).for_each(|step| sizes[CALTECH101_LARGEST.len() + (step % (small - 1)) as usize] += 1);
    sizes
}

/// Smooth weighted round robin: each step picks the class that is furthest behind its share.
fn evenly_mixed(sizes: &[u64]) -> Vec<u32> {
    let total: i64 = sizes.iter().sum::<u64>() as i64;
    let mut credit = vec![0i64; sizes.len()];
    let serve = |_| {
        credit.iter_mut().zip(sizes).for_each(|(credit, &size)| *credit += size as i64);
        // Ties go to the first class.
        let next = (0..credit.len()).rev().max_by_key(|&class| credit[class]).unwrap_or(0);
        credit[next] -= total;
        next as u32
    };
    (0..total).map(serve).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caltech_has_102_classes_and_9144_pictures() {
        let sizes = caltech_sizes();
        assert_eq!((sizes.len(), sizes.iter().sum::<u64>()), (102, 9144));
        assert_eq!((sizes.iter().min(), sizes.iter().max()), (Some(&31), Some(&800)));
        let labels = Profile::Caltech101.labels(102);
        for (class, &size) in sizes.iter().enumerate() {
            assert_eq!(labels.iter().filter(|&&label| label as usize == class).count() as u64, size);
        }
    }

    #[test]
    fn a_part_of_the_labels_has_the_same_mix() {
        let labels = Profile::Caltech101.labels(102);
        let largest = labels.iter().take(1000).filter(|&&label| label == 1).count();
        assert!((87..=88).contains(&largest), "{largest} of class 1 in the first 1000");
    }

    #[test]
    fn names_parse_back() {
        for profile in Profile::ALL {
            assert_eq!(profile.name().parse(), Ok(profile));
        }
        assert_eq!("cifar".parse::<Profile>(), Err("\"cifar\" is not one of imagenet, caltech101".to_owned()));
    }
}
