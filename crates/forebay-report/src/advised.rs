//! Whether advice was right: for every training cell, the change that it named beside every free change that was tried.
//!
//! Cells that differ in one setting only are each other's experiments. The advice was right where the named change was the fastest
//! of them, or nearly so; where none was named, where no other was faster than the cell itself.

use forebay_record::{Change, FigureKind, Level, Lever, StudyCell, TrainCell};
use forebay_units::{count, median};

use crate::grid::wanted;
use crate::level;
use crate::number::{listed, percent};
use crate::run::Run;

/// Settings that cost nothing to change.
pub(crate) const FREE: [&str; 3] = ["threads", "prefetch", "io"];
/// At most so much slower than the fastest is right, and so far from the measurement a prediction is.
pub(crate) const NEAR: f64 = 0.10;
const MAX_NAMED: usize = 4;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Tried<'a> {
    pub(crate) cell: &'a StudyCell,
    pub(crate) wall_s: f64,
}

impl<'a> Tried<'a> {
    /// `None` for a cell without a run time.
    pub(crate) fn of(cell: &'a StudyCell) -> Option<Self> {
        cell.value(&TrainCell::WALL_S).filter(|wall_s| *wall_s > 0.0).map(|wall_s| Self { cell, wall_s })
    }
}

/// A cell whose advice can be judged.
#[derive(Debug)]
pub(crate) struct Case<'a> {
    pub(crate) now: Tried<'a>,
    pub(crate) lever: &'a Lever,
    pub(crate) limit: &'a str,
    /// With the named change, or as it was where none was named; `None` if that was not measured.
    pub(crate) named: Option<Tried<'a>>,
    /// The fastest of the cell and its free changes.
    pub(crate) best: Tried<'a>,
}

impl Case<'_> {
    /// How much longer than the fastest the named change took.
    pub(crate) fn behind(&self) -> Option<f64> {
        self.named.map(|named| named.wall_s / self.best.wall_s - 1.0)
    }

    pub(crate) fn is_right(&self) -> Option<bool> {
        self.behind().map(|behind| behind <= NEAR)
    }

    /// By how much the predicted run time missed the measured one; `None` where none was predicted or measured.
    pub(crate) fn error(&self) -> Option<f64> {
        self.lever.setting.as_ref().filter(|_| !self.lever.is_bound)?;
        self.named.map(|named| self.lever.wall_s / named.wall_s - 1.0)
    }

    fn name(&self) -> String {
        let change = match &self.lever.setting {
            Some(change) => level::named(&change.setting, &change.value),
            None => self.lever.name.clone(),
        };
        let best = match std::ptr::eq(self.best.cell, self.now.cell) {
            true => "no change".to_owned(),
            false => level::all(&differing(self.now.cell, self.best.cell)),
        };
        format!("{} (named: {change}; fastest: {best})", level::all(&self.now.cell.factors))
    }
}

/// The levels of `other` that `cell` does not have.
pub(crate) fn differing(cell: &StudyCell, other: &StudyCell) -> forebay_record::Levels {
    let mut levels = other.factors.clone();
    levels.retain(|factor, level| cell.level(factor) != Some(level));
    levels
}

/// The cases among cells of the same study.
pub(crate) fn cases<'a>(run: &'a Run<'a>, cells: &[&'a StudyCell]) -> Vec<Case<'a>> {
    let all: Vec<Tried<'_>> = cells.iter().filter_map(|cell| Tried::of(cell)).collect();
    all.iter().filter_map(|now| case(run, *now, &all)).collect()
}

fn case<'a>(run: &Run<'_>, now: Tried<'a>, all: &[Tried<'a>]) -> Option<Case<'a>> {
    let train =
        now.cell.measured_one::<TrainCell>().filter(|train| !train.lever.name.is_empty() && !train.synthetic)?;
    let free: Vec<&Tried<'_>> = all.iter().filter(|other| FREE.contains(&changed(now.cell, other.cell))).collect();
    let fastest = free.iter().min_by(|a, b| a.wall_s.total_cmp(&b.wall_s))?;
    let best = if fastest.wall_s < now.wall_s { **fastest } else { now };
    let named = match &train.lever.setting {
        None => Some(now),
        Some(change) => all.iter().copied().find(|other| {
            changed(now.cell, other.cell) == change.setting && is_level(run, other.cell, &change.setting, &change.value)
        }),
    };
    let limit = train.limit.as_ref().map_or("", |limit| limit.name.as_str());
    Some(Case { now, lever: &train.lever, limit, named, best })
}

/// The only factor in which two cells of an experiment differ; empty if there is not exactly one.
fn changed<'a>(cell: &'a StudyCell, other: &'a StudyCell) -> &'a str {
    let factors = &other.factors;
    let mut differ =
        factors.iter().filter(|(factor, level)| cell.level(factor) != Some(level)).map(|(factor, _)| factor);
    let is_same = cell.experiment == other.experiment && cell.factors.len() == factors.len();
    match (differ.next(), differ.next()) {
        (Some(factor), None) if is_same => factor,
        _ => "",
    }
}

/// A format is meant by the dataset that is packed in it.
fn is_level(run: &Run<'_>, cell: &StudyCell, factor: &str, wanted: &Level) -> bool {
    let Some(level) = cell.level(factor) else { return false };
    let packed = |name: &str| run.spec().datasets.iter().find(|of| of.name == name).and_then(|of| of.pack.clone());
    match (factor, level) {
        (Change::DATASET, Level::Text(name)) => packed(name).map(Level::Text).as_ref() == Some(wanted),
        _ => level == wanted,
    }
}

/// The cases of a study that asks whether advice was right.
pub(crate) fn asked<'a>(run: &'a Run<'a>) -> Vec<Case<'a>> {
    let figures = run.spec().figures.iter().filter(|figure| figure.kind == FigureKind::Advice);
    figures.flat_map(|figure| cases(run, &wanted(run, figure))).collect()
}

/// How often advice was right; `None` without a case.
pub(crate) fn headline(cases: &[Case<'_>]) -> Option<String> {
    let judged: Vec<bool> = cases.iter().filter_map(Case::is_right).collect();
    let right = judged.iter().filter(|right| **right).count();
    (!judged.is_empty()).then(|| {
        format!(
            "The advice was right in {right} of {} ({}): the change it named was the fastest of those tried, or at most {} \
             slower.",
            count(judged.len() as u64, "case"),
            percent(right as f64 / judged.len() as f64),
            near()
        )
    })
}

pub(crate) fn predicted(cases: &[Case<'_>]) -> Option<String> {
    let errors: Vec<f64> = cases.iter().filter_map(Case::error).map(f64::abs).collect();
    let within = errors.iter().filter(|error| **error <= NEAR).count();
    Some(format!(
        "Predicted run times were within {} of the measured ones in {within} of {} ({}); the median error is {}.",
        near(),
        count(errors.len() as u64, "case"),
        percent(within as f64 / errors.len().max(1) as f64),
        percent(median(&errors)?)
    ))
}

/// The cases in which other changes were faster.
pub(crate) fn wrong(cases: &[Case<'_>]) -> Option<String> {
    let mut wrong: Vec<&Case<'_>> = cases.iter().filter(|case| case.is_right() == Some(false)).collect();
    wrong.sort_by(|a, b| b.behind().unwrap_or(0.0).total_cmp(&a.behind().unwrap_or(0.0)));
    let names: Vec<String> = wrong
        .iter()
        .take(MAX_NAMED)
        .map(|case| format!("{}, {} slower", case.name(), percent(case.behind().unwrap_or(0.0))))
        .collect();
    let more = wrong.len().saturating_sub(MAX_NAMED);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    (!names.is_empty()).then(|| format!("Wrong advice: {}{more}.", listed(&names)))
}

fn near() -> String {
    percent(NEAR).replace(".0", "")
}
