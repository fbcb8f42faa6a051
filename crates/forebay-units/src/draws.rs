//! Draws from the usual distributions, the same on every machine.
//!
//! Logarithms are computed here, from operations that IEEE 754 defines to the last bit, because the results of the
//! system's math library differ between versions.

use crate::random::Random;

impl Random {
    /// Uniform in (0, 1), with 53 bits; never 0, because callers take its logarithm.
    pub fn unit(&mut self) -> f64 {
        ((self.bits() >> 11) as f64 + 0.5) * (1.0 / 9_007_199_254_740_992.0)
    }

    /// Between two positive numbers, with a uniformly distributed logarithm.
    pub fn log_uniform(&mut self, low: f64, high: f64) -> f64 {
        high * exp(self.unit() * ln(low / high).min(0.0))
    }

    /// Normal with mean 0 and variance 1, by Marsaglia's polar method; the second value of each pair is discarded.
    pub fn normal(&mut self) -> f64 {
        loop {
            let (x, y) = (2.0 * self.unit() - 1.0, 2.0 * self.unit() - 1.0);
            let s = x * x + y * y;
            if s < 1.0 && s > 0.0 {
                return x * (-2.0 * ln(s) / s).sqrt();
            }
        }
    }

    /// Exponential with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -ln(self.unit())
    }

    /// Gamma with the given shape and scale 1, by Marsaglia and Tsang's method (2000); 0 for a shape of 0.
    pub fn gamma(&mut self, shape: f64) -> f64 {
        if shape <= 0.0 {
            return 0.0;
        }
        if shape < 1.0 {
            let below = self.unit();
            return self.gamma(shape + 1.0) * exp(ln(below) / shape);
        }
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let t = 1.0 + c * x;
            let v = t * t * t;
            if v > 0.0 && ln(self.unit()) < 0.5 * x * x + d - d * v + d * ln(v) {
                return d * v;
            }
        }
    }

    /// Poisson: the number of events in an interval with `mean` expected events.
    ///
    /// Counts exponential gaps, after halving large means with a gamma draw (Ahrens and Dieter, 1974).
    pub fn poisson(&mut self, mean: f64) -> u64 {
        let (mut mean, mut count) = (mean, 0u64);
        while mean > 16.0 {
            let n = (mean * 7.0 / 8.0).floor();
            let waited = self.gamma(n);
            if waited > mean {
                return count + self.binomial(n as u64 - 1, mean / waited);
            }
            count += n as u64;
            mean -= waited;
        }
        let mut left = mean - self.exponential();
        while left > 0.0 {
            count += 1;
            left -= self.exponential();
        }
        count
    }

    fn binomial(&mut self, n: u64, chance: f64) -> u64 {
        (0..n).filter(|_| self.unit() < chance).count() as u64
    }
}

/// The natural logarithm of a positive, normal number: 2·artanh of the mantissa plus the exponent.
fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut exponent = ((bits >> 52) & 0x7FF) as i64 - 1023;
    let mut mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa /= 2.0;
        exponent += 1;
    }
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let square = s * s;
    let sum = (0..12).rev().fold(0.0, |sum, k| sum * square + 1.0 / f64::from(2 * k + 1));
    2.0 * s * sum + exponent as f64 * std::f64::consts::LN_2
}

/// e^x for x ≤ 0: halves x until it is small, sums Taylor's series, and squares back.
fn exp(x: f64) -> f64 {
    if x < -700.0 {
        return 0.0;
    }
    let halvings = (0..).find(|&n| x / f64::from(1u32 << n) > -0.1).unwrap_or(0);
    let small = x / f64::from(1u32 << halvings);
    let series = (1..12).rev().fold(1.0, |sum, k| 1.0 + sum * small / f64::from(k));
    (0..halvings).fold(series, |value, _| value * value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::stream_seed;

    #[test]
    fn logarithm_and_power_agree_with_the_system_library() {
        for x in [1e-300, 1e-9, 0.3, 0.999_999, 1.0, 1.4, 2.0, 3e8] {
            assert!((ln(x) - x.ln()).abs() <= 1e-14 * x.ln().abs().max(0.01), "{x}: {} {}", ln(x), x.ln());
        }
        for x in [-699.0, -30.0, -1.0, -1e-8, 0.0] {
            assert!((exp(x) / x.exp() - 1.0).abs() < 1e-11, "{x}: {} {}", exp(x), x.exp());
        }
    }

    /// Mean and standard deviation of many draws.
    fn moments(mut draw: impl FnMut() -> f64) -> (f64, f64) {
        let n = 40_000;
        let draws: Vec<f64> = (0..n).map(|_| draw()).collect();
        let mean = draws.iter().sum::<f64>() / f64::from(n);
        let square = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / f64::from(n);
        (mean, square.sqrt())
    }

    #[test]
    fn draws_have_the_moments_of_their_law() {
        let mut rng = Random::new(stream_seed(0x7472_6169_6E21_0000, 1));
        let near = |(mean, deviation): (f64, f64), m: f64, d: f64| {
            assert!((mean - m).abs() < 0.03 * d.max(0.1), "mean {mean}, not {m}");
            assert!((deviation / d - 1.0).abs() < 0.03, "deviation {deviation}, not {d}");
        };
        near(moments(|| rng.normal()), 0.0, 1.0);
        near(moments(|| ln(rng.log_uniform(0.5, 2.0))), 0.0, 4.0f64.ln() / 12.0f64.sqrt());
        near(moments(|| rng.unit()), 0.5, (1.0f64 / 12.0).sqrt());
        near(moments(|| rng.exponential()), 1.0, 1.0);
        near(moments(|| rng.gamma(4.0)), 4.0, 2.0);
        near(moments(|| rng.gamma(0.5)), 0.5, 0.5f64.sqrt());
        near(moments(|| rng.poisson(3.0) as f64), 3.0, 3.0f64.sqrt());
        near(moments(|| rng.poisson(224.0) as f64), 224.0, 224.0f64.sqrt());
    }
}
