//! The first command of a newcomer: the paper's micro-benchmark at the quick scale, and its report.

use anyhow::{Context, Result};

use crate::shell::{binary, cargo, program, run, target};
use crate::system;

/// Builds, runs the quick study anew (its data is made once), and names its page.
pub fn run_demo() -> Result<()> {
    system::need("cc", "gcc")?;
    run(&mut cargo(&["build", "--release", "--quiet"]))?;
    let (data, out) = (target().join("demo/data"), target().join("demo/chien-2018"));
    if out.exists() {
        // An earlier demo; its data lies beside it.
        std::fs::remove_dir_all(&out).with_context(|| format!("cannot remove {}", out.display()))?;
    }
    let mut study = program(binary());
    run(study.args(["study", "run", "chien-2018", "--scale", "quick", "--data"]).arg(data).arg("--out").arg(&out))?;
    eprintln!("\nThe report with its figures: {}", out.join("report.html").display());
    Ok(())
}
