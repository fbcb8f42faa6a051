//! `forebay checkpoint bench`: builds the plan from the flags, measures, prints the table.

use std::path::Path;
use std::sync::atomic::Ordering;

use anyhow::{Context, Result, bail};
use forebay_bench::checkpoint::{CheckpointSettings, Plan};
use forebay_measure::{Kept, Places, spelled};
use forebay_storage::is_url;
use forebay_units::PathText;

use super::{PlaceArgs, files};
use crate::flags::{Flags, flag};
use crate::live::QuietArgs;
use crate::output::{JsonArgs, Outcome};
use crate::{live, stop};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) at: PlaceArgs,

    #[command(flatten)]
    settings: Flags<CheckpointSettings>,

    /// Saves and restores to measure, after one warm-up
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    saves: u32,

    #[command(flatten)]
    quiet: QuietArgs,

    #[command(flatten)]
    json: JsonArgs,
}

pub(super) fn run(args: &Args) -> Result<Outcome> {
    let (places, notes) = args.at.places()?;
    let plan = args.plan(Places { keep: Kept::in_each(1), ..places })?;
    // It works in its own subfolder; the record may be in the same folder, but not in a checkpoint.
    args.json.json.as_deref().map_or(Ok(()), files::check_outside)?;
    let json = args.json.target([])?;
    args.at.folders.dirs().try_for_each(create)?;
    stop::finishing("the save");
    let (mut record, series) = live::observed("saving", "", stop::flag(), args.quiet, |observer| {
        forebay_bench::checkpoint::run(&plan, live::record(&args.at.folders.dir), observer).map_err(anyhow::Error::from)
    })?;
    record.notes.extend(notes);
    record.series = Some(series);
    json.give_record(&record)?;
    Ok(Outcome::of(!stop::flag().load(Ordering::Relaxed)))
}

fn create(dir: &Path) -> Result<()> {
    if is_url(dir) {
        return Ok(());
    }
    std::fs::create_dir_all(dir).with_context(|| format!("cannot create the folder {}", dir.escaped()))
}

impl Args {
    fn plan(&self, places: Places) -> Result<Plan> {
        let settings = self.settings.0.clone();
        if let (None, Some(needs)) = (&places.fast, settings.needs_burst()) {
            bail!("{} needs a burst buffer\nhint: give its folder with --burst-dir DIR", spelled(needs, flag));
        }
        Ok(Plan { settings, places, saves: self.saves as usize, cuda_folders: crate::cuda::folders() })
    }
}
