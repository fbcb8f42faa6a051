//! Whether two small sets of repeats differ, with a confidence interval.
//!
//! Rates vary by a factor rather than by an amount, so two sets are compared by the ratio of their geometric means:
//! Welch's *t* interval on the logarithms, which lets each set have its own variance and size. With two or three repeats
//! the interval is wide, as it should be; with one it does not exist. Among many comparisons some look "different" by
//! chance: [`holm`] corrects for that.

use std::f64::consts::PI;

/// The ratio of two sets of repeats with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatioInterval {
    /// Geometric mean of the second set divided by the geometric mean of the first.
    pub ratio: f64,
    pub low: f64,
    pub high: f64,
    /// Two-sided *p*: the probability of a difference of this size or more between equal sets.
    pub p: f64,
}

impl RatioInterval {
    /// Whether the difference is not significant: the interval includes 1.
    pub fn includes_one(&self) -> bool {
        self.low <= 1.0 && 1.0 <= self.high
    }
}

/// The ratio of `b` to `a` with its interval at the given confidence, for example 0.95.
///
/// `None` if either side has fewer than two values, or a value that is not a positive number.
///
/// ```
/// let before = [100.0, 102.0, 98.0, 101.0, 99.0];
/// let after = [110.0, 108.0, 113.0, 109.0, 111.0];
/// let ratio = forebay_units::ratio_interval(&before, &after, 0.95).expect("five values each");
/// assert_eq!(format!("{:.3} ({:.3} to {:.3})", ratio.ratio, ratio.low, ratio.high), "1.102 (1.076 to 1.129)");
/// assert_eq!(forebay_units::ratio_interval(&before[..1], &after, 0.95), None);
/// ```
pub fn ratio_interval(a: &[f64], b: &[f64], confidence: f64) -> Option<RatioInterval> {
    let (a, b) = (Logs::of(a)?, Logs::of(b)?);
    let difference = b.mean - a.mean;
    let (share_a, share_b) = (a.variance / a.n, b.variance / b.n);
    let error = (share_a + share_b).sqrt();
    let ratio = difference.exp();
    if error == 0.0 {
        // Without variance, any difference is significant.
        return Some(RatioInterval { ratio, low: ratio, high: ratio, p: if difference == 0.0 { 1.0 } else { 0.0 } });
    }
    let freedom = (share_a + share_b).powi(2) / (share_a.powi(2) / (a.n - 1.0) + share_b.powi(2) / (b.n - 1.0));
    let reach = t_quantile(1.0 - confidence, freedom) * error;
    Some(RatioInterval {
        ratio,
        low: (difference - reach).exp(),
        high: (difference + reach).exp(),
        p: t_beyond(difference / error, freedom),
    })
}

/// How well repeats of one rate determine it: half the confidence interval of their geometric mean, relative to it.
///
/// `None` with fewer than two values, or a value that is not a positive number.
///
/// ```
/// let known = forebay_units::relative_interval(&[100.0, 102.0, 98.0, 101.0, 99.0], 0.95).expect("five values");
/// assert_eq!(format!("{known:.3}"), "0.020");
/// assert_eq!(forebay_units::relative_interval(&[100.0], 0.95), None);
/// ```
pub fn relative_interval(values: &[f64], confidence: f64) -> Option<f64> {
    let logs = Logs::of(values)?;
    let error = (logs.variance / logs.n).sqrt();
    Some((t_quantile(1.0 - confidence, logs.n - 1.0) * error).exp_m1())
}

/// Holm's correction: the adjusted *p* of each comparison in a family.
///
/// If comparisons below 0.05 are called different, the probability of even one false alarm in the family is at most 0.05.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|i, j| p[*i].total_cmp(&p[*j]));
    let mut corrected = vec![0.0; p.len()];
    let mut largest: f64 = 0.0;
    for (rank, index) in order.into_iter().enumerate() {
        // An adjusted p is a probability, so it is capped at 1 by definition.
        largest = largest.max(p[index] * (p.len() - rank) as f64).min(1.0);
        corrected[index] = largest;
    }
    corrected
}

struct Logs {
    n: f64,
    mean: f64,
    variance: f64,
}

impl Logs {
    fn of(values: &[f64]) -> Option<Self> {
        if values.len() < 2 || values.iter().any(|value| !(*value > 0.0 && value.is_finite())) {
            return None;
        }
        let n = values.len() as f64;
        let mean = values.iter().map(|value| value.ln()).sum::<f64>() / n;
        let variance = values.iter().map(|value| (value.ln() - mean).powi(2)).sum::<f64>() / (n - 1.0);
        // Equal values may differ from their mean in the last bit.
        let variance = if values.iter().all(|value| *value == values[0]) { 0.0 } else { variance };
        Some(Self { n, mean, variance })
    }
}

/// The probability that Student's *t* is at least this far from zero.
fn t_beyond(t: f64, freedom: f64) -> f64 {
    incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t))
}

/// The distance from zero that Student's *t* exceeds with probability `alpha`, both sides together.
fn t_quantile(alpha: f64, freedom: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while t_beyond(high, freedom) > alpha && high < f64::MAX / 2.0 {
        (low, high) = (high, high * 2.0);
    }
    // Each step gains a bit; a double has 53.
    for _ in 0..56 {
        let middle = (low + high) / 2.0;
        if t_beyond(middle, freedom) > alpha { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return if x <= 0.0 { 0.0 } else { 1.0 };
    }
    // The fraction converges quickly on the left of the mean; the right is its mirror image.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, 1.0 - x);
    }
    let front = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln();
    front.exp() / a / beta_fraction(a, b, x)
}

/// The continued fraction 1 + d1/(1 + d2/(1 + …)) of the incomplete beta function, evaluated from the front.
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    // Replaces a denominator of zero, as in the modified method of Lentz.
    const TINY: f64 = 1e-300;
    let apart = |value: f64| if value.abs() < TINY { TINY } else { value };
    let (mut value, mut above, mut below) = (1.0, 1.0, 0.0);
    for step in 1..1000 {
        let m = f64::from(step / 2);
        let term = if step % 2 == 0 {
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        } else {
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        };
        below = 1.0 / apart(1.0 + term * below);
        above = apart(1.0 + term / above);
        value *= above * below;
        if (above * below - 1.0).abs() < 1e-15 {
            break;
        }
    }
    value
}

/// The logarithm of the gamma function for x > 0: Stirling's series, after moving to where it is exact to the last digits.
fn ln_gamma(x: f64) -> f64 {
    let (mut x, mut moved) = (x, 1.0);
    while x < 10.0 {
        moved *= x;
        x += 1.0;
    }
    let inverse = 1.0 / (x * x);
    let tail = (1.0 / 12.0
        - inverse * (1.0 / 360.0 - inverse * (1.0 / 1260.0 - inverse * (1.0 / 1680.0 - inverse / 1188.0))))
        / x;
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * PI).ln() + tail - moved.ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Two sets, the confidence, and what comes of them: ratio, low, high, p.
    type Known<'a> = (&'a [f64], &'a [f64], f64, [f64; 4]);

    fn assert_near(found: f64, wanted: f64) {
        assert!((found - wanted).abs() <= 1e-9 * wanted.abs(), "{found}, not {wanted}");
    }

    #[test]
    fn quantiles_of_t_are_those_of_scipy() {
        // scipy.stats.t.ppf(1 - alpha / 2, freedom), SciPy 1.17.1.
        let known = [
            (0.05, 1.0, 12.706204736174694),
            (0.05, 2.0, 4.302652729749462),
            (0.05, 4.7, 2.62072607535317),
            (0.01, 3.3, 5.344306069721078),
            (0.05, 30.0, 2.0422724563012378),
            (0.2, 1000.0, 1.2823987214609247),
            (0.0002, 2.5, 34.867969321116306),
        ];
        for (alpha, freedom, wanted) in known {
            assert_near(t_quantile(alpha, freedom), wanted);
        }
    }

    #[test]
    fn intervals_are_those_of_scipy() {
        // scipy.stats.ttest_ind(log(b), log(a), equal_var=False) and its confidence_interval, SciPy 1.17.1.
        let base = [100.0, 102.0, 98.0, 101.0, 99.0];
        let known: [Known<'_>; 4] = [
            (
                &base,
                &[110.0, 108.0, 113.0, 109.0, 111.0],
                0.95,
                [1.10197643874209, 1.075532448221121, 1.1290706045653753, 1.6288304980278405e-05],
            ),
            (
                &base,
                &[101.0, 120.0, 90.0, 104.0, 97.0],
                0.95,
                [1.0194207690717487, 0.8941989736280124, 1.1621783686447749, 0.7082697810072041],
            ),
            (
                &[262.1, 258.8],
                &[115.0, 114.2, 115.9],
                0.95,
                [0.441672283846507, 0.4267872458971786, 0.4570764665380527, 0.0001224778350847447],
            ),
            (
                &[5.0, 5.5, 4.8],
                &[5.1, 4.9, 5.2, 5.3],
                0.99,
                [1.006128358907834, 0.756148413913899, 1.3387507742809854, 0.898544877309924],
            ),
        ];
        for (a, b, confidence, [ratio, low, high, p]) in known {
            let found = ratio_interval(a, b, confidence).unwrap();
            for (found, wanted) in [(found.ratio, ratio), (found.low, low), (found.high, high), (found.p, p)] {
                assert_near(found, wanted);
            }
        }
    }

    #[test]
    fn what_cannot_be_told_is_not_told() {
        assert_eq!(ratio_interval(&[1.0], &[1.0, 2.0], 0.95), None);
        assert_eq!(ratio_interval(&[1.0, 2.0], &[], 0.95), None);
        assert_eq!(ratio_interval(&[1.0, 0.0], &[1.0, 2.0], 0.95), None);
        assert_eq!(ratio_interval(&[1.0, f64::NAN], &[1.0, 2.0], 0.95), None);
    }

    #[test]
    fn sets_that_do_not_vary_differ_by_exactly_their_ratio() {
        let found = ratio_interval(&[0.1, 0.1, 0.1], &[0.2, 0.2, 0.2], 0.95).unwrap();
        assert!((found.ratio - 2.0).abs() < 1e-12 && found.low == found.high && found.p == 0.0, "{found:?}");
        assert!(ratio_interval(&[3.0, 3.0], &[3.0, 3.0], 0.95).unwrap().includes_one());
    }

    #[test]
    fn holm_multiplies_the_smallest_by_the_number_and_never_falls() {
        assert_eq!(holm(&[0.04, 0.01, 0.03]), [0.06, 0.03, 0.06]);
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
        assert_eq!(holm(&[]), [0.0; 0]);
    }

    proptest! {
        #[test]
        fn the_interval_holds_the_ratio_and_turns_over_with_its_sides(
            a in prop::collection::vec(0.1f64..1000.0, 2..7),
            b in prop::collection::vec(0.1f64..1000.0, 2..7),
        ) {
            let (there, back) = (ratio_interval(&a, &b, 0.95).unwrap(), ratio_interval(&b, &a, 0.95).unwrap());
            prop_assert!(there.low <= there.ratio && there.ratio <= there.high);
            prop_assert!((there.low * back.high - 1.0).abs() < 1e-9, "{there:?} {back:?}");
            // At the border of the interval the two ways to decide may round differently.
            if (there.p - 0.05).abs() > 1e-9 {
                prop_assert_eq!(there.includes_one(), there.p > 0.05);
            }
        }
    }
}
