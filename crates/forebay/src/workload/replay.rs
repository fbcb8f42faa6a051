//! A traced job that is played again: how `workload` checks, shows, makes and runs it.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use forebay_emulation::{MadeReplay, ReplayPlan, make_replay, run_replay};
use forebay_measure::Observer;
use forebay_units::{Bytes, PathText, count, format_seconds, group_digits, shell_word};
use forebay_workload::replay::{FileOrder, Reading, Replay, ReplayFiles, ReplayLoader};

use super::source::{Source, describe_problem};
use super::{out, run};
use crate::live::QuietArgs;
use crate::output::{Outcome, print};
use crate::{live, progress, stop};

impl Source {
    /// The job, if the file holds a traced one.
    pub(super) fn replay(&self) -> Result<Option<Replay>> {
        let Ok((_, text)) = super::source::text_of(&self.name) else { return Ok(None) };
        let replay = Replay::read(&text)
            .map_err(|problem| anyhow!("{}: {}", self.name.escaped(), describe_problem(&problem, None)))?;
        if let (Some(_), Some(given)) = (&replay, self.overrides.first()) {
            bail!("{given}: a traced job has none of DLIO's keys\nhint: edit {}", self.name.escaped());
        }
        Ok(replay)
    }

    fn stem(&self) -> String {
        let path = Path::new(&self.name);
        path.file_stem().unwrap_or(&self.name).escaped().into_owned()
    }
}

/// The job loader by loader.
pub(super) fn describe(source: &Source, replay: &Replay) -> String {
    let mut rows = vec![("workload", source.stem()), ("job", replay.job.clone()), ("data", replay.root.clone())];
    for (index, loader) in replay.loader.iter().enumerate() {
        rows.push(("loader", of_loader(replay, index, loader)));
        rows.extend(loader.files.iter().map(|files| ("  files", of_files(files))));
    }
    let saves = || replay.checkpoint.iter().filter(|save| !save.is_restore);
    if saves().count() > 0 {
        let bytes = Bytes(saves().map(|save| save.bytes).sum());
        rows.push(("checkpoint", format!("{} of {bytes}", count(saves().count() as u64, "save"))));
    }
    let traced = &replay.traced;
    rows.push(("traced", format!("waited {} of {}", format_seconds(traced.wait_s), format_seconds(traced.loop_s))));
    rows.iter().map(|(name, text)| format!("{name:<10}  {text}\n")).collect()
}

fn of_loader(replay: &Replay, index: usize, loader: &ReplayLoader) -> String {
    let mean = |all: &[f64]| format_seconds(all.iter().sum::<f64>() / all.len() as f64);
    let workers = match loader.workers {
        0 => "the loop fetches its batches itself".to_owned(),
        n => format!("{}, {} ahead each", count(n, "worker"), count(loader.prefetch, "batch")),
    };
    let n_passes = replay.n_passes(index);
    let passes = if n_passes == 1 { "1 pass".to_owned() } else { format!("{} passes", group_digits(n_passes)) };
    format!(
        "{passes} of {}; {workers}; {} of work per fetch, {} of compute per step",
        count(loader.steps, "step"),
        mean(&loader.decode_s),
        mean(&loader.compute_s)
    )
}

fn of_files(files: &ReplayFiles) -> String {
    let order = if files.order == FileOrder::Random { "at random" } else { "by name" };
    let reading = match files.reading {
        Reading::Whole => "whole",
        Reading::Sequential => "in parts, one after the other",
        Reading::Random => "in parts, at random",
    };
    format!(
        "{} of {}, visited {order}, read {reading}: {} opens, {} reads of {}",
        count(files.files, format!("{} file", files.ending).trim_start()),
        Bytes(files.bytes),
        group_digits(files.opens),
        group_digits(files.reads),
        Bytes(files.bytes_read)
    )
}

fn folder(data: Option<&Path>, replay: &Replay) -> PathBuf {
    data.map_or_else(|| PathBuf::from(&replay.root), Path::to_owned)
}

/// Makes data like the job's own; never in its own folder unless that is named.
pub(super) fn make(source: &Source, replay: &Replay, data: Option<&Path>, is_dry: bool) -> Result<Outcome> {
    let Some(data) = data else {
        bail!("give the folder for the made data: --data DIR; {} is the job's own", replay.root);
    };
    let all = || replay.loader.iter().flat_map(|loader| &loader.files);
    if is_dry {
        let (n, bytes) = (all().map(|files| files.files).sum(), Bytes(all().map(|files| files.bytes).sum()));
        print(&format!("{}: {} of {bytes} for {}\n", data.escaped(), count(n, "file"), source.name.escaped()))?;
        return Ok(Outcome::Met);
    }
    let bar = progress::unknown("making");
    let made = make_replay(replay, data, Observer::deaf(stop::flag()));
    bar.finish_and_clear();
    let MadeReplay { n_written, n_kept, bytes } = made?;
    let kept = if n_kept > 0 { format!("; {} already there", group_digits(n_kept)) } else { String::new() };
    print(&format!("{}: {} made, {}{kept}\n", data.escaped(), count(n_written, "file"), Bytes(bytes)))?;
    Ok(Outcome::of(!stop::flag().load(std::sync::atomic::Ordering::Relaxed)))
}

/// Plays the job on this process.
pub(super) fn play(args: &run::Args, replay: Replay) -> Result<Outcome> {
    args.refuse_for_replay()?;
    let data = folder(args.data.as_deref(), &replay);
    let settings = &args.settings.0;
    let plan = ReplayPlan {
        name: args.source.stem(),
        checkpoints: args.checkpoint_dir.clone().or_else(|| args.out.as_ref().map(|out| out.join("checkpoints"))),
        is_cold: settings.cold,
        threshold: settings.threshold,
        data,
        replay,
    };
    let explained = |error| explained(args, &plan, error);
    if args.dry_run {
        print(&describe(&args.source, &plan.replay))?;
        plan.foresee().map_err(explained)?;
        return Ok(Outcome::Met);
    }
    let json = args.outputs(&plan.data, args.out.as_deref())?;
    plan.foresee().map_err(explained)?;
    if let Some(out) = &args.out {
        out::begin(out, "--out")?;
    }
    stop::finishing("the step");
    let notes = crate::tier::placement(&plan.data)?;
    if notes.shaped.is_some() {
        bail!(
            "{}: a traced job is played by plain calls, which a device emulated in the process does not slow down\nhint: \
             bring up a tier of the kernel with `forebay tier up`",
            plan.data.escaped()
        );
    }
    let run = |observer: Observer<'_>| {
        run_replay(&plan, live::record::<forebay_record::WorkloadCell>(&plan.data), observer).map_err(explained)
    };
    let (mut record, series) = live::observed("workload", "", stop::flag(), QuietArgs::default(), run)?;
    record.notes.extend(notes.notes_with(None));
    record.series = Some(series);
    run::give_all(args.out.as_deref(), &record, &json)?;
    let stopped = stop::flag().load(std::sync::atomic::Ordering::Relaxed);
    Ok(run::judge(&record.cells, stopped))
}

fn explained(args: &run::Args, plan: &ReplayPlan, error: forebay_emulation::Error) -> anyhow::Error {
    match error {
        forebay_emulation::Error::TooFewFiles { .. } => anyhow!(
            "{error}\nhint: name a copy of {} with --data, or make data like it: forebay workload make {} --data DIR",
            plan.replay.root,
            shell_word(&args.source.name)
        ),
        error => error.into(),
    }
}
