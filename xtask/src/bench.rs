//! Comparisons with other pipelines on the same files.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::shell::{binary, cargo, program, root, run, scratch, target};
use crate::{python, system, wheel};

/// What FFCV needs to be built from source: it has no wheels.
const FFCV_PACKAGES: [&str; 4] = ["libopencv-dev", "libturbojpeg0-dev", "pkg-config", "g++"];

/// Makes both datasets and sets our JPEG decoder beside libjpeg-turbo on each.
pub fn jpeg() -> Result<()> {
    system::need("cmake", "cmake")?;
    system::need("nasm", "nasm")?;
    for set in make_sets()? {
        run(program_of("jpeg").arg("--").arg(set))?;
    }
    Ok(())
}

/// Sets our Parquet beside the `parquet` crate.
pub fn parquet() -> Result<()> {
    run(&mut program_of("parquet"))
}

/// Builds and runs the program in `bench/NAME`, a workspace of its own.
fn program_of(name: &str) -> Command {
    let mut command = cargo(&["run", "--release", "--quiet", "--manifest-path"]);
    let target = target().join(format!("bench-{name}"));
    command.arg(root().join("bench").join(name).join("Cargo.toml")).env("CARGO_TARGET_DIR", target);
    command
}

/// The two sets that comparisons run on, made once.
fn make_sets() -> Result<Vec<PathBuf>> {
    run(&mut cargo(&["build", "--release", "--quiet"]))?;
    let data = scratch("bench")?;
    let mut sets = Vec::new();
    for (profile, name, count) in [("imagenet", "imagenet", "2000"), ("caltech101", "caltech", "4000")] {
        sets.push(data.join(name));
        run(program(binary()).args(["data", "make", profile]).arg(data.join(name)).args(["--count", count]))?;
    }
    Ok(sets)
}

/// Makes both datasets and runs `bench/peers/run.py` with the given options.
pub fn peers(options: &[&str]) -> Result<()> {
    make_sets()?;
    let data = scratch("bench")?;
    let scripts = root().join("bench/peers");
    let python = python::environment("peers", &scripts.join("requirements.txt"))?;
    add_ffcv(&python);
    let mut command = program(python);
    command.arg(scripts.join("run.py")).arg("--data").arg(&data).arg("--forebay").arg(binary());
    command.arg("--out").arg(target().join("bench/peers.json"));
    run(command.args(options))
}

/// Sets the Python loader beside ingest and other loaders, with `bench/python/run.py`.
pub fn loader(options: &[&str]) -> Result<()> {
    make_sets()?;
    let scripts = root().join("bench/python");
    let python = python::environment("loader", &scripts.join("requirements.txt"))?;
    wheel::install(&wheel::build()?, &python)?;
    add_ffcv(&python);
    add_ffmpeg();
    let mut command = program(python);
    command.arg(scripts.join("run.py")).arg("--data").arg(scratch("bench")?).arg("--forebay").arg(binary());
    run(command.args(options))
}

/// SPDL decodes with the libraries of FFmpeg; the comparison says "not run" where they cannot be installed.
fn add_ffmpeg() {
    if !system::works("ffmpeg", &["-version"])
        && let Err(error) = system::install(&["ffmpeg"], "SPDL needs the libraries of FFmpeg")
    {
        eprintln!("xtask: FFmpeg could not be installed and SPDL is left out: {error:#}");
    }
}

/// FFCV joins where it can be built; the comparison says "not run" where it cannot.
fn add_ffcv(python: &std::path::Path) {
    let present = system::works(&python.to_string_lossy(), &["-c", "import ffcv"]);
    if present {
        return;
    }
    let requirements = root().join("bench/peers/requirements-ffcv.txt");
    let outcome = system::install(&FFCV_PACKAGES, "FFCV is built from source").and_then(|()| {
        let pip = ["-m", "pip", "install", "--quiet", "--no-build-isolation", "--requirement"];
        run(program(python).args(pip).arg(requirements))
    });
    if let Err(error) = outcome {
        eprintln!("xtask: FFCV could not be installed and is left out: {error:#}");
    }
}
