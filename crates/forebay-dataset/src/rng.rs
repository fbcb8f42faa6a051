//! A seeded generator whose numbers are the same everywhere.
//!
//! SplitMix64 (Steele, Lea and Flood, 2014): one addition and one mixing function per draw. Streams are made by mixing
//! the stream's number into the seed, so image *i* needs nothing of image *i − 1*.

/// Weyl increment of SplitMix64: 2⁶⁴ divided by the golden ratio.
pub(crate) const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// A stream of pseudo-random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    /// The stream numbered `stream` of `seed`.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        Self(mix(mix(seed ^ 0x666F_7265_6261_7921).wrapping_add(stream.wrapping_mul(0xD1B5_4A32_D192_ED03))))
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }

    /// Uniform in `0..n`; the bias of at most n/2³² is of no account here.
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

/// The mixing function of SplitMix64: a bijection in which every input bit reaches every output bit.
pub(crate) fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_numbers_of_a_stream_are_fixed() {
        let mut rng = Rng(0);
        // Published reference values of SplitMix64 for seed 0.
        assert_eq!(rng.bits(), 0xE220_A839_7B1D_CDAF);
        assert_eq!(rng.bits(), 0x6E78_9E6A_A1B9_65F4);
    }

    #[test]
    fn streams_of_one_seed_differ() {
        assert_ne!(Rng::new(1, 0).bits(), Rng::new(1, 1).bits());
        assert_ne!(Rng::new(1, 0).bits(), Rng::new(2, 0).bits());
    }

    #[test]
    fn bell_has_mean_zero_and_variance_one() {
        let mut rng = Rng::new(3, 3);
        let draws: Vec<f64> = (0..20_000).map(|_| f64::from(rng.bell())).collect();
        let mean = draws.iter().sum::<f64>() / 20_000.0;
        let variance = draws.iter().map(|d| (d - mean) * (d - mean)).sum::<f64>() / 20_000.0;
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.03, "mean {mean}, variance {variance}");
    }
}
