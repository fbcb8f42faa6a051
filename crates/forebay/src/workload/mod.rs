//! `forebay workload`: DLIO's workloads, listed, checked, planned, made, run.

mod check;
mod checkpoints;
mod import;
mod list;
mod make;
mod out;
mod run;
mod show;
mod size;
mod slurm;
mod source;
mod together;

use anyhow::Result;
use clap::Subcommand;

use crate::output::Outcome;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Name the workloads that are built in
    List(list::Args),
    /// Say what a workload would do: files, bytes, steps, demand, checkpoints
    Show(show::Args),
    /// Check DLIO's files or ours: every key is honoured or refused by name
    Check(check::Args),
    /// Write a workload as our TOML, to be changed and kept
    Import(import::Args),
    /// Say how big a dataset MLPerf Storage's rule demands
    Size(size::Args),
    /// Make the data of a workload: seeded, incompressible, in parallel; a second call goes on where the first one stopped
    Make(make::Args),
    /// Run a workload on emulated accelerators: real reads, true utilisation, DLIO's figures beside it
    Run(Box<run::Args>),
    /// Write the job script that runs a workload under Slurm
    Slurm(slurm::Args),
}

pub(crate) fn run(command: Command) -> Result<Outcome> {
    match command {
        Command::List(args) => list::run(&args),
        Command::Show(args) => show::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Import(args) => import::run(&args),
        Command::Size(args) => size::run(&args),
        Command::Make(args) => make::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Slurm(args) => slurm::run(&args),
    }
}
