//! `forebay checkpoint`: measures what saving costs; lists, verifies, drains, prunes, restores and converts checkpoints.

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
use forebay_measure::{Kept, Place, Places};
use forebay_storage::{Profile, is_url};
use forebay_units::PathText;

use crate::output::{Json, JsonArgs, Outcome, keep_apart};
use crate::store::StoreArgs;
use crate::tier::place;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure saving and restoring a state, and the bare storage for comparison
    ///
    /// For each mode and format: one warm-up save, then the measured saves. Each save is made durable on all tiers, then
    /// restored from the nearest one and verified. Works in a hidden folder, which it removes; missing folders are created and
    /// stay.
    Bench(bench::Args),
    /// List checkpoints, their copies and leftovers; reads no values, changes nothing
    Ls(ls::Args),
    /// Read checkpoints from their devices and check every checksum; exit status 1 if one is bad
    Verify(verify::Args),
    /// Copy undrained checkpoints from the burst buffer to DIR and read them back
    Drain(drain::Args),
    /// Remove all but the newest checkpoints, never the only good copy
    Prune(prune::Args),
    /// Write the newest good checkpoint, or the one of a given step, to a file
    Restore(restore::Args),
    /// Convert between safetensors files and TensorFlow checkpoints
    ///
    /// Exit status: 1 if the source is damaged (truncated, failed checksum, not the format its name implies) or has string
    /// tensors without --drop-strings; 2 if the source does not exist or uses features that cannot be converted, or the target
    /// cannot be written.
    Convert(convert::Args),
}

impl Command {
    /// Sets how the folders are reached that are on object stores.
    fn reach(&self) -> Result<()> {
        let folders = match self {
            Self::Bench(args) => &args.at.folders,
            Self::Ls(args) => &args.folders,
            Self::Verify(args) => &args.at.folders,
            Self::Drain(args) => &args.at.folders,
            Self::Prune(args) => &args.at.folders,
            Self::Restore(args) => &args.at.folders,
            Self::Convert(_) => return Ok(()),
        };
        folders.store.apply(folders.dirs())
    }
}

pub(crate) fn run(command: Command) -> Result<Outcome> {
    command.reach()?;
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
    /// Folder or URL of the checkpoints
    dir: PathBuf,

    /// Burst buffer: the folder that checkpoints are saved to first
    #[arg(long, value_name = "DIR")]
    burst_dir: Option<PathBuf>,

    #[command(flatten)]
    store: StoreArgs,
}

/// The folders and their devices.
#[derive(Debug, clap::Args)]
struct PlaceArgs {
    #[command(flatten)]
    folders: FolderArgs,

    /// Emulate a device below DIR: hdd, ssd, optane, lustre or s3; not needed on a mounted tier
    #[arg(long, value_name = "NAME")]
    tier: Option<Profile>,

    /// Emulate a device below the burst buffer
    #[arg(long, value_name = "NAME", requires = "burst_dir")]
    burst_tier: Option<Profile>,
}

impl PlaceArgs {
    /// The places, and notes on them.
    fn places(&self) -> Result<(Places, Vec<String>)> {
        self.folders.check_usable()?;
        let (slow, mut notes) = place(&self.folders.dir, self.tier.as_ref())?;
        let fast = self.folders.burst_dir.as_deref().map(|dir| place(dir, self.burst_tier.as_ref())).transpose()?;
        let fast = fast.map(|(place, more)| {
            notes.extend(more);
            place
        });
        Ok((Places { slow, fast, keep: Kept::in_each(usize::MAX) }, notes))
    }

    /// The tiers of a command that keeps `keep` checkpoints on each, and the file of its result.
    fn open(&self, json: &JsonArgs, keep: usize) -> Result<(Vec<Tier>, Json)> {
        self.folders.check()?;
        let json = json.target(self.folders.dirs())?;
        Ok((Places { keep: Kept::in_each(keep), ..self.places()?.0 }.tiers(), json))
    }
}

impl FolderArgs {
    fn bare(&self) -> Places {
        Places {
            slow: Place::new(&self.dir),
            fast: self.burst_dir.as_ref().map(Place::new),
            keep: Kept::in_each(usize::MAX),
        }
    }

    /// Refuses folders that are missing, that are checkpoints, or that contain one another.
    fn check(&self) -> Result<()> {
        self.dirs().try_for_each(check_exists)?;
        self.check_usable()
    }

    /// The same for a command that creates missing folders.
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
    // In a store, everything below a bucket exists.
    if !is_url(dir) && !dir.exists() {
        bail!("{}: no such folder", dir.escaped());
    }
    Ok(())
}

fn check_folder(dir: &Path) -> Result<()> {
    if is_url(dir) {
        return Ok(());
    }
    if !dir.exists() {
        return files::check_outside(dir);
    }
    if !dir.is_dir() {
        bail!("{} is not a folder", dir.escaped());
    }
    if files::is_checkpoint(&dir.canonicalize()?) {
        let parent = dir.join("..").canonicalize()?;
        bail!("{} is a checkpoint\nhint: give the folder that contains it, {}", dir.escaped(), parent.escaped());
    }
    Ok(())
}
