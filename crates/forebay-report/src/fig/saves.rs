//! Every checkpoint of a training: how long training stood still for it, and until when it was safe where.

use forebay_record::{SaveFate, StudyCell, TrainCell, TrainCheckpoint, TrainCheckpoints};
use forebay_units::group_digits;

use crate::data::{Data, Value};
use crate::grid::{MAX_GROUPS, kept};
use crate::level;
use crate::number::{brief_seconds, quantity, tick};
use crate::palette;
use crate::saves::fate;
use crate::svg::Tip;
use crate::table::Align::{Left, Right};

use super::groups::{Bar, Groups, Slot};
use super::{Context, Drawn, Key, both, swatch};

/// A run and its checkpoints.
type Run<'a> = (&'a StudyCell, &'a TrainCheckpoints);

pub(super) fn make(context: &Context<'_>) -> Drawn {
    let cells = context.cells();
    let of = |cell: &'_ &StudyCell| cell.error.is_none();
    let runs: Vec<Run<'_>> = cells
        .into_iter()
        .filter(of)
        .filter_map(|cell| Some((cell, cell.measured_one::<TrainCell>()?.checkpoints.as_ref()?)))
        .filter(|(_, saved)| !saved.saves.is_empty())
        .take(palette::N_HUES)
        .collect();
    if runs.is_empty() {
        return Drawn::nothing("No cell of this figure made checkpoints.");
    }
    let mut steps: Vec<u64> = runs.iter().flat_map(|(_, saved)| saved.saves.iter().map(|save| save.step)).collect();
    steps.sort_unstable();
    steps.dedup();
    let shown: Vec<u64> = kept(steps.len(), MAX_GROUPS).into_iter().map(|i| steps[i]).collect();
    let mut remarks = Vec::new();
    if shown.len() < steps.len() {
        remarks.push(format!("Of {} checkpoints, {} are drawn; the data below has all.", steps.len(), shown.len()));
    }
    let classes: Vec<String> =
        (0..runs.len()).map(|i| if runs.len() == 1 { palette::shade(0, 1) } else { palette::hue(i) }).collect();
    let groups = Groups {
        names: shown.iter().map(|step| group_digits(*step)).collect(),
        x_title: "After step".to_owned(),
        y_title: "Standing still for a checkpoint in seconds".to_owned(),
        show: tick,
        right: None,
        limit: None,
        classes: classes.clone(),
        slots: shown.iter().map(|step| runs.iter().map(|run| slot(run, *step)).collect()).collect(),
    };
    Drawn {
        data: data(&runs),
        caption: caption(&runs),
        reading: reading(&runs),
        remarks,
        legend: legend(&runs, &classes),
        pictures: both(|canvas| groups.draw(canvas, &context.spec.title)),
        is_open: true,
        ..Drawn::default()
    }
}

fn slot((cell, saved): &Run<'_>, step: u64) -> Slot {
    let Some(save) = saved.saves.iter().find(|save| save.step == step) else { return Slot::Nothing };
    let tip = Tip::new(describe(save)).with("cell", &cell.id).with("step", step).with("value", save.stall_s);
    match save.fate {
        SaveFate::Skipped | SaveFate::Failed => Slot::Failed(tip.with("failed", "yes")),
        _ => Slot::Bar(Bar {
            value: save.stall_s,
            range: None,
            label: quantity(save.stall_s),
            tip,
            published: None,
            more: None,
        }),
    }
}

/// A save in words, a line a time.
pub(super) fn describe(save: &TrainCheckpoint) -> String {
    let mut text = format!(
        "checkpoint after step {}, at {}: {}\nstood still {}",
        group_digits(save.step),
        brief_seconds(save.at_s),
        fate(save.fate),
        brief_seconds(save.stall_s)
    );
    for (seconds, what) in [(save.durable_fast_s, "first"), (save.durable_slow_s, "last")] {
        if let Some(seconds) = seconds {
            text.push_str(&format!("\ndurable on the {what} tier after {}", brief_seconds(seconds)));
        }
    }
    text
}

fn reading(runs: &[Run<'_>]) -> String {
    let is_not_made = |save: &TrainCheckpoint| matches!(save.fate, SaveFate::Skipped | SaveFate::Failed);
    let crosses = runs.iter().any(|(_, saved)| saved.saves.iter().any(is_not_made));
    let cross = if crosses { " A cross is one that was not made." } else { "" };
    format!("Times count from the moment a checkpoint is asked for.{cross}")
}

fn caption(runs: &[Run<'_>]) -> String {
    let [(_, saved)] = runs else { return String::new() };
    let median =
        saved.median_stall_s.map(|median| format!("Half of the stalls are at most {}.", brief_seconds(median)));
    let longest = saved.saves.iter().max_by(|a, b| a.stall_s.total_cmp(&b.stall_s));
    let longest = longest
        .filter(|_| saved.saves.len() > 1)
        .map(|save| format!("The longest is {}, after step {}.", brief_seconds(save.stall_s), group_digits(save.step)));
    [median, longest].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn legend(runs: &[Run<'_>], classes: &[String]) -> Vec<Key> {
    if runs.len() < 2 {
        return Vec::new();
    }
    let key = |((cell, _), class): (&Run<'_>, &String)| Key {
        sample: swatch(&format!("bar {class}")),
        name: level::all(&cell.factors),
    };
    runs.iter().zip(classes).map(key).collect()
}

fn data(runs: &[Run<'_>]) -> Data {
    let mut data = Data::new(&[
        ("at", "cell", Left),
        ("step", "after step", Right),
        ("at_s", "at, s", Right),
        ("stall_s", "stood still, s", Right),
        ("durable_fast_s", "durable on the first tier, s", Right),
        ("durable_slow_s", "on the last tier, s", Right),
        ("fate", "what became of it", Left),
    ]);
    for (cell, saved) in runs {
        for save in &saved.saves {
            data.row(vec![
                Value::text(level::all(&cell.factors)),
                Value::count(save.step),
                Value::number(save.at_s, quantity),
                Value::number(save.stall_s, quantity),
                Value::maybe(save.durable_fast_s, quantity),
                Value::maybe(save.durable_slow_s, quantity),
                Value::text(fate(save.fate)),
            ]);
        }
    }
    data.hide_if_same("at");
    data
}
