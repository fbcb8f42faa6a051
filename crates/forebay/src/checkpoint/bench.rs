//! `forebay checkpoint bench`: flags in, plan built, measured, table out.

use std::path::Path;
use std::sync::atomic::Ordering;

use anyhow::{Context, Result, bail};
use forebay_bench::checkpoint::{CheckpointSettings, Plan};
use forebay_measure::{Places, spelled};
use forebay_units::PathText;

use super::{FolderArgs, TierArgs, files};
use crate::flags::{Flags, flag};
use crate::live::QuietArgs;
use crate::output::{JsonArgs, Outcome, give};
use crate::{live, stop};

/// The flags of `forebay checkpoint bench`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    folders: FolderArgs,

    #[command(flatten)]
    tiers: TierArgs,

    #[command(flatten)]
    settings: Flags<CheckpointSettings>,

    /// Saves and restores that are kept, after one that is not
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    saves: u32,

    #[command(flatten)]
    quiet: QuietArgs,

    #[command(flatten)]
    json: JsonArgs,
}

pub(super) fn run(args: &Args) -> Result<Outcome> {
    args.folders.check_usable()?;
    let placements = args.folders.places(&args.tiers, 1)?;
    let plan = args.plan(placements.places)?;
    // It works in a folder of its own beside what is there: a record may lie there too, but not in a checkpoint.
    args.json.json.as_deref().map_or(Ok(()), files::check_outside)?;
    let json = args.json.target([])?;
    args.folders.dirs().try_for_each(create)?;
    stop::finishing("the save");
    let (mut record, series) = live::observed("saving", "", stop::flag(), args.quiet, |observer| {
        forebay_bench::checkpoint::run(&plan, live::record(&args.folders.dir), observer).map_err(anyhow::Error::from)
    })?;
    record.notes.extend(placements.notes);
    record.series = Some(series);
    give(&forebay_report::record(&record), json.as_ref().map(|target| (target, record.to_json())))?;
    let is_stopped = stop::flag().load(Ordering::Relaxed);
    Ok(if is_stopped { Outcome::Missed } else { Outcome::Met })
}

fn create(dir: &Path) -> Result<()> {
    std::fs::create_dir_all(dir).with_context(|| format!("cannot create the folder {}", dir.escaped()))
}

impl Args {
    fn plan(&self, places: Places) -> Result<Plan> {
        let settings = self.settings.0.clone();
        if let (None, Some(needs)) = (&places.fast, settings.needs_burst()) {
            bail!("{}: name the burst buffer with --burst-dir", spelled(needs, flag));
        }
        Ok(Plan { settings, places, saves: self.saves as usize, cuda_folders: crate::cuda::folders() })
    }
}
