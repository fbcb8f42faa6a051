//! How long something takes, as a law: DLIO's `computation_time`, `preprocess_time` and `eval_time`.

use serde::{Deserialize, Serialize};

/// A law of times in seconds. What it draws is taken without its sign, as DLIO does.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Time {
    /// A bell; without a deviation always the mean.
    Normal {
        /// Its mean.
        mean: f64,
        /// Its standard deviation.
        stdev: f64,
    },
    /// Evenly between the two.
    Uniform {
        /// From.
        min: f64,
        /// To.
        max: f64,
    },
    /// The sum of `shape` exponential times of mean `scale`.
    Gamma {
        /// Its shape.
        shape: f64,
        /// Its scale.
        scale: f64,
    },
    /// Memoryless.
    Exponential {
        /// Its mean.
        scale: f64,
    },
    /// A whole number of seconds.
    Poisson {
        /// Its mean.
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
