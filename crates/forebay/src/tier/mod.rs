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
    /// Bring up emulated devices, or change their limits
    ///
    /// As root: an image file on a loop device with its own file system, mounted, and limited by the kernel to the rates of the
    /// profile (Table I of Chien et al. 2018) or to those given. The kernel limits rates, not seek times; --iops limits requests.
    /// Under cgroup v1, whose limits are not inherited, only programs in the root group and the caller's own group are limited;
    /// a remark names other groups that have programs.
    ///
    /// Without root, or with --shaped: a folder. forebay slows itself down as the profile's device would, seek times included,
    /// when its data lies there; other programs run at full speed.
    ///
    /// A tier keeps its settings, also across a reboot: its name alone brings it up again. Rates can be changed; a different
    /// size, file system or kind is refused. If one of several names fails, the others are still brought up and the exit status
    /// is 1; it is 2 if none could be.
    Up(up::Args),
    /// Remove tiers with all their data
    ///
    /// Also removes what a kill or crash left behind. A tier in use stays up, and its users are named. Files written into a
    /// tier's folder while it was not mounted are kept and named. A tier that lies on another is removed first. A name that does
    /// not exist is no failure.
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
