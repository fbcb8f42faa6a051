//! A traced job on a terminal: its rules in words, and the heads of its tables. The page and the JSON have all rows.

use std::fmt::Write;

use forebay_record::{TraceCell, TraceFile, TraceRule};
use forebay_units::group_digits;

use super::{fetch, files, operations, processes, saves, sizes};
use crate::data::Data;
use crate::number::listed;
use crate::run::Run;
use crate::table::wrapped;

/// Rows of a table of files, folders, calls or processes.
const MOST_ROWS: usize = 10;
/// Columns that tables do without where lines have no room, the first one first.
const SPARE: [&str; 10] =
    ["p50", "parent", "sequential", "failed", "p95", "writes", "files", "class", "time of fetches", "command"];

/// What follows the findings; empty for other records.
pub(crate) fn text(run: &Run<'_>, width: usize) -> Option<String> {
    let (_, cell) = run.cells_of::<TraceCell>().next()?;
    let mut out = rules(&cell.rules, width);
    let tables = [
        ("Where the workers\u{2019} time went", "", fetch(cell)),
        ("Checkpoints", "", saves(cell)),
        ("Folders of the job", "folder", files("folder", &own(&cell.folders))),
        ("Files of the job", "file", files("file", &own(&cell.files))),
        ("Classes of files", "", files("class", &cell.classes)),
        ("Sizes of reads of data files", "", sizes(cell)),
        ("Calls", "", operations(cell)),
        ("Processes", "command", processes(cell)),
    ];
    for (title, name, data) in tables.iter().filter(|(_, _, data)| !data.is_empty()) {
        let _ = write!(out, "\n{title}\n{}{}", data.narrow(MOST_ROWS, width, name, &SPARE), more(data));
    }
    Some(out)
}

fn more(data: &Data) -> String {
    match data.len().saturating_sub(MOST_ROWS) {
        0 => String::new(),
        n => format!("… and {} more; --html and --json have them\n", group_digits(n as u64)),
    }
}

/// What the job works on. If it is nothing, then everything: programs and libraries.
fn own(all: &[TraceFile]) -> Vec<TraceFile> {
    let own: Vec<TraceFile> = all.iter().filter(|file| file.is_own()).cloned().collect();
    if own.is_empty() { all.to_vec() } else { own }
}

/// The findings name rules that apply; the others are named here, those that could not look with their reasons.
fn rules(all: &[TraceRule], width: usize) -> String {
    let name = |rule: &TraceRule| format!("{} ({})", rule.name, rule.id);
    let mut out = String::new();
    let mut say = |text: String| {
        if out.is_empty() {
            out.push_str("\nRules\n");
        }
        out.push_str(&wrapped(&text, 2, 4, width));
    };
    let found: Vec<String> = all.iter().filter(|rule| rule.applies == Some(true)).map(name).collect();
    let absent: Vec<String> = all.iter().filter(|rule| rule.applies == Some(false)).map(name).collect();
    for (what, names) in [("Found", found), ("Looked for and not found", absent)] {
        if !names.is_empty() {
            say(format!("{what}: {}.", listed(&names)));
        }
    }
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for rule in all.iter().filter(|rule| rule.applies.is_none()) {
        match reasons.iter_mut().find(|(reason, _)| *reason == rule.evidence) {
            Some((_, names)) => names.push(name(rule)),
            None => reasons.push((&rule.evidence, vec![name(rule)])),
        }
    }
    for (reason, names) in reasons {
        say(format!("Could not look for {}: {reason}.", listed(&names)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_could_not_look_are_grouped_by_their_reason() {
        let rule = |id: &str, name: &str, applies, evidence: &str| TraceRule {
            id: id.to_owned(),
            name: name.to_owned(),
            applies,
            evidence: evidence.to_owned(),
            ..TraceRule::default()
        };
        let all = [
            rule("R0", "waits for data", Some(true), "7 %"),
            rule("R1", "storage is the limit", None, "no fetches were seen"),
            rule("R2", "too few workers", None, "no fetches were seen"),
            rule("R6", "small random reads", Some(false), "median 1 MB"),
        ];
        let said = "\nRules\n  Found: waits for data (R0).\n  Looked for and not found: small random reads (R6).\n  Could not look for \
                    storage is the limit (R1) and too few workers (R2): no fetches were seen.\n";
        assert_eq!(rules(&all, 200), said);
        assert_eq!(rules(&[], 80), "");
    }
}
