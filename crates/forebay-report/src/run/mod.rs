//! Every record seen as a study: cells with levels of factors, and figures over them.
//!
//! An ingest record is a study of one experiment over threads; a probe record is one over engines, blocks and depths; a
//! train record one over whatever its runs differ in. What reports and compares then knows one kind of run only.

mod checkpoint;
mod dataset;
mod single;
mod train;
mod workload;

use std::borrow::Cow;

use forebay_record::{
    AnyRecord, CacheState, CheckpointCell, Design, Environment, IngestCell, Level, Levels, Metric, ProbeCell, Series,
    StudyCell, StudyHead, StudyRun, StudySpec, TrainCell, WorkloadCell,
};

use crate::level;
use crate::need;

pub(crate) use checkpoint::levels_of_checkpoint;
pub(crate) use train::levels_of_train;
pub(crate) use workload::levels_of_workload;

/// A record and what to call it.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedRun {
    /// What the reader sees, as the path it was named by.
    pub name: String,
    /// The record, its series inside.
    pub record: AnyRecord,
}

/// A run as the report sees it.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    pub(crate) name: &'a str,
    /// The name beside those of other runs: no more of a path than tells them apart.
    pub(crate) short: String,
    pub(crate) record: &'a AnyRecord,
    pub(crate) study: Cow<'a, StudyRun>,
}

impl<'a> Run<'a> {
    pub(crate) fn of(named: &'a NamedRun) -> Self {
        let study = match &named.record {
            AnyRecord::Study(study) => dataset::named(study),
            AnyRecord::Ingest(record) => Cow::Owned(single::of_ingest(record)),
            AnyRecord::Probe(record) => Cow::Owned(single::of_probe(record)),
            AnyRecord::Checkpoint(record) => Cow::Owned(checkpoint::of_checkpoint(record)),
            AnyRecord::Workload(record) => Cow::Owned(workload::of_workload(record)),
            AnyRecord::Train(record) => Cow::Owned(train::of_train(record)),
        };
        Self { name: &named.name, short: named.name.clone(), record: &named.record, study }
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

    /// Every probe cell with the levels it was measured at.
    pub(crate) fn probes(&self) -> impl Iterator<Item = (&StudyCell, &ProbeCell)> {
        let cells = self.study.cells.iter().filter(|cell| cell.error.is_none());
        cells.flat_map(|cell| cell.probe.iter().map(move |probe| (cell, probe)))
    }

    /// Every ingest cell that was measured.
    pub(crate) fn ingests(&self) -> impl Iterator<Item = (&StudyCell, &IngestCell)> {
        let cells = self.study.cells.iter().filter(|cell| cell.error.is_none());
        cells.filter_map(|cell| cell.ingest.as_ref().map(|ingest| (cell, ingest)))
    }

    /// Every train cell that was measured.
    pub(crate) fn trains(&self) -> impl Iterator<Item = (&StudyCell, &TrainCell)> {
        let cells = self.study.cells.iter().filter(|cell| cell.error.is_none());
        cells.filter_map(|cell| cell.train.as_deref().map(|train| (cell, train)))
    }

    /// Every checkpoint cell that was measured.
    pub(crate) fn checkpoints(&self) -> impl Iterator<Item = (&StudyCell, &CheckpointCell)> {
        let cells = self.study.cells.iter().filter(|cell| cell.error.is_none());
        cells.filter_map(|cell| cell.checkpoint.as_deref().map(|checkpoint| (cell, checkpoint)))
    }

    /// Every workload cell that was measured.
    pub(crate) fn workloads(&self) -> impl Iterator<Item = (&StudyCell, &WorkloadCell)> {
        let cells = self.study.cells.iter().filter(|cell| cell.error.is_none());
        cells.filter_map(|cell| cell.workload.as_deref().map(|workload| (cell, workload)))
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
        if levels.is_empty() { "first levels".to_owned() } else { level::all(&levels) }
    }

    /// Where the bytes of every cell that moved some came from. A probe's cell may hold several measurements: where they
    /// differ, the cell is mixed.
    pub(crate) fn caches(&self) -> impl Iterator<Item = CacheState> {
        self.measured().filter_map(|cell| {
            let mut states = caches_of(cell).into_iter();
            let first = states.next()?;
            Some(if states.all(|state| state == first) { first } else { CacheState::Mixed })
        })
    }

    /// How often every cell was measured; of a cell with several measurements, the least.
    pub(crate) fn repeats(&self) -> impl Iterator<Item = usize> {
        self.measured().filter_map(|cell| repeats_of(cell).into_iter().min())
    }

    /// How far the repeats of every cell that has several lie apart; of a cell with several measurements, the most.
    pub(crate) fn spreads(&self) -> impl Iterator<Item = f64> {
        self.measured().filter_map(|cell| spreads_of(cell).into_iter().max_by(f64::total_cmp))
    }

    fn measured(&self) -> impl Iterator<Item = &StudyCell> {
        self.study.cells.iter().filter(|cell| cell.error.is_none())
    }
}

fn caches_of(cell: &StudyCell) -> Vec<CacheState> {
    let ingest = cell.ingest.as_ref().map(|of| of.cache);
    let train = cell.train.as_ref().and_then(|of| of.totals.cache);
    let workload = cell.workload.as_ref().and_then(|of| of.cache);
    cell.probe.iter().map(|of| of.cache).chain([ingest, train, workload].into_iter().flatten()).collect()
}

fn repeats_of(cell: &StudyCell) -> Vec<usize> {
    let ingest = cell.ingest.as_ref().map(|of| of.samples.len());
    let train = cell.train.as_ref().map(|of| of.samples.len());
    let checkpoint = cell.checkpoint.as_ref().map(|of| of.samples.len());
    let workload = cell.workload.as_ref().map(|of| of.runs.len().max(1));
    let others = [ingest, train, checkpoint, workload].into_iter().flatten();
    cell.probe.iter().map(|of| of.samples.len()).chain(others).collect()
}

fn spreads_of(cell: &StudyCell) -> Vec<f64> {
    let ingest = cell.ingest.as_ref().and_then(|of| of.spread);
    let train = cell.train.as_ref().and_then(|of| of.spread);
    let checkpoint = cell.checkpoint.as_ref().and_then(|of| of.spread);
    let workload = cell.workload.as_deref().and_then(spread_of_workload);
    let others = [ingest, train, checkpoint, workload].into_iter().flatten();
    cell.probe.iter().filter_map(|of| of.spread).chain(others).collect()
}

/// How far the times of a workload's runs lie apart; `None` of a single one.
pub(crate) fn spread_of_workload(cell: &WorkloadCell) -> Option<f64> {
    let walls: Vec<f64> = cell.runs.iter().map(|run| run.wall_s).collect();
    forebay_units::Summary::of(&walls).filter(|summary| summary.n > 1)?.relative_spread()
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

/// A quantity of a cell, positive or zero and finite; also the plain rates of a cell that holds a single probe, and the
/// disk throughput that a train cell's accelerator needs. The cost of I/O may be below zero: it is a difference. Shares are
/// of 1 here; a workload's record has its utilisation in percent, as DLIO does.
pub(crate) fn metric(cell: &StudyCell, name: &str) -> Option<Metric> {
    let metric = match (cell.probe.as_slice(), name) {
        ([probe], "mb_per_s") => {
            let repeats = probe.samples.iter().map(|repeat| repeat.mb_per_s()).collect();
            Some(Metric { value: probe.mb_per_s, repeats })
        }
        ([probe], "iops") => {
            let repeats = probe.samples.iter().map(|repeat| repeat.iops()).collect();
            Some(Metric { value: probe.iops, repeats })
        }
        (_, need::METRIC) => need::mb_per_s(cell.train.as_deref()?).map(|value| Metric { value, repeats: Vec::new() }),
        _ if cell.workload.is_some() && name.starts_with("au_") => {
            let share = |percent: f64| percent / 100.0;
            let of = |found: Metric| Metric {
                value: share(found.value),
                repeats: found.repeats.into_iter().map(share).collect(),
            };
            cell.metric(name).map(of)
        }
        _ => cell.metric(name),
    }?;
    let sound = |value: &f64| value.is_finite() && (*value >= 0.0 || name == "io_cost_s");
    let repeats = metric.repeats.into_iter().filter(sound).collect();
    sound(&metric.value).then_some(Metric { value: metric.value, repeats })
}

/// The levels of an ingest cell: what tells it from others of its kind.
pub(crate) fn levels_of_ingest(cell: &IngestCell) -> Levels {
    let integer = |value: u64| Level::Integer(i64::try_from(value).unwrap_or(i64::MAX));
    let mut levels = Levels::new();
    levels.insert("threads".to_owned(), integer(cell.threads));
    levels.insert("read_only".to_owned(), Level::Flag(cell.read_only));
    levels.insert("batch".to_owned(), integer(cell.batch));
    levels.insert("prefetch".to_owned(), integer(cell.prefetch));
    if cell.threads_auto {
        levels.insert("threads_auto".to_owned(), Level::Flag(true));
    }
    if cell.readers > 0 {
        levels.insert("readers".to_owned(), integer(cell.readers));
    }
    for (name, text) in [("storage", Some(&cell.storage)), ("tier", cell.tier.as_ref())] {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            levels.insert(name.to_owned(), Level::Text(text.clone()));
        }
    }
    levels
}

/// The levels of a probe cell.
pub(crate) fn levels_of_probe(cell: &ProbeCell) -> Levels {
    let integer = |value: u64| Level::Integer(i64::try_from(value).unwrap_or(i64::MAX));
    let text = |value: &str| Level::Text(value.to_owned());
    let mut levels = Levels::new();
    levels.insert("mode".to_owned(), text(mode_name(cell)));
    levels.insert("engine".to_owned(), text(engine_name(cell)));
    levels.insert("depth".to_owned(), integer(cell.depth));
    // Of files, what their lengths are is said in words.
    if let Some(block) = cell.block.filter(|_| cell.mode != forebay_record::ProbeMode::Files) {
        levels.insert("block".to_owned(), integer(block));
    }
    for (name, value) in [("mix", &cell.mix), ("tier", &cell.tier)] {
        if let Some(value) = value {
            levels.insert(name.to_owned(), text(value));
        }
    }
    levels
}

/// What a probe did, in words.
pub(crate) fn mode_name(cell: &ProbeCell) -> &'static str {
    use forebay_record::ProbeMode::{Files, RandomRead, SequentialRead, SequentialWrite};
    match cell.mode {
        SequentialWrite => "sequential write",
        SequentialRead => "sequential read",
        RandomRead => "random read",
        Files => "files",
    }
}

/// Engines in the order in which they are shown.
const ENGINES: [&str; 3] = ["sync", "direct", "uring"];

/// Modes of checkpoints in the order in which they are shown.
const MODES: [&str; 3] = ["direct", "burst", "async"];

/// How it did it.
pub(crate) fn engine_name(cell: &ProbeCell) -> &'static str {
    use forebay_record::Engine::{Direct, Sync, Uring};
    match cell.engine {
        Sync => "sync",
        Direct => "direct",
        Uring => "uring",
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
