//! Durations as probability distributions: DLIO's `computation_time`, `preprocess_time` and `eval_time`.

use serde::{Deserialize, Serialize};

/// A distribution of times in seconds. As in DLIO, the absolute value of each draw is used.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Time {
    /// Normal; without a deviation always the mean.
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
    /// A whole number of seconds, so only useful for means of several seconds.
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
    /// The mean, before taking absolute values.
    pub fn mean(&self) -> f64 {
        match *self {
            Self::Normal { mean, .. } => mean,
            Self::Uniform { min, max } => (min + max) / 2.0,
            Self::Gamma { shape, scale } => shape * scale,
            Self::Exponential { scale } => scale,
            Self::Poisson { lam } => lam,
        }
    }

    /// Whether it is always zero.
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }
}
