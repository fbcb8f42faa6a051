//! Two runs against each other: a dot and an interval a cell, and a line where they are equal.

use crate::compare::{Comparison, Pair, Word};
use crate::number::times;

use super::{Anchor, Canvas, Drawn, Key, Panel, Pen, Plot, Scale, Tip, X, Y, both, kept, palette, tick};

/// Rows that are still looked at one by one.
const MAX_ROWS: usize = 48;

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
            "Of {} cells, {MAX_ROWS} are drawn, from the highest to the lowest ratio; the data below has all.",
            with.len()
        ));
    }
    let x = scale(&shown);
    let is_cut = |pair: &&Pair| pair.interval.is_some_and(|interval| x.cuts(interval.low) || x.cuts(interval.high));
    let cut = if shown.iter().any(is_cut) {
        " An arrow head marks an interval that extends beyond the axis; the data has its ends."
    } else {
        ""
    };
    Drawn {
        data: comparison.table(),
        caption: comparison.summary(),
        reading: format!(
            "Dots are {} over {}; lines are 95 % confidence intervals. An interval that includes 1× is noise. The axis is \
             logarithmic.{cut}{}{}",
            comparison.name,
            comparison.base,
            if comparison.direction().is_empty() { "" } else { " " },
            comparison.direction()
        ),
        remarks,
        legend: legend(&shown),
        pictures: both(&format!("{} cell by cell", ratio_of(&shown)), |canvas| plot(canvas, &shown, comparison)),
        ..Drawn::default()
    }
}

fn class(word: Word) -> &'static str {
    match word {
        Word::Faster => "better",
        Word::Slower => "worse",
        Word::Noise | Word::Chance | Word::CannotTell | Word::NotMeasured | Word::Disturbed => "same",
    }
}

fn shape(word: Word) -> usize {
    match class(word) {
        "better" => 2,
        "worse" => 4,
        _ => 0,
    }
}

fn legend(shown: &[&Pair]) -> Vec<Key> {
    let words = [(Word::Faster, "faster"), (Word::Slower, "slower"), (Word::Noise, "noise or inconclusive")];
    let is_shown = |(word, _): &(Word, &str)| shown.iter().any(|pair| class(pair.word) == class(*word));
    let key = |(word, name)| Key::marker(&format!("dot {}", class(word)), shape(word), name);
    words.into_iter().filter(is_shown).map(key).collect()
}

fn plot<'a>(canvas: Canvas, shown: &'a [&Pair], comparison: &Comparison<'_>) -> Plot<'a> {
    // On a phone a name stands above its row.
    let name = |pair: &&Pair| match canvas.narrow {
        true => (pair.name(), String::new()),
        false => (String::new(), pair.name()),
    };
    let marks = |pen: &mut Pen<'_>| {
        pen.upright("one", 1.0, 0.0);
        for (i, pair) in shown.iter().enumerate() {
            draw_row(pen, pair, pen.rows[i]);
        }
    };
    let title = format!("{}: {} over {}", ratio_of(shown), comparison.name, comparison.base);
    let scale = scale(shown);
    let ticks = ticks(&scale).into_iter().map(|value| (value, format!("{}×", tick(value)))).collect();
    let mut x = X::at(scale, ticks, axis_title(shown)).grid();
    x.inset = 6.0;
    let panel = Panel::new(Y::Rows(shown.iter().map(name).collect()), marks);
    Plot { sides: (10.0, 62.0), ..Plot::new(title, x, vec![panel]) }
}

fn axis_title(shown: &[&Pair]) -> &'static str {
    if ratio_of(shown) == "Ratio of run times" { "Ratio; 1× is equal, below is faster" } else { "Ratio; 1× is equal" }
}

fn ratio_of(shown: &[&Pair]) -> &'static str {
    let times = shown.iter().filter(|pair| pair.is_cost()).count();
    match times {
        0 => "Ratio of rates",
        n if n == shown.len() => "Ratio of run times",
        _ => "Ratio of rates or run times",
    }
}

fn draw_row(pen: &mut Pen<'_>, pair: &Pair, y: f64) {
    let (Some(ratio), x, right) = (pair.ratio, pen.x, pen.area.right) else { return };
    let tip = Tip::new(pair.describe()).with("cell", &pair.id).with("value", ratio).with("word", pair.word.word());
    pen.svg.mark(&tip, |svg| {
        if let Some(interval) = pair.interval {
            let class = format!("iv {}l", class(pair.word));
            svg.line(&class, (x.at(interval.low), y), (x.at(interval.high), y));
            for (end, towards) in [(interval.low, -1.0), (interval.high, 1.0)] {
                if x.cuts(end) {
                    svg.arrow(&class, (x.at(end), y), (towards, 0.0));
                }
            }
        }
        palette::marker(svg, &format!("dot {}", class(pair.word)), shape(pair.word), (x.at(ratio), y), 4.5);
        svg.text("v", Anchor::Start, (right + 6.0, y + 4.0), times(ratio));
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
    let range = x.high().max(1.0 / x.low());
    let steps: &[f64] = if range < 1.25 {
        &[0.8, 0.85, 0.9, 0.95, 1.0, 1.05, 1.1, 1.15, 1.2]
    } else if range < 2.5 {
        &[0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5]
    } else {
        &[0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1000.0]
    };
    steps.iter().copied().filter(|value| *value >= x.low() && *value <= x.high()).collect()
}
