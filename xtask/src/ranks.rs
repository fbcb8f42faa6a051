//! Workloads on many ranks: real `mpirun`, and a real Slurm of four nodes on this machine.

use anyhow::Result;

use crate::shell::{program, root, target};
use crate::tally::Tally;
use crate::{ci, python, system};

/// What builds with the feature `mpi` need: Open MPI, and what the bindings to it are made with.
const TO_BUILD: [&str; 3] = ["openmpi-bin", "libopenmpi-dev", "libclang-dev"];

/// What the tests start beside it.
const TO_TEST: [&str; 8] = [
    "slurmctld",
    "slurmd",
    "slurm-client",
    "slurm-wlm-basic-plugins",
    "munge",
    "libpmix2",
    "libpmix-dev",
    "shellcheck",
];

/// Makes sure that the feature `mpi` can be built and run.
pub fn need_mpi() -> Result<()> {
    need(&TO_BUILD, "Open MPI or libclang is missing")
}

/// Makes sure that the tests of ranks can be run.
pub fn need_all() -> Result<()> {
    need_mpi()?;
    need(&TO_TEST, "Slurm or one of its dependencies is missing")
}

/// Installs what is missing. A system without Debian's packages has to have the counterparts: builds and tests say so if not.
fn need(packages: &[&str], why: &str) -> Result<()> {
    if !system::works("dpkg", &["--version"]) {
        return Ok(());
    }
    let is_there = |package: &&str| system::works("dpkg", &["-s", package]);
    let missing: Vec<&str> = packages.iter().filter(|package| !is_there(package)).copied().collect();
    if missing.is_empty() { Ok(()) } else { system::install(&missing, why) }
}

/// Builds forebay with MPI and runs the tests below `tests/ranks`.
pub fn run_tests(tally: &Tally) -> Result<()> {
    need_all()?;
    ci::build_like_tests(&["--bin", "forebay", "--example", "ranks"])?;
    let tests = root().join("tests/ranks");
    let python = python::environment_of("ranks")?;
    let debug = target().join("debug");
    let mut pytest = program(python);
    pytest.args(["-m", "pytest", "--quiet"]).arg(&tests);
    tally.run(pytest.env("FOREBAY", debug.join("forebay")).env("FOREBAY_RANKS", debug.join("examples/ranks")))
}
