//! What must hold whatever is done to a command.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::case::Case;
use super::process::Ended;

/// A command ends within 1 s of a signal; the rest is what a busy machine may add.
const PATIENCE: Duration = Duration::from_secs(4);

/// What a run changed: the case's folder and what lies beside it.
pub struct Traces {
    pub changed: Vec<(PathBuf, &'static str)>,
    pub outside: Vec<(PathBuf, &'static str)>,
    /// The text files that the run made, with their texts.
    pub texts: Vec<(PathBuf, String)>,
}

/// Everything that is wrong with a run.
pub fn faults(case: &Case, ended: &Ended, traces: &Traces) -> Vec<String> {
    let mut faults = Vec::new();
    faults.extend(of_end(case, ended));
    faults.extend(of_words(ended));
    let is_foreign = |path: &Path| !path.starts_with(".home") && !case.may_write(path) && !case.removes(path);
    let is_left =
        |path: &Path, what: &str| is_temporary(path) && what == "was made" && !was_killed(case) && !is_foreign(path);
    let changed = || traces.changed.iter();
    faults.extend(of_paths(traces.outside.iter(), "outside of its folders"));
    faults.extend(of_paths(changed().filter(|(path, _)| is_foreign(path)), "which is none of its outputs"));
    faults.extend(of_paths(changed().filter(|(path, what)| is_left(path, what)), "and was left behind"));
    for (path, text) in &traces.texts {
        if let Some(word) = not_a_number(text) {
            faults.push(format!("{} holds {word:?}", path.display()));
        }
    }
    faults
}

/// The first of some changes, with the number of the others.
fn of_paths<'a>(mut found: impl Iterator<Item = &'a (PathBuf, &'static str)>, why: &str) -> Option<String> {
    let (path, what) = found.next()?;
    let more = match found.count() {
        0 => String::new(),
        n => format!(" (and {n} more)"),
    };
    Some(format!("{} {what}, {why}{more}", path.display()))
}

fn was_killed(case: &Case) -> bool {
    case.signal() == Some("KILL")
}

/// How it ended.
fn of_end(case: &Case, ended: &Ended) -> Vec<String> {
    let mut faults = Vec::new();
    if ended.status.is_none() {
        faults.push(format!("did not end within {:?}", case.limit));
    }
    let after = ended.after_blow.filter(|after| case.signal().is_some() && *after > PATIENCE);
    if let Some(after) = after.filter(|_| ended.status.is_some() && !ended.stderr.contains("Ctrl-C")) {
        faults.push(format!("took {after:?} to end after the signal, without a word"));
    }
    let is_expected = match (ended.code(), ended.signal(), case.signal()) {
        (Some(0), ..) => !case.must_fail,
        (Some(1 | 2), ..) => true,
        // Before its handler is there, a signal ends it as any other program; a second one ends it in any case.
        (Some(130 | 143), _, Some(_)) => true,
        (None, Some(signal), Some(sent)) => number(sent) == signal,
        (None, None, _) => true,
        // The status of the command that it watches.
        (Some(_), ..) => ["watch", "trace"].contains(&case.subject.name) && case.signal().is_some(),
        _ => false,
    };
    if !is_expected {
        faults.push(format!("ended with {:?}; {}", ended.status, last_words(&ended.stderr)));
    }
    faults
}

fn number(signal: &str) -> i32 {
    match signal {
        "HUP" => 1,
        "INT" => 2,
        "QUIT" => 3,
        "KILL" => 9,
        "PIPE" => 13,
        "TERM" => 15,
        _ => 0,
    }
}

/// What it printed.
fn of_words(ended: &Ended) -> Vec<String> {
    let mut faults = Vec::new();
    for (name, text) in [("stdout", &ended.stdout), ("stderr", &ended.stderr)] {
        if let Some(at) = text.find("panicked at") {
            faults.push(format!("panicked: {}", text[at..].lines().take(2).collect::<Vec<_>>().join(" ")));
        }
        if let Some(word) = not_a_number(text) {
            faults.push(format!("{name} says {word:?}: {}", line_with(text, word)));
        }
        if let Some(control) = text.chars().find(|c| c.is_control() && !"\n\t\r".contains(*c)) {
            faults.push(format!("{name} holds the control character {control:?}"));
        }
    }
    faults
}

fn last_words(text: &str) -> String {
    text.lines().rev().take(3).collect::<Vec<_>>().join(" | ")
}

fn line_with<'a>(text: &'a str, word: &str) -> &'a str {
    text.lines().find(|line| line.contains(word)).unwrap_or_default()
}

/// A temporary file of ours has a hidden name.
fn is_temporary(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with('.') && !KEPT.contains(&name.as_ref())
}

/// Hidden names that are there to stay: what a folder was made with, its lock, and DLIO's record of a run's settings.
const KEPT: [&str; 8] = [
    ".home",
    ".hydra",
    ".lock",
    ".forebay.lock",
    ".forebay-dataset.json",
    ".forebay-pack.json",
    ".forebay-unpack.json",
    ".forebay-workload-data.json",
];

/// The first word of a text that stands for no number.
fn not_a_number(text: &str) -> Option<&str> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.filter(|word| !word.is_empty()).find(|word| ["NaN", "nan", "inf", "Infinity"].contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_is_found_and_words_that_hold_it_are_not() {
        assert_eq!(not_a_number("0.0 images/s, NaN×"), Some("NaN"));
        assert_eq!(not_a_number("spread ±inf %"), Some("inf"));
        assert_eq!(not_a_number("information of a finance banana, isNaN"), None);
    }

    #[test]
    fn hidden_files_are_temporary_unless_they_are_known() {
        assert!(is_temporary(Path::new("out/.run.json.123")));
        assert!(!is_temporary(Path::new("out/.hydra")) && !is_temporary(Path::new("out/a.jpg")));
    }
}
