//! Workloads on many ranks: real `mpirun`, and a real Slurm of four nodes on this machine.

use anyhow::Result;

use crate::shell::{program, root, run, target};
use crate::{ci, python, system};

/// What Open MPI, the bindings to it, and Slurm need.
const PACKAGES: [&str; 11] = [
    "openmpi-bin",
    "libopenmpi-dev",
    "libclang-dev",
    "slurmctld",
    "slurmd",
    "slurm-client",
    "slurm-wlm-basic-plugins",
    "munge",
    "libpmix2",
    "libpmix-dev",
    "shellcheck",
];

/// What builds with the feature `mpi` need, installed where it is missing; also what its tests start.
pub fn need() -> Result<()> {
    let is_there = |package: &&str| system::works("dpkg", &["-s", package]);
    let missing: Vec<&str> = PACKAGES.iter().filter(|package| !is_there(package)).copied().collect();
    if missing.is_empty() { Ok(()) } else { system::install(&missing, "Open MPI or Slurm is missing") }
}

/// Builds forebay with MPI and runs the tests below `tests/ranks`.
pub fn run_tests() -> Result<()> {
    ci::build_like_tests(&["--bin", "forebay", "--example", "ranks"])?;
    let tests = root().join("tests/ranks");
    let python = python::environment("ranks", &tests.join("requirements.txt"))?;
    let debug = target().join("debug");
    let mut pytest = program(python);
    pytest.args(["-m", "pytest", "--quiet"]).arg(&tests);
    run(pytest.env("FOREBAY", debug.join("forebay")).env("FOREBAY_RANKS", debug.join("examples/ranks")))
}
