//! Every checkpoint of a training: how long training stood still for it, and until when it was safe where.

use forebay_record::{CheckpointCell, SaveFate, StudyCell, TrainCell, TrainCheckpoint, TrainCheckpoints};
use forebay_units::group_digits;

use crate::number::brief_seconds;
use crate::saves::fate;

use super::groups::Slot;
use super::{Bar, Columns, Context, Data, Drawn, Groups, Key, MAX_GROUPS, Tip, level, palette, quantity, thinned};

type Run<'a> = (&'a StudyCell, &'a TrainCheckpoints);

pub(super) fn make(context: &Context<'_>) -> Drawn {
    let runs: Vec<Run<'_>> = context
        .measured::<TrainCell>()
        .into_iter()
        .filter_map(|(cell, train)| Some((cell, train.checkpoints.as_ref()?)))
        .filter(|(_, saved)| !saved.saves.is_empty())
        .take(palette::N_HUES)
        .collect();
    if runs.is_empty() {
        return Drawn::nothing("No cell of this figure saved checkpoints.");
    }
    let mut steps: Vec<u64> = runs.iter().flat_map(|(_, saved)| saved.saves.iter().map(|save| save.step)).collect();
    steps.sort_unstable();
    steps.dedup();
    let mut remarks = Vec::new();
    let shown = thinned(&steps, MAX_GROUPS, "checkpoints", &mut remarks);
    let classes: Vec<String> =
        (0..runs.len()).map(|i| if runs.len() == 1 { palette::shade(0, 1) } else { palette::hue(i) }).collect();
    let names = shown.iter().map(|step| group_digits(**step)).collect();
    let groups = Groups {
        slots: shown.iter().map(|step| runs.iter().map(|run| slot(run, **step)).collect()).collect(),
        ..Groups::new("Stall per checkpoint in seconds", (names, "After step"), classes.clone())
    };
    let names: Vec<String> = runs.iter().map(|(cell, _)| level::all(&cell.factors)).collect();
    Drawn {
        data: data(&runs),
        caption: caption(&runs),
        reading: reading(&runs),
        remarks,
        legend: Key::bars(&names, &classes),
        pictures: groups.pictures(&context.spec.title),
        is_open: true,
        ..Drawn::default()
    }
}

fn slot((cell, saved): &Run<'_>, step: u64) -> Slot {
    let Some(save) = saved.saves.iter().find(|save| save.step == step) else { return Slot::Nothing };
    let tip = Tip::of(cell, describe(save)).with("step", step).with("value", save.stall_s);
    match save.fate {
        SaveFate::Skipped | SaveFate::Failed => Slot::Failed(tip.with("failed", "yes")),
        _ => Slot::Bar(Bar { value: save.stall_s, label: quantity(save.stall_s), tip, ..Bar::default() }),
    }
}

pub(super) fn describe(save: &TrainCheckpoint) -> String {
    let mut text = format!(
        "checkpoint after step {}, at {}: {}\nstalled {}",
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
    let cross = if crosses { " A cross marks a checkpoint that was not saved." } else { "" };
    format!("Times count from the request for a checkpoint.{cross}")
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

fn data(runs: &[Run<'_>]) -> Data {
    let saves = runs.iter().flat_map(|(cell, saved)| saved.saves.iter().map(move |save| (*cell, save)));
    let mut data = Columns::<(&StudyCell, &TrainCheckpoint)>::new()
        .text("at", "cell", |(cell, _)| level::all(&cell.factors))
        .count("step", "after step", |(_, save)| save.step)
        .number("at_s", "at, s", quantity, |(_, save)| save.at_s)
        .number(TrainCell::STALL_S.info.name, "stall, s", quantity, |(_, save)| save.stall_s)
        .number(CheckpointCell::DURABLE_FAST_S.info.name, "durable on the first tier, s", quantity, |(_, save)| {
            save.durable_fast_s
        })
        .number(CheckpointCell::DURABLE_SLOW_S.info.name, "on the last tier, s", quantity, |(_, save)| {
            save.durable_slow_s
        })
        .text("fate", "outcome", |(_, save)| fate(save.fate))
        .of(saves);
    data.hide_if_same("at");
    data
}
