//! Recognises by content the existing files that an output may replace: those that forebay wrote.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::time::Duration;

use forebay_record::CsvLines;
use serde::Deserialize;

use super::schema::Schema;
use crate::manual::markdown::MARK;

/// A page names its generator within this many bytes.
const HEAD: u64 = 4096;

/// CSV headers of forebay are shorter than this.
const LINE: u64 = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A record, a report or findings: JSON with a schema of forebay.
    Json,
    /// An HTML page with forebay as its generator.
    Page,
    /// A CSV table with a known header.
    Table,
    /// A manual page with forebay in its title.
    ManPage,
    /// A page of the commands' reference, which starts with a mark.
    Markdown,
    /// An array or a model. The file does not say who wrote it, so it counts as foreign.
    Values,
}

impl Kind {
    /// Whether forebay wrote the file as this kind of output. Files that a run's record needs do not count.
    pub(crate) fn is_ours(self, path: &Path) -> io::Result<bool> {
        if is_kept_by_runs(path) && is_in_a_run(path) {
            return Ok(false);
        }
        match self {
            Self::Json => Ok(is_our_json(BufReader::new(File::open(path)?))),
            Self::Page => Ok(start(path, HEAD)?.contains("<meta name=\"generator\" content=\"forebay ")),
            Self::Table => Ok(start(path, LINE)?.lines().next().is_some_and(is_our_header)),
            Self::ManPage => Ok(start(path, HEAD)?.lines().any(|line| line.starts_with(".TH forebay"))),
            Self::Markdown => Ok(start(path, HEAD)?.starts_with(MARK)),
            Self::Values => Ok(false),
        }
    }
}

/// Whether runs keep a file of this name that cannot be generated again from the record.
pub(crate) fn is_kept_by_runs(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_series = name.starts_with("samples") && name.ends_with(".csv");
    is_series || ["record.jsonl", "record.json", "plan.toml", "environment.json", ".lock"].contains(&&*name)
}

/// Whether a file is in the folder of a study's or a workload's run.
fn is_in_a_run(path: &Path) -> bool {
    let holds = |record: &str| path.with_file_name(record).is_file();
    holds("record.jsonl") || (holds("record.json") && holds("report.html"))
}

fn start(path: &Path, n_bytes: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(n_bytes).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Whether a line is the CSV header of a watch or of a report.
fn is_our_header(line: &str) -> bool {
    let (_, of_rows) = CsvLines::begin(Duration::ZERO, &[]);
    let of_rows = of_rows.trim_end();
    let is_of_rows = line.strip_prefix(of_rows).is_some_and(|rest| rest.is_empty() || rest.starts_with(','));
    let is_of_cells = line.starts_with("run,experiment,") && line.contains(",value,spread,n,cache,error");
    is_of_rows || is_of_cells
}

/// Whether a text is one JSON value with a schema of forebay: an object, or a list that starts with one.
fn is_our_json(mut text: impl BufRead) -> bool {
    let is_list = text.fill_buf().is_ok_and(|head| head.trim_ascii_start().starts_with(b"["));
    let found = match is_list {
        true => serde_json::from_reader(text).map(|all: Vec<Ours>| all.into_iter().next()),
        false => serde_json::from_reader(text).map(Some),
    };
    let schema = found.ok().flatten().and_then(|Ours { schema }| schema);
    schema.is_some_and(|schema| Schema::is_ours(&schema))
}

/// Keeps only the schema, since records may be large.
#[derive(Deserialize)]
struct Ours {
    schema: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_ours(kind: Kind, name: &str, text: &str) -> bool {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        kind.is_ours(&path).unwrap()
    }

    #[test]
    fn json_is_ours_by_its_schema_alone() {
        for text in [
            r#"{"schema": "forebay-record/1", "cells": []}"#,
            r#"{"cells": [{"a": [1]}], "schema": "forebay-report/1"}"#,
            r#"{"schema": "forebay-tier-list/1", "tiers": []}"#,
            r#"[{"schema": "forebay-findings/1"}, {}]"#,
        ] {
            assert!(is_ours(Kind::Json, "x.json", text), "{text}");
        }
        for text in [
            "",
            "x",
            "3",
            "[]",
            "{}",
            r#"{"schema": 1}"#,
            r#"{"schema": "other/1"}"#,
            r#"{"schema": "forebay-dataset/1"}"#,
            r#"{"of": {"schema": "forebay-record/1"}}"#,
            r#"{"note": "\"schema\": \"forebay-record/1\""}"#,
            r#"{"schema": "forebay-record/1""#,
            "{\"schema\": \"forebay-record/1\"}\n{\"line\": \"cell\"}\n",
        ] {
            assert!(!is_ours(Kind::Json, "x.json", text), "{text}");
        }
    }

    #[test]
    fn pages_are_ours_by_their_generator_and_tables_by_their_header() {
        let page = forebay_report::html(&[]);
        assert!(is_ours(Kind::Page, "x.html", &page));
        assert!(!is_ours(Kind::Page, "x.html", &page.replace("forebay ", "hugo ")));
        let rows = CsvLines::begin(Duration::from_secs(9), &["cpu".to_owned()]).1;
        for (text, ours) in [
            (rows.as_str(), true),
            (&forebay_report::csv(&[]), true),
            ("run,experiment,threads,metric,unit,value,spread,n,cache,error,repeat_1\nx\n", true),
            ("name,value\na,1\n", false),
            ("run,experiment\na,1\n", false),
            (&format!("x{rows}"), false),
        ] {
            assert_eq!(is_ours(Kind::Table, "x.csv", text), ours, "{text}");
        }
        assert!(!is_ours(Kind::Values, "x.npy", "\u{93}NUMPY"));
    }

    #[test]
    fn what_a_run_keeps_beside_its_record_is_not_to_be_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let rows = CsvLines::begin(Duration::ZERO, &[]).1;
        let samples = dir.path().join("samples.csv");
        std::fs::write(&samples, rows).unwrap();
        assert!(Kind::Table.is_ours(&samples).unwrap(), "a table of that name elsewhere");
        std::fs::write(dir.path().join("record.jsonl"), "{}").unwrap();
        assert!(!Kind::Table.is_ours(&samples).unwrap());
    }
}
