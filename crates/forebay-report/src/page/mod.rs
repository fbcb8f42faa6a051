//! One page that holds everything: style, script and pictures inside, nothing fetched from anywhere.
//!
//! It is whole without its script, which only makes the values of marks appear sooner and reachable by keyboard and touch.

mod section;
mod terms;

use crate::markup::Markup;
use crate::report::{Compared, Report, runs};
use crate::run::NamedRun;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// What a page may load: nothing.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; \
                      base-uri 'none'; form-action 'none'";

/// The report of one or more runs as a self-contained HTML page.
pub fn html(named: &[NamedRun]) -> String {
    let runs = runs(named);
    let report = Report::of(&runs);
    let mut page = Markup::document();
    page.open("html", &[("lang", &"en")]);
    head(&mut page, &title(&report));
    page.open("body", &[]);
    page.open("main", &[]);
    match report.sections.as_slice() {
        [one] => section::write(&mut page, one, 2),
        several => {
            comparison_header(&mut page, &report);
            for compared in &report.compared {
                comparison(&mut page, compared);
            }
            for run in several {
                page.open("section", &[("class", &"run")]);
                section::write(&mut page, run, 3);
                page.close("section");
            }
        }
    }
    terms::write(&mut page);
    page.close("main");
    footer(&mut page);
    page.own("script", SCRIPT);
    page.close("body");
    page.close("html");
    page.into_string()
}

fn title(report: &Report<'_>) -> String {
    match report.sections.as_slice() {
        [one] => one.run.spec().title.clone(),
        several if report.compared.is_empty() => format!("{} runs", several.len()),
        several => format!("Comparison of {} runs", several.len()),
    }
}

fn head(page: &mut Markup, title: &str) {
    page.open("head", &[]);
    page.leaf("meta", &[("charset", &"utf-8")]);
    page.leaf("meta", &[("http-equiv", &"Content-Security-Policy"), ("content", &POLICY)]);
    page.leaf("meta", &[("name", &"viewport"), ("content", &"width=device-width, initial-scale=1")]);
    page.leaf("meta", &[("name", &"color-scheme"), ("content", &"light dark")]);
    page.leaf("meta", &[("name", &"generator"), ("content", &concat!("forebay ", env!("CARGO_PKG_VERSION")))]);
    page.element("title", &[], format_args!("{title} – forebay"));
    page.leaf("link", &[("rel", &"icon"), ("href", &"data:,")]);
    page.own("style", STYLE);
    page.close("head");
}

fn comparison_header(page: &mut Markup, report: &Report<'_>) {
    page.open("header", &[]);
    page.element("p", &[("class", &"kicker")], "forebay report");
    page.element("h1", &[], title(report));
    page.open("ul", &[("class", &"runs")]);
    for section in &report.sections {
        page.open("li", &[]);
        page.element("strong", &[], section.run.name);
        page.text(format_args!(": {}", section.verdict.headline));
        page.close("li");
    }
    page.close("ul");
    page.close("header");
}

fn comparison(page: &mut Markup, compared: &Compared<'_>) {
    let comparison = &compared.comparison;
    page.open("section", &[("class", &"comparison")]);
    page.element("h2", &[], format_args!("{} compared with {}", comparison.name, comparison.base));
    page.open("div", &[("class", &"verdict")]);
    page.element("p", &[("class", &"headline")], comparison.summary());
    let method = comparison.method();
    if !method.is_empty() {
        page.element("p", &[], method);
    }
    page.close("div");
    page.element("h3", &[], "Other differences between the runs");
    let differences = comparison.differences_table();
    if differences.is_empty() {
        page.element("p", &[], "None recorded: machine, version, data and cache states are the same.");
    } else {
        page.element("p", &[], "These may explain a difference in the results.");
        page.put(&differences.to_html("facts", "differences between the runs", usize::MAX));
    }
    if let Some(figure) = &compared.figure {
        section::figure(page, figure, &figure.caption(""), 3);
    }
    page.close("section");
}

fn footer(page: &mut Markup) {
    page.open("footer", &[]);
    page.element(
        "p",
        &[],
        concat!(
            "Made by forebay ",
            env!("CARGO_PKG_VERSION"),
            ". MB is 10⁶ bytes. This page loads nothing from the network."
        ),
    );
    page.close("footer");
}
