//! `forebay workload size`: both terms of MLPerf Storage's rule for dataset sizes.

use std::fmt::Write;

use anyhow::{Result, bail};
use forebay_units::{Bytes, PathText, count, group_digits};
use forebay_workload::size::{Size, mlperf};
use serde_json::json;

use super::source::Source;
use crate::output::{JsonArgs, Outcome, Schema};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example: forebay workload size unet3d_h100 --accelerators 8 --host-memory 512GiB --hosts 2")]
pub(crate) struct Args {
    #[command(flatten)]
    source: Source,

    /// Accelerators over all hosts
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    accelerators: u64,

    /// Memory of one host
    #[arg(long, value_name = "SIZE")]
    host_memory: Bytes,

    /// Number of hosts
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    hosts: u64,

    #[command(flatten)]
    json: JsonArgs,
}

/// A smaller value must be missing its unit.
const LEAST_MEMORY: u64 = 64 << 20;

pub(super) fn run(args: &Args) -> Result<Outcome> {
    let workload = args.source.read()?.workload;
    if !workload.workflow.train {
        bail!("{}: no training, so MLPerf's dataset rule does not apply", args.source.name.escaped());
    }
    if args.host_memory.0 < LEAST_MEMORY {
        bail!("--host-memory {}: too small for a host\nhint: give a unit, as in 512GiB", args.host_memory);
    }
    let target = args.json.target(args.source.file())?;
    let size = mlperf(&workload, args.accelerators, args.hosts, args.host_memory.0);
    let overrides = overrides(&size);
    let json = json!({
        "workload": workload.name, "accelerators": args.accelerators, "hosts": args.hosts,
        "host_memory_bytes": args.host_memory.0, "samples_for_steps": size.samples_for_steps,
        "samples_for_memory": size.samples_for_memory, "files": size.files, "bytes": size.bytes,
        "subfolders": size.subfolders, "overrides": overrides,
    });
    let per_file = workload.dataset.n_samples_per_file;
    target.give(Schema::WorkloadSize, &describe(&workload.name, args, &size, per_file, &overrides), &json)?;
    Ok(Outcome::Met)
}

/// The overrides that give the required size.
fn overrides(size: &Size) -> Vec<String> {
    let mut overrides = vec![format!("++workload.dataset.num_files_train={}", size.files)];
    if size.subfolders > 0 {
        overrides.push(format!("++workload.dataset.num_subfolders_train={}", size.subfolders));
    }
    overrides
}

fn describe(name: &str, args: &Args, size: &Size, per_file: u64, overrides: &[String]) -> String {
    let n = group_digits;
    let mark = |is: bool| if is { "  <- decides" } else { "" };
    let by_memory = size.samples_for_memory > size.samples_for_steps;
    let (accelerators, hosts) = (count(args.accelerators, "accelerator"), count(args.hosts, "host"));
    let mut out = format!("{name}: {accelerators} on {hosts} of {}\n", args.host_memory);
    let (steps, memory) = (n(size.samples_for_steps), n(size.samples_for_memory));
    let width = steps.len().max(memory.len());
    let _ = writeln!(out, "500 steps of every accelerator   {steps:>width$} samples{}", mark(!by_memory));
    let _ = writeln!(out, "5 times the memory of the hosts  {memory:>width$} samples{}", mark(by_memory));
    let files = count(size.files, "file");
    let each = count(per_file, "sample");
    let _ = writeln!(out, "{files} of {each}, {}", Bytes(size.bytes));
    if size.subfolders > 0 {
        let _ = writeln!(out, "more than 10,000 files: {} recommended", count(size.subfolders, "subfolder"));
    }
    out.push_str("overrides to use:\n");
    overrides.iter().for_each(|word| out.push_str(&format!("  {word}\n")));
    out
}
