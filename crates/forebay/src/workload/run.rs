//! `forebay workload run`: builds the plan from the flags, joins the ranks, runs the plan, prints where the time went.
//!
//! Every rank does the same; only the first one prints and writes the record. A failure of one rank before the run is sent to
//! all ranks, or they would wait for it.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use anyhow::{Result, anyhow, bail};
use forebay_dataset::RECORDS_MARKER;
use forebay_emulation::{INTERRUPTED, Plan, WorkloadSettings, checkpoint_place, checkpoint_warning, data_warning};
use forebay_measure::Observer;
use forebay_ranks::Ranks;
use forebay_record::{Record, WorkloadCell};
use forebay_storage::Profile;
use forebay_units::{PathText, shell_word};
use forebay_workload::{Checked, Format, Part, Workload};

use super::checkpoints::{self, CheckpointFlags};
use super::source::{Source, refused};
use super::{out, replay, show};
use crate::flags::{Flags, flag};
use crate::live::QuietArgs;
use crate::output::{Json, JsonArgs, Outcome, in_words, print, remark};
use crate::together::{RankArgs, said_once, shared};
use crate::{live, stop, tier};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  forebay workload make unet3d_h100 --data /mnt/scratch/unet3d
  forebay workload run unet3d_h100 --data /mnt/scratch/unet3d --accelerators 4 --out results
  mpirun -n 8 forebay workload run dlio.yaml --data /mnt/scratch/unet3d ++workload.reader.read_threads=8")]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) source: Source,

    /// Folder with train and valid; the workload's data_folder by default
    #[arg(long, value_name = "DIR")]
    pub(super) data: Option<PathBuf>,

    #[command(flatten)]
    pub(super) settings: Flags<WorkloadSettings>,

    /// New or empty folder for the record, the page and DLIO's files; the workload's output.folder by default
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,

    /// Log when each sample was read, in a file per rank in --out
    #[arg(long)]
    pub(super) access_log: bool,

    /// Emulate a device: hdd, ssd, optane, lustre or s3; not needed for data on a mounted tier
    #[arg(long, value_name = "NAME")]
    pub(super) tier: Option<Profile>,

    /// Folder for checkpoints
    ///
    /// By default the workload's checkpoint_folder inside --out; without --out a scratch folder in --data, removed at the end.
    #[arg(long, value_name = "DIR")]
    pub(super) checkpoint_dir: Option<PathBuf>,

    #[command(flatten)]
    ranks: RankArgs,

    /// Show the plan without running it
    #[arg(long, conflicts_with = "json")]
    pub(super) dry_run: bool,

    #[command(flatten)]
    json: JsonArgs,
}

pub(super) fn run(args: &Args) -> Result<Outcome> {
    if let Some(replay) = args.source.replay()? {
        return replay::play(args, replay);
    }
    let ranks = args.ranks.join()?;
    said_once(&*ranks, run_on(args, &*ranks))
}

fn run_on(args: &Args, ranks: &dyn Ranks) -> Result<Outcome> {
    let is_new = args.out.as_deref().is_some_and(|out| !out.exists());
    let (plan, checked, mut notes, json) = shared(ranks, prepare(args, ranks))?;
    if args.dry_run {
        let all = forebay_workload::Plan::new(&checked.workload, args.settings.0.all_accelerators() * ranks.size());
        let all = all.map_err(|problem| refused(&args.source.name, &problem))?;
        if ranks.rank() == 0 {
            // The folder of the run, not the workload's own.
            let mut shown = checked.clone();
            shown.workload.storage_root.clear();
            shown.workload.dataset.data_folder = plan.data.escaped().into_owned();
            print(&format!("{}{}", show::describe(&shown, &all), places(&plan)))?;
        }
        foresee(args, &plan, ranks)?;
        return Ok(Outcome::Met);
    }
    if ranks.rank() == 0 {
        checkpoints::announce(&plan, args.settings.0.all_accelerators() * ranks.size());
    }
    let record = observed(args, &plan, ranks).inspect_err(|_| {
        if let Some(out) = plan.out.as_deref().filter(|_| ranks.rank() == 0) {
            checkpoints::remove_with(&plan, out);
            // Removes the folder created for the results if it is empty.
            let _ = is_new.then(|| std::fs::remove_dir(out));
        }
    })?;
    let Some(mut record) = record else { return Ok(Outcome::Met) };
    notes.extend(checked.notes.iter().map(|note| format!("{}: {}", note.key, note.text)));
    record.notes.extend(notes);
    give_all(plan.out.as_deref(), &record, &json)?;
    // Another rank may have been stopped.
    let stopped = record.notes.iter().any(|note| note.starts_with(INTERRUPTED));
    Ok(judge(&record.cells, stopped || stop::flag().load(Ordering::Relaxed)))
}

impl Args {
    /// The file of the record, after all outputs were checked against the inputs.
    pub(super) fn outputs(&self, data: &Path, out: Option<&Path>) -> Result<Json> {
        // Results may be in the same folder as the parts of the data.
        let parts = [Part::Train.folder(), Part::Eval.folder(), RECORDS_MARKER].map(|part| data.join(part));
        let mut outputs = self.json.outputs(parts.iter().map(PathBuf::as_path).chain(self.source.file()));
        out.map_or(Ok(()), |out| outputs.folder(out_named_by(self), out))?;
        self.checkpoint_dir.as_deref().map_or(Ok(()), |dir| outputs.folder("--checkpoint-dir", dir))?;
        self.json.target_of(&mut outputs)
    }
}

impl Args {
    /// Refuses flags that a traced job has no use for.
    pub(super) fn refuse_for_replay(&self) -> Result<()> {
        let of_settings = self.settings.1.keys().filter(|name| !["cold", "threshold"].contains(&name.as_str()));
        let mut given: Vec<String> = of_settings.map(|name| flag(name)).collect();
        given.extend(self.access_log.then(|| "--access-log".to_owned()));
        given.extend(self.tier.as_ref().map(|_| "--tier".to_owned()));
        match given.first() {
            Some(flag) => bail!("{flag}: not for a traced job, which is played as it was"),
            None => Ok(()),
        }
    }
}

fn foresee(args: &Args, plan: &Plan, ranks: &dyn Ranks) -> Result<()> {
    shared(ranks, check_data(args, &plan.workload, &plan.data))?;
    let out = plan.out.as_deref().filter(|_| ranks.rank() == 0);
    shared(ranks, out.map_or(Ok(()), |out| out::check(out, out_named_by(args))))?;
    forebay_emulation::foresee(plan, ranks).map_err(|error| explained(args, plan, error))
}

fn out_named_by(args: &Args) -> &'static str {
    if args.out.is_some() { "--out" } else { "the workload's output.folder" }
}

/// The plan of this rank, notes on the tier of its data, and the file of the record.
fn prepare(args: &Args, ranks: &dyn Ranks) -> Result<(Plan, Checked, Vec<String>, Json)> {
    let checked = args.source.read_with(&args.settings.0)?;
    let workload = &checked.workload;
    let data = args.data.clone().unwrap_or_else(|| data_folder(workload));
    if !args.dry_run {
        check_data(args, workload, &data)?;
    }
    let placement = tier::placement(&data)?;
    let mut notes = placement.notes_with(args.tier.as_ref());
    let out = args.out.clone().or_else(|| workload.output_folder.as_ref().map(PathBuf::from));
    if args.access_log && out.is_none() {
        bail!("--access-log needs --out DIR, the folder for the log");
    }
    let (dir, overrides) = (args.checkpoint_dir.as_deref(), args.source.overrides.as_slice());
    let saves = CheckpointFlags { dir, overrides, workload, data: &data, out: out.as_deref() }.choose()?;
    notes.extend(saves.notes);
    let json = if ranks.rank() == 0 { args.outputs(&data, out.as_deref())? } else { Json::NONE };
    if let Some(out) = out.as_deref().filter(|_| ranks.rank() == 0 && !args.dry_run) {
        out::begin(out, out_named_by(args))?;
    }
    let plan = Plan {
        settings: args.settings.0.clone(),
        checkpoints: saves.place,
        keeps_checkpoints: saves.stays,
        data,
        access_log: out.clone().filter(|_| args.access_log),
        tier: args.tier.clone().or(placement.shaped),
        out,
        workload: workload.clone(),
    };
    Ok((plan, checked, notes, json))
}

/// The default folder of a workload's data, below its storage root.
pub(super) fn data_folder(workload: &Workload) -> PathBuf {
    Path::new(&workload.storage_root).join(&workload.dataset.data_folder).components().collect()
}

/// Refuses a run whose data is missing, with the command that generates it.
fn check_data(args: &Args, workload: &Workload, data: &Path) -> Result<()> {
    let workflow = &workload.workflow;
    let format = workload.dataset.format;
    if !forebay_dataset::is_built_in(format) && workflow.train {
        bail!("dataset.format: {}", forebay_dataset::NO_HDF5);
    }
    if !workflow.train || workflow.generate_data || format == Format::Synthetic {
        return Ok(());
    }
    let folder = data.join(Part::Train.folder());
    let is_empty = match std::fs::read_dir(&folder) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => true,
        Err(error) => return Err(anyhow!("cannot list {}: {error}", folder.escaped())),
    };
    if is_empty {
        bail!("{}: no data for this workload\nhint: {}", folder.escaped(), making(args, data));
    }
    Ok(())
}

fn making(args: &Args, data: &Path) -> String {
    let WorkloadSettings { shrink_bytes, dlio_decode_mb_per_s, .. } = args.settings.0;
    let shrunk = if shrink_bytes > 1.0 { format!(" --shrink-bytes {shrink_bytes}") } else { String::new() };
    let loader = dlio_decode_mb_per_s.map(|rate| format!(" --dlio-decode-mb-per-s {rate}")).unwrap_or_default();
    format!("forebay workload make {} --data {}{shrunk}{loader}", args.source.words(), shell_word(data))
}

/// An error of the run; if files are missing, with the command that generates them.
fn explained(args: &Args, plan: &Plan, error: forebay_emulation::Error) -> anyhow::Error {
    let error = anyhow::Error::from(error);
    let is_missing = error.chain().any(|cause| {
        cause.downcast_ref::<std::io::Error>().is_some_and(|cause| cause.kind() == std::io::ErrorKind::NotFound)
    });
    match is_missing {
        true => anyhow!("{}\nhint: {}", in_words(&error), making(args, &plan.data)),
        false => error,
    }
}

/// Runs the plan. The first rank, which has the terminal, shows the live line and records the machine's activity.
fn observed(args: &Args, plan: &Plan, ranks: &dyn Ranks) -> Result<Option<Record<WorkloadCell>>> {
    stop::finishing("the step");
    let run = |observer: Observer<'_>| {
        let ran = forebay_emulation::run(plan, ranks, live::record(&plan.data), observer);
        ran.map_err(|error| explained(args, plan, error))
    };
    if ranks.rank() > 0 {
        return run(Observer::deaf(stop::flag()));
    }
    let (record, series) = live::observed("workload", "", stop::flag(), QuietArgs::default(), run)?;
    Ok(record.map(|record| Record { series: Some(series), ..record }))
}

/// Writes the result to stdout, the record to --json, and both to the folder.
pub(super) fn give_all(out: Option<&Path>, record: &Record<WorkloadCell>, json: &Json) -> Result<()> {
    // Print the result even if it cannot be saved.
    let page = out.map(|out| out::finish(out, record));
    json.give_record(record)?;
    if let Some(page) = page.transpose()? {
        remark(&format!("forebay: report: {}", page.escaped()));
    }
    Ok(())
}

fn places(plan: &Plan) -> String {
    let system = forebay_measure::describe_environment(&plan.data, "").data_file_system;
    let system = system.map(|system| format!(" ({system})")).unwrap_or_default();
    let mut out = format!("{:<10}  {}{system}\n", "data in", plan.data.escaped());
    if let Some(place) = checkpoint_place(plan) {
        out.push_str(&format!("{:<10}  {}\n", "saves to", place.describe()));
    }
    if let Some(to) = &plan.out {
        out.push_str(&format!("{:<10}  {}\n", "results in", to.escaped()));
    }
    let trains = plan.workload.workflow.train && !plan.workload.workflow.generate_data;
    let of_data = trains.then(|| data_warning(plan)).flatten();
    out.extend(of_data.into_iter().chain(checkpoint_warning(plan)).map(|warning| format!("WARNING: {warning}\n")));
    out
}

/// Whether all thresholds were met. A stopped run missed its goal.
pub(super) fn judge(cells: &[WorkloadCell], stopped: bool) -> Outcome {
    let missed = cells.iter().flat_map(|cell| &cell.judged).find(|judged| judged.is_decisive && !judged.is_met);
    if let Some(missed) = missed {
        let value = missed.value.map_or("–".to_owned(), |value| format!("{:.1} %", 100.0 * value));
        // Rounded, since 0.57 × 100 is not exactly 57.
        let limit = (missed.limit * 1e6).round() / 1e4;
        remark(&format!("forebay: {}: {value}, below the required {limit} %", missed.what));
    }
    Outcome::of(!stopped && missed.is_none())
}
