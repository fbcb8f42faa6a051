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
