//! What the page says of one run: verdict, glance, figures, cells, references, environment.

use std::fmt::Display;

use crate::cells;
use crate::environment;
use crate::fig::Figure;
use crate::markup::Markup;
use crate::report::Section;

/// Cells shown on the page; the JSON and the CSV have all.
const MAX_CELLS: usize = 300;
const MAX_DATA: usize = 200;

pub(super) fn write(page: &mut Markup, section: &Section<'_>, level: usize) {
    header(page, section, level - 1);
    verdict(page, section);
    if !section.glance.is_empty() {
        heading(page, level, "At a glance");
        page.put(&section.glance.to_html("glance", "at a glance", 60));
        cut(page, section.glance.len(), 60);
    }
    if !section.figures.is_empty() {
        heading(page, level, "Figures");
    }
    for (drawn, caption) in section.figures.iter().zip(&section.captions) {
        figure(page, drawn, caption, level + 1);
    }
    cells(page, section, level);
    if !section.references.is_empty() {
        heading(page, level, "Published values");
        if let Some(source) = &section.run.spec().source {
            page.element("p", &[], source);
        }
        page.open("div", &[("class", &"bleed")]);
        page.put(&section.references.to_html("references", "published values", MAX_CELLS));
        page.close("div");
        cut(page, section.references.len(), MAX_CELLS);
    }
    if !section.run.spec().limits.is_empty() {
        heading(page, level, "What this study does not show");
        list(page, "limits", &section.run.spec().limits);
    }
    surroundings(page, section, level);
}

fn heading(page: &mut Markup, level: usize, text: impl Display) {
    page.element(&format!("h{level}"), &[], text);
}

fn header(page: &mut Markup, section: &Section<'_>, level: usize) {
    let (spec, environment) = (section.run.spec(), section.run.environment());
    page.open("header", &[]);
    page.element("p", &[("class", &"kicker")], if level == 1 { "forebay report" } else { section.run.name });
    heading(page, level, &spec.title);
    if let Some(source) = &spec.source {
        page.element("p", &[("class", &"source")], format_args!("Source: {source}"));
    }
    if !spec.about.trim().is_empty() {
        page.element("p", &[("class", &"about")], spec.about.trim());
    }
    let mut facts = vec![environment.started_at.clone(), environment.cpu.clone().unwrap_or_default()];
    if environment.n_cores > 0 {
        facts.push(forebay_units::count(environment.n_cores, "core"));
    }
    facts.push(environment.data_file_system.clone().unwrap_or_default());
    if section.run.is_study() {
        facts.push(format!("{} scale", section.run.head().scale.name()));
    }
    facts.retain(|fact| !fact.is_empty());
    page.element("p", &[("class", &"meta")], facts.join(" · "));
    page.close("header");
}

fn verdict(page: &mut Markup, section: &Section<'_>) {
    let verdict = &section.verdict;
    page.open("section", &[("class", &"verdict"), ("aria-label", &"verdict")]);
    page.element("p", &[("class", &"headline")], &verdict.headline);
    list(page, "findings", &verdict.findings);
    if !verdict.caveats.is_empty() {
        page.element("p", &[("class", &"keep")], "Keep in mind");
        list(page, "caveats", &verdict.caveats);
    }
    page.close("section");
}

fn list(page: &mut Markup, class: &str, items: &[String]) {
    if items.is_empty() {
        return;
    }
    page.open("ul", &[("class", &class)]);
    for item in items {
        page.element("li", &[], item);
    }
    page.close("ul");
}

/// A figure: heading, legend, picture, caption, remarks, data.
pub(super) fn figure(page: &mut Markup, figure: &Figure, caption: &str, level: usize) {
    let drawn = &figure.drawn;
    page.open("figure", &[("id", &figure.id), ("data-kind", &figure.kind)]);
    page.open(&format!("h{level}"), &[]);
    page.element("span", &[("class", &"number")], &figure.number);
    page.text(format_args!(" {}", figure.title));
    page.close(&format!("h{level}"));
    if !drawn.legend.is_empty() {
        page.open("ul", &[("class", &"legend"), ("aria-hidden", &"true")]);
        if !drawn.legend_title.is_empty() {
            page.element("li", &[("class", &"legend-title")], &drawn.legend_title);
        }
        for key in &drawn.legend {
            page.open("li", &[]);
            page.put(&key.sample);
            page.text(&key.name);
            page.close("li");
        }
        page.close("ul");
    }
    if !drawn.pictures.is_empty() {
        page.open("div", &[("class", &"pictures")]);
        drawn.pictures.iter().for_each(|picture| page.put(picture));
        page.close("div");
    }
    if drawn.is_table {
        page.put(&drawn.data.to_html("figure-table", &figure.title, MAX_DATA));
        cut(page, drawn.data.len(), MAX_DATA);
    }
    if !caption.is_empty() {
        page.element("figcaption", &[], caption);
    }
    for (what, line) in &drawn.code {
        page.element("p", &[("class", &"code-name")], what);
        page.open("pre", &[("tabindex", &0)]);
        page.element("code", &[], line);
        page.close("pre");
    }
    for remark in &drawn.remarks {
        page.element("p", &[("class", &"remark")], remark);
    }
    if !drawn.is_table && !drawn.data.is_empty() {
        page.open("details", if drawn.is_open { &[("open", &"")] } else { &[] });
        page.element("summary", &[], format_args!("Data behind {}", figure.number));
        page.put(&drawn.data.to_html("data", &figure.title, MAX_DATA));
        cut(page, drawn.data.len(), MAX_DATA);
        page.close("details");
    }
    page.close("figure");
}

/// Says where the rest of a long table is.
fn cut(page: &mut Markup, n: usize, shown: usize) {
    if n > shown {
        let n = forebay_units::group_digits(n as u64);
        page.element(
            "p",
            &[("class", &"remark")],
            format_args!("The first {shown} of {n} rows. forebay report --json has all of them, --csv all cells."),
        );
    }
}

fn cells(page: &mut Markup, section: &Section<'_>, level: usize) {
    if section.cells.is_empty() {
        return;
    }
    heading(page, level, "All cells");
    let experiments = cells::experiments(section.run);
    let mut left = MAX_CELLS;
    for name in &experiments {
        if experiments.len() > 1 {
            heading(page, level + 1, format_args!("Experiment “{name}”"));
        }
        let cells = cells::table(section.run, Some(name));
        page.open("div", &[("class", &"bleed")]);
        page.put(&cells.to_html("cells", "all cells", left));
        page.close("div");
        cut(page, cells.len(), left);
        left = left.saturating_sub(cells.len()).max(20);
    }
    if !section.legend.is_empty() {
        page.element("p", &[("class", &"legend-of-cells")], section.legend.join(" "));
    }
    for (title, data) in &section.tables {
        heading(page, level + 1, title);
        page.put(&data.to_html("data", title, MAX_DATA));
        cut(page, data.len(), MAX_DATA);
    }
}

fn surroundings(page: &mut Markup, section: &Section<'_>, level: usize) {
    let run = section.run;
    heading(page, level, "Environment");
    let command = environment::command(run);
    if !command.is_empty() {
        page.element("p", &[], "Command:");
        page.open("pre", &[("tabindex", &0)]);
        page.element("code", &[], command);
        page.close("pre");
    }
    page.open("dl", &[]);
    for (what, fact) in environment::facts(run) {
        page.element("dt", &[], what);
        page.element("dd", &[], fact);
    }
    page.close("dl");
    let tiers = environment::tiers(run);
    if !tiers.is_empty() {
        heading(page, level + 1, "Tiers");
        page.put(&tiers.to_html("facts", "tiers", MAX_CELLS));
    }
    let notes = environment::notes(run);
    if !notes.is_empty() {
        heading(page, level + 1, "Notes");
        list(page, "notes", &notes);
    }
}
