//! The path of `forebay tune`: every run with what was predicted, what was measured, and what came of it.

use forebay_record::{TrainCell, TuningOutcome};

use crate::data::Tone;
use crate::level;
use crate::number::{brief_seconds, percent};
use crate::palette;
use crate::table::Align::{Left, Right};
use crate::tuned::{self, Tried};
use crate::verdict::limit_name;

use super::{Columns, Context, Data, Drawn, Key, Panel, Pen, Plot, Scale, Tip, Value, X, Y, both, tick};

/// Classes and shapes of runs that were kept, of dropped ones, and of predictions.
const KEPT: (&str, usize) = ("dot c0", 0);
const DROPPED: (&str, usize) = ("dot c1", 1);
const PREDICTED: (&str, usize) = ("dot c4", 3);
/// The line through the fastest runs so far.
const FASTEST: &str = "tr c0l";

pub(super) fn make(context: &Context<'_>) -> Drawn {
    let path = tuned::path(context.run);
    let Some(best) = tuned::best(&path) else {
        return Drawn::nothing("No cell of this figure is a run of forebay tune.");
    };
    let has = |outcome| path.iter().any(|tried| tried.tuning.outcome == outcome);
    let mut legend = vec![Key::marker(KEPT.0, KEPT.1, "measured, kept")];
    legend.extend(has(TuningOutcome::Dropped).then(|| Key::marker(DROPPED.0, DROPPED.1, "measured, dropped")));
    let has_prediction = path.iter().any(|tried| tried.tuning.predicted_s.is_some());
    legend.extend(has_prediction.then(|| Key::marker(PREDICTED.0, PREDICTED.1, "predicted")));
    legend.push(Key::line(FASTEST, "fastest so far"));
    Drawn {
        data: data(&path),
        reading: "Each run has the changes of the kept runs before it and one more. A change is kept if the run became faster by \
                  more than the noise of the repeats."
            .to_owned(),
        legend,
        pictures: if path.len() > 1 {
            both(&context.spec.title, |_| plot(&path))
        } else {
            Vec::new()
        },
        code: tuned::code(context.run, &best),
        is_open: true,
        ..Drawn::default()
    }
}

/// The change before a run in words.
fn change(tried: &Tried<'_>) -> String {
    tried.tuning.change.as_ref().map_or_else(|| "none".to_owned(), tuned::flag)
}

fn plot<'a>(path: &'a [Tried<'a>]) -> Plot<'a> {
    let times = path.iter().flat_map(|tried| [Some(tried.wall_s), tried.tuning.predicted_s]).flatten();
    let y = Y::new(Scale::from_zero(times.fold(0.0, f64::max)), 6, tick);
    let marks = |pen: &mut Pen<'_>| {
        let mut fastest = f64::INFINITY;
        let line = path.iter().enumerate().map(|(i, tried)| {
            let is_kept = tried.tuning.outcome != TuningOutcome::Dropped;
            fastest = if is_kept { tried.wall_s } else { fastest };
            (i as f64, fastest)
        });
        let line: Vec<(f64, f64)> = line.collect();
        pen.line(FASTEST, line);
        for (i, tried) in path.iter().enumerate() {
            let predicted = tried.tuning.predicted_s.map(|seconds| (seconds, PREDICTED));
            let kind = if tried.tuning.outcome == TuningOutcome::Dropped { DROPPED } else { KEPT };
            for (seconds, (class, shape)) in predicted.into_iter().chain([(tried.wall_s, kind)]) {
                let at = (pen.x.at(i as f64), pen.y.at(seconds));
                pen.svg.mark(&tip(tried), |svg| palette::marker(svg, class, shape, at, 4.5));
            }
        }
    };
    let x = X::bands(path.iter().map(change), "Change before the run");
    Plot::new("Run time, s", x, vec![Panel::new(y, marks)])
}

fn tip(tried: &Tried<'_>) -> Tip {
    let predicted = tried.tuning.predicted_s.map(|s| format!("predicted {}, ", brief_seconds(s))).unwrap_or_default();
    let measured = brief_seconds(tried.wall_s);
    let text = format!("{}: {predicted}measured {measured}", level::all(&tried.cell.factors));
    Tip::of(tried.cell, text).with("value", tried.wall_s)
}

fn data(path: &[Tried<'_>]) -> Data {
    Columns::<(usize, &Tried<'_>)>::new()
        .count("run", "run", |(i, _)| *i as u64 + 1)
        .text("change", "change", |(_, tried)| change(tried))
        .number("predicted_s", "predicted", brief_seconds, |(_, tried)| tried.tuning.predicted_s)
        .number("error_s", "±", brief_seconds, |(_, tried)| tried.tuning.error_s)
        .value("measured_s", "measured", Right, |(_, tried)| {
            Value::number(tried.wall_s, brief_seconds).marked(tried.train.disturbed)
        })
        .number("gain", "difference", tuned::signed, |(_, tried)| tried.gain())
        .number("noise", "noise", percent, |(_, tried)| tried.tuning.noise)
        .value("outcome", "outcome", Left, |(_, tried)| match tried.tuning.outcome {
            TuningOutcome::Start => Value::Word("start", Tone::Neither),
            TuningOutcome::Kept => Value::Word("kept", Tone::Good),
            TuningOutcome::Dropped => Value::Word("dropped", Tone::Neither),
        })
        .number(TrainCell::AU_EPOCH.info.name, "AU", percent, |(_, tried)| tried.train.totals.au_epoch)
        .text("limit", "limit", |(_, tried)| {
            tried.train.limit.as_ref().and_then(|limit| limit_name(&limit.name)).unwrap_or_default()
        })
        .of(path.iter().enumerate())
}
