//! Order statistics of a few repeats.
//!
//! Benchmarks on shared machines are skewed, so the summary is built on the median; its interval is the
//! distribution-free one between order statistics, which needs no assumption and is honest about few repeats.

use serde::{Deserialize, Serialize};

/// Order statistics of a set of values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Summary {
    /// Number of values.
    pub n: usize,
    /// The smallest value.
    pub min: f64,
    /// The first quartile.
    pub q1: f64,
    /// The median.
    pub median: f64,
    /// The third quartile.
    pub q3: f64,
    /// The largest value.
    pub max: f64,
    /// The arithmetic mean.
    pub mean: f64,
}

impl Summary {
    /// Summarises the values; `None` if there are none or one is NaN.
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.is_empty() || values.iter().any(|v| v.is_nan()) {
            return None;
        }
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        Some(Self {
            n: sorted.len(),
            min: sorted[0],
            q1: quantile(&sorted, 0.25),
            median: quantile(&sorted, 0.5),
            q3: quantile(&sorted, 0.75),
            max: sorted[sorted.len() - 1],
            mean: sorted.iter().sum::<f64>() / sorted.len() as f64,
        })
    }

    /// Half the range divided by the median: the "±" printed after a median. `None` when the median is zero.
    pub fn relative_spread(&self) -> Option<f64> {
        (self.median != 0.0).then(|| (self.max - self.min) / 2.0 / self.median)
    }
}

/// The median of the values; `None` when there are none.
pub fn median(values: &[f64]) -> Option<f64> {
    Summary::of(values).map(|s| s.median)
}

/// The `q`-quantile (0 to 1) of sorted values, linearly interpolated between neighbours (numpy's default).
///
/// # Panics
/// When `sorted` is empty.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    assert!(!sorted.is_empty(), "a quantile needs at least one value");
    let place = q.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let below = place.floor() as usize;
    let above = place.ceil() as usize;
    sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_interpolate_like_numpy() {
        let s = Summary::of(&[4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!((s.min, s.q1, s.median, s.q3, s.max, s.mean), (1.0, 1.75, 2.5, 3.25, 4.0, 2.5));
        assert_eq!(s.relative_spread(), Some(0.6));
    }

    #[test]
    fn nothing_has_no_summary() {
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[1.0, f64::NAN]), None);
    }
}
