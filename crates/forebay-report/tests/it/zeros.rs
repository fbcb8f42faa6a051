//! Records of runs in which something came to nothing: no output has a number that is none.
//!
//! Every number of every kind of record is set to zero in turn, everywhere, in the first place and in the last, as where files
//! vanish while they are read. A rate over no time or a ratio to nothing is then unknown, and shown as "–".

use std::collections::BTreeSet;

use forebay_record::AnyRecord;
use forebay_report::NamedRun;
use serde_json::{Value, json};

use crate::{chien, mini, plain, saved, workload};

/// Which of the numbers under a name are set.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Which {
    All,
    First,
    Last,
}

/// A run's record: one value, or the lines of a study.
fn records() -> Vec<(&'static str, Vec<Value>)> {
    vec![
        ("ingest", vec![plain::ingest(chien::USUAL)]),
        ("probe", vec![plain::probe()]),
        ("train", vec![mini::record(1.0)]),
        ("train with checkpoints", vec![saved::train_record(Some(saved::BURST))]),
        ("checkpoint", vec![saved::bench(1.0)]),
        ("study of ingest", chien::lines(chien::Plan { repeats: 2, ..chien::USUAL })),
        ("study of training", mini::lines()),
        ("study of checkpoints", saved::lines()),
        ("study of workloads", workload::lines()),
    ]
}

/// The names of all numbers: the keys that lead to them, without places in lists.
fn names(value: &Value, name: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Number(_) => drop(found.insert(name.to_owned())),
        Value::Array(list) => list.iter().for_each(|value| names(value, name, found)),
        Value::Object(map) => map.iter().for_each(|(key, value)| names(value, &format!("{name}/{key}"), found)),
        _ => {}
    }
}

/// The numbers of a name, in their order.
fn numbers<'a>(value: &'a mut Value, at: &str, name: &str, found: &mut Vec<&'a mut Value>) {
    match value {
        Value::Number(_) if at == name => found.push(value),
        Value::Array(list) => list.iter_mut().for_each(|value| numbers(value, at, name, found)),
        Value::Object(map) => {
            map.iter_mut().for_each(|(key, value)| numbers(value, &format!("{at}/{key}"), name, found));
        }
        _ => {}
    }
}

fn with_zeros(lines: &[Value], name: &str, which: Which) -> Option<NamedRun> {
    let mut lines = lines.to_vec();
    let mut found = Vec::new();
    lines.iter_mut().for_each(|line| numbers(line, "", name, &mut found));
    let last = found.len() - 1;
    for (i, number) in found.into_iter().enumerate() {
        if which == Which::All || (which == Which::First && i == 0) || (which == Which::Last && i == last) {
            *number = json!(0);
        }
    }
    let text = if lines.len() == 1 { lines[0].to_string() } else { chien::jsonl(&lines) };
    // A zero may be what no record can have.
    Some(NamedRun { name: "run".to_owned(), record: AnyRecord::from_text(&text).ok()? })
}

/// Whether a text has "NaN" or "inf" as a word.
fn is_no_number(text: &str) -> Option<&str> {
    for word in ["NaN", "inf", "∞"] {
        for (at, _) in text.match_indices(word) {
            let is_letter = |c: char| c.is_alphanumeric() || c == '_';
            let before = text[..at].chars().next_back().is_some_and(is_letter);
            let after = text[at + word.len()..].chars().next().is_some_and(is_letter);
            if !before && !after {
                let from = text[..at].char_indices().rev().nth(60).map_or(0, |(from, _)| from);
                let to = text[at..].char_indices().nth(40).map_or(text.len(), |(to, _)| at + to);
                return Some(&text[from..to]);
            }
        }
    }
    None
}

fn check(run: NamedRun, what: &str) {
    let runs = [run];
    let page = forebay_report::html(&runs);
    let page = &page[..page.find("<script>").unwrap()];
    let text = forebay_report::text(&runs);
    let (json, csv) = (forebay_report::json(&runs), forebay_report::csv(&runs));
    let others = [forebay_report::headline(&runs), forebay_report::summary(&runs[0])];
    for (kind, output) in [("page", page), ("text", &text), ("json", &json), ("csv", &csv)]
        .into_iter()
        .chain(others.iter().map(|output| ("words", output.as_str())))
    {
        if let Some(found) = is_no_number(output) {
            panic!("{what}: {kind}: {found}");
        }
    }
}

#[test]
fn a_number_that_is_zero_makes_no_other_one_infinite_or_none() {
    let mut n_checked = 0;
    for (kind, lines) in records() {
        let mut all = BTreeSet::new();
        lines.iter().for_each(|line| names(line, "", &mut all));
        // What a study plans to measure is not measured.
        all.retain(|name| !["/spec", "/environment"].iter().any(|planned| name.starts_with(planned)));
        for name in &all {
            // Studies have the same numbers many times over: once is enough.
            let whichs: &[Which] =
                if lines.len() == 1 { &[Which::All, Which::First, Which::Last] } else { &[Which::All] };
            for which in whichs.iter().copied() {
                let Some(run) = with_zeros(&lines, name, which) else { continue };
                check(run, &format!("{kind}: {which:?} of {name}"));
                n_checked += 1;
            }
        }
    }
    assert!(n_checked > 250, "{n_checked}");
}

#[test]
fn runs_with_zeros_are_compared_with_sound_ones() {
    for (kind, lines) in records().into_iter().filter(|(_, lines)| lines.len() == 1) {
        let mut all = BTreeSet::new();
        lines.iter().for_each(|line| names(line, "", &mut all));
        let text = if lines.len() == 1 { lines[0].to_string() } else { chien::jsonl(&lines) };
        for name in &all {
            let Some(zeros) = with_zeros(&lines, name, Which::All) else { continue };
            let sound = NamedRun { name: "sound".to_owned(), record: AnyRecord::from_text(&text).unwrap() };
            let runs = [sound, zeros];
            let page = forebay_report::html(&runs);
            let page = &page[..page.find("<script>").unwrap()];
            for output in
                [page, &forebay_report::text(&runs), &forebay_report::json(&runs), &forebay_report::csv(&runs)]
            {
                if let Some(found) = is_no_number(output) {
                    panic!("{kind}: {name}: {found}");
                }
            }
        }
    }
}
