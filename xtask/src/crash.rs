//! Fault injection for checkpoints: the campaign of `forebay-checkpoint`'s example.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::shell::{cargo, scratch};
use crate::tally::Tally;

/// Builds the campaign and runs it with these arguments.
pub fn run_campaign(tally: &Tally, args: &[&str]) -> Result<()> {
    let mut command = cargo(&["run", "--quiet", "--package", "forebay-checkpoint", "--example", "crash"]);
    if !args.contains(&"--short") {
        command.arg("--release");
    }
    command.arg("--");
    run_built(tally, command, args)
}

/// Runs the campaign, which this command starts, with these arguments.
pub fn run_built(tally: &Tally, mut command: Command, args: &[&str]) -> Result<()> {
    if !args.contains(&"--in") {
        // In memory: disks whose power is cut are there too, and thousands of syncs cost nothing.
        let memory = Path::new("/dev/shm");
        command.arg("--in").arg(if memory.is_dir() { memory.to_owned() } else { scratch("crash")? });
    }
    tally.run(command.args(args))
}
