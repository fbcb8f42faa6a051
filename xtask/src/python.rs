//! Virtual environments, and the tests against other libraries.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::shell::{binary, cargo, output, program, root, run, target};
use crate::tally::Tally;
use crate::{ci, system};

/// Examples that write files for other libraries to read, and read theirs.
const EXAMPLES: [&str; 4] = ["checkpoint_files", "array_files", "columnar_files", "record_schema"];

/// A virtual environment below `.venv` with the packages of a requirements file; returns its interpreter.
pub fn environment(name: &str, requirements: &Path) -> Result<PathBuf> {
    let dir = root().join(".venv").join(name);
    let python = dir.join("bin/python");
    let wanted = std::fs::read_to_string(requirements).with_context(|| requirements.display().to_string())?;
    let stamp = dir.join("installed-requirements.txt");
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    system::need("python3", "python3")?;
    if !system::works("python3", &["-c", "import ensurepip, venv"]) {
        system::install(&["python3-venv"], "Python's venv module is missing")?;
    }
    run(program("python3").args(["-m", "venv", "--clear"]).arg(&dir))?;
    let quiet = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"];
    run(program(&python).args(quiet).arg(requirements))?;
    // Written last: an installation that was cut off is done again.
    std::fs::write(&stamp, wanted)?;
    Ok(python)
}

/// The environment of the tests in a folder below `tests`.
pub fn environment_of(tests: &str) -> Result<PathBuf> {
    environment(tests, &root().join("tests").join(tests).join("requirements.txt"))
}

/// Makes the environments of all tests.
pub fn environments() -> Result<()> {
    ["ranks", "browser", "python", "wheel", "objects"].into_iter().try_for_each(|tests| environment_of(tests).map(drop))
}

/// Reports opened in a headless Chromium: drawn, hovered, in the dark, on a phone, on paper.
pub fn browser(tally: &Tally) -> Result<()> {
    chromium()?;
    run(&mut cargo(&["build", "--release", "--quiet"]))?;
    let tests = root().join("tests/browser");
    let python = environment_of("browser")?;
    // Other steps run beside it, and a page without verdicts has little to look at.
    let mut pytest = program(python);
    pytest.args(["-m", "pytest", "--quiet"]).arg(&tests).env("FOREBAY", binary()).env("FOREBAY_UNWATCHED", "silent");
    tally.run(&mut pytest)
}

/// Chromium, and the first font of the page's list that Debian has. Without its recommended packages it brings only DejaVu,
/// which is a sixth wider.
pub fn chromium() -> Result<()> {
    system::need("chromium", "chromium")?;
    let families = output(program("fc-list").args([":", "family"])).unwrap_or_default();
    if families.contains("Liberation Sans") {
        return Ok(());
    }
    system::install(&["fonts-liberation", "fontconfig"], "the font Liberation Sans is missing")
}

/// Our files read by TensorFlow, safetensors, webdataset, NumPy and Pillow, and theirs by us.
pub fn interop(tally: &Tally) -> Result<()> {
    run(&mut cargo(&["build", "--release", "--quiet"]))?;
    ci::build_like_tests(&EXAMPLES.map(|name| ["--example", name]).concat())?;
    let tests = root().join("tests/python");
    let python = environment_of("python")?;
    let mut pytest = program(python);
    pytest.args(["-m", "pytest", "--quiet"]).arg(&tests).env("FOREBAY", binary()).env("TF_CPP_MIN_LOG_LEVEL", "2");
    // They have an environment of their own.
    for name in TORCH_TESTS {
        pytest.arg("--ignore").arg(tests.join(name));
    }
    for name in EXAMPLES {
        let path = target().join("debug/examples").join(name);
        pytest.env(format!("FOREBAY_{}", name.to_uppercase()), path);
    }
    tally.run(&mut pytest)?;
    eprintln!("{}: not run here; `cargo xtask trace-torch` installs PyTorch and runs them", TORCH_TESTS.join(", "));
    Ok(())
}

const TORCH_TESTS: [&str; 4] =
    ["test_trace_torch.py", "test_trace_replay.py", "test_trace_loaders.py", "test_trace_dlio.py"];

/// `forebay trace` on jobs of PyTorch, DALI, HuggingFace datasets, Grain and DLIO. CI leaves them out: they take gigabytes and minutes to
/// install.
pub fn torch(tally: &Tally) -> Result<()> {
    run(&mut cargo(&["build", "--release", "--quiet"]))?;
    let tests = root().join("tests/python");
    crate::ranks::need_mpi()?;
    let python = environment("torch", &tests.join("requirements-torch.txt"))?;
    if !python.with_file_name("dlio_benchmark").exists() {
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--requirement"];
        run(program(&python).args(pip).arg(root().join("bench/dlio/requirements-dlio.txt")))?;
    }
    let mut pytest = program(python);
    pytest.args(["-m", "pytest", "--quiet"]).args(TORCH_TESTS.map(|name| tests.join(name))).env("FOREBAY", binary());
    tally.run(&mut pytest)
}

/// The cmake that HDF5's library is built with: newer than Debian's. [`cargo`] names it to build scripts once it is there.
pub fn cmake() -> Result<()> {
    environment("build", &root().join("xtask/cmake.txt")).map(drop)
}
