//! Compares `forebay workload` with DLIO: the same workload on the same files, in one run.

use std::path::Path;

use anyhow::{Context, Result};

use crate::shell::{binary, cargo, program, root, run, scratch};
use crate::{python, ranks, system};

/// Installs DLIO, and runs `bench/dlio/run.py` with the given options.
pub fn compare(options: &[&str]) -> Result<()> {
    system::need("taskset", "util-linux")?;
    system::need("g++", "g++")?;
    let work = scratch("bench/dlio")?;
    let with_mpi = work.join("forebay-mpi");
    build_with_mpi(&with_mpi)?;
    run(&mut cargo(&["build", "--release", "--quiet"]))?;
    let scripts = root().join("bench/dlio");
    let python = python::environment("dlio", &scripts.join("requirements.txt"))?;
    if !python.with_file_name("dlio_benchmark").exists() {
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--requirement"];
        run(program(&python).args(pip).arg(scripts.join("requirements-dlio.txt")))?;
    }
    let mut command = program(python);
    command.arg(scripts.join("run.py")).arg("--forebay").arg(binary()).arg("--mpi").arg(with_mpi);
    command.arg("--work").arg(&work).arg("--out").arg(work.join("results.json"));
    run(command.args(options))
}

/// A forebay for many ranks, kept apart: the one that is compared has no MPI in it.
fn build_with_mpi(to: &Path) -> Result<()> {
    ranks::need_mpi()?;
    run(&mut cargo(&["build", "--release", "--quiet", "--package", "forebay", "--features", "mpi"]))?;
    std::fs::copy(binary(), to).with_context(|| to.display().to_string())?;
    Ok(())
}
