//! `forebay checkpoint restore`: the newest good checkpoint, verified as it is read, as a file for other programs.

use std::path::PathBuf;

use anyhow::{Context, Result};
use forebay_checkpoint::{Memory, Restored, Tier, Wanted, format, restore_with};
use serde::Serialize;

use super::convert::{self, Converted};
use super::{FolderArgs, JsonArgs, TierArgs, give_both};
use crate::output::{Outcome, complain, remark};
use crate::progress;

/// The flags of `forebay checkpoint restore`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    folders: FolderArgs,

    #[command(flatten)]
    tiers: TierArgs,

    /// Where to write it: FILE.safetensors, or the prefix of a TensorFlow checkpoint
    #[arg(long, value_name = "FILE")]
    to: PathBuf,

    /// The checkpoint of this step, not the newest
    #[arg(long, value_name = "N")]
    step: Option<u64>,

    /// Replace files that are there
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    json: JsonArgs,
}

#[derive(Debug, Serialize)]
struct Report {
    name: String,
    step: u64,
    folder: String,
    metric: Option<f64>,
    /// Newer or nearer ones that are not good.
    passed_over: Vec<String>,
    #[serde(flatten)]
    written: Converted,
}

pub(super) fn run(args: &Args) -> Result<Outcome> {
    args.folders.check()?;
    let json = args.json.target()?;
    let tiers = args.folders.places(&args.tiers, usize::MAX)?.places.tiers();
    tiers.iter().try_for_each(|tier| tier.names().map(drop))?;
    let restored = match read(args, &tiers) {
        Ok(restored) => restored,
        // It ran, and there is nothing good.
        Err(error @ forebay_checkpoint::Error::NothingGood { .. }) => {
            complain(&error.into());
            return Ok(Outcome::Missed);
        }
        Err(error) => return Err(error.into()),
    };
    restored.passed_over.iter().for_each(|one| remark(&format!("forebay: passed over {one}")));
    let written = write(args, &restored)?;
    written.remarks.iter().for_each(|text| remark(&format!("forebay: {text}")));
    let report = Report {
        name: restored.name.to_string(),
        step: restored.name.step,
        folder: tiers[restored.tier].dir.display().to_string(),
        metric: restored.manifest.metric,
        passed_over: restored.passed_over.iter().map(ToString::to_string).collect(),
        written,
    };
    let text = format!("step {} of {}, verified\n{}", report.step, report.folder, report.written.text(&args.to));
    give_both(&text, &report, json.as_ref())?;
    Ok(Outcome::Met)
}

/// Reads it into memory, with a bar.
fn read(args: &Args, tiers: &[Tier]) -> Result<Restored, forebay_checkpoint::Error> {
    let bar = progress::bytes(0);
    bar.set_message("reading");
    let tell = |bytes| {
        bar.inc_length(bytes);
        bar.inc(bytes);
    };
    let wanted = Wanted { step: args.step, progress: Some(&tell) };
    let restored = restore_with(tiers, wanted, &mut Memory::default());
    bar.finish_and_clear();
    restored
}

/// Writes it in the format that the name asks for.
fn write(args: &Args, restored: &Restored) -> Result<Converted> {
    let source = restored.by_name();
    let opened = source.keys().find_map(|file| format::recognise(file));
    let (format, stem) = opened.with_context(|| format!("{} holds no format of ours", restored.name))?;
    let catalog = format.open(stem, &source)?;
    let is_safetensors = args.to.extension().is_some_and(|extension| extension == "safetensors");
    let to = format::named(if is_safetensors { "safetensors" } else { "tensorflow" });
    convert::write(&catalog, &source, &args.to, to.context("both are in the table")?, args.force)
}
