//! The report for a terminal: the same sections as on the page, with tables in place of pictures.

use std::fmt::Write;

use forebay_record::{AnyRecord, Record};

use crate::compare::compare;
use crate::environment;
use crate::published;
use crate::report::{Compared, Report, Section, runs};
use crate::run::NamedRun;
use crate::table::{Align, columns};
use crate::verdict::verdict;
use crate::visible::for_terminal;

/// Cells that a terminal still shows.
const MAX_CELLS: usize = 200;
/// Facts that stand above the text of a single record.
const HEAD: [&str; 4] = ["data", "settings", "processor", "file system"];
/// Figures of a single record whose data is shown as a table: the cells' own table does not have it.
const TOLD: [&str; 2] = ["speed-up", "workers"];
const TIME: &str = "time";

/// Every run as text, and what they come to beside each other.
pub fn text(named: &[NamedRun]) -> String {
    let named: Vec<NamedRun> = named.iter().map(for_terminal).collect();
    let runs = runs(&named);
    let report = Report::of(&runs);
    let parts = report.sections.iter().map(of_section).chain(report.compared.iter().map(of_comparison));
    parts.collect::<Vec<_>>().join("\n")
}

/// A record that was just made, as text.
pub fn record<C: Clone>(record: &Record<C>) -> String
where
    AnyRecord: From<Record<C>>,
{
    text(&[NamedRun { name: record.command.clone(), record: record.clone().into() }])
}

/// What one run, or several beside the first, come to in a line each.
pub fn headline(named: &[NamedRun]) -> String {
    let named = named.iter().map(for_terminal).collect::<Vec<_>>();
    let runs = runs(&named);
    match runs.as_slice() {
        [one] => verdict(one, &published::published(one)).headline,
        several => {
            let compared = compare(several);
            let lines = compared.iter().map(|with| format!("{} beside {}: {}", with.name, with.base, with.summary()));
            lines.collect::<Vec<_>>().join("\n")
        }
    }
}

/// What a run comes to: the verdict, and what limits what.
pub fn summary(named: &NamedRun) -> String {
    let named = [for_terminal(named)];
    let runs = runs(&named);
    Report::of(&runs).sections.iter().map(summary_of).collect()
}

fn summary_of(section: &Section<'_>) -> String {
    let (run, verdict) = (section.run, &section.verdict);
    let mut out = format!("{}\n", run.spec().title);
    if !run.is_study() {
        let facts = environment::facts(run);
        let shown = HEAD.iter().filter_map(|name| facts.iter().find(|(what, _)| what == name));
        let rows: Vec<Vec<String>> = shown.map(|(what, fact)| vec![(*what).to_owned(), fact.clone()]).collect();
        out.push_str(&columns(&rows, |_| Align::Left));
    }
    let _ = writeln!(out, "\n{}", verdict.headline);
    for said in verdict.findings.iter().chain(&verdict.caveats) {
        let _ = writeln!(out, "  {said}");
    }
    if !section.glance.is_empty() && run.is_study() {
        let _ = write!(out, "\n{}", section.glance.to_terminal());
    }
    out
}

fn of_section(section: &Section<'_>) -> String {
    let mut out = summary_of(section);
    let run = section.run;
    if !section.cells.is_empty() {
        let _ = write!(out, "\n{}", section.cells.fitted(MAX_CELLS));
        if section.cells.len() > MAX_CELLS {
            let _ = writeln!(out, "… and {} more cells; --json and --csv have all", section.cells.len() - MAX_CELLS);
        }
    }
    // Of training and workloads the accelerator's time is the account, of an ingest the workers'.
    let kinds = if section.figures.iter().any(|figure| figure.kind == TIME) { &[TIME][..] } else { &TOLD };
    let told = section.figures.iter().filter(|figure| !run.is_study() && kinds.contains(&figure.kind));
    let told = told.map(|figure| (figure.title.as_str(), &figure.drawn.data));
    let tables = section.tables.iter().map(|(title, data)| (*title, data));
    for (title, data) in told.chain(tables).filter(|(_, data)| !data.is_empty()) {
        let _ = write!(out, "\n{title}\n{}", data.fitted(MAX_CELLS));
    }
    if !section.references.is_empty() {
        let _ = write!(out, "\n{}", section.references.to_terminal());
    }
    if !section.legend.is_empty() {
        let _ = writeln!(out, "\n{}", section.legend.join("\n"));
    }
    for note in environment::notes(run) {
        let _ = writeln!(out, "note: {note}");
    }
    out
}

fn of_comparison(compared: &Compared<'_>) -> String {
    let comparison = &compared.comparison;
    let mut out = format!("{} beside {}\n", comparison.name, comparison.base);
    for (what, a, b) in &comparison.differences {
        let _ = writeln!(out, "  {what}: {b}, not {a}");
    }
    let _ = writeln!(out, "\n{}", comparison.summary());
    if !comparison.pairs.is_empty() {
        let _ = write!(out, "\n{}", compared.cells.to_terminal_rows(MAX_CELLS));
        let ratio = format!("A ratio is {} over {}.", comparison.name, comparison.base);
        let _ = writeln!(out, "\n{}", format!("{ratio} {}", comparison.method()).trim_end());
    }
    out
}
