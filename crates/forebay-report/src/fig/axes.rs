//! Axes: grid lines, ticks, and names with their units written level, where they are read first.

use crate::axis::Scale;
use crate::number::tick;
use crate::svg::{Anchor, Area, FONT, SMALL, Svg, text_width, wrapped};

/// How a tick is written.
pub(super) type Show = fn(f64) -> String;

/// Room for the ticks of a vertical axis.
pub(super) fn tick_room(scale: &Scale, about: usize, show: impl Fn(f64) -> String) -> f64 {
    scale.ticks(about).into_iter().map(|value| text_width(&show(value), FONT)).fold(0.0, f64::max) + 10.0
}

/// Grid lines with ticks on the left, and the axis' name above.
pub(super) fn left(svg: &mut Svg, plot: Area, scale: &Scale, about: usize, title: &str, show: impl Fn(f64) -> String) {
    for value in scale.ticks(about) {
        let y = scale.at(value);
        svg.line("gr", (plot.left, y), (plot.right, y));
        svg.text("tk", Anchor::End, (plot.left - 7.0, y + FONT * 0.35), show(value));
    }
    if !title.is_empty() {
        svg.text("tt", Anchor::Start, (2.0, FONT), title);
    }
}

/// Ticks on the right for a quantity that is the left one times `factor`.
pub(super) fn right(svg: &mut Svg, plot: Area, left: &Scale, factor: f64, about: usize, title: &str, width: f64) {
    let end = left.high() * factor;
    let scale = if left.is_log() { Scale::log_between(left.low() * factor, end) } else { Scale::between(0.0, end) };
    for value in scale.ticks(about) {
        let y = left.at(value / factor);
        svg.line("ax", (plot.right, y), (plot.right + 4.0, y));
        svg.text("tk", Anchor::Start, (plot.right + 7.0, y + FONT * 0.35), tick(value));
    }
    svg.text("tt", Anchor::End, (width - 2.0, FONT), title);
}

/// Names of groups under the plot and the axis' name below them.
pub(super) fn groups(svg: &mut Svg, plot: Area, names: &[String], title: &str) {
    let band = plot.width() / names.len().max(1) as f64;
    for (i, name) in names.iter().enumerate() {
        let x = plot.left + (i as f64 + 0.5) * band;
        for (row, line) in wrapped(name, FONT, band - 4.0).iter().enumerate() {
            svg.text("tk strong", Anchor::Middle, (x, plot.bottom + 17.0 + row as f64 * 13.0), line);
        }
    }
    svg.line("ax", (plot.left, plot.bottom), (plot.right, plot.bottom));
    svg.text("tt", Anchor::Middle, ((plot.left + plot.right) / 2.0, bottom_title(plot, names)), title);
}

/// Room under the plot for names of groups and the axis' name.
pub(super) fn group_room(names: &[String], width: f64) -> f64 {
    let band = width / names.len().max(1) as f64;
    let lines = names.iter().map(|name| wrapped(name, FONT, band - 4.0).len()).max().unwrap_or(1);
    17.0 + lines as f64 * 13.0 + 16.0
}

fn bottom_title(plot: Area, names: &[String]) -> f64 {
    plot.bottom + group_room(names, plot.width()) - 6.0
}

/// Ticks under the plot of a scale that lies level, and its name.
pub(super) fn bottom(
    svg: &mut Svg,
    plot: Area,
    scale: &Scale,
    about: usize,
    title: &str,
    show: impl Fn(f64) -> String,
) {
    let mut free_from = f64::MIN;
    for value in scale.ticks(about) {
        let (x, text) = (scale.at(value), show(value));
        let half = text_width(&text, FONT) / 2.0;
        svg.line("ax", (x, plot.bottom), (x, plot.bottom + 4.0));
        if x - half > free_from {
            svg.text("tk", Anchor::Middle, (x, plot.bottom + 17.0), text);
            free_from = x + half + 6.0;
        }
    }
    svg.line("ax", (plot.left, plot.bottom), (plot.right, plot.bottom));
    svg.text("tt", Anchor::Middle, ((plot.left + plot.right) / 2.0, plot.bottom + 35.0), title);
}

/// Shifts places that are nearer than `gap` apart, in their order, within a range.
pub(super) fn spread_out(places: &mut [f64], gap: f64, low: f64, high: f64) {
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by(|a, b| places[*a].total_cmp(&places[*b]));
    let mut next = low;
    for i in &order {
        places[*i] = places[*i].max(next);
        next = places[*i] + gap;
    }
    let mut last = high;
    for i in order.iter().rev() {
        places[*i] = places[*i].min(last);
        last = places[*i] - gap;
    }
}

/// The height of a line of small letters.
pub(super) const LINE: f64 = SMALL + 3.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_that_would_lie_on_each_other_are_spread_out() {
        let mut places = [10.0, 50.0, 11.0, 9.0];
        spread_out(&mut places, 10.0, 0.0, 100.0);
        assert_eq!(places, [19.0, 50.0, 29.0, 9.0]);
        let mut at_the_end = [99.0, 100.0];
        spread_out(&mut at_the_end, 10.0, 0.0, 100.0);
        assert_eq!(at_the_end, [90.0, 100.0]);
    }
}
