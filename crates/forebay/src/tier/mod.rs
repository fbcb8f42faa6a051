//! `forebay tier`: brings emulated devices up, takes them down, lists them.

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
    /// Bring up emulated devices, or change their limits
    ///
    /// As root: an image file on a loop device, mounted with its own file system. The kernel limits it to the rates of the
    /// profile (Table I of Chien et al. 2018) or to the given rates, but does not emulate seek times; --iops limits requests.
    /// Limits of cgroup v1 are not inherited: they apply only to programs in the root group and in the caller's group, and a
    /// remark names other groups with programs.
    ///
    /// Without root, or with --shaped: a folder. forebay delays its own reads and writes there to match the profile, seek times
    /// included; other programs run at full speed.
    ///
    /// A tier keeps its settings, even across a reboot: its name is enough to bring it up again. Rates can be changed; a
    /// different size, file system or kind is refused. If one of several tiers fails, the others are still brought up and the
    /// exit status is 1, or 2 if all failed.
    Up(up::Args),
    /// Remove tiers with all their data
    ///
    /// Also removes leftovers of a crash. A tier in use stays up, and the programs that use it are named. Files written to a
    /// mount point while nothing was mounted there are kept and named. A tier on top of another is removed first. An unknown
    /// name is not an error.
    Down(down::Args),
    /// List tiers, their limits, and what saved probes measured on them
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

/// Does something for each name: met if all succeeded, missed if some did, an error if none did.
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
