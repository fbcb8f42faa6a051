//! The Python package: built with maturin, installed into a fresh environment, tested there.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use forebay_testing::Reason;

use crate::shell::{binary, cargo, program, root, run, scratch};
use crate::tally::Tally;
use crate::{python, system};

/// Tests of loaders that copy batches to a GPU.
const CUDA_TESTS: &str = "tests/cuda";

/// Builds the wheel, with the command line in it; returns its path.
pub fn build() -> Result<PathBuf> {
    build_with(&[])
}

/// The same with features: `object` for data on object stores, `hdf5` for arrays of HDF5 files.
fn build_with(features: &[&str]) -> Result<PathBuf> {
    if let Some(odd) = features.iter().find(|feature| !["object", "hdf5"].contains(feature)) {
        bail!("the wheel has no feature {odd}: give object, hdf5 or both");
    }
    if features.contains(&"hdf5") {
        python::cmake()?;
    }
    system::need("strip", "binutils")?;
    let maturin = python::environment("maturin", &root().join("xtask/maturin.txt"))?;
    let of_command: Vec<String> = features.iter().map(|feature| format!("forebay/{feature}")).collect();
    run(cargo(&["build", "--release", "--quiet", "--features"]).arg(of_command.join(",")))?;
    // What is in this folder is put on the path of the environment that the wheel is installed into.
    let scripts = root().join("python/forebay.data/scripts");
    fs::create_dir_all(&scripts).with_context(|| scripts.display().to_string())?;
    run(program("strip").arg("-o").arg(scripts.join("forebay")).arg(binary()))?;
    let out = scratch("wheels")?;
    // An older one would be found beside the new one.
    for old in wheels(&out)? {
        fs::remove_file(&old).with_context(|| old.display().to_string())?;
    }
    let mut command = program(&maturin);
    command.args(["-m", "maturin", "build", "--release", "--quiet", "--interpreter"]).arg(&maturin);
    command.arg("--manifest-path").arg(root().join("python/Cargo.toml")).arg("--out").arg(&out);
    if !features.is_empty() {
        command.arg("--features").arg(features.join(","));
        command.env("CMAKE", root().join(".venv/build/bin/cmake"));
    }
    run(&mut command)?;
    match wheels(&out)?.as_slice() {
        [wheel] => Ok(wheel.clone()),
        found => bail!("maturin made {} wheels in {}", found.len(), out.display()),
    }
}

fn wheels(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(dir).with_context(|| dir.display().to_string())?;
    let paths: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    Ok(paths.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "whl")).collect())
}

/// Builds the wheel, installs it into an environment without Rust, and tests what was installed.
pub fn test(tally: &Tally) -> Result<()> {
    let wheel = build()?;
    let python = python::environment_of("wheel")?;
    tests_in(tally, &wheel, &python, &["wheel"])?;
    if is_made("torch") {
        return test_torch_with(tally, &wheel);
    }
    tally.leave_out("tests/torch", Reason::NoTorch)?;
    tally.leave_out(CUDA_TESTS, Reason::NoTorch)
}

/// The tests with PyTorch and torchvision, which take gigabytes to install: `cargo xtask torch`.
pub fn test_torch(tally: &Tally) -> Result<()> {
    test_torch_with(tally, &build()?)
}

fn test_torch_with(tally: &Tally, wheel: &Path) -> Result<()> {
    let python = python::environment_of("torch")?;
    tests_in(tally, wheel, &python, &["wheel", "torch"])?;
    if !Path::new("/proc/driver/nvidia/version").exists() {
        return tally.leave_out(CUDA_TESTS, Reason::NoGpu);
    }
    tests_in(tally, wheel, &python, &["cuda"])
}

/// Whether the environment of these tests exists.
pub fn is_made(tests: &str) -> bool {
    root().join(".venv").join(tests).join("installed-requirements.txt").is_file()
}

/// Installs a wheel into an environment, over an older one.
pub fn install(wheel: &Path, python: &Path) -> Result<()> {
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--force-reinstall", "--no-deps"];
    run(program(python).args(pip).arg(wheel))
}

fn tests_in(tally: &Tally, wheel: &Path, python: &Path, folders: &[&str]) -> Result<()> {
    install(wheel, python)?;
    for folder in folders {
        let mut pytest = program(python);
        pytest.args(["-m", "pytest", "--quiet"]).arg(root().join("tests").join(folder));
        // Neither the sources nor a compiler may be needed.
        pytest.env_remove("PYTHONPATH").env("FOREBAY_EXAMPLES", root().join("examples/python"));
        tally.run(&mut pytest)?;
    }
    Ok(())
}

/// Uses the loaders and the saver for as long as asked.
pub fn soak(minutes: &str) -> Result<()> {
    let python = python::environment_of("wheel")?;
    install(&build()?, &python)?;
    run(program(python).arg(root().join("tests/soak/soak.py")).arg(minutes).env_remove("PYTHONPATH"))
}

/// Builds the wheel and says where it is.
pub fn built(features: &[&str]) -> Result<()> {
    let wheel = build_with(features)?;
    eprintln!("{}", wheel.strip_prefix(root()).unwrap_or(&wheel).display());
    Ok(())
}
