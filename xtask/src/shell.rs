//! Running other programs from the repository's root.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The repository's root.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the repository")
}

/// A folder below the build folder, made if missing.
pub fn scratch(name: &str) -> Result<PathBuf> {
    let dir = target().join(name);
    std::fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    Ok(dir)
}

/// The build folder.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// The release binary.
pub fn binary() -> PathBuf {
    target().join("release/forebay")
}

/// A program to be run in the root.
pub fn program(name: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(name);
    command.current_dir(root());
    command
}

/// Cargo with these arguments.
pub fn cargo(args: &[&str]) -> Command {
    let mut command = program(env!("CARGO"));
    command.args(args);
    let cmake = root().join(".venv/build/bin/cmake");
    if cmake.is_file() {
        command.env("CMAKE", cmake);
    }
    command
}

/// Runs it with its output shown; an error when it fails.
pub fn run(command: &mut Command) -> Result<()> {
    eprintln!("$ {}", describe(command));
    let status = command.status().with_context(|| format!("cannot start {}", describe(command)))?;
    if !status.success() {
        bail!("{} failed: {status}", describe(command));
    }
    Ok(())
}

/// Runs it and returns what it printed on stdout.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot start {}", describe(command)))?;
    if !output.status.success() {
        bail!("{} failed: {}", describe(command), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// The command line, for messages.
pub fn describe(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
