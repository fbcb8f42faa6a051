//! Where results go, and what the exit status says.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde::Serialize;

/// How a command that could run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It met what was asked.
    Met,
    /// It did not.
    Missed,
}

/// Prints an error once, with its causes, and turns the outcome into the exit status.
pub(crate) fn exit_code(outcome: Result<Outcome>) -> ExitCode {
    match outcome {
        Ok(Outcome::Met) => ExitCode::SUCCESS,
        Ok(Outcome::Missed) => ExitCode::from(1),
        Err(error) => {
            if is_broken_pipe(&error) {
                return ExitCode::SUCCESS; // The reader, such as `head`, has seen enough.
            }
            let mut text = error.to_string();
            for cause in error.chain().skip(1) {
                let cause = cause.to_string();
                // A transparent error repeats its cause's words.
                if !text.ends_with(&cause) {
                    text.push_str(": ");
                    text.push_str(&cause);
                }
            }
            let _ = writeln!(std::io::stderr(), "forebay: {text}");
            ExitCode::from(2)
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.chain().find_map(|cause| cause.downcast_ref::<std::io::Error>());
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

/// Writes text to stdout.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Writes a remark to stderr.
pub(crate) fn remark(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Where JSON goes: a file, or "-" for stdout, which then holds nothing else.
#[derive(Debug, Clone)]
pub(crate) struct JsonTarget(PathBuf);

impl From<&Path> for JsonTarget {
    fn from(path: &Path) -> Self {
        Self(path.to_owned())
    }
}

impl JsonTarget {
    fn is_stdout(&self) -> bool {
        self.0 == Path::new("-")
    }

    /// Fails now rather than after the run if the file cannot be written.
    pub(crate) fn check(&self) -> Result<()> {
        if !self.is_stdout() {
            let file = std::fs::OpenOptions::new().create(true).append(true).open(&self.0);
            file.with_context(|| format!("cannot write {}", self.0.display()))?;
        }
        Ok(())
    }

    fn write(&self, json: &str) -> Result<()> {
        if self.is_stdout() {
            return print(&format!("{json}\n"));
        }
        std::fs::write(&self.0, format!("{json}\n")).with_context(|| format!("cannot write {}", self.0.display()))
    }
}

/// Gives a result: the text to stdout, or the JSON where it was asked for, and then the text to where stdout is free.
pub(crate) fn give(text: &str, json: Option<(&JsonTarget, String)>) -> Result<()> {
    match json {
        None => print(text),
        Some((target, json)) => {
            target.write(&json)?;
            if target.is_stdout() { Ok(()) } else { print(text) }
        }
    }
}

/// A value as JSON over several lines.
pub(crate) fn to_json<T: Serialize>(value: &T) -> Result<String> {
    Ok(serde_json::to_string_pretty(value)?)
}
