//! `forebay checkpoint restore`: writes the newest good checkpoint to a file for other programs, verified while reading.
//!
//! It is never in memory as a whole. Files are renamed only after the whole checkpoint was checked against its manifest: a
//! checkpoint that turns out to be damaged leaves nothing behind, and the next one is tried.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use anyhow::{Context, Result};
use forebay_checkpoint::format::{self, Format};
use forebay_checkpoint::{Checkpoint, Damage, Error, Name, PassedOver, Tier, list};
use forebay_units::PathText;
use serde::Serialize;

use super::convert::{self, Converted};
use super::{PlaceArgs, files};
use crate::output::{Json, Outcome, Outputs, Schema, complain, remark};
use crate::stop;

/// How often the folders are listed again because they changed meanwhile.
const MAX_RELISTS: usize = 8;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) at: PlaceArgs,

    /// FILE.safetensors or a TensorFlow prefix to write; must not exist
    #[arg(long, value_name = "FILE")]
    to: PathBuf,

    /// Restore the checkpoint of this step instead of the newest
    #[arg(long, value_name = "N")]
    step: Option<u64>,

    /// Replace existing files
    #[arg(long)]
    force: bool,

    /// Write the result as JSON to FILE, or to stdout with "-"; replaces an earlier result
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
}

/// The restored checkpoint; only `passed_over` if none is good.
#[derive(Debug, Default, Serialize)]
struct Report {
    name: Option<String>,
    step: Option<u64>,
    folder: Option<String>,
    metric: Option<f64>,
    /// Newer or nearer checkpoints that are not good.
    passed_over: Vec<String>,
    #[serde(flatten)]
    written: Option<Converted>,
}

pub(super) fn run(args: &Args) -> Result<Outcome> {
    args.at.folders.check()?;
    let (dir, stem) = files::split(&args.to, args.format()?)?;
    files::check_outside(&args.to)?;
    files::check_apart(args.json.as_deref(), &dir, &stem, args.format()?)?;
    let mut outputs = Outputs::for_inputs(args.at.folders.dirs(), args.force);
    files::claim(&mut outputs, "--to", &dir, &stem, args.format()?)?;
    let json = outputs.json(args.json.as_deref())?;
    let tiers = args.at.places()?.0.tiers();
    tiers.iter().try_for_each(|tier| tier.names().map(drop))?;
    let (text, report) = match first_good(args, &tiers) {
        Ok(found) => found,
        Err(error) => return nothing(error, &json),
    };
    report.passed_over.iter().for_each(|one| remark(&format!("forebay: skipped {one}")));
    report.written.iter().flat_map(|written| &written.remarks).for_each(|text| remark(&format!("forebay: {text}")));
    json.give(Schema::CheckpointRestore, &text, &report)?;
    Ok(Outcome::Met)
}

/// Reports that no checkpoint is good, which is also a result.
fn nothing(error: anyhow::Error, json: &Json) -> Result<Outcome> {
    let Some(Error::NothingGood { passed_over, .. }) = error.downcast_ref() else { return Err(error) };
    json.give(Schema::CheckpointRestore, "", &Report { passed_over: in_words(passed_over), ..Report::default() })?;
    complain(&error);
    Ok(Outcome::Missed)
}

fn in_words(passed_over: &[PassedOver]) -> Vec<String> {
    passed_over.iter().map(ToString::to_string).collect()
}

impl Args {
    fn format(&self) -> Result<&'static dyn Format> {
        let is_safetensors = self.to.extension().is_some_and(|extension| extension == "safetensors");
        format::named(if is_safetensors { "safetensors" } else { "tensorflow" }).context("both are in the table")
    }
}

fn wanted(args: &Args, tiers: &[Tier], passed_over: &mut Vec<PassedOver>) -> BTreeMap<Name, Vec<usize>> {
    let mut found = list(tiers, passed_over);
    found.retain(|name, _| args.step.is_none_or(|step| step == name.step));
    found
}

/// Writes the newest checkpoint that is entirely good, from the nearest folder, and leaves nothing of the others.
fn first_good(args: &Args, tiers: &[Tier]) -> Result<(String, Report)> {
    let mut n_relists = 0;
    'relist: loop {
        let mut passed_over = Vec::new();
        let found = wanted(args, tiers, &mut passed_over);
        let copies = found.iter().rev().flat_map(|(name, at)| at.iter().map(|tier| (*name, *tier)));
        for (name, tier) in copies {
            let damage = match write(args, &tiers[tier], name)? {
                Ok((metric, written)) => {
                    let folder = tiers[tier].dir.escaped().into_owned();
                    let text = format!("step {} of {folder}, verified\n{}", name.step, written.text(&args.to));
                    let passed_over = in_words(&passed_over);
                    let (step, written) = (Some(name.step), Some(written));
                    let (name, folder) = (Some(name.to_string()), Some(folder));
                    return Ok((text, Report { name, step, folder, metric, passed_over, written }));
                }
                Err(damage) => damage,
            };
            // It may have been moved to a farther folder after the listing.
            if n_relists < MAX_RELISTS && wanted(args, tiers, &mut Vec::new()) != found {
                n_relists += 1;
                continue 'relist;
            }
            passed_over.push(PassedOver { tier: tiers[tier].dir.clone(), name: Some(name), damage });
        }
        let places: Vec<String> = tiers.iter().map(|tier| tier.dir.escaped().into_owned()).collect();
        return Err(Error::NothingGood { step: args.step, places: places.join(", "), passed_over }.into());
    }
}

/// Writes one checkpoint, checking each piece against the manifest; returns the damage if it is not good.
fn write(args: &Args, tier: &Tier, name: Name) -> Result<Result<(Option<f64>, Converted), Damage>> {
    let checkpoint = match Checkpoint::open(tier, name) {
        Ok(checkpoint) => checkpoint,
        Err(damage) => return Ok(Err(damage)),
    };
    match copy(args, &checkpoint) {
        Ok(written) => Ok(Ok((checkpoint.manifest().metric, written))),
        Err(error) => damage_of(&error).map(Err).ok_or(error),
    }
}

fn copy(args: &Args, checkpoint: &Checkpoint) -> Result<Converted> {
    let catalog = checkpoint.catalog()?;
    let is_good = || match checkpoint.verify_rest(stop::flag()) {
        Err(Error::Stopped) => Err(forebay_dataset::Error::Cancelled.into()),
        other => Ok(other?),
    };
    convert::write(&catalog, checkpoint, &args.to, args.format()?, args.force, &is_good)
}

/// The damage of the checkpoint, if the error was caused by damage.
fn damage_of(error: &anyhow::Error) -> Option<Damage> {
    let of = |cause: &(dyn std::error::Error + 'static)| {
        if cause.is::<files::Unverified>() {
            return Some(Damage::Unreadable { what: cause.to_string() });
        }
        let within = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        let found = match within {
            Some(inner) => inner.downcast_ref::<Error>(),
            None => cause.downcast_ref(),
        };
        match found? {
            Error::Damaged { damage, .. } => Some(damage.clone()),
            other => Some(Damage::Unreadable { what: format!("{:#}", anyhow::Error::from(other.clone())) }),
        }
    };
    error.chain().find_map(of)
}
