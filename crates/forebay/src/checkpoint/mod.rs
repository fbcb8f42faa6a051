//! `forebay checkpoint`: measure what saving costs; list, verify, drain, prune, restore, convert what is there.

mod bench;
mod convert;
mod drain;
mod dry;
mod files;
mod holder;
mod ls;
mod placing;
mod prune;
mod restore;
mod verify;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Subcommand;
use forebay_checkpoint::Tier;
use forebay_measure::{Place, Places};
use forebay_storage::Profile;
use forebay_units::PathText;

use crate::output::{Json, JsonArgs, Outcome};
use crate::tier::place;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure what saving and restoring a state costs, beside what the storage would give
    ///
    /// Each mode with each format: one save that is not kept, then those that are, each made durable on all tiers and
    /// restored, verified, from the nearest one. It works in a hidden folder of its own, which it removes.
    Bench(bench::Args),
    /// List checkpoints, where their copies are, and what was left behind; reads no values and changes nothing
    Ls(ls::Args),
    /// Read checkpoints whole from their devices and compare every checksum; status 1 when one is not good
    Verify(verify::Args),
    /// Copy to DIR what it lacks of the burst buffer, and read it back; removes no checkpoint
    Drain(drain::Args),
    /// Remove all but the newest checkpoints, never the only good copy
    Prune(prune::Args),
    /// Write the newest good checkpoint, or that of a step, to a file
    Restore(restore::Args),
    /// Turn a safetensors file into a TensorFlow checkpoint, or the other way round, whoever wrote it
    ///
    /// Exit status: 1 when the source is damaged (cut off, a failed checksum, not the format its name says) or has string
    /// tensors and --drop-strings is missing; 2 when there is no source, it has what neither format supports, or the
    /// target cannot be written.
    Convert(convert::Args),
}

pub(crate) fn run(command: Command) -> Result<Outcome> {
    match command {
        Command::Bench(args) => bench::run(&args),
        Command::Ls(args) => ls::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Drain(args) => drain::run(&args),
        Command::Prune(args) => prune::run(&args),
        Command::Restore(args) => restore::run(&args),
        Command::Convert(args) => convert::run(&args),
    }
}

#[derive(Debug, clap::Args)]
struct FolderArgs {
    /// Folder of the checkpoints
    dir: PathBuf,

    /// Burst buffer: the folder that checkpoints are saved to first
    #[arg(long, value_name = "DIR")]
    burst_dir: Option<PathBuf>,
}

/// The folders, and the devices below them.
#[derive(Debug, clap::Args)]
struct PlaceArgs {
    #[command(flatten)]
    folders: FolderArgs,

    /// Emulate a device below DIR: hdd, ssd, optane or lustre; not needed on a mounted tier
    #[arg(long, value_name = "NAME")]
    tier: Option<Profile>,

    /// Emulate a device below the burst buffer
    #[arg(long, value_name = "NAME", requires = "burst_dir")]
    burst_tier: Option<Profile>,
}

impl PlaceArgs {
    /// The places, and what to note of them.
    fn places(&self) -> Result<(Places, Vec<String>)> {
        self.folders.check()?;
        let (slow, mut notes) = place(&self.folders.dir, self.tier.as_ref())?;
        let fast = self.folders.burst_dir.as_deref().map(|dir| place(dir, self.burst_tier.as_ref())).transpose()?;
        let fast = fast.map(|(place, more)| {
            notes.extend(more);
            place
        });
        Ok((Places { slow, fast, keep: usize::MAX }, notes))
    }

    /// The tiers of a command that keeps so many checkpoints on each, and the file of its result.
    fn open(&self, json: &JsonArgs, keep: usize) -> Result<(Vec<Tier>, Json)> {
        self.folders.check()?;
        let json = json.target(self.folders.dirs())?;
        Ok((Places { keep, ..self.places()?.0 }.tiers(), json))
    }
}

impl FolderArgs {
    fn bare(&self) -> Places {
        Places { slow: Place::new(&self.dir), fast: self.burst_dir.as_ref().map(Place::new), keep: usize::MAX }
    }

    /// Refuses folders that are missing, are checkpoints themselves, or lie one in the other.
    fn check(&self) -> Result<()> {
        self.dirs().try_for_each(check_folder)?;
        let Some(fast) = &self.burst_dir else { return Ok(()) };
        let (near, far) = (fast.canonicalize()?, self.dir.canonicalize()?);
        if near == far {
            bail!("--burst-dir: {} is the folder of the checkpoints itself", fast.escaped());
        }
        if near.starts_with(&far) || far.starts_with(&near) {
            bail!("--burst-dir: {} and {} lie one in the other; keep them apart", fast.escaped(), self.dir.escaped());
        }
        Ok(())
    }

    /// The folders, nearest first.
    fn dirs(&self) -> impl Iterator<Item = &Path> {
        self.burst_dir.iter().chain([&self.dir]).map(PathBuf::as_path)
    }
}

fn check_folder(dir: &Path) -> Result<()> {
    if !dir.exists() {
        bail!("{}: no such folder", dir.escaped());
    }
    if !dir.is_dir() {
        bail!("{} is not a folder", dir.escaped());
    }
    if files::is_checkpoint(&dir.canonicalize()?) {
        let parent = dir.join("..").canonicalize()?;
        bail!("{} is a checkpoint itself; name the folder that it lies in: {}", dir.escaped(), parent.escaped());
    }
    Ok(())
}
