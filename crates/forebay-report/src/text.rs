//! The report for a terminal: the same sections as on the page, with tables in place of pictures.

use std::fmt::Write;

use forebay_record::{AnyRecord, Record};

use crate::cells::{self, experiments};
use crate::compare::compare;
use crate::data::Data;
use crate::environment;
use crate::published;
use crate::report::{Compared, Report, Section, runs};
use crate::run::NamedRun;
use crate::table::{WIDTH, paragraph, wrapped};
use crate::traced;
use crate::verdict::verdict;
use crate::visible::for_terminal;

const MAX_CELLS: usize = 200;
/// Facts that stand above the text of a single record.
const HEAD: [&str; 4] = ["data", "settings", "processor", "file system"];
/// Figures of a single record whose data is shown as a table: the cells' own table does not have it.
const TOLD: [&str; 2] = ["speed-up", "workers"];
const TIME: &str = "time";
/// What tuning tells: its path, and its settings as lines for other programs.
const TUNING: &str = "tuning";
/// Columns of those tables that the cells' own table has.
const REPEATED: [&str; 1] = ["images/s"];
/// Columns of the cells' table that a terminal does without: the page, the JSON and the CSV have them.
const DETAILS: [&str; 5] = ["p90", "p99.9", "disturbed", "cached before", "took"];

/// Every run as text for a terminal of [`WIDTH`] columns, and what they come to beside each other.
pub fn text(named: &[NamedRun]) -> String {
    text_within(named, WIDTH)
}

/// As [`text`], in lines of at most `width` columns.
pub fn text_within(named: &[NamedRun], width: usize) -> String {
    let named: Vec<NamedRun> = named.iter().map(for_terminal).collect();
    let runs = runs(&named);
    let report = Report::of(&runs);
    // What is compared is not shown in all its tables: the comparison would be far below them.
    let is_alone = report.compared.is_empty();
    let parts = report.sections.iter().map(|section| of_section(section, is_alone, width));
    let parts = parts.chain(report.compared.iter().map(|compared| of_comparison(compared, width)));
    parts.collect::<Vec<_>>().join("\n")
}

/// A record that was just made, as text.
pub fn record<C: Clone>(record: &Record<C>) -> String
where
    AnyRecord: From<Record<C>>,
{
    record_within(record, WIDTH)
}

/// As [`record`], in lines of at most `width` columns.
pub fn record_within<C: Clone>(record: &Record<C>, width: usize) -> String
where
    AnyRecord: From<Record<C>>,
{
    text_within(&[NamedRun { name: record.command.clone(), record: record.clone().into() }], width)
}

/// What one run, or several beside the first, come to in a line each.
pub fn headline(named: &[NamedRun]) -> String {
    let named = named.iter().map(for_terminal).collect::<Vec<_>>();
    let runs = runs(&named);
    match runs.as_slice() {
        [one] => verdict(one, &published::published(one)).headline,
        several => {
            let compared = compare(several);
            if compared.is_empty() {
                let each = several
                    .iter()
                    .map(|run| format!("{}: {}", run.name, verdict(run, &published::published(run)).headline));
                return each.collect::<Vec<_>>().join("\n");
            }
            let lines =
                compared.iter().map(|with| format!("{} compared with {}: {}", with.name, with.base, with.summary()));
            lines.collect::<Vec<_>>().join("\n")
        }
    }
}

/// What a run comes to: the verdict, and what limits what.
pub fn summary(named: &NamedRun) -> String {
    summary_within(named, WIDTH)
}

/// As [`summary`], in lines of at most `width` columns.
pub fn summary_within(named: &NamedRun, width: usize) -> String {
    let named = [for_terminal(named)];
    let runs = runs(&named);
    Report::of(&runs).sections.iter().map(|section| summary_of(section, width)).collect()
}

fn summary_of(section: &Section<'_>, width: usize) -> String {
    let glance = if section.run.is_study() && !section.glance.is_empty() {
        format!("\n{}", section.glance.fitted(MAX_CELLS, width))
    } else {
        String::new()
    };
    format!("{}{}{glance}", heading(section, width), sentences(section, width))
}

fn heading(section: &Section<'_>, width: usize) -> String {
    let run = section.run;
    let mut out = paragraph(&run.spec().title, 0, width);
    if !run.is_study() {
        let facts = environment::facts(run);
        let shown = || HEAD.iter().filter_map(|name| facts.iter().find(|(what, _)| what == name));
        let gap = shown().map(|(what, _)| what.len()).max().unwrap_or(0);
        out.extend(shown().map(|(what, fact)| wrapped(&format!("{what:gap$}  {fact}"), 0, gap + 2, width)));
    }
    format!("{out}\n{}", paragraph(&section.verdict.headline, 0, width))
}

fn sentences(section: &Section<'_>, width: usize) -> String {
    section.verdict.findings.iter().chain(&section.verdict.caveats).map(|said| paragraph(said, 2, width)).collect()
}

/// The rates of a single record come right below the answer; a study has too many cells for that.
fn of_section(section: &Section<'_>, is_alone: bool, width: usize) -> String {
    let run = section.run;
    let mut out = if run.is_study() { summary_of(section, width) } else { heading(section, width) };
    let has = |kind| section.figures.iter().any(|figure| figure.kind == kind);
    // The path of tuning has a row per run.
    if !section.cells.is_empty() && (run.is_study() || !has(TUNING)) {
        out.push_str(&match experiments(run).as_slice() {
            [] | [_] => of_cells(section.cells.clone(), run.is_study(), width),
            several => {
                let each = several.iter().map(|name| {
                    format!(
                        "\n{name}\n{}",
                        of_cells(cells::table(run, Some(name)), true, width).trim_start_matches('\n')
                    )
                });
                each.collect()
            }
        });
    }
    if !run.is_study() {
        let sentences = sentences(section, width);
        let gap = if section.cells.is_empty() || sentences.is_empty() { "" } else { "\n" };
        let _ = write!(out, "{gap}{sentences}");
    }
    // Of training and workloads the accelerator's time is the account, of an ingest the workers'.
    let kinds = match (has(TUNING), has(TIME)) {
        (true, _) => &[TUNING][..],
        (_, true) => &[TIME],
        _ => &TOLD,
    };
    let told = section.figures.iter().filter(|figure| !run.is_study() && kinds.contains(&figure.kind));
    let told = told.map(|figure| (figure.title.as_str(), figure.drawn.data.without(&REPEATED)));
    let traced = traced::text(run, width);
    let tables = section.tables.iter().filter(|_| traced.is_none()).map(|(title, data)| (*title, data.clone()));
    for (title, data) in told.chain(tables).filter(|(_, data)| !data.is_empty()) {
        let data = if data.len() == 1 { data.without(&["cell"]) } else { data };
        let _ = write!(out, "\n{title}\n{}", data.fitted(MAX_CELLS, width));
    }
    out.extend(traced.filter(|_| is_alone));
    let tuned = section.figures.iter().filter(|figure| figure.kind == TUNING);
    for (what, code) in tuned.flat_map(|figure| &figure.drawn.code) {
        // Not wrapped: it is to be copied.
        let _ = write!(out, "\n{what}:\n\n{}\n", code.trim_end());
    }
    if !section.references.is_empty() {
        let _ = write!(out, "\n{}", section.references.fitted(MAX_CELLS, width));
    }
    if !section.legend.is_empty() {
        let _ = write!(out, "\n{}", paragraph(&section.legend.join(" "), 0, width));
    }
    for limit in &run.spec().limits {
        let _ = write!(out, "{}", paragraph(&format!("not shown: {limit}"), 0, width));
    }
    for note in environment::notes(run) {
        let _ = write!(out, "{}", paragraph(&format!("note: {note}"), 0, width));
    }
    out
}

/// A table of cells; a single one has no need of its name.
fn of_cells(cells: Data, is_study: bool, width: usize) -> String {
    let cells = cells.without(&DETAILS);
    let cells = if cells.len() == 1 && !is_study { cells.without(&["cell"]) } else { cells };
    let more = match cells.len().saturating_sub(MAX_CELLS) {
        0 => String::new(),
        n => format!("… and {n} more cells; --json and --csv have all\n"),
    };
    format!("\n{}{more}", cells.fitted(MAX_CELLS, width))
}

fn of_comparison(compared: &Compared<'_>, width: usize) -> String {
    let comparison = &compared.comparison;
    let mut out = paragraph(&format!("{} compared with {}", comparison.name, comparison.base), 0, width);
    for (what, a, b) in &comparison.differences {
        let _ = write!(out, "{}", paragraph(&format!("{what}: {a} → {b}"), 2, width));
    }
    let _ = write!(out, "\n{}", paragraph(&comparison.summary(), 0, width));
    if !comparison.pairs.is_empty() {
        let _ = write!(out, "\n{}", compared.cells.fitted(MAX_CELLS, width));
        let ratio = format!("A ratio is {} over {}.", comparison.name, comparison.base);
        let _ = write!(out, "\n{}", paragraph(format!("{ratio} {}", comparison.method()).trim_end(), 0, width));
    }
    out
}
