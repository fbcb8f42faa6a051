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
use forebay_measure::{Place, Places};
use forebay_storage::Profile;
use forebay_units::PathText;
use serde::Serialize;

use crate::output::{self, Outcome, Output, give, to_json};
use crate::tier;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure what saving and restoring a state costs, beside what the storage would give
    ///
    /// Each mode with each format: one save that is not kept, then those that are, each made durable on all tiers and
    /// restored, verified, from the nearest one. It works in a hidden folder of its own, which it removes; folders that are missing
    /// are created, and stay.
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

/// Where checkpoints are.
#[derive(Debug, clap::Args)]
struct FolderArgs {
    /// The folder of the checkpoints
    dir: PathBuf,

    /// The burst buffer: the folder that they are saved to first
    #[arg(long, value_name = "DIR")]
    burst_dir: Option<PathBuf>,
}

/// The devices below the folders.
#[derive(Debug, clap::Args)]
struct TierArgs {
    /// Emulate a device in this process below DIR: hdd, ssd, optane or lustre; a tier that is up needs no such word
    #[arg(long, value_name = "NAME")]
    tier: Option<Profile>,

    /// The same below the burst buffer
    #[arg(long, value_name = "NAME", requires = "burst_dir")]
    burst_tier: Option<Profile>,
}

/// The places of a command, and what is to be said of them.
struct Grounds {
    places: Places,
    notes: Vec<String>,
}

impl FolderArgs {
    /// The folders as they are.
    fn bare(&self) -> Places {
        Places { slow: Place::new(&self.dir), fast: self.burst_dir.as_ref().map(Place::new), keep: usize::MAX }
    }

    /// The folders with the devices below them.
    fn places(&self, tiers: &TierArgs, keep: usize) -> Result<Grounds> {
        let (slow, mut notes) = place(&self.dir, tiers.tier.as_ref())?;
        let fast = match &self.burst_dir {
            Some(dir) => {
                let (place, more) = place(dir, tiers.burst_tier.as_ref())?;
                notes.extend(more);
                Some(place)
            }
            None => None,
        };
        Ok(Grounds { places: Places { slow, fast, keep }, notes })
    }

    /// Refuses folders that are not there, one that is itself a checkpoint, and two that are not apart.
    fn check(&self) -> Result<()> {
        self.dirs().try_for_each(check_exists)?;
        self.check_usable()
    }

    /// The same for a command that creates folders that are missing.
    fn check_usable(&self) -> Result<()> {
        self.dirs().try_for_each(check_folder)?;
        let Some(fast) = &self.burst_dir else { return Ok(()) };
        let (near, far) = (output::place(fast), output::place(&self.dir));
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
        bail!("{} is a checkpoint itself; name the folder that it lies in: {}", dir.escaped(), parent.escaped());
    }
    Ok(())
}

fn place(dir: &Path, named: Option<&Profile>) -> Result<(Place, Vec<String>)> {
    let placement = tier::placement(dir)?;
    let notes = placement.notes_beside(named);
    let shaped = named.cloned().or(placement.shaped);
    Ok((Place { dir: dir.to_owned(), shaped, kernel: placement.kernel }, notes))
}

/// Gives a result as text, and as JSON where that was asked for.
fn give_both<T: Serialize>(text: &str, value: &T, target: Option<&Output>) -> Result<()> {
    let json = target.map(|target| Ok::<_, anyhow::Error>((target, to_json(value)?))).transpose()?;
    give(text, json)
}
