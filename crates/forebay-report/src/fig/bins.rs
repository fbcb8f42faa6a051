//! Amounts by time as rates over longer spans: the bytes that an area stands for stay the same.

/// The mean rate in every span of so many seconds, of amounts that are each of `every_s` seconds.
pub(super) fn rates(amounts: &[f64], every_s: f64, span_s: f64) -> Vec<f64> {
    let end_s = every_s * amounts.len() as f64;
    let n = (end_s / span_s - 1e-9).ceil().max(1.0) as usize;
    let mut moved = vec![0.0; n];
    for (i, amount) in amounts.iter().enumerate() {
        let (from, to) = (i as f64 * every_s, (i + 1) as f64 * every_s);
        let mut at = from;
        while at < to - 1e-9 {
            let bin = ((at / span_s + 1e-9) as usize).min(n - 1);
            let end = if bin == n - 1 { to } else { to.min((bin + 1) as f64 * span_s) };
            moved[bin] += amount * (end - at) / every_s;
            at = end;
        }
    }
    moved.into_iter().map(|amount| amount / span_s).collect()
}

/// The span that a picture's tick stands for, of series that each have a tick of so many seconds and an end.
pub(super) fn span_s(series: impl Iterator<Item = (f64, f64)>, most: usize) -> f64 {
    let (every, end) = series.fold((0.0_f64, 0.0_f64), |(every, end), of| (every.max(of.0), end.max(of.1)));
    every * (end / every / most as f64).ceil().max(1.0)
}

/// Panels whose highest rates differ by more than this have scales of their own.
const FAR_APART: f64 = 5.0;

/// Whether panels with these highest rates need scales of their own.
pub(super) fn own_scales(highs: &[f64]) -> bool {
    let seen = || highs.iter().copied().filter(|high| *high > 0.0);
    seen().fold(0.0, f64::max) > FAR_APART * seen().fold(f64::MAX, f64::min)
}

/// When a tick begins, to the millisecond.
pub(super) fn time(seconds: f64) -> String {
    crate::number::tick((seconds * 1e3).round() / 1e3)
}

/// Ticks along the axis of a desk's and of a phone's picture.
pub(super) const MAX_TICKS: (usize, usize) = (240, 100);

/// A remark where a picture has fewer ticks than the data.
pub(super) fn means(n_ticks: usize) -> Option<String> {
    let n = forebay_units::group_digits(n_ticks as u64);
    let text = "ticks are more than the picture has room for; it shows means of neighbours, the data below has all.";
    (n_ticks > MAX_TICKS.0).then(|| format!("{n} {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_of_neighbours_keep_the_bytes() {
        let mb = [1.0, 3.0, 0.0, 2.0, 5.0];
        assert_eq!(rates(&mb, 0.5, 0.5), [2.0, 6.0, 0.0, 4.0, 10.0]);
        assert_eq!(rates(&mb, 0.5, 1.0), [4.0, 2.0, 5.0], "the last tick is half empty");
        let odd = rates(&mb, 0.5, 0.75);
        assert!((odd.iter().sum::<f64>() * 0.75 - 11.0).abs() < 1e-9, "{odd:?}");
    }
}
