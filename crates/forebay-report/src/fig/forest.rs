//! Two runs against each other: a dot and an interval a cell, and a line where they are equal.

use crate::axis::Scale;
use crate::compare::{Comparison, Pair, Word};
use crate::grid::kept;
use crate::markup::Markup;
use crate::number::times;
use crate::svg::{Anchor, Area, Canvas, FONT, Svg, Tip, fitted, text_width};

use super::{Drawn, Key, both};

/// Rows that are still looked at one by one.
const MAX_ROWS: usize = 48;

/// The figure of a comparison.
pub(crate) fn make(comparison: &Comparison<'_>) -> Drawn {
    let with: Vec<&Pair> = comparison.pairs.iter().filter(|pair| pair.ratio.is_some_and(|ratio| ratio > 0.0)).collect();
    if with.is_empty() {
        return Drawn { data: comparison.table(), ..Drawn::nothing("The runs have no measured cell in common.") };
    }
    let mut remarks = Vec::new();
    let mut shown = with.clone();
    if with.len() > MAX_ROWS {
        // The largest differences in both directions, and some of the middle.
        shown.sort_by(|a, b| b.ratio.unwrap_or(1.0).total_cmp(&a.ratio.unwrap_or(1.0)));
        shown = kept(shown.len(), MAX_ROWS).into_iter().map(|i| shown[i]).collect();
        remarks.push(format!(
            "Of {} cells, {MAX_ROWS} are drawn, from the largest gain to the largest loss; the data below has all.",
            with.len()
        ));
    }
    let x = scale(&shown);
    let is_cut = |pair: &&Pair| pair.interval.is_some_and(|interval| x.cuts(interval.low) || x.cuts(interval.high));
    let cut = if shown.iter().any(is_cut) { " Arrow heads: the interval goes on; the data has its ends." } else { "" };
    Drawn {
        data: comparison.table(),
        caption: comparison.summary(),
        reading: format!(
            "Dots are {} over {}, lines 95 % confidence intervals; an interval across the line at 1× is noise; the scale is \
             logarithmic.{cut}{}{}",
            comparison.name,
            comparison.base,
            if comparison.direction().is_empty() { "" } else { " " },
            comparison.direction()
        ),
        remarks,
        legend: legend(&shown),
        pictures: both(|canvas| draw(canvas, &shown, comparison)),
        ..Drawn::default()
    }
}

fn class(word: Word) -> &'static str {
    match word {
        Word::Faster => "better",
        Word::Slower => "worse",
        Word::Noise | Word::Chance | Word::CannotTell | Word::NotMeasured => "same",
    }
}

fn dot(svg: &mut Svg, word: Word, at: (f64, f64)) {
    let shape = match class(word) {
        "better" => 2,
        "worse" => 4,
        _ => 0,
    };
    crate::palette::marker(svg, &format!("dot {}", class(word)), shape, at, 4.5);
}

fn legend(shown: &[&Pair]) -> Vec<Key> {
    let mut keys = Vec::new();
    for (word, name) in [(Word::Faster, "faster"), (Word::Slower, "slower"), (Word::Noise, "noise, or cannot be told")]
    {
        if shown.iter().any(|pair| class(pair.word) == class(word)) {
            keys.push(Key { sample: super::sample(|svg| dot(svg, word, (9.0, 7.0))), name: name.to_owned() });
        }
    }
    keys
}

fn draw(canvas: Canvas, shown: &[&Pair], comparison: &Comparison<'_>) -> Markup {
    let row = if canvas.narrow { 34.0 } else { 22.0 };
    let widest = shown.iter().map(|pair| text_width(&pair.name(), FONT)).fold(0.0, f64::max);
    let left = if canvas.narrow { 10.0 } else { widest.min(330.0) + 14.0 };
    let plot = Area { left, top: 24.0, right: canvas.width - 62.0, bottom: 24.0 + shown.len() as f64 * row + 4.0 };
    let x = scale(shown).over(plot.left + 6.0, plot.right - 6.0);
    let mut svg = Svg::new(canvas, plot.bottom + 42.0);
    svg.text(
        "tt",
        Anchor::Start,
        (2.0, FONT),
        fitted(&format!("{}: {} over {}", ratio_of(shown), comparison.name, comparison.base), FONT, canvas.width),
    );
    for value in ticks(&x) {
        let at = x.at(value);
        svg.line(if value == 1.0 { "one" } else { "gr" }, (at, plot.top), (at, plot.bottom));
    }
    svg.line("ax", (plot.left, plot.bottom), (plot.right, plot.bottom));
    svg.text("tt", Anchor::Middle, ((plot.left + plot.right) / 2.0, plot.bottom + 35.0), axis_title(shown));
    let mut free_from = f64::MIN;
    for value in ticks(&x) {
        let text = format!("{}×", crate::number::tick(value));
        let half = text_width(&text, FONT) / 2.0;
        if x.at(value) - half > free_from {
            svg.text("tk", Anchor::Middle, (x.at(value), plot.bottom + 17.0), text);
            free_from = x.at(value) + half + 6.0;
        }
    }
    for (i, pair) in shown.iter().enumerate() {
        let y = plot.top + (i as f64 + 0.5) * row + if canvas.narrow { 6.0 } else { 0.0 };
        draw_row(&mut svg, canvas, pair, plot, &x, y);
    }
    svg.finish(&format!("{} cell by cell", ratio_of(shown)))
}

fn axis_title(shown: &[&Pair]) -> &'static str {
    if ratio_of(shown) == "Ratio of run times" { "Ratio; 1× is equal, less is faster" } else { "Ratio; 1× is equal" }
}

fn ratio_of(shown: &[&Pair]) -> &'static str {
    let times = shown.iter().filter(|pair| pair.is_cost()).count();
    match times {
        0 => "Ratio of rates",
        n if n == shown.len() => "Ratio of run times",
        _ => "Ratio of rates or run times",
    }
}

fn draw_row(svg: &mut Svg, canvas: Canvas, pair: &Pair, plot: Area, x: &Scale, y: f64) {
    let (Some(ratio), name) = (pair.ratio, pair.name()) else { return };
    if canvas.narrow {
        svg.text("tk", Anchor::Start, (2.0, y - 10.0), fitted(&name, FONT, canvas.width - 4.0));
    } else {
        svg.text("tk", Anchor::End, (plot.left - 8.0, y + 4.0), fitted(&name, FONT, plot.left - 12.0));
    }
    let tip = Tip::new(pair.describe()).with("cell", &pair.id).with("value", ratio).with("word", pair.word.word());
    svg.mark(&tip, |svg| {
        if let Some(interval) = pair.interval {
            let class = format!("iv {}l", class(pair.word));
            svg.line(&class, (x.at(interval.low), y), (x.at(interval.high), y));
            for (end, towards) in [(interval.low, -1.0), (interval.high, 1.0)] {
                if x.cuts(end) {
                    svg.arrow(&class, (x.at(end), y), (towards, 0.0));
                }
            }
        }
        dot(svg, pair.word, (x.at(ratio), y));
        svg.text("v", Anchor::Start, (plot.right + 6.0, y + 4.0), times(ratio));
    });
}

fn scale(shown: &[&Pair]) -> Scale {
    let ratios: Vec<f64> = shown.iter().filter_map(|pair| pair.ratio).collect();
    let (least, most) = ratios.iter().fold((1.0_f64, 1.0_f64), |(low, high), r| (low.min(*r), high.max(*r)));
    let ends = shown.iter().filter_map(|pair| pair.interval).flat_map(|interval| [interval.low, interval.high]);
    // An interval of two repeats can be very wide; it may reach beyond the picture.
    let near = ends.filter(|value| *value >= least / 2.0 && *value <= most * 2.0);
    let (low, high) =
        ratios.iter().copied().chain(near).fold((0.95_f64, 1.05_f64), |(low, high), r| (low.min(r), high.max(r)));
    Scale::log_between(low / 1.03, high * 1.03)
}

fn ticks(x: &Scale) -> Vec<f64> {
    let range = x.high();
    let steps: &[f64] = if range < 1.25 {
        &[0.8, 0.85, 0.9, 0.95, 1.0, 1.05, 1.1, 1.15, 1.2]
    } else if range < 2.5 {
        &[0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5]
    } else {
        &[0.01, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1000.0]
    };
    steps.iter().copied().filter(|value| *value >= x.low() && *value <= x.high()).collect()
}
