//! The report's numbers for programs: JSON as the page has them, CSV with a line a cell and quantity.

use std::collections::BTreeMap;
use std::fmt::Write;

use forebay_record::{CacheState, Levels, Measured, MetricInfo, ProbeCell, Step, StudyCell, Unit};
use serde::Serialize;

use crate::basis;
use crate::compare::Word;
use crate::data::Data;
use crate::environment;
use crate::report::{Compared, Report, Section, runs};
use crate::run::{NamedRun, Run};
use crate::verdict::Verdict;

/// Everything that [`html`](crate::html) shows, as one JSON object.
pub fn json(named: &[NamedRun]) -> String {
    let runs = runs(named);
    let report = Report::of(&runs);
    let whole = Whole {
        schema: "forebay-report/1",
        runs: report.sections.iter().map(of_section).collect(),
        comparisons: report.compared.iter().map(of_comparison).collect(),
    };
    serde_json::to_string_pretty(&whole).expect("a report has no keys but strings and no number JSON cannot hold")
}

#[derive(Serialize)]
struct Whole<'a> {
    schema: &'static str,
    runs: Vec<RunPart<'a>>,
    comparisons: Vec<ComparisonPart<'a>>,
}

#[derive(Serialize)]
struct RunPart<'a> {
    name: &'a str,
    command: &'a str,
    title: &'a str,
    complete: bool,
    verdict: &'a Verdict,
    at_a_glance: &'a Data,
    figures: Vec<FigurePart<'a>>,
    cells: &'a Data,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    tables: BTreeMap<&'static str, &'a Data>,
    references: &'a Data,
    facts: BTreeMap<&'static str, String>,
    tiers: Data,
    command_line: String,
    notes: Vec<String>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    limits: &'a [String],
}

#[derive(Serialize)]
struct FigurePart<'a> {
    id: &'a str,
    number: &'a str,
    title: &'a str,
    kind: &'a str,
    caption: &'a str,
    remarks: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    code: &'a [(String, String)],
    data: &'a Data,
}

#[derive(Serialize)]
struct ComparisonPart<'a> {
    base: &'a str,
    run: &'a str,
    summary: String,
    method: String,
    n_faster: usize,
    n_slower: usize,
    n_noise: usize,
    differences: Data,
    cells: &'a Data,
}

fn of_section<'a>(section: &'a Section<'_>) -> RunPart<'a> {
    let run = section.run;
    let figures = section.figures.iter().zip(&section.captions).map(|(figure, caption)| FigurePart {
        id: &figure.id,
        number: &figure.number,
        title: &figure.title,
        kind: figure.kind,
        caption,
        remarks: &figure.drawn.remarks,
        code: &figure.drawn.code,
        data: &figure.drawn.data,
    });
    RunPart {
        name: run.name,
        command: &run.head().command,
        title: &run.spec().title,
        complete: run.study.is_complete(),
        verdict: &section.verdict,
        at_a_glance: &section.glance,
        figures: figures.collect(),
        cells: &section.cells,
        tables: section.tables.iter().map(|(title, data)| (*title, data)).collect(),
        references: &section.references,
        facts: environment::facts(run).into_iter().collect(),
        tiers: environment::tiers(run),
        command_line: environment::command(run),
        notes: environment::notes(run),
        limits: &run.spec().limits,
    }
}

fn of_comparison<'a>(compared: &'a Compared<'_>) -> ComparisonPart<'a> {
    let comparison = &compared.comparison;
    ComparisonPart {
        base: comparison.base,
        run: comparison.name,
        summary: comparison.summary(),
        method: comparison.method(),
        n_faster: comparison.n(Word::Faster),
        n_slower: comparison.n(Word::Slower),
        n_noise: comparison.n(Word::Noise),
        differences: comparison.differences_table(),
        cells: &compared.cells,
    }
}

struct Line<'a> {
    run: &'a str,
    cell: &'a StudyCell,
    levels: Levels,
    metric: Option<&'static MetricInfo>,
    value: Option<f64>,
    repeats: Vec<f64>,
    cache: &'static str,
    disturbed: String,
}

/// Every cell in long form, as a table for a spreadsheet or a data frame: a line a cell and quantity, repeats in the last columns. The
/// column `unit` says what values and repeats are in: shares, utilisation among them, in percent. The spread is a share of the value.
/// Text that a spreadsheet would take for a formula has an apostrophe before it.
pub fn csv(named: &[NamedRun]) -> String {
    let runs = runs(named);
    let lines: Vec<Line<'_>> = runs.iter().flat_map(lines).collect();
    let mut factors: Vec<&str> = lines.iter().flat_map(|line| line.levels.keys().map(String::as_str)).collect();
    factors.sort_unstable();
    factors.dedup();
    let n_repeats = lines.iter().map(|line| line.repeats.len()).max().unwrap_or(0);
    let mut head: Vec<String> = vec!["run".to_owned(), "experiment".to_owned()];
    head.extend(factors.iter().map(|factor| (*factor).to_owned()));
    head.extend(["metric", "unit", "value", "spread", "n", "cache", "error"].map(str::to_owned));
    let has_left_out = lines.iter().any(|line| line.cell.left_out.is_some());
    head.extend(has_left_out.then(|| "left_out".to_owned()));
    let has_disturbed = lines.iter().any(|line| !line.disturbed.is_empty());
    head.extend(has_disturbed.then(|| "disturbed".to_owned()));
    head.extend((1..=n_repeats).map(|i| format!("repeat_{i}")));
    let mut out = String::new();
    push(&mut out, &head);
    for line in &lines {
        push(&mut out, &fields(line, &factors, n_repeats, (has_left_out, has_disturbed)));
    }
    out
}

fn lines<'a>(run: &'a Run<'a>) -> Vec<Line<'a>> {
    run.study.cells.iter().flat_map(|cell| of_cell(run, cell)).collect()
}

/// A line per quantity; of a cell that has none, one that says why.
fn of_cell<'a>(run: &'a Run<'a>, cell: &'a StudyCell) -> Vec<Line<'a>> {
    let mut lines = Vec::new();
    for measured in cell.result().into_iter().flat_map(Measured::cells) {
        let several = cell.measured_one::<ProbeCell>().map(|_| measured.levels());
        let levels: Levels = several.into_iter().flatten().chain(cell.factors.clone()).collect();
        let cache = measured.media().first().and_then(|medium| medium.cache).map(CacheState::name).unwrap_or_default();
        lines.extend(measured.measurements().into_iter().map(|(info, of)| Line {
            run: run.name,
            cell,
            levels: levels.clone(),
            metric: Some(info),
            value: Some(of.value),
            repeats: of.repeats,
            cache,
            disturbed: basis::said(measured).unwrap_or_default(),
        }));
    }
    if lines.is_empty() {
        let (run, levels) = (run.name, cell.factors.clone());
        let (repeats, disturbed) = (Vec::new(), String::new());
        lines.push(Line { run, cell, levels, metric: None, value: None, repeats, cache: "", disturbed });
    }
    lines
}

fn fields(
    line: &Line<'_>,
    factors: &[&str],
    n_repeats: usize,
    (has_left_out, has_disturbed): (bool, bool),
) -> Vec<String> {
    // A field is empty where the number is not known.
    let number = |value: f64| if value.is_finite() { value.to_string() } else { String::new() };
    let unit = line.metric.map(|info| info.unit);
    let exported = |value: f64| number(if unit == Some(Unit::Share) { rounded(value * 100.0) } else { value });
    let mut fields = vec![line.run.to_owned(), line.cell.experiment.clone()];
    fields.extend(factors.iter().map(|factor| line.levels.get(*factor).map(ToString::to_string).unwrap_or_default()));
    let spread = forebay_units::Summary::of(&line.repeats).filter(|summary| summary.n > 1);
    fields.push(line.metric.map(|info| info.name.to_owned()).unwrap_or_default());
    fields.push(unit.map(Unit::symbol).unwrap_or_default());
    fields.push(line.value.map(exported).unwrap_or_default());
    fields.push(spread.and_then(|summary| summary.relative_spread()).map(number).unwrap_or_default());
    // The value of a workload that was run once is no repeat.
    let once = usize::from(line.value.is_some() && line.cell.step == Step::Workload);
    fields.push(line.repeats.len().max(once).to_string());
    fields.push(line.cache.to_owned());
    fields.push(line.cell.error.clone().unwrap_or_default());
    fields.extend(has_left_out.then(|| line.cell.left_out.clone().unwrap_or_default()));
    fields.extend(has_disturbed.then(|| line.disturbed.clone()));
    fields.extend((0..n_repeats).map(|i| line.repeats.get(i).copied().map(exported).unwrap_or_default()));
    fields
}

/// Without the last bits, which a product and a quotient of 100 leave behind: 28.9, not 28.900000000000002.
fn rounded(value: f64) -> f64 {
    format!("{value:.14e}").parse().unwrap_or(value)
}

fn push(out: &mut String, fields: &[String]) {
    for (i, field) in fields.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        // A spreadsheet would compute it.
        let field = if is_formula(field) { format!("'{field}") } else { field.clone() };
        if field.contains([',', '"', '\n', '\r']) {
            let _ = write!(out, "\"{}\"", field.replace('"', "\"\""));
        } else {
            out.push_str(&field);
        }
    }
    out.push('\n');
}

/// Whether a spreadsheet takes a text for a formula. A number, also one below zero, is one.
fn is_formula(field: &str) -> bool {
    field.starts_with(['=', '+', '-', '@', '\t', '\r']) && field.parse::<f64>().is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_a_spreadsheet_would_compute_is_text_and_numbers_stay_numbers() {
        let mut out = String::new();
        let fields = ["=1+2", "@SUM(A1)", "-2.5", "+3e4", "-rf", "a=b", "=\"x\",y", "a\nb"];
        push(&mut out, &fields.map(str::to_owned));
        assert_eq!(out, "'=1+2,'@SUM(A1),-2.5,+3e4,'-rf,a=b,\"'=\"\"x\"\",y\",\"a\nb\"\n");
    }
}
