//! A report before it has a form: the verdict, the figures and the tables of every run, and their comparison.
//!
//! The page, the JSON and the text are three writings of this one thing, so they cannot differ in a number.

use forebay_record::FigureSpec;

use crate::cells;
use crate::compare::{Comparison, compare};
use crate::data::Data;
use crate::fig::{self, Context, Drawn, Figure};
use crate::legend;
use crate::limit;
use crate::number::capital;
use crate::published::{self, Published, published};
use crate::run::{NamedRun, Run, shorten};
use crate::verdict::{Verdict, verdict};

#[derive(Debug)]
pub(crate) struct Section<'a> {
    pub(crate) run: &'a Run<'a>,
    pub(crate) verdict: Verdict,
    pub(crate) glance: Data,
    pub(crate) figures: Vec<Figure>,
    pub(crate) captions: Vec<String>,
    pub(crate) cells: Data,
    pub(crate) legend: Vec<String>,
    pub(crate) tables: Vec<(&'static str, Data)>,
    pub(crate) references: Data,
}

#[derive(Debug)]
pub(crate) struct Compared<'a> {
    pub(crate) comparison: Comparison<'a>,
    pub(crate) cells: Data,
    /// `None` where there is no pair to draw.
    pub(crate) figure: Option<Figure>,
}

#[derive(Debug)]
pub(crate) struct Report<'a> {
    pub(crate) sections: Vec<Section<'a>>,
    pub(crate) compared: Vec<Compared<'a>>,
}

pub(crate) fn runs(named: &[NamedRun]) -> Vec<Run<'_>> {
    let mut runs: Vec<Run<'_>> = named.iter().map(Run::of).collect();
    shorten(&mut runs);
    runs
}

impl<'a> Report<'a> {
    pub(crate) fn of(runs: &'a [Run<'a>]) -> Self {
        let mut numbers = Numbers::default();
        let compared = compare(runs).into_iter().enumerate().map(|(i, comparison)| {
            let figure = (!comparison.pairs.is_empty()).then(|| {
                let drawn = fig::forest::make(&comparison);
                let title = format!("{} over {}", comparison.name, comparison.base);
                Figure { id: format!("compare-{}", i + 1), number: numbers.next(&drawn), title, kind: "forest", drawn }
            });
            Compared { cells: comparison.table(), comparison, figure }
        });
        let compared = compared.collect();
        let many = runs.len() > 1;
        let sections = runs.iter().enumerate().map(|(i, run)| {
            let prefix = if many { format!("run-{}-", i + 1) } else { String::new() };
            section(run, &prefix, &mut numbers)
        });
        Self { sections: sections.collect(), compared }
    }
}

/// Figures and tables are counted apart, with numbers; with letters beside those that keep the number they were
/// published under.
#[derive(Debug, Default)]
struct Numbers {
    figures: usize,
    tables: usize,
    letters: bool,
}

impl Numbers {
    fn next(&mut self, drawn: &Drawn) -> String {
        let (word, n) = if drawn.is_table { ("Table", &mut self.tables) } else { ("Figure", &mut self.figures) };
        *n += 1;
        match u8::try_from(*n) {
            Ok(n @ 1..=26) if self.letters => format!("{word} {}", char::from(b'A' + n - 1)),
            _ => format!("{word} {n}"),
        }
    }
}

/// The number that a title begins with, and the rest: "Figure 4" and "reading only" of "Figure 4: reading only".
fn own_number(title: &str) -> Option<(&str, &str)> {
    let (number, rest) = title.split_once(':')?;
    let (word, which) = number.split_once(' ')?;
    let is_number = ["Figure", "Table"].contains(&word) && !which.contains(' ') && !which.is_empty();
    is_number.then_some((number, rest.trim_start())).filter(|(_, rest)| !rest.is_empty())
}

fn section<'a>(run: &'a Run<'a>, prefix: &str, numbers: &mut Numbers) -> Section<'a> {
    let published: Vec<Published<'_>> = published(run);
    let sound = run.sound();
    let sound_published = sound.as_ref().map(published::published);
    numbers.letters |= run.spec().figures.iter().any(|spec| own_number(&spec.title).is_some());
    let mut figures = Vec::new();
    let mut captions = Vec::new();
    for spec in run.figures().iter() {
        let of_sound = sound.as_ref().zip(sound_published.as_ref());
        let of_sound = of_sound.map(|(run, published)| Context { run, spec, published });
        let (kind, drawn) = fig::make(&Context { run, spec, published: &published }, of_sound.as_ref());
        let id = format!("{prefix}{}", safe(&spec.id, figures.len()));
        let whole = title(spec);
        let (number, title) = match own_number(&whole) {
            Some((number, rest)) => (number.to_owned(), capital(rest)),
            None => (numbers.next(&drawn), whole),
        };
        let figure = Figure { id, number, title, kind, drawn };
        captions.push(figure.caption(&spec.caption));
        figures.push(figure);
    }
    let judged = sound.as_ref().unwrap_or(run);
    Section {
        run,
        verdict: verdict(run, &published),
        glance: limit::table(judged, &limit::places(judged)),
        figures,
        captions,
        cells: cells::table(run, None),
        legend: legend::lines(run),
        tables: legend::tables(run),
        references: published::table(published.iter()),
    }
}

fn title(spec: &FigureSpec) -> String {
    if spec.title.is_empty() { spec.id.clone() } else { spec.title.clone() }
}

/// A name that a link can have.
fn safe(id: &str, place: usize) -> String {
    let kept: String = id.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-' || *c == '_').collect();
    if kept.is_empty() { format!("figure-{}", place + 1) } else { kept }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_keeps_the_number_it_was_published_under() {
        assert_eq!(own_number("Figure 4: reading only"), Some(("Figure 4", "reading only")));
        assert_eq!(own_number("Table I: what"), Some(("Table I", "what")));
        assert_eq!(own_number("Figure of speech: x"), None);
        assert_eq!(own_number("Speed-up: by threads"), None);
    }

    #[test]
    fn names_in_links_hold_nothing_that_a_link_cannot() {
        assert_eq!(safe("fig-4\" onload=", 0), "fig-4onload");
        assert_eq!(safe("<>", 2), "figure-3");
    }
}
