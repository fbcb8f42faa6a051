//! Odd surroundings: no home, a home that is a file, a terminal of one column, closed streams, a working folder that is gone.

use super::SUBJECTS;
use crate::hostile::case::Case;
use crate::hostile::subject::Subject;

pub fn cases(is_short: bool) -> Vec<Case> {
    let subjects = SUBJECTS.iter();
    let mut cases = Vec::new();
    for subject in subjects {
        let with = |how: &str, env: &[(&'static str, Option<&str>)]| {
            let mut case = Case::new(subject, how);
            case.env = env.iter().map(|(name, value)| (*name, value.map(str::to_owned))).collect();
            case
        };
        cases.push(with("a home that is a file", &[("FOREBAY_HOME", Some("tiny.toml"))]));
        cases.push(with("no home at all", &[("FOREBAY_HOME", None), ("HOME", None), ("XDG_DATA_HOME", None)]));
        cases.push(with("one column", &[("COLUMNS", Some("1")), ("TERM", Some("dumb"))]));
        let closed = |how: &str, words: &str| Case::new(subject, how).under(&["sh", "-c", words, "sh"]);
        cases.push(closed("closed streams", "exec \"$@\" <&- >&- 2>&-"));
        let mut full = closed("a full stdout", "exec \"$@\" >/dev/full");
        full.must_fail = !is_silent(subject);
        cases.push(full);
        cases.push(closed("a reader that has gone", "{ sleep 0.1; exec \"$@\"; } | true"));
        if !is_short {
            cases
                .push(closed("a working folder that is gone", "mkdir gone && cd gone && rmdir ../gone && exec \"$@\""));
        }
    }
    cases
}

/// Whether a command prints nothing that could be lost, or ends with the status of the one that it watches.
fn is_silent(subject: &Subject) -> bool {
    let is_to_a_file = subject.name == "trace export" && !subject.writes.is_empty();
    is_to_a_file || subject.name == "tier down" || subject.line.contains(" -- ")
}
