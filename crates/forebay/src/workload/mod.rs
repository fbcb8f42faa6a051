//! `forebay workload`: lists, checks, plans, generates and runs DLIO's workloads.

mod check;
mod checkpoints;
mod import;
mod list;
mod make;
mod out;
mod replay;
mod run;
mod show;
mod size;
mod slurm;
mod source;

use anyhow::Result;
use clap::Subcommand;

use crate::output::Outcome;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the built-in workloads
    List(list::Args),
    /// Show the plan of a workload: files, bytes, steps, required rate, checkpoints
    Show(show::Args),
    /// Check workload files: every key is honoured or refused by name
    Check(check::Args),
    /// Convert a workload, or a traced job, to forebay's TOML
    Import(import::Args),
    /// Show how large a dataset MLPerf Storage's rules require
    Size(size::Args),
    /// Generate the data of a workload; a second run resumes an unfinished one
    Make(make::Args),
    /// Run a workload on emulated accelerators; also reports the figures of DLIO
    Run(Box<run::Args>),
    /// Print a Slurm job script that runs a workload
    Slurm(slurm::Args),
}

pub(crate) fn run(command: Command) -> Result<Outcome> {
    match command {
        Command::List(args) => list::run(&args),
        Command::Show(args) => show::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Import(args) => import::run(args),
        Command::Size(args) => size::run(&args),
        Command::Make(args) => make::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Slurm(args) => slurm::run(&args),
    }
}
