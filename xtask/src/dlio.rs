//! `forebay workload` beside DLIO: the same workload on the same files, in one run.

use anyhow::Result;

use crate::shell::{binary, cargo, program, root, run, scratch};
use crate::{python, system};

/// Installs DLIO, and runs `bench/dlio/run.py` with the given options.
pub fn compare(options: &[&str]) -> Result<()> {
    system::need("mpirun", "openmpi-bin")?;
    system::need("mpicc", "libopenmpi-dev")?;
    run(&mut cargo(&["build", "--release", "--quiet"]))?;
    let scripts = root().join("bench/dlio");
    let python = python::environment("dlio", &scripts.join("requirements.txt"))?;
    if !python.with_file_name("dlio_benchmark").exists() {
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--requirement"];
        run(program(&python).args(pip).arg(scripts.join("requirements-dlio.txt")))?;
    }
    let mut command = program(python);
    command.arg(scripts.join("run.py")).arg("--forebay").arg(binary());
    let work = scratch("bench/dlio")?;
    command.arg("--work").arg(&work).arg("--out").arg(work.join("results.json"));
    run(command.args(options))
}
