//! What is moved over time, as rates: a panel a place, time alike in all.
//!
//! A long run is drawn by the mean of neighbouring ticks, which keeps the bytes that an area stands for.

use super::{Canvas, Panel, Pen, Plot, Scale, Tip, X, Y, tick};

/// Ticks along the axis of a desk's and of a phone's picture.
const MAX_TICKS: (usize, usize) = (240, 100);
/// Panels whose highest rates differ by more than this have scales of their own.
const FAR_APART: f64 = 5.0;
const PANEL: f64 = 108.0;
/// The class of an area that is filled; it lies below the others.
pub(super) const FILLED: &str = "ahead";

pub(super) struct Flow<'a> {
    pub(super) class: String,
    pub(super) every_s: f64,
    pub(super) mb: &'a [f64],
}

impl Flow<'_> {
    fn end_s(&self) -> f64 {
        self.every_s * self.mb.len() as f64
    }

    fn rates(&self, span_s: f64) -> Vec<f64> {
        rates(self.mb, self.every_s, span_s)
    }
}

pub(super) trait Flows {
    fn title(&self, n_panels: usize) -> &str;

    fn flows(&self) -> Vec<Flow<'_>>;

    /// What a tick says of its flows' rates; one that has ended has none.
    fn tip(&self, from_s: f64, to_s: f64, rates: &[Option<f64>]) -> Tip;

    /// Until when the axis goes on at least.
    fn until_s(&self) -> f64 {
        0.0
    }

    fn below(&self, _: &mut Pen<'_>) {}

    fn above(&self, _: &mut Pen<'_>) {}
}

fn end_s(panel: &impl Flows) -> f64 {
    panel.flows().iter().map(Flow::end_s).fold(panel.until_s(), f64::max)
}

fn span_s(panels: &[impl Flows], most: usize) -> f64 {
    let every = panels.iter().flat_map(|panel| panel.flows()).map(|flow| flow.every_s).fold(0.0, f64::max);
    every * (panels.iter().map(end_s).fold(0.0, f64::max) / every / most as f64).ceil().max(1.0)
}

fn highest(panels: &[impl Flows], span_s: f64) -> Vec<f64> {
    let rates = |panel: &_| Flows::flows(panel).iter().flat_map(|flow| flow.rates(span_s)).fold(0.0, f64::max);
    panels.iter().map(rates).collect()
}

pub(super) fn own_scales(panels: &[impl Flows]) -> bool {
    let highs = highest(panels, span_s(panels, MAX_TICKS.0));
    let seen = || highs.iter().copied().filter(|high| *high > 0.0);
    seen().fold(0.0, f64::max) > FAR_APART * seen().fold(f64::MAX, f64::min)
}

/// A remark where a picture has fewer ticks than the data.
pub(super) fn means(panels: &[impl Flows]) -> Option<String> {
    let n = panels.iter().flat_map(|panel| panel.flows()).map(|flow| flow.mb.len()).max().unwrap_or(0);
    let text = "ticks do not fit in the picture: each point is the mean of its neighbours. The data below has all.";
    (n > MAX_TICKS.0).then(|| format!("{} {text}", forebay_units::group_digits(n as u64)))
}

pub(super) fn plot<'a>(canvas: Canvas, title: &str, panels: &'a [impl Flows]) -> Plot<'a> {
    let span_s = span_s(panels, if canvas.narrow { MAX_TICKS.1 } else { MAX_TICKS.0 });
    let highs = highest(panels, span_s);
    let all = highs.iter().copied().fold(0.0, f64::max);
    let own = own_scales(panels);
    let panel = |(of, high): (&'a _, f64)| {
        let y = Y::new(Scale::from_zero(if own { high } else { all }), 3, tick);
        let (title, columns) = (Flows::title(of, panels.len()).to_owned(), (1, hits(of, span_s)));
        Panel { title, height: Some(PANEL), columns, ..Panel::new(y, move |pen| draw(of, pen, span_s)) }
    };
    let x = Scale::between(0.0, panels.iter().map(end_s).fold(0.0, f64::max));
    let x = X::along(x, if canvas.narrow { 5 } else { 10 }, "Seconds since the start", tick);
    Plot::new(title, x, panels.iter().zip(highs).map(panel).collect())
}

fn draw(panel: &impl Flows, pen: &mut Pen<'_>, span_s: f64) {
    panel.below(pen);
    let (filled, outlines): (Vec<_>, Vec<_>) = panel.flows().into_iter().partition(|flow| flow.class == FILLED);
    for flow in filled.iter().chain(&outlines) {
        pen.steps(&flow.class, &flow.rates(span_s), span_s, flow.end_s());
    }
    panel.above(pen);
}

fn hits(panel: &impl Flows, span_s: f64) -> Vec<(f64, f64, Tip)> {
    let rates: Vec<Vec<f64>> = panel.flows().iter().map(|flow| flow.rates(span_s)).collect();
    let hit = |i: usize| {
        let (from, to) = (i as f64 * span_s, (i + 1) as f64 * span_s);
        let of_tick: Vec<Option<f64>> = rates.iter().map(|rates| rates.get(i).copied()).collect();
        (from, to, panel.tip(from, to, &of_tick))
    };
    (0..rates.iter().map(Vec::len).max().unwrap_or(0)).map(hit).collect()
}

pub(super) fn time(seconds: f64) -> String {
    tick((seconds * 1e3).round() / 1e3)
}

/// The mean rate in every span of so many seconds, of amounts that are each of `every_s` seconds.
fn rates(amounts: &[f64], every_s: f64, span_s: f64) -> Vec<f64> {
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
