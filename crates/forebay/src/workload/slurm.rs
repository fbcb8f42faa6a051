//! `forebay workload slurm`: prints a job script for `sbatch`.

use std::path::PathBuf;

use anyhow::Result;
use forebay_emulation::{Job, job_script};

use super::run::data_folder;
use super::source::{Source, refused};
use crate::output::{Outcome, print_lines};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: forebay workload slurm unet3d_h100 --nodes 4 --ranks-per-node 2 --data /lustre/unet3d > job.sh; sbatch job.sh")]
pub(crate) struct Args {
    #[command(flatten)]
    source: Source,

    /// Number of nodes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    nodes: u64,

    /// Processes per node
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    ranks_per_node: u64,

    /// Emulated accelerators per process
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=65_536))]
    accelerators: u64,

    /// Data folder on a shared file system; the workload's data_folder by default
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> Result<Outcome> {
    let workload = args.source.read()?.workload;
    let accelerators = args.nodes * args.ranks_per_node * args.accelerators;
    // Problems are reported now, not after the job has waited for its nodes.
    forebay_workload::Plan::new(&workload, accelerators).map_err(|problem| refused(&args.source.name, &problem))?;
    let data = args.data.clone().unwrap_or_else(|| data_folder(&workload));
    print_lines(&job_script(&Job {
        workload: args.source.name.clone(),
        name: workload.name.clone(),
        data,
        nodes: args.nodes,
        ranks_per_node: args.ranks_per_node,
        accelerators: args.accelerators,
        threads: (workload.reader.read_threads * args.accelerators).max(1),
        overrides: args.source.overrides.clone(),
    }))?;
    Ok(Outcome::Met)
}
