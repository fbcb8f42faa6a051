//! `forebay tier`: emulated devices, brought up, taken down and listed.

mod down;
mod list;
mod measured;
mod placement;
mod up;

use std::ops::ControlFlow;

use anyhow::Result;
use clap::Subcommand;
use forebay_storage::tier::{Moment, Registry};

use crate::output::{Outcome, complain};

pub(crate) use placement::{place, placement};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make emulated devices, or change the limits of those that are up
    ///
    /// As root: an image file on a loop device with a file system of its own, mounted, and limited by the kernel to the rates of
    /// the profile (Table I of Chien et al. 2018) or to those given. The kernel limits rates, not seek times; --iops limits
    /// requests. Under control groups of version 1, whose limits are not inherited, only programs in the root group and in the
    /// caller's own are limited; a remark names other groups with programs in them.
    ///
    /// Without root, or with --shaped: a folder. forebay ingest slows itself down as the profile's device would, seek times
    /// included, when its data lies there; other programs are not slowed down.
    ///
    /// A tier that is there keeps what no flag names, also after a restart of the machine: its name alone brings it up as it
    /// was. A tier that is up as asked for is left alone; other rates are set; another size, file system or kind is refused. When one of
    /// several names fails, the others are still brought up, and the exit status is 1; it is 2 when none could be.
    Up(up::Args),
    /// Remove tiers with all data on them; all tiers if none is named
    ///
    /// Also removes what a kill or a crash left half-way. A tier that somebody works on is left up, and they are named. Files
    /// that were put into the folder of a tier while it was not mounted are not removed, but named. A tier that lies on
    /// another one goes before it. A name that is not there is no failure.
    Down(down::Args),
    /// Show all tiers, their limits, and what a saved probe measured on each
    List(list::Args),
}

pub(crate) fn run(command: Command) -> Result<Outcome> {
    match command {
        Command::Up(args) => up::run(args),
        Command::Down(args) => down::run(&args),
        Command::List(args) => list::run(&args),
    }
}

fn registry() -> Result<Registry> {
    Ok(Registry::new(crate::home::dir()?.join("tiers")))
}

fn go_on(_: Moment) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Does something for each name: met when all went well, missed when some did, an error when none did.
fn each(names: &[String], mut act: impl FnMut(&str) -> Result<()>) -> Result<Outcome> {
    let mut errors = Vec::new();
    for name in names {
        errors.extend(act(name).err());
    }
    let n_failed = errors.len();
    let last = if n_failed == names.len() { errors.pop() } else { None };
    errors.iter().for_each(complain);
    match last {
        Some(last) => Err(last),
        None => Ok(Outcome::of(n_failed == 0)),
    }
}
