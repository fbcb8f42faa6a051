//! `forebay tune`: runs a training again and again with the changes that its advice names, and prints the settings that were found.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Result, bail};
use forebay_bench::Gpus;
use forebay_bench::train::{Ended, Plan, TrainSettings, may_stream};
use forebay_bench::tune::{Options, tune};
use forebay_record::{Level, Levels};
use forebay_storage::{Profile, is_url};
use forebay_study::Placement;
use forebay_units::{PathText, chain, count, format_seconds};

use crate::data::InputArgs;
use crate::flags::{Flags, Pick};
use crate::live::QuietArgs;
use crate::output::{JsonArgs, Outcome, done, remark};
use crate::store::StoreArgs;
use crate::train::CheckpointFolders;
use crate::values::time;
use crate::{live, stop, tier, train};

#[derive(Debug, clap::Args)]
#[command(mut_args(crate::headings::headed))]
pub(crate) struct Args {
    /// A folder of images, a list of `path label` lines, or TFRecord, tar or tensor shards
    data: PathBuf,

    #[command(flatten)]
    input: InputArgs,

    /// Time for all runs together, from 1s to 100h
    #[arg(long, default_value = "5min", value_name = "TIME", value_parser = time("from 1s to 100h", is_sensible))]
    budget: Duration,

    /// Folder on the data's device for samples of the data in other formats, removed at the end; without it, formats are not tried
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,

    /// Also try to read shards in order and shuffle their samples within a window, which changes what is learnt
    #[arg(long)]
    reorder: bool,

    /// Measured runs with the same settings; their spread is the noise below which a change is dropped
    #[arg(long, default_value_t = 2, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1_000))]
    repeats: u32,

    #[command(flatten)]
    settings: Flags<TrainSettings, Tunable>,

    /// Emulate a device: hdd, ssd, optane, lustre or s3; not needed for data on a mounted tier
    #[arg(long, value_name = "NAME")]
    tier: Option<Profile>,

    #[command(flatten)]
    saving: CheckpointFolders,

    #[command(flatten)]
    quiet: QuietArgs,

    /// Show what may be tried and written, without running anything
    #[arg(long, conflicts_with = "json")]
    dry_run: bool,

    #[command(flatten)]
    json: JsonArgs,
}

/// The settings of a training on data.
#[derive(Debug)]
pub(crate) struct Tunable;

impl Pick for Tunable {
    fn has(name: &str) -> bool {
        // Its runs have a length and a number of repeats of their own.
        let is_of_length = ["least_time", "interval"].contains(&name);
        // Data on an object store is not tuned.
        let is_of_objects = ["inflight", "readahead", "cache"].contains(&name);
        !["synthetic", "fail_every"].contains(&name) && !is_of_length && !is_of_objects
    }
}

fn is_sensible(time: Duration) -> bool {
    (Duration::from_secs(1)..=Duration::from_secs(360_000)).contains(&time)
}

pub(crate) fn run(mut args: Args) -> Result<Outcome> {
    if is_url(&args.data) {
        bail!("{}: tune changes how local data is read; use train on an object store", args.data.escaped());
    }
    StoreArgs::of_environment().apply([])?;
    args.data = args.input.path(&args.data)?;
    let placement = tier::placement(&args.data)?;
    if let Some(scratch) = &args.scratch {
        check_scratch(scratch, &args.data)?;
    }
    let (plan, notes) = args.plan(&placement)?;
    let options = args.options();
    if plan.settings.ranks > 1 {
        bail!("--ranks: tune tries settings of one process");
    }
    if plan.settings.steps.is_some() || plan.settings.epochs.is_some() {
        train::check_checkpoints(&plan, &forebay_ranks::Solo)?;
    }
    if options.reorders {
        check_order(&plan)?;
    }
    if args.dry_run {
        return preview(&plan, &options);
    }
    let json = args.json.target([args.data.as_path()])?;
    stop::finishing("the step");
    let (ended, series) = live::observed("tune", "", stop::flag_once_begun(), args.quiet, |observer| {
        Ok(tune(&plan, &options, live::record(&args.data), observer)?)
    })?;
    let Ended { mut record, failure } = ended;
    record.series = Some(series);
    record.notes.extend(notes);
    if let Some(failure) = &failure {
        remark(&format!("forebay: {}", chain(failure)));
    }
    json.give_record(&record)?;
    let is_stopped = stop::flag().load(Ordering::Relaxed);
    Ok(Outcome::of(failure.is_none() && !is_stopped))
}

/// There must be another order to try.
fn check_order(plan: &Plan) -> Result<()> {
    let packing = forebay_bench::train::preview(plan)?.dataset.packing;
    if !may_stream(plan, &packing) {
        bail!(
            "--reorder: only TFRecord, tar and tensor shards that are read sample by sample can be read in another order"
        );
    }
    Ok(())
}

/// The folder must be there and apart from the data, which is only read.
fn check_scratch(scratch: &Path, data: &Path) -> Result<()> {
    if !scratch.is_dir() {
        bail!("--scratch {}: no such folder", scratch.escaped());
    }
    // A folder around the data is fine: only a hidden folder is made in it.
    if data.is_dir() && scratch.canonicalize()?.starts_with(data.canonicalize()?) {
        bail!("--scratch {}: inside the data {}, which is only read", scratch.escaped(), data.escaped());
    }
    Ok(())
}

impl Args {
    /// With notes for the record.
    fn plan(&self, placement: &Placement) -> Result<(Plan, Vec<String>)> {
        let (saves, more) = self.saving.saves(&self.settings.0, Some(&self.data))?.unzip();
        let mut notes = placement.notes_with(self.tier.as_ref());
        notes.extend(more.into_iter().flatten());
        let plan = Plan {
            settings: self.settings.0.clone(),
            data: Some(self.data.clone()),
            keys: self.input.keys(),
            tier: self.tier.clone().or_else(|| placement.shaped.clone()),
            kernel_tier: placement.kernel.clone(),
            cuda_folders: crate::cuda::folders(),
            gpus: Gpus::cuda(crate::cuda::folders()),
            validate: None,
            saves,
            warmups: 0,
            repeats: self.repeats as usize,
            until: None,
        };
        Ok((plan, notes))
    }

    fn options(&self) -> Options {
        let tier = self.tier.as_ref().map(|tier| ("tier".to_owned(), Level::Text(tier.name.clone())));
        let data_flags: Levels = tier.into_iter().chain(self.input.given()).chain(self.saving.given()).collect();
        Options {
            budget: self.budget,
            scratch: self.scratch.clone(),
            reorders: self.reorder,
            settings: self.settings.1.clone(),
            data_flags,
        }
    }
}

fn preview(plan: &Plan, options: &Options) -> Result<Outcome> {
    let preview = forebay_bench::train::preview(plan)?;
    forebay_bench::train::check(plan)?;
    let has_length = plan.settings.steps.is_some() || plan.settings.epochs.is_some();
    let steps = match has_length {
        true => format!("{} per run", count(preview.n_steps, "step")),
        false => "as many steps per run as suit the budget".to_owned(),
    };
    let formats = match &options.scratch {
        Some(dir) => format!(
            "Other formats are tried on a packed copy of as many samples as a run reads, at most {}, in {}; it is removed at the end.",
            forebay_bench::tune::MOST_PACKED,
            dir.escaped()
        ),
        None if plan.saves.is_none() => "Other formats are not tried without --scratch. Nothing is written.".to_owned(),
        None => "Other formats are not tried without --scratch.".to_owned(),
    };
    let saves = match &plan.saves {
        Some(_) => "Checkpoints go to hidden folders below the given ones, removed after each run.\n",
        None => "",
    };
    done(&format!(
        "{}; {steps}, batches of {}; {}; {} with the same settings; at most {} in all\nMay be tried: {}.\n{formats}\n{saves}",
        train::of_what(&preview.dataset),
        plan.settings.batch,
        train::taken_by(&preview),
        count(plan.repeats as u64, "run"),
        format_seconds(options.budget.as_secs_f64()),
        forebay_bench::tune::may_try(plan, options).join(", "),
    ))
}
