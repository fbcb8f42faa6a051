//! `forebay train`: builds the plan from the flags, joins the ranks, trains the network, prints where the time went.
//!
//! Every rank does the same; only the first one prints and writes the record.

mod args;
mod saving;
#[cfg(test)]
mod tests;

use std::sync::atomic::Ordering;

use anyhow::{Result, bail};
use forebay_bench::train::{Ended, Length, Plan, Preview, preview_on};
use forebay_measure::Observer;
use forebay_ranks::Ranks;
use forebay_record::{DatasetNote, TrainCell};
use forebay_units::{count, group_digits};

pub(crate) use args::Args;
pub(crate) use saving::CheckpointFolders;

use crate::live::QuietArgs;
use crate::output::{Json, Outcome, done, remark};
use crate::together::{said_once, shared};
use crate::{live, stop, tier};
use forebay_study::Placement;

pub(crate) fn run(args: Args) -> Result<Outcome> {
    let ranks = args.ranks.join()?;
    said_once(&*ranks, run_on(args, &*ranks))
}

/// What a run needs, once everything about it was checked.
struct Prepared {
    plan: Plan,
    notes: Vec<String>,
    json: Json,
    threshold: Option<f64>,
    is_dry: bool,
}

fn run_on(args: Args, ranks: &dyn Ranks) -> Result<Outcome> {
    let Prepared { plan, notes, json, threshold, is_dry } = shared(ranks, prepare(args, ranks))?;
    if is_dry {
        let said = shared(ranks, preview(&plan, ranks))?;
        return if ranks.rank() == 0 { done(&said) } else { Ok(Outcome::Met) };
    }
    stop::finishing(if plan.saves.is_some() { "the step and its checkpoint" } else { "the step" });
    // Where nothing is read there is no path, and no file system to describe.
    let data = plan.data.clone().unwrap_or_default();
    let train =
        |observer: Observer<'_>| Ok(forebay_bench::train::run_together(&plan, ranks, live::record(&data), observer)?);
    if ranks.rank() > 0 {
        return train(Observer::deaf(stop::flag())).map(|_| Outcome::Met);
    }
    let (ended, series) = live::observed("train", "", stop::flag_once_begun(), QuietArgs::default(), train)?;
    let Some(Ended { mut record, failure }) = ended else { return Ok(Outcome::Met) };
    record.series = Some(series);
    if let Some(failure) = &failure {
        remark(&format!("forebay: {}", forebay_units::chain(failure)));
    }
    record.notes.extend(notes);
    json.give_record(&record)?;
    Ok(judge(&record.cells, threshold, failure.is_some() || stop::flag().load(Ordering::Relaxed)))
}

fn prepare(mut args: Args, ranks: &dyn Ranks) -> Result<Prepared> {
    args.store.apply(args.inputs().chain(args.checkpoint_dirs()))?;
    args.data = args.data.as_deref().map(|data| args.input.path(data)).transpose()?;
    let placement = args.data.as_deref().map_or(Ok(Placement::default()), tier::placement)?;
    let is_written = !args.dry_run && ranks.rank() == 0;
    let json = if is_written { args.json.target(args.inputs())? } else { Json::NONE };
    let (threshold, is_dry) = (args.min_au, args.dry_run);
    let (plan, notes) = args.into_plan(&placement)?;
    check_validation(&plan, ranks)?;
    check_checkpoints(&plan, ranks)?;
    Ok(Prepared { plan, notes, json, threshold, is_dry })
}

/// Refuses a validation that would never come: it follows a whole epoch.
fn check_validation(plan: &Plan, ranks: &dyn Ranks) -> Result<()> {
    let (Some(_), Length::Steps(n_steps)) = (&plan.validate, plan.settings.length()) else { return Ok(()) };
    let an_epoch = preview_on(plan, ranks)?.steps_per_epoch;
    if n_steps < an_epoch {
        bail!("--validate: {} end before the first epoch, which has {an_epoch}", count(n_steps, "step"));
    }
    Ok(())
}

pub(crate) fn check_checkpoints(plan: &Plan, ranks: &dyn Ranks) -> Result<()> {
    let (Some(_), Some(every)) = (&plan.saves, plan.settings.checkpoint_every) else { return Ok(()) };
    let n_steps = preview_on(plan, ranks)?.n_steps;
    if n_steps < every {
        let steps = count(n_steps, "step");
        bail!("--checkpoint-every {every}: the run ends after {steps}, before the first checkpoint");
    }
    Ok(())
}

fn preview(plan: &Plan, ranks: &dyn Ranks) -> Result<String> {
    let preview = preview_on(plan, ranks)?;
    forebay_bench::train::check(plan)?;
    let steps = count(preview.n_steps, "step");
    let an_epoch = match preview.dataset.path.as_str() {
        "" => String::new(),
        _ => format!(", {} per epoch", group_digits(preview.steps_per_epoch)),
    };
    let (batch, saves) = (group_digits(plan.settings.batch as u64), saving::describe(plan).unwrap_or_default());
    let runs = match plan.warmups + plan.repeats {
        1 => String::new(),
        n => format!("; {} runs, warm-ups included", group_digits(n as u64)),
    };
    let (of_what, taken_by) = (of_what(&preview.dataset), taken_by(&preview));
    let batch = match ranks.size() * plan.settings.ranks as u64 {
        1 => batch,
        n => format!("{batch} per rank, {n} ranks"),
    };
    Ok(format!("{of_what}; {steps} of {batch}{an_epoch}; {taken_by}{saves}{runs}\n"))
}

/// The data in words.
pub(crate) fn of_what(data: &DatasetNote) -> String {
    match data.path.as_str() {
        "" => "one batch in memory".to_owned(),
        path if data.packing == "files" => format!("{path}: {} in files", count(data.n_samples, "sample")),
        path => {
            let shards = count(data.n_files, &format!("{} shard", data.packing));
            format!("{path}: {} in {shards}", count(data.n_samples, "sample"))
        }
    }
}

/// The network, or what stands for one, in words.
pub(crate) fn taken_by(preview: &Preview) -> String {
    match (preview.n_parameters, preview.classes) {
        (Some(n), Some(classes)) => {
            format!("{} ({} parameters, {} classes)", preview.taken_by, group_digits(n), group_digits(classes))
        }
        _ => preview.taken_by.clone(),
    }
}

/// Whether all thresholds were met. A stopped run missed its goal.
fn judge(cells: &[TrainCell], threshold: Option<f64>, stopped: bool) -> Outcome {
    if stopped {
        return Outcome::Missed;
    }
    // Without a step there is nothing to judge: a run that goes on from its last checkpoint has none left.
    let Some(cell) = cells.first() else {
        return Outcome::of(threshold.is_none());
    };
    let au = cell.totals.au_epoch;
    match threshold {
        Some(wanted) if au < wanted => {
            remark(&format!("forebay: an AU of {au:.3}, below the required {wanted}"));
            Outcome::Missed
        }
        _ => Outcome::Met,
    }
}
