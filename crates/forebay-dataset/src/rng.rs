//! Random draws for images: one stream per image, so image *i* does not depend on image *i − 1*.

use forebay_units::random::Random;

#[derive(Clone, Debug)]
pub(crate) struct Rng(Random);

impl Rng {
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        Self(Random::stream(seed ^ 0x666F_7265_6261_7921, stream))
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0.bits()
    }

    /// Uniform in `0..n`; the bias of at most n/2³² does not matter here.
    pub(crate) fn below(&mut self, n: u32) -> u32 {
        (((self.bits() >> 32) * u64::from(n)) >> 32) as u32
    }

    /// Uniform in `[0, 1)`, with 24 bits.
    pub(crate) fn unit(&mut self) -> f32 {
        (self.bits() >> 40) as f32 * (1.0 / 16_777_216.0)
    }

    /// Uniform in `[low, high)`.
    pub(crate) fn between(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * self.unit()
    }

    /// Bell-shaped with mean 0 and variance 1: the sum of four uniforms, so never beyond ±3.5.
    pub(crate) fn bell(&mut self) -> f32 {
        let bits = self.bits();
        let sum: u64 = (0..4).map(|k| (bits >> (16 * k)) & 0xFFFF).sum();
        (sum as f32 - 131_070.0) * (1.0 / 37_837.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bell_has_mean_zero_and_variance_one() {
        let mut rng = Rng::new(3, 3);
        let draws: Vec<f64> = (0..20_000).map(|_| f64::from(rng.bell())).collect();
        let mean = draws.iter().sum::<f64>() / 20_000.0;
        let variance = draws.iter().map(|d| (d - mean) * (d - mean)).sum::<f64>() / 20_000.0;
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.03, "mean {mean}, variance {variance}");
    }
}
