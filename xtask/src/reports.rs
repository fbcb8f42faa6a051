//! Reports for visitors: runs every built-in study at the quick scale, keeps its page in `docs/reports`, and takes a screenshot for
//! README.md.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::shell::{binary, cargo, program, root, run, scratch};
use crate::{python, system};

const STUDIES: [&str; 3] = ["chien-2018", "nelson-2022", "hugen-2025"];
/// What README.md shows, and of which study.
const PICTURE: (&str, &str) = ("docs/report.png", "chien-2018");
/// A visitor loads it with the page.
const MAX_PICTURE_BYTES: u64 = 200_000;

/// Runs the named studies, or all; takes the picture in any case.
pub fn write(names: &[&str]) -> Result<()> {
    system::need("cc", "gcc")?;
    run(&mut cargo(&["build", "--release", "--quiet"]))?;
    let names = if names.is_empty() { &STUDIES } else { names };
    names.iter().try_for_each(|name| write_study(name))?;
    take_picture()
}

/// Runs in the folder of the run: a page names no folder of this machine.
fn write_study(name: &str) -> Result<()> {
    let folder = scratch("reports")?;
    let out = folder.join(name);
    if out.exists() {
        std::fs::remove_dir_all(&out).with_context(|| format!("cannot remove {}", out.display()))?;
    }
    let study = ["study", "run", name, "--scale", "quick", "--data", "data", "--out", name];
    run(program(std::path::absolute(binary())?).args(study).current_dir(&folder))?;
    let page = page(name);
    let made = out.join("report.html");
    let text = std::fs::read_to_string(&made).with_context(|| format!("cannot read {}", made.display()))?;
    // The study names the folder of its data in full.
    let here = format!("{}/", std::path::absolute(&folder)?.display());
    std::fs::write(&page, text.replace(&here, "")).with_context(|| format!("cannot write {}", page.display()))?;
    Ok(())
}

/// The book makes `NAME.html` of its own page about the study.
fn page(study: &str) -> PathBuf {
    root().join("docs/reports").join(format!("{study}-report.html"))
}

fn take_picture() -> Result<()> {
    python::chromium()?;
    let (picture, study) = (root().join(PICTURE.0), page(PICTURE.1));
    let profile = scratch("reports/browser")?;
    let mut chromium = program("chromium");
    chromium.args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]);
    chromium.args(["--hide-scrollbars", "--force-device-scale-factor=1", "--window-size=1000,860"]);
    chromium
        .arg(argument("--user-data-dir=", &profile))
        .arg(argument("--screenshot=", &picture))
        .arg(argument("file://", &study));
    run(&mut chromium)?;
    let n_bytes = std::fs::metadata(&picture)?.len();
    ensure!(n_bytes <= MAX_PICTURE_BYTES, "{} has {n_bytes} bytes, more than {MAX_PICTURE_BYTES}", picture.display());
    Ok(())
}

fn argument(name: &str, path: &Path) -> std::ffi::OsString {
    let mut argument = std::ffi::OsString::from(name);
    argument.push(path);
    argument
}
