//! The checkpoints of a training run in words: how many, where, what they cost, and what became of them.

use forebay_record::{SaveFate, TrainCell, TrainCheckpoints};
use forebay_units::{count, group_digits};

use crate::number::{brief_seconds, bytes, capital, percent, was};

/// The paragraph of a cell; empty without checkpoints and without a resumption.
pub(crate) fn paragraph(cell: &TrainCell) -> Vec<String> {
    let mut said: Vec<String> = cell.resumed_from.map(resumed).into_iter().collect();
    if let Some(saved) = &cell.checkpoints {
        said.push(made(saved));
        said.extend(cost(cell, saved));
        said.extend(drained(saved));
        said.extend(fates(saved));
    }
    said
}

fn resumed(step: u64) -> String {
    format!("The run resumed from the checkpoint of step {}.", group_digits(step))
}

/// How many of which size went where: "5 checkpoints of 612 MB, every 20 steps, safetensors, burst: to optane, then hdd."
fn made(saved: &TrainCheckpoints) -> String {
    let every =
        if saved.every == 1 { "every step".to_owned() } else { format!("every {} steps", group_digits(saved.every)) };
    format!(
        "{} of {}, {every}, {}, {}.",
        capital(&count(saved.n_made(), "checkpoint")),
        bytes(saved.bytes),
        saved.format,
        place(saved)
    )
}

/// How and where: "burst: to optane, then hdd".
pub(crate) fn place(saved: &TrainCheckpoints) -> String {
    let (fast, slow) = (saved.burst_tier(), saved.medium.tier.as_deref());
    match (fast, slow) {
        (Some(fast), Some(slow)) => format!("{}: to {fast}, then {slow}", saved.mode),
        (Some(fast), None) => format!("{}: to {fast} first", saved.mode),
        (None, Some(slow)) => format!("{} to {slow}", saved.mode),
        (None, None) => saved.mode.clone(),
    }
}

fn cost(cell: &TrainCell, saved: &TrainCheckpoints) -> Option<String> {
    let median = saved.median_stall_s?;
    let (all, wall) = (cell.totals.checkpoint_s, cell.totals.wall_s);
    let share = Some(all / wall).filter(|share| share.is_finite());
    Some(format!(
        "Training stalled for {} each (median), {} in all{}.",
        brief_seconds(median),
        brief_seconds(all),
        share.map(|share| format!(", {} of the run", percent(share))).unwrap_or_default()
    ))
}

fn drained(saved: &TrainCheckpoints) -> Option<String> {
    let seconds = saved.drain_after_s?;
    (seconds > 0.0 && seconds.is_finite())
        .then(|| format!("Draining continued for {} after the last step.", brief_seconds(seconds)))
}

fn fates(saved: &TrainCheckpoints) -> Option<String> {
    let parts: Vec<String> = [
        (SaveFate::OnFast, "left on the first tier for the next start to drain"),
        (SaveFate::Skipped, "skipped, because earlier ones were not finished"),
        (SaveFate::Superseded, "replaced by a newer one before it was drained"),
        (SaveFate::Failed, "not saved: it failed"),
    ]
    .into_iter()
    .filter_map(|(fate, what)| {
        let n = saved.n(fate);
        let what = if fate == SaveFate::Failed && n != 1 { "not saved: they failed" } else { what };
        (n > 0).then(|| format!("{n} {} {what}", was(n)))
    })
    .collect();
    (!parts.is_empty()).then(|| parts.join("; ") + ".")
}

pub(crate) fn fate(fate: SaveFate) -> &'static str {
    match fate {
        SaveFate::Saved => "saved",
        SaveFate::OnFast => "on the first tier",
        SaveFate::Skipped => "skipped",
        SaveFate::Superseded => "replaced",
        SaveFate::Failed => "failed",
    }
}
