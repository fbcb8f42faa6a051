//! `forebay workload check`.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt::Write;

use anyhow::{Result, bail};
use forebay_units::{PathText, count};
use forebay_workload::replay::Replay;
use forebay_workload::{Checked, Note, Plan, Problem, Workload, read};
use serde_json::{Value, json};

use super::source::{describe_problem, file_of, line, text_of};
use crate::output::{JsonArgs, Outcome, Schema};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example: forebay workload check configs/workload/*.yaml")]
pub(crate) struct Args {
    /// DLIO's YAML, forebay's TOML or built-in names; ++workload.a.b=c overrides a key in all
    #[arg(required = true, value_name = "FILE")]
    files: Vec<OsString>,

    #[command(flatten)]
    json: JsonArgs,
}

/// Checks a file; problems come with their lines.
type Found = Result<Checked, Vec<(Problem, Option<usize>)>>;

pub(super) fn run(args: &Args) -> Result<Outcome> {
    let target = args.json.target(args.files.iter().filter_map(|file| file_of(file)))?;
    let is_override = |word: &&OsString| word.as_encoded_bytes().starts_with(b"++");
    let (overrides, files): (Vec<&OsString>, Vec<&OsString>) = args.files.iter().partition(is_override);
    let overrides: Vec<String> = overrides.into_iter().map(|word| word.escaped().into_owned()).collect();
    if files.is_empty() {
        bail!("no workload given\nhint: give a file or the name of a built-in workload");
    }
    let texts = files.iter().map(|file| text_of(file)).collect::<Result<Vec<_>>>()?;
    let found = files.iter().zip(texts).map(|(file, (name, text))| (file.escaped(), find(&name, &text, &overrides)));
    let found: Vec<(Cow<'_, str>, Found)> = found.collect();
    let text: String = found.iter().map(in_words).collect();
    let checked: Vec<Value> = found.iter().map(as_json).collect();
    target.give(Schema::WorkloadCheck, &text, &json!({ "workloads": checked }))?;
    Ok(Outcome::of(found.iter().all(|(_, found)| found.is_ok())))
}

fn find(name: &str, text: &str, overrides: &[String]) -> Found {
    match Replay::read(text) {
        Ok(None) => {}
        Ok(Some(_)) if overrides.is_empty() => {
            let workload = Workload { name: name.to_owned(), ..Workload::default() };
            return Ok(Checked { workload, notes: vec![Note { key: REPLAY.to_owned(), text: TRACED.to_owned() }] });
        }
        Ok(Some(_)) => {
            let text = "a traced job has none of DLIO's keys".to_owned();
            return Err(vec![(Problem { key: "++workload".to_owned(), text }, None)]);
        }
        Err(problem) => return Err(vec![(problem, None)]),
    }
    let placed = |problem: Problem| {
        let line = line(&problem, text, overrides);
        (problem, line)
    };
    let checked = read(name, text, overrides).and_then(|checked| match Plan::new(&checked.workload, 1) {
        // A problem that depends on the number of accelerators is not one of the file.
        Err(problem) if problem.key == STEPS => Err(vec![problem]),
        _ => Ok(checked),
    });
    let mut checked = checked.map_err(|problems| problems.into_iter().map(placed).collect::<Vec<_>>())?;
    if !forebay_dataset::is_built_in(checked.workload.dataset.format) {
        let text = "this build cannot run it: build with --features hdf5".to_owned();
        checked.notes.push(Note { key: "dataset.format".to_owned(), text });
    }
    Ok(checked)
}

/// The key of a problem that no number of accelerators solves.
const STEPS: &str = "train.total_training_steps";

/// The note of a file that holds a traced job.
const REPLAY: &str = "replay";
const TRACED: &str = "a traced job, to be played again";

fn in_words((file, found): &(Cow<'_, str>, Found)) -> String {
    match found {
        Ok(checked) if checked.notes.iter().any(|note| note.key == REPLAY) => {
            format!("{file}: {TRACED}\n")
        }
        Ok(checked) if checked.workload == unchanged(checked) => format!("{file}: no keys: all DLIO defaults\n"),
        Ok(checked) if checked.notes.is_empty() => format!("{file}: every key is honoured\n"),
        Ok(checked) => {
            let mut out = format!("{file}: every key is honoured, {}\n", count(checked.notes.len() as u64, "note"));
            for Note { key, text } in &checked.notes {
                let _ = writeln!(out, "  note: {key}: {text}");
            }
            out
        }
        Err(problems) => {
            let mut out = format!("{file}: refused, {}\n", count(problems.len() as u64, "problem"));
            for (problem, line) in problems {
                let _ = writeln!(out, "  {}", describe_problem(problem, *line));
            }
            out
        }
    }
}

fn unchanged(checked: &Checked) -> Workload {
    Workload { name: checked.workload.name.clone(), ..Workload::default() }
}

fn as_json((file, found): &(Cow<'_, str>, Found)) -> Value {
    let notes = found.as_ref().map_or(&[][..], |checked| &checked.notes);
    let refused =
        |(problem, line): &(Problem, Option<usize>)| json!({"key": problem.key, "text": problem.text, "line": line});
    let problems = found.as_ref().map_or_else(Vec::as_slice, |_| &[][..]);
    json!({
        "file": file,
        "is_accepted": found.is_ok(),
        "notes": notes,
        "problems": problems.iter().map(refused).collect::<Vec<_>>(),
    })
}
