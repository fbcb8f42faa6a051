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

use crate::output::{Json, JsonArgs, Outcome, keep_apart};
use crate::tier::place;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure saving and restoring a state, beside the storage's own rate
    ///
    /// For each mode and format: one warm-up save, then the measured ones, each made durable on all tiers and restored and
    /// verified from the nearest. Works in a hidden folder of its own, which it removes. Missing folders are created, and stay.
    Bench(bench::Args),
    /// List checkpoints, their copies and leftovers; reads no values, changes nothing
    Ls(ls::Args),
    /// Read checkpoints from their devices and compare every checksum; status 1 if one is bad
    Verify(verify::Args),
    /// Copy undrained checkpoints from the burst buffer to DIR and read them back
    Drain(drain::Args),
    /// Remove all but the newest checkpoints, never the only good copy
    Prune(prune::Args),
    /// Write the newest good checkpoint, or that of a given step, to a file
    Restore(restore::Args),
    /// Convert between safetensors files and TensorFlow checkpoints
    ///
    /// Exit status: 1 if the source is damaged (truncated, a failed checksum, not the format its name says) or has string tensors
    /// and --drop-strings is missing; 2 if there is no source, it has what neither format supports, or the target cannot be
    /// written.
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
        self.folders.check_usable()?;
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
        self.dirs().try_for_each(check_exists)?;
        self.check_usable()
    }

    /// The same for a command that creates folders that are missing.
    fn check_usable(&self) -> Result<()> {
        self.dirs().try_for_each(check_folder)?;
        self.burst_dir.as_deref().map_or(Ok(()), |fast| keep_apart(("--burst-dir", fast), ("DIR", &self.dir)))
    }

    /// The folders, nearest first.
    fn dirs(&self) -> impl Iterator<Item = &Path> {
        self.burst_dir.iter().chain([&self.dir]).map(PathBuf::as_path)
    }
}

fn check_exists(dir: &Path) -> Result<()> {
    if !dir.exists() {
        bail!("{}: no such folder", dir.escaped());
    }
    Ok(())
}

fn check_folder(dir: &Path) -> Result<()> {
    if !dir.exists() {
        return files::check_outside(dir);
    }
    if !dir.is_dir() {
        bail!("{} is not a folder", dir.escaped());
    }
    if files::is_checkpoint(&dir.canonicalize()?) {
        let parent = dir.join("..").canonicalize()?;
        bail!("{} is itself a checkpoint\nhint: give its folder, {}", dir.escaped(), parent.escaped());
    }
    Ok(())
}
