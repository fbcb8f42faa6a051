//! Times drawn from a workload's distributions, each from its own seed: the same seed gives the same times.

use forebay_units::random::Random;
use forebay_workload::Time;

/// Draws a time in seconds; negative values change their sign.
pub(crate) fn seconds(law: &Time, seed: u64) -> f64 {
    let mut random = Random::new(seed);
    let drawn = match *law {
        Time::Normal { mean, stdev } => mean + if stdev == 0.0 { 0.0 } else { stdev * random.normal() },
        Time::Uniform { min, max } => min + (max - min) * random.unit(),
        Time::Gamma { shape, scale } => scale * random.gamma(shape),
        Time::Exponential { scale } => scale * random.exponential(),
        Time::Poisson { lam } => random.poisson(lam) as f64,
    };
    drawn.abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_units::random::hash;

    fn mean_and_stdev(law: &Time) -> (f64, f64) {
        let n = 40_000;
        let drawn: Vec<f64> = (0..n).map(|i| seconds(law, hash(i))).collect();
        let mean = drawn.iter().sum::<f64>() / n as f64;
        (mean, (drawn.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64).sqrt())
    }

    #[test]
    fn every_law_has_its_mean_and_its_deviation() {
        let laws = [
            (Time::Normal { mean: 5.0, stdev: 0.5 }, 0.5),
            (Time::Uniform { min: 1.0, max: 4.0 }, 3.0 / 12.0_f64.sqrt()),
            (Time::Gamma { shape: 2.5, scale: 2.0 }, 2.5_f64.sqrt() * 2.0),
            (Time::Gamma { shape: 0.5, scale: 2.0 }, 0.5_f64.sqrt() * 2.0),
            (Time::Exponential { scale: 3.0 }, 3.0),
            (Time::Poisson { lam: 4.0 }, 2.0),
            (Time::Poisson { lam: 4000.0 }, 4000.0_f64.sqrt()),
        ];
        for (law, expected) in laws {
            let (mean, stdev) = mean_and_stdev(&law);
            assert!((mean / law.mean() - 1.0).abs() < 0.03, "{law:?}: mean {mean}");
            assert!((stdev / expected - 1.0).abs() < 0.03, "{law:?}: deviation {stdev}");
        }
    }

    #[test]
    fn a_law_without_deviation_is_its_mean_and_no_time_is_negative() {
        assert_eq!(seconds(&Time::Normal { mean: 0.323, stdev: 0.0 }, 7), 0.323);
        assert!((0..1000).all(|seed| seconds(&Time::Normal { mean: 0.0, stdev: 1.0 }, seed) >= 0.0));
    }

    #[test]
    fn the_same_number_draws_the_same_time() {
        let law = Time::Gamma { shape: 2.0, scale: 1.0 };
        assert_eq!(seconds(&law, 5).to_bits(), seconds(&law, 5).to_bits());
        assert_ne!(seconds(&law, 5), seconds(&law, 6));
    }
}
