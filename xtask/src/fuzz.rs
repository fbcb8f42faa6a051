//! Mutated inputs for every decoder.

use anyhow::{Result, bail};

use crate::shell::{program, root, run, target};

const TARGETS: [&str; 20] = [
    "jpeg",
    "png",
    "webp",
    "gif",
    "bmp",
    "tiff",
    "tfrecord",
    "example",
    "tar",
    "tensor",
    "safetensors",
    "bundle",
    "parquet",
    "npy",
    "npz",
    "csv",
    "gzip",
    "indexed",
    "workload",
    "dlio",
];

/// Runs one target or all of them for the given time each.
pub fn run_targets(args: &[&str]) -> Result<()> {
    let (seconds, chosen) = match args {
        [] => ("60", None),
        ["--seconds", seconds] => (*seconds, None),
        ["--seconds", seconds, chosen] => (*seconds, Some(*chosen)),
        [chosen] => ("60", Some(*chosen)),
        _ => bail!("usage: cargo xtask fuzz [--seconds N] [TARGET]"),
    };
    let targets: Vec<&str> = TARGETS.into_iter().filter(|name| chosen.is_none_or(|chosen| chosen == *name)).collect();
    if targets.is_empty() {
        bail!("the targets are {}", TARGETS.join(", "));
    }
    for name in targets {
        let mut command = program(env!("CARGO"));
        command.args(["run", "--release", "--quiet", "--manifest-path"]).arg(root().join("fuzz/Cargo.toml"));
        command.env("CARGO_TARGET_DIR", target().join("fuzz"));
        run(command.args(["--", name, "--seconds", seconds]))?;
    }
    Ok(())
}
