//! The tables of a study for a terminal, and of several runs beside each other.

use std::fmt::Write;

use forebay_record::{AnyRecord, StudyRun};

use crate::basis;
use crate::cells;
use crate::compare::{Comparison, compare};
use crate::limit;
use crate::published::{self, Published};
use crate::report::runs;
use crate::run::{NamedRun, Run};
use crate::verdict::verdict;
use crate::visible::for_terminal;

/// Cells that a terminal still shows.
const MAX_CELLS: usize = 200;

/// A study's verdict, its cells, and ours beside the published values.
pub fn study(run: &StudyRun) -> String {
    let named = NamedRun { name: run.head.spec.name.clone(), record: AnyRecord::Study(Box::new(run.clone())) };
    of_run(&Run::of(&for_terminal(&named)))
}

/// Every run as text, and what they come to beside each other.
pub fn text(named: &[NamedRun]) -> String {
    let named = &named.iter().map(for_terminal).collect::<Vec<_>>();
    let parts: Vec<String> = named.iter().map(of_record).collect();
    let mut out = parts.join("\n");
    if named.len() > 1 {
        let runs = runs(named);
        for comparison in compare(&runs) {
            out.push('\n');
            out.push_str(&of_comparison(&comparison));
        }
    }
    out
}

fn of_record(named: &NamedRun) -> String {
    match &named.record {
        AnyRecord::Ingest(record) => crate::ingest(record),
        AnyRecord::Probe(record) => crate::probe::probe(record),
        AnyRecord::Checkpoint(record) => crate::checkpoint(record),
        AnyRecord::Train(record) => crate::train(record),
        AnyRecord::Workload(record) => crate::workload(record),
        AnyRecord::Study(_) => of_run(&Run::of(named)),
    }
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
    let named = for_terminal(named);
    let run = Run::of(&named);
    summary_of(&run, &published::published(&run))
}

fn summary_of(run: &Run<'_>, published: &[Published<'_>]) -> String {
    let verdict = verdict(run, published);
    let mut out = format!("{}\n\n{}\n", run.spec().title, verdict.headline);
    for finding in verdict.findings.iter().chain(&verdict.caveats) {
        let _ = writeln!(out, "  {finding}");
    }
    let sound = run.sound();
    let places = limit::places(sound.as_ref().unwrap_or(run));
    if !places.is_empty() && run.is_study() {
        let _ = write!(out, "\n{}", limit::table(run, &places).to_terminal());
    }
    out
}

fn of_run(run: &Run<'_>) -> String {
    let published = published::published(run);
    let mut out = summary_of(run, &published);
    let cells = cells::table(run, None);
    if !cells.is_empty() {
        let _ = write!(out, "\n{}", cells.to_terminal_rows(MAX_CELLS));
        if cells.len() > MAX_CELLS {
            let _ = writeln!(out, "… and {} more cells; --json and --csv have all", cells.len() - MAX_CELLS);
        }
        if run.study.cells.iter().any(|cell| cell.disturbed().is_some()) {
            let _ = writeln!(out, "{}", basis::LEGEND);
        }
    }
    if !published.is_empty() {
        let _ = write!(out, "\n{}", published::table(published.iter()).to_terminal());
    }
    for note in &run.head().notes {
        let _ = writeln!(out, "note: {note}");
    }
    out
}

fn of_comparison(comparison: &Comparison<'_>) -> String {
    let mut out = format!("{} beside {}\n", comparison.name, comparison.base);
    for (what, a, b) in &comparison.differences {
        let _ = writeln!(out, "  {what}: {b}, not {a}");
    }
    let _ = writeln!(out, "\n{}", comparison.summary());
    if !comparison.pairs.is_empty() {
        let _ = write!(out, "\n{}", comparison.table().to_terminal_rows(MAX_CELLS));
        let ratio = format!("A ratio is {} over {}.", comparison.name, comparison.base);
        let _ = writeln!(out, "\n{}", format!("{ratio} {}", comparison.method()).trim_end());
    }
    out
}
