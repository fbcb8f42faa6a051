//! `forebay doctor`: tests what this machine and the storage at a path support.
//!
//! Every check is a function that returns one [`Check`]. Checks do not fail and leave nothing behind.

mod place;
mod programs;
mod system;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use forebay_record::Environment;
use forebay_units::PathText;
use serde::Serialize;

use crate::output::{JsonArgs, Outcome, Schema};
use crate::terminal::Stream;

pub(crate) use programs::{has_cuda_driver, mpi_launcher};
pub(crate) use system::{is_root, limit};

/// Columns before a finding.
const FOUND: usize = 27;
/// Columns before effects and hints.
const BELOW: usize = 9;

/// The flags of `forebay doctor`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder or file on the storage to check
    #[arg(value_name = "PATH", default_value = ".")]
    path: PathBuf,

    #[command(flatten)]
    json: JsonArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Ok,
    Limited,
    Missing,
}

impl State {
    const ALL: [Self; 3] = [Self::Ok, Self::Limited, Self::Missing];

    fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Limited => "limited",
            Self::Missing => "missing",
        }
    }
}

#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    state: State,
    found: String,
    /// The effect: what forebay cannot do, or does less well.
    costs: Option<String>,
    hint: Option<String>,
}

impl Check {
    fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self { name, state: State::Ok, found: found.into(), costs: None, hint: None }
    }

    fn limited(name: &'static str, found: impl Into<String>, costs: &str, hint: impl Into<String>) -> Self {
        Self { state: State::Limited, costs: Some(costs.to_owned()), hint: Some(hint.into()), ..Self::ok(name, found) }
    }

    fn missing(name: &'static str, found: impl Into<String>, costs: &str, hint: impl Into<String>) -> Self {
        Self { state: State::Missing, ..Self::limited(name, found, costs, hint) }
    }
}

#[derive(Debug, Serialize)]
struct Report {
    #[serde(with = "forebay_units::serde_path")]
    path: PathBuf,
    environment: Environment,
    checks: Vec<Check>,
}

pub(crate) fn run(args: &Args) -> Result<Outcome> {
    let path = &args.path;
    if std::fs::symlink_metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        bail!("{}: no such file or folder", path.escaped());
    }
    // In a folder, only scratch files are written.
    let json = args.json.target((!path.is_dir()).then_some(path.as_path()))?;
    let report = examine(path);
    json.give(Schema::Doctor, &render(&report, Stream::Stdout.width()), &report)?;
    Ok(Outcome::Met)
}

fn examine(path: &Path) -> Report {
    let environment = forebay_measure::describe_environment(path, env!("CARGO_PKG_VERSION"));
    let mut checks = place::checks(path, &environment);
    let observed = forebay_observe::capabilities();
    checks.extend(system::checks(&observed));
    checks.extend(programs::checks(&observed));
    Report { path: path.to_owned(), environment, checks }
}

fn render(report: &Report, width: usize) -> String {
    let Environment { version, kernel, .. } = &report.environment;
    let kernel = kernel.as_ref().map_or_else(String::new, |kernel| format!(" on Linux {kernel}"));
    let mut out = format!("forebay {version}{kernel}, checking {}", report.path.escaped());
    out = wrapped(&out, width).join("\n") + "\n\n";
    for check in &report.checks {
        let head = format!("{:9}{:gap$}", check.state.name(), check.name, gap = FOUND - BELOW);
        push(&mut out, &head, FOUND, &check.found, width);
        for (title, text) in [("effect", &check.costs), ("hint", &check.hint)] {
            if let Some(text) = text {
                push(&mut out, &format!("{:BELOW$}{title}: ", ""), BELOW + 2, text, width);
            }
        }
    }
    let n = |state: State| report.checks.iter().filter(|check| check.state == state).count();
    let counts = State::ALL.map(|state| format!("{} {}", n(state), state.name()));
    out + &format!("\n{}\n", counts.join(", "))
}

/// Appends a text after a head, with continuation lines indented.
fn push(out: &mut String, head: &str, indent: usize, text: &str, width: usize) {
    let mut lines = wrapped(text, width - indent.max(head.chars().count())).into_iter();
    out.push_str(&format!("{head}{}\n", lines.next().unwrap_or_default()));
    lines.for_each(|line| out.push_str(&format!("{:indent$}{line}\n", "")));
}

/// Wraps a text to lines of `width` characters; longer words are split.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let letters: Vec<char> = word.chars().collect();
        for piece in letters.chunks(width) {
            let line = lines.last_mut().expect("there is always a line");
            let n_used = line.chars().count();
            let gap = usize::from(n_used > 0);
            if n_used + gap + piece.len() <= width {
                line.extend([" "].into_iter().take(gap));
                line.extend(piece);
            } else {
                lines.push(piece.iter().collect());
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_full_and_never_too_long() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("a /a/very/long/path b", 6), ["a", "/a/ver", "y/long", "/path", "b"]);
        assert_eq!(wrapped("", 7), [""]);
    }

    #[test]
    fn a_check_is_rendered_with_its_effect_and_its_hint_below() {
        let path = PathBuf::from(format!("/{}", "long/".repeat(40)));
        let environment = forebay_measure::describe_environment(&path, "1.2.3");
        let found = "a finding that is longer than what is left of the line beside its name";
        let checks = vec![Check::ok("direct I/O", "yes"), Check::missing("CUDA", found, "a GPU", "buy one")];
        let text = render(&Report { path, environment, checks }, 80);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("\nok       direct I/O        yes\nmissing  CUDA              a finding that"), "{text}");
        assert!(
            text.ends_with("\n         effect: a GPU\n         hint: buy one\n\n1 ok, 0 limited, 1 missing\n"),
            "{text}"
        );
    }
}
