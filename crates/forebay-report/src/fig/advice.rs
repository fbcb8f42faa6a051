//! Advice beside what it gave: the predicted run time of every named change over the measured one.

use forebay_record::TrainCell;

use crate::advised::{self, Case, NEAR, differing};
use crate::number::{brief_seconds, percent};
use crate::palette;

use super::columns::factors;
use super::{Canvas, Columns, Context, Data, Drawn, Key, Panel, Pen, Plot, Scale, Tip, Value, X, Y, both, level};
use crate::data::Tone;
use crate::table::Align::Left;

/// Classes and shapes of right and of wrong advice.
const RIGHT: (&str, usize) = ("dot c0", 0);
const WRONG: (&str, usize) = ("dot worse", 1);

pub(super) fn make(context: &Context<'_>) -> Drawn {
    let cells = context.cells();
    let cases = advised::cases(context.run, &cells);
    let Some(right) = advised::headline(&cases) else {
        return Drawn::nothing("No cell of this figure has advice and other cells that differ in one free setting.");
    };
    let judged = [Some(right), advised::predicted(&cases), advised::wrong(&cases)];
    let not_tried = cases.iter().filter(|case| case.named.is_none()).count() as u64;
    let drawn: Vec<&Case<'_>> = cases.iter().filter(|case| case.error().is_some()).collect();
    let has_wrong = drawn.iter().any(|case| case.is_right() == Some(false));
    let mut legend = vec![Key::marker(RIGHT.0, RIGHT.1, "right")];
    legend.extend(has_wrong.then(|| Key::marker(WRONG.0, WRONG.1, "wrong: another change was faster")));
    legend.push(Key::line("ideal", "predicted = measured"));
    Drawn {
        data: data(&cases, factors(&cells)),
        judged: judged.into_iter().flatten().collect::<Vec<_>>().join(" "),
        reading: "Each point is the change that a cell's advice named, measured in the cell that has it. Cells whose advice \
                  names no setting (the accelerator or the hardware is the limit) are in the table alone. Both axes are \
                  logarithmic."
            .to_owned(),
        remarks: (not_tried > 0)
            .then(|| format!("The named change was not tried in {}.", forebay_units::count(not_tried, "case")))
            .into_iter()
            .collect(),
        legend: if drawn.is_empty() { Vec::new() } else { legend },
        pictures: match drawn.is_empty() {
            true => Vec::new(),
            false => both(&context.spec.title, |canvas| plot(canvas, &drawn)),
        },
        ..Drawn::default()
    }
}

fn plot<'a>(canvas: Canvas, drawn: &'a [&Case<'_>]) -> Plot<'a> {
    let times = || drawn.iter().filter_map(|case| Some([case.named?.wall_s, case.lever.wall_s])).flatten();
    let (low, high) = (times().fold(f64::MAX, f64::min), times().fold(0.0, f64::max));
    let (x, y) = (Scale::log(low, high), Scale::log(low, high));
    let marks = move |pen: &mut Pen<'_>| {
        pen.straight("ideal", (x.low(), x.low()), (x.high(), x.high()));
        for case in drawn {
            let Some(named) = case.named else { continue };
            let (class, shape) = if case.is_right() == Some(false) { WRONG } else { RIGHT };
            let at = (pen.x.at(named.wall_s), pen.y.at(case.lever.wall_s));
            pen.svg.mark(&tip(case, named.wall_s), |svg| palette::marker(svg, class, shape, at, 4.2));
        }
    };
    let panel =
        Panel { height: Some(if canvas.narrow { 260.0 } else { 330.0 }), ..Panel::new(Y::new(y, 6, round), marks) };
    let x = X::along(x, if canvas.narrow { 4 } else { 8 }, "Measured run time", round);
    Plot { sides: (0.0, 24.0), ..Plot::new("Predicted run time", x, vec![panel]) }
}

fn round(seconds: f64) -> String {
    brief_seconds(seconds).replace(".00 ", " ").replace(".0 ", " ")
}

fn tip(case: &Case<'_>, measured_s: f64) -> Tip {
    let text = format!(
        "{}: {}; predicted {}, measured {}",
        level::all(&case.now.cell.factors),
        case.lever.advice,
        brief_seconds(case.lever.wall_s),
        brief_seconds(measured_s)
    );
    Tip::of(case.now.cell, text).with("x", measured_s).with("value", case.lever.wall_s)
}

fn data(cases: &[Case<'_>], factors: Vec<&str>) -> Data {
    Columns::<&Case<'_>>::new()
        .factors(factors, |case| case.now.cell)
        .number(TrainCell::WALL_S.info.name, "run time", brief_seconds, |case| case.now.wall_s)
        .text("limit", "limit", |case| case.limit)
        .text("lever", "named change", |case| match &case.lever.setting {
            Some(change) => level::named(&change.setting, &change.value),
            None => case.lever.name.clone(),
        })
        .number("predicted_s", "predicted", brief_seconds, |case| {
            case.lever.setting.as_ref().map(|_| case.lever.wall_s)
        })
        .number("measured_s", "measured", brief_seconds, |case| {
            case.lever.setting.as_ref().and(case.named).map(|named| named.wall_s)
        })
        .number("error", "error", percent, |case| case.error())
        .text("best", "fastest change", |case| match std::ptr::eq(case.best.cell, case.now.cell) {
            true => "none".to_owned(),
            false => level::all(&differing(case.now.cell, case.best.cell)),
        })
        .number("best_s", "its run time", brief_seconds, |case| case.best.wall_s)
        .value("is_right", "advice", Left, |case| match (case.is_right(), case.behind()) {
            (None, _) => Value::Word("not tried", Tone::Neither),
            (Some(true), Some(behind)) if behind > NEAR / 5.0 => Value::Word("right, within 10 %", Tone::Good),
            (Some(true), _) => Value::Word("right", Tone::Good),
            (Some(false), _) => Value::Word("wrong", Tone::Bad),
        })
        .of(cases)
}
