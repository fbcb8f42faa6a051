//! From values to places: linear and logarithmic scales with round ticks.

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scale {
    log: bool,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

/// A range in which the largest is more than this times the smallest is drawn on a logarithmic scale: on a linear one
/// the small would be a few pixels high.
const MOST_LINEAR: f64 = 25.0;

impl Scale {
    /// From 0 to at least `high`.
    pub(crate) fn from_zero(high: f64) -> Self {
        let high = if high > 0.0 { high } else { 1.0 };
        let step = step(high, 5);
        Self { log: false, low: 0.0, high: (high / step).ceil() * step, from: 0.0, to: 1.0 }
    }

    /// A logarithmic scale that ends at a 1, 2 or 5 beyond both.
    pub(crate) fn log(low: f64, high: f64) -> Self {
        let (low, high) = if low > 0.0 && high >= low { (low, high) } else { (1.0, 10.0) };
        let (low, high) = (round_down(low), round_up(high));
        Self { log: true, low, high: if high > low { high } else { low * 10.0 }, from: 0.0, to: 1.0 }
    }

    /// For the heights of bars: linear from zero, unless the smallest would then not be seen.
    pub(crate) fn for_bars(values: impl Iterator<Item = f64>) -> Self {
        let positive = values.filter(|value| *value > 0.0);
        let (low, high) = positive.fold((f64::MAX, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        if high > low * MOST_LINEAR { Self::log(low / 1.6, high) } else { Self::from_zero(high) }
    }

    /// Between exactly these, logarithmically.
    pub(crate) fn log_between(low: f64, high: f64) -> Self {
        Self { log: true, low, high, from: 0.0, to: 1.0 }
    }

    pub(crate) fn between(low: f64, high: f64) -> Self {
        Self { log: false, low, high: if high > low { high } else { low + 1.0 }, from: 0.0, to: 1.0 }
    }

    /// Spread over these places.
    pub(crate) fn over(self, from: f64, to: f64) -> Self {
        Self { from, to, ..self }
    }

    pub(crate) fn is_log(&self) -> bool {
        self.log
    }

    pub(crate) fn low(&self) -> f64 {
        self.low
    }

    pub(crate) fn high(&self) -> f64 {
        self.high
    }

    /// Where a value lies; what lies outside is drawn at the edge.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let share = if self.log {
            if value <= self.low { 0.0 } else { (value / self.low).ln() / (self.high / self.low).ln() }
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Whether a value lies outside and is drawn at the edge.
    pub(crate) fn cuts(&self, value: f64) -> bool {
        value < self.low || value > self.high
    }

    pub(crate) fn ticks(&self, about: usize) -> Vec<f64> {
        if self.log {
            return log_ticks(self.low, self.high, about);
        }
        let step = step(self.high - self.low, about);
        let (first, last) = ((self.low / step).ceil() as i64, (self.high / step * (1.0 + 1e-9)).floor() as i64);
        (first..=last).map(|i| i as f64 * step).collect()
    }
}

/// A step of 1, 2, 2.5 or 5 times a power of ten that divides a range in about so many.
fn step(range: f64, about: usize) -> f64 {
    let wanted = range / about.max(1) as f64;
    let power = 10f64.powf(wanted.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().find(|step| step * power >= wanted * 0.999);
    step.unwrap_or(10.0) * power
}

fn log_ticks(low: f64, high: f64, about: usize) -> Vec<f64> {
    let powers = (low.log10().floor() as i32)..=(high.log10().ceil() as i32);
    let with = |digits: &[f64]| -> Vec<f64> {
        let all = powers.clone().flat_map(|power| digits.iter().map(move |digit| digit * 10f64.powi(power)));
        all.filter(|value| *value >= low * 0.999 && *value <= high * 1.001).collect()
    };
    let dense = with(&[1.0, 2.0, 5.0]);
    if dense.len() <= about + 3 {
        return dense;
    }
    let decades = with(&[1.0]);
    let every = decades.len().div_ceil(about + 2).max(1);
    if decades.len() >= 2 { decades.into_iter().step_by(every).collect() } else { dense }
}

fn round_down(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    [5.0, 2.0].into_iter().find(|digit| digit * power <= value * 1.001).unwrap_or(1.0) * power
}

fn round_up(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    [1.0, 2.0, 5.0].into_iter().find(|digit| digit * power >= value * 0.999).unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linear_scale_ends_at_a_round_value() {
        let scale = Scale::from_zero(2_140.0).over(300.0, 0.0);
        assert_eq!(scale.ticks(5), [0.0, 500.0, 1_000.0, 1_500.0, 2_000.0, 2_500.0]);
        assert_eq!((scale.at(0.0), scale.at(1_250.0), scale.at(9e9)), (300.0, 150.0, 0.0));
    }

    #[test]
    fn a_wide_range_is_logarithmic_and_a_narrow_one_is_not() {
        assert!(!Scale::for_bars([100.0, 2_400.0].into_iter()).is_log());
        let scale = Scale::for_bars([115.0, 12_000.0].into_iter()).over(0.0, 1.0);
        assert!(scale.is_log());
        assert_eq!(scale.ticks(9), [50.0, 100.0, 200.0, 500.0, 1_000.0, 2_000.0, 5_000.0, 10_000.0, 20_000.0]);
        assert_eq!(scale.ticks(4), [100.0, 1_000.0, 10_000.0]);
    }

    #[test]
    fn nothing_to_draw_still_has_a_scale() {
        let scale = Scale::for_bars(std::iter::empty());
        assert_eq!(scale.at(0.0), 0.0);
        assert!(scale.ticks(5).len() > 1);
        assert!(Scale::log(0.0, 0.0).at(5.0).is_finite());
    }
}
