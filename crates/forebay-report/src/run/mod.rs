//! Every record seen as a study: cells with levels of factors, and figures over them.
//!
//! An ingest record is a study of one experiment over threads; a probe record is one over engines, blocks and depths; a
//! train record one over whatever its runs differ in. What reports and compares then knows one kind of run only.

mod dataset;
mod single;
mod titled;
mod usual;

use std::borrow::Cow;
use std::cell::OnceCell;

use forebay_record::{
    AnyCell, AnyRecord, CacheState, Cell, Design, Environment, Levels, Measured, Series, Step, StudyCell, StudyHead,
    StudyRun, StudySpec,
};

use crate::level;

/// A record and what to call it.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedRun {
    /// What the reader sees, as the path it was named by.
    pub name: String,
    pub record: AnyRecord,
}

#[derive(Debug)]
pub(crate) struct Run<'a> {
    pub(crate) name: &'a str,
    /// The name beside those of other runs: no more of a path than tells them apart.
    pub(crate) short: String,
    pub(crate) record: &'a AnyRecord,
    pub(crate) study: Cow<'a, StudyRun>,
    /// What [`Run::noise`] found: it is asked of every pair of cells.
    pub(crate) noise: OnceCell<f64>,
}

impl<'a> Run<'a> {
    pub(crate) fn of(named: &'a NamedRun) -> Self {
        let study = match &named.record {
            AnyRecord::Study(study) => dataset::named(study),
            AnyRecord::Ingest(record) => Cow::Owned(single::study_of(record)),
            AnyRecord::Probe(record) => Cow::Owned(single::study_of(record)),
            AnyRecord::Checkpoint(record) => Cow::Owned(single::study_of(record)),
            AnyRecord::Workload(record) => Cow::Owned(single::study_of(record)),
            AnyRecord::Trace(record) => Cow::Owned(single::study_of(record)),
            AnyRecord::Train(record) => Cow::Owned(single::study_of(record)),
        };
        Self { name: &named.name, short: named.name.clone(), record: &named.record, study, noise: OnceCell::new() }
    }

    pub(crate) fn is_study(&self) -> bool {
        matches!(self.record, AnyRecord::Study(_))
    }

    pub(crate) fn head(&self) -> &StudyHead {
        &self.study.head
    }

    pub(crate) fn spec(&self) -> &StudySpec {
        &self.study.head.spec
    }

    pub(crate) fn environment(&self) -> &Environment {
        &self.study.head.environment
    }

    pub(crate) fn series(&self) -> Option<&Series> {
        self.study.series.as_ref().filter(|series| !series.is_empty())
    }

    pub(crate) fn cells_of<C: Cell>(&self) -> impl Iterator<Item = (&StudyCell, &C)> {
        self.study.cells.iter().flat_map(|cell| cell.measured_as().map(move |measured| (cell, measured)))
    }

    /// A cell's levels in words; where one factor is varied at a time, those that are not the first of their factor.
    pub(crate) fn name_of(&self, cell: &StudyCell) -> String {
        let experiment = self.spec().experiments.iter().find(|experiment| experiment.name == cell.experiment);
        let Some(experiment) = experiment.filter(|of| of.design == Design::OneAtATime) else {
            return level::all(&cell.factors);
        };
        let first = |factor: &str| experiment.factors.get(factor).and_then(|of| of.at(self.head().scale).first());
        let mut levels = cell.factors.clone();
        levels.retain(|factor, level| first(factor) != Some(level));
        if levels.is_empty() { "baseline".to_owned() } else { level::all(&levels) }
    }

    /// Where the bytes of every cell that moved some came from. A probe's cell may hold several measurements: where they
    /// differ, the cell is mixed.
    pub(crate) fn caches(&self) -> impl Iterator<Item = CacheState> {
        self.measured().filter_map(|cells| {
            CacheState::of_all(cells.iter().filter_map(|cell| cell.media().first().and_then(|medium| medium.cache)))
        })
    }

    /// How often every cell was measured; of a cell with several measurements, the least.
    pub(crate) fn repeats(&self) -> impl Iterator<Item = usize> {
        self.measured().filter_map(|cells| cells.iter().map(|cell| cell.n_repeats()).min())
    }

    /// How far the repeats of every cell that has several lie apart; of a cell with several measurements, the most.
    pub(crate) fn spreads(&self) -> impl Iterator<Item = f64> {
        self.measured().filter_map(|cells| cells.iter().filter_map(|cell| cell.spread()).reduce(f64::max))
    }

    /// What every cell measured that can be measured again: a dataset is looked at once, and a job is traced once.
    pub(crate) fn measured(&self) -> impl Iterator<Item = Vec<&dyn AnyCell>> {
        let cells = self.study.cells.iter().filter(|cell| !matches!(cell.step, Step::Inspect | Step::Trace));
        cells.filter_map(|cell| cell.result()).map(Measured::cells)
    }
}

/// The last part of each path, where those differ.
pub(crate) fn shorten(runs: &mut [Run<'_>]) {
    let last = |name: &str| {
        let name = name.trim_end_matches('/');
        let name = name.strip_suffix("/record.jsonl").unwrap_or(name);
        let last = name.rsplit('/').next().unwrap_or(name);
        last.strip_suffix(".json").unwrap_or(last).to_owned()
    };
    let short: Vec<String> = runs.iter().map(|run| last(run.name)).collect();
    let differ = short.iter().enumerate().all(|(i, name)| !name.is_empty() && !short[..i].contains(name));
    if differ {
        runs.iter_mut().zip(short).for_each(|(run, short)| run.short = short);
    }
}

/// The levels without factors that are the same in all cells, but for some that are always said.
pub(crate) fn differing(mut all: Vec<Levels>, always: &[&str]) -> Vec<Levels> {
    let Some(first) = all.first().cloned() else { return all };
    let same: Vec<String> = first
        .iter()
        .filter(|(factor, level)| all.iter().all(|levels| levels.get(*factor) == Some(level)))
        .map(|(factor, _)| factor.clone())
        .filter(|factor| !always.contains(&factor.as_str()))
        .collect();
    for levels in &mut all {
        levels.retain(|factor, _| !same.contains(factor));
    }
    all
}
