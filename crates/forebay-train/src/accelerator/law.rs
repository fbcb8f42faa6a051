//! The distribution of step times of an emulated accelerator.

use std::fmt;
use std::time::Duration;

use forebay_units::random::Random;

/// Poisson-distributed times are whole multiples of this.
const TICK: Duration = Duration::from_millis(1);

/// A distribution of step times. Draws are never negative: a negative draw of the normal distribution is repeated.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Law {
    Constant(Duration),
    Uniform(Duration, Duration),
    /// Normal distribution with a mean and a standard deviation.
    Normal(Duration, Duration),
    Exponential(Duration),
    /// The sum of `shape` exponential times of mean `scale`.
    Gamma(f64, Duration),
    /// A whole number of milliseconds, Poisson-distributed with a mean.
    Poisson(Duration),
}

impl Law {
    /// Mean step time. For the normal distribution, the mean before negative draws are rejected.
    pub fn mean(&self) -> Duration {
        match self {
            Self::Constant(mean) | Self::Normal(mean, _) | Self::Exponential(mean) | Self::Poisson(mean) => *mean,
            Self::Uniform(from, to) => (*from + *to) / 2,
            Self::Gamma(shape, scale) => scale.mul_f64(*shape),
        }
    }

    pub(super) fn draw(&self, rng: &mut Random) -> Duration {
        match self {
            Self::Constant(time) => *time,
            Self::Uniform(from, to) => *from.min(to) + from.abs_diff(*to).mul_f64(rng.unit()),
            Self::Normal(mean, deviation) => loop {
                let seconds = mean.as_secs_f64() + deviation.as_secs_f64() * rng.normal();
                if seconds >= 0.0 {
                    break Duration::from_secs_f64(seconds);
                }
            },
            Self::Exponential(mean) => mean.mul_f64(rng.exponential()),
            Self::Gamma(shape, scale) => scale.mul_f64(rng.gamma(*shape)),
            Self::Poisson(mean) => TICK * rng.poisson(mean.as_secs_f64() / TICK.as_secs_f64()) as u32,
        }
    }
}

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(time) => write!(f, "{time:?}"),
            Self::Uniform(from, to) => write!(f, "uniform({from:?},{to:?})"),
            Self::Normal(mean, deviation) => write!(f, "normal({mean:?},{deviation:?})"),
            Self::Exponential(mean) => write!(f, "exponential({mean:?})"),
            Self::Gamma(shape, scale) => write!(f, "gamma({shape},{scale:?})"),
            Self::Poisson(mean) => write!(f, "poisson({mean:?})"),
        }
    }
}
