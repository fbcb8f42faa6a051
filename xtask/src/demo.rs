//! The first command for newcomers: the built-in study chien-2018 at the quick scale, with its report.

use anyhow::{Context, Result};

use crate::shell::{binary, cargo, program, run, target};
use crate::system;

/// Builds forebay, runs the study again with data that is generated once, and prints the path of its page.
pub fn run_demo() -> Result<()> {
    system::need("cc", "gcc")?;
    run(&mut cargo(&["build", "--release", "--quiet"]))?;
    let (data, out) = (target().join("demo/data"), target().join("demo/chien-2018"));
    if out.exists() {
        // A former demo; its data is in another folder and stays.
        std::fs::remove_dir_all(&out).with_context(|| format!("cannot remove {}", out.display()))?;
    }
    let mut study = program(binary());
    run(study.args(["study", "run", "chien-2018", "--scale", "quick", "--data"]).arg(data).arg("--out").arg(&out))?;
    eprintln!("\nReport with figures: {}", out.join("report.html").display());
    Ok(())
}
