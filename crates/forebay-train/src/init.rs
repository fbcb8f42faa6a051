//! Initial values of weights, from a seed.
//!
//! Value *i* of a parameter depends only on the seed, the parameter's index in the network and *i*, and uses only
//! operations that every machine rounds in the same way: the same seed gives the same network everywhere.

use forebay_units::random::{Random, at};

use crate::error::Result;
use crate::rng::{key, random};
use crate::room::{collected, filled};

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Init {
    /// Uniform with variance 2 / fan-in (He et al., 2015): for layers before a ReLU.
    HeUniform,
    /// Normal with variance 2 / fan-out: He's, as ResNets use it.
    HeNormal,
    /// Uniform with variance 2 / (fan-in + fan-out) (Glorot and Bengio, 2010).
    XavierUniform,
    /// Normal with variance 2 / (fan-in + fan-out).
    XavierNormal,
    /// Normal with this deviation: small before a softmax, so all classes start equally likely.
    Normal(f64),
    Constant(f32),
}

/// How many values feed one output of a layer, and how many outputs one input feeds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fan {
    pub(crate) fan_in: usize,
    pub(crate) fan_out: usize,
}

impl Init {
    /// `len` values for the parameter with this index.
    pub(crate) fn values(self, len: usize, fan: Fan, seed: u64, index: u64) -> Result<Vec<f32>> {
        let both = (fan.fan_in + fan.fan_out) as f64;
        match self {
            Self::HeUniform => uniform(len, 2.0 / fan.fan_in as f64, key(seed, index)),
            Self::XavierUniform => uniform(len, 2.0 / both, key(seed, index)),
            Self::HeNormal => normal(len, 2.0 / fan.fan_out as f64, random(seed, index)),
            Self::XavierNormal => normal(len, 2.0 / both, random(seed, index)),
            Self::Normal(deviation) => normal(len, deviation * deviation, random(seed, index)),
            Self::Constant(value) => filled(len, value),
        }
    }
}

fn uniform(len: usize, variance: f64, key: u64) -> Result<Vec<f32>> {
    let bound = (3.0 * variance).sqrt() as f32;
    let unit = |i: usize| (at(key, i as u64) >> 40) as f32 * (1.0 / 8_388_608.0) - 1.0;
    collected((0..len).map(|i| unit(i) * bound))
}

fn normal(len: usize, variance: f64, mut rng: Random) -> Result<Vec<f32>> {
    let deviation = variance.sqrt();
    collected((0..len).map(|_| (rng.normal() * deviation) as f32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_their_variance_and_depend_on_seed_and_place() {
        let fan = Fan { fan_in: 50, fan_out: 30 };
        let laws = [
            (Init::HeUniform, 0.04),
            (Init::HeNormal, 2.0 / 30.0),
            (Init::XavierUniform, 0.025),
            (Init::XavierNormal, 0.025),
            (Init::Normal(0.1), 0.01),
        ];
        for (init, variance) in laws {
            let values = init.values(30_000, fan, 1, 2).unwrap();
            let measured = values.iter().map(|v| f64::from(v * v)).sum::<f64>() / 30_000.0;
            assert!((measured / variance - 1.0).abs() < 0.03, "{init:?}: {measured}, not {variance}");
            assert_eq!(values, init.values(30_000, fan, 1, 2).unwrap());
            assert_ne!(values, init.values(30_000, fan, 1, 3).unwrap());
            assert_ne!(values, init.values(30_000, fan, 2, 2).unwrap());
        }
        assert_eq!(Init::Constant(1.0).values(2, fan, 1, 1).unwrap(), [1.0, 1.0]);
    }

    #[test]
    fn the_first_weights_of_a_seed_are_fixed() {
        let bits = |init: Init| {
            init.values(2, Fan { fan_in: 8, fan_out: 8 }, 42, 0)
                .unwrap()
                .iter()
                .map(|v| v.to_bits())
                .collect::<Vec<_>>()
        };
        assert_eq!(bits(Init::HeUniform), [1_061_175_639, 3_203_662_410]);
        assert_eq!(bits(Init::HeNormal), [3_214_406_988, 1_054_865_288]);
    }
}
