//! `forebay study slurm`: prints a job script that runs a whole study on one node.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Result;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use forebay_record::{Scale, Step};
use forebay_study::{Found, Plan};
use forebay_units::{count, shell_word};

use super::run::scale;
use super::{explained, found};
use crate::output::{Outcome, print_lines};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: forebay study slurm hugen-2025 --scale full --data /scratch/hugen > job.sh; sbatch job.sh"
)]
pub(crate) struct Args {
    /// Name of a built-in study, or a study file
    #[arg(value_name = "NAME|FILE")]
    study: OsString,

    /// Scale: quick (little data, minutes), standard (every figure with repeats, within an hour) or full (as published, hours)
    #[arg(long, default_value = "full", value_parser = PossibleValuesParser::new(Scale::ALL.map(Scale::name)).map(scale))]
    scale: Scale,

    /// Folder for generated data, which runs can share; by default data in the folder of results
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> Result<Outcome> {
    let Found { spec, .. } = found(&args.study)?;
    // Problems are reported now, not after the job has waited for its node.
    let plan = Plan::new(spec.clone(), args.scale).map_err(|error| explained(Some(&args.study), error))?;
    let (name, scale) = (&spec.name, args.scale.name());
    let data = args.data.as_ref().map_or("\"$out/data\"".to_owned(), |data| shell_word(data).to_string());
    let has_workloads = spec.experiments.iter().any(|experiment| experiment.run == Step::Workload);
    let ranks = if has_workloads { RANKS } else { "" };
    let head = format!(
        "#!/bin/bash
#SBATCH --job-name=forebay-{name}
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --exclusive
#SBATCH --requeue
#SBATCH --output=forebay-{name}-%j.log
#
# All {} of {name} at the {scale} scale, one after the other, on one node of its own. A job that is requeued goes on
# where it was. The environment variables DATA, OUT and FOREBAY override the data, the results and the binary; a
# partition, an account or a time limit are given to sbatch.
{ranks}set -euo pipefail

forebay=${{FOREBAY:-forebay}}
study={}
out=${{OUT:-results/{name}-${{SLURM_JOB_ID:?start this script with sbatch}}}}
data={data}
data=${{DATA:-$data}}
",
        count(plan.cells.len() as u64, "cell"),
        shell_word(&args.study),
    );
    print_lines(&(head + &BODY.replace("SCALE", scale)))?;
    Ok(Outcome::Met)
}

/// One task is enough, with or without MPI.
const RANKS: &str = "#
# Processes of a workload are emulated accelerators of one forebay process: the job needs no MPI. Ranks over MPI are
# what forebay workload slurm starts, one workload at a time.
";

const BODY: &str = r#"
# A study that is refused, or a binary that is missing, ends the job before anything is written.
"$forebay" study show "$study" > /dev/null

resume=()
if [ -e "$out/record.jsonl" ]; then
    resume=(--resume)
fi
srun --ntasks=1 "$forebay" study run "$study" --scale SCALE --data "$data" --out "$out" "${resume[@]}"
echo "results: $out/report.html"
"#;
