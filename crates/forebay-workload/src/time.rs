//! How long something takes, as a law: DLIO's `computation_time`, `preprocess_time` and `eval_time`.

use serde::{Deserialize, Serialize};

/// A law of times in seconds. What it draws is taken without its sign, as DLIO does.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Time {
    /// A bell; without a deviation always the mean.
    Normal {
        mean: f64,
        stdev: f64,
    },
    Uniform {
        min: f64,
        max: f64,
    },
    /// The sum of `shape` exponential times of mean `scale`.
    Gamma {
        shape: f64,
        scale: f64,
    },
    Exponential {
        /// The mean, under NumPy's name for it.
        scale: f64,
    },
    /// A whole number of seconds, so only means of several seconds are of use.
    Poisson {
        /// The mean, under NumPy's name for it.
        lam: f64,
    },
}

impl Default for Time {
    fn default() -> Self {
        Self::Normal { mean: 0.0, stdev: 0.0 }
    }
}

impl Time {
    /// The mean, before the sign is dropped.
    pub fn mean(&self) -> f64 {
        match *self {
            Self::Normal { mean, .. } => mean,
            Self::Uniform { min, max } => (min + max) / 2.0,
            Self::Gamma { shape, scale } => shape * scale,
            Self::Exponential { scale } => scale,
            Self::Poisson { lam } => lam,
        }
    }

    /// Whether it takes no time at all.
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }
}
