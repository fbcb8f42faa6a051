//! What is compared of a run: its cells' values, with the levels that tell which is set beside which.

use forebay_record::{Levels, TrainTotals};

use crate::run::{
    self, Run, levels_of_checkpoint, levels_of_ingest, levels_of_probe, levels_of_train, levels_of_workload,
};

/// Quantities that stand beside others of the same cell, and what each is called after its cell.
const BESIDE: [(&str, &str); 5] = [
    ("stall_s", "stall"),
    ("durable_fast_s", "until durable"),
    ("restore_s", "restore"),
    ("au_epoch", "AU, whole epoch"),
    ("samples_per_s", "samples/s"),
];
/// Those of a checkpoint, and those of a workload.
const OF_CHECKPOINT: [&str; 3] = ["stall_s", "durable_fast_s", "restore_s"];
const OF_WORKLOAD: [&str; 2] = ["au_epoch", "samples_per_s"];

/// What a quantity is called where its cell has several; `None` for a cell's only one.
pub(super) fn beside(metric: &str) -> Option<&'static str> {
    BESIDE.iter().find(|(name, _)| *name == metric).map(|(_, word)| *word)
}

/// A measured value with what it is of.
pub(super) struct Entry {
    pub(super) experiment: String,
    pub(super) levels: Levels,
    pub(super) metric: &'static str,
    pub(super) value: f64,
    pub(super) repeats: Vec<f64>,
    /// The same as a rate, and the images it is about: times of unlike work are not compared.
    pub(super) by_rate: Option<ByRate>,
}

/// A run time's other side.
pub(super) struct ByRate {
    pub(super) images: u64,
    pub(super) images_per_s: f64,
    pub(super) repeats: Vec<f64>,
}

pub(super) fn entries(run: &Run<'_>) -> Vec<Entry> {
    let ingests = run.ingests().map(|(cell, ingest)| Entry {
        experiment: cell.experiment.clone(),
        levels: if run.is_study() { cell.factors.clone() } else { levels_of_ingest(ingest) },
        metric: "images_per_s",
        value: ingest.images_per_s,
        repeats: ingest.samples.iter().map(|repeat| repeat.images_per_s()).collect(),
        by_rate: None,
    });
    let probes = run.probes().map(|(cell, probe)| {
        let mut levels = levels_of_probe(probe);
        levels.extend(cell.factors.clone());
        Entry {
            experiment: cell.experiment.clone(),
            levels,
            metric: "mb_per_s",
            value: probe.mb_per_s,
            repeats: probe.samples.iter().map(|repeat| repeat.mb_per_s()).collect(),
            by_rate: None,
        }
    });
    let trains = run.trains().map(|(cell, train)| Entry {
        experiment: cell.experiment.clone(),
        levels: if run.is_study() { cell.factors.clone() } else { levels_of_train(train) },
        metric: "wall_s",
        value: train.totals.wall_s,
        repeats: train.samples.iter().map(|run| run.wall_s).collect(),
        by_rate: Some(ByRate {
            images: train.totals.images,
            images_per_s: train.images_per_s,
            repeats: train.samples.iter().map(TrainTotals::images_per_s).collect(),
        }),
    });
    ingests.chain(probes).chain(trains).chain(stalls(run)).chain(checkpoints(run)).chain(workloads(run)).collect()
}

/// How long training stood still for a checkpoint: every save is a repeat.
fn stalls<'a>(run: &'a Run<'a>) -> impl Iterator<Item = Entry> + 'a {
    run.trains().filter_map(|(cell, train)| {
        let found = cell.metric("stall_s")?;
        Some(Entry {
            experiment: cell.experiment.clone(),
            levels: if run.is_study() { cell.factors.clone() } else { levels_of_train(train) },
            metric: "stall_s",
            value: found.value,
            repeats: found.repeats,
            by_rate: None,
        })
    })
}

/// The three times of a checkpoint that somebody waits for.
fn checkpoints<'a>(run: &'a Run<'a>) -> impl Iterator<Item = Entry> + 'a {
    run.checkpoints().flat_map(|(cell, saved)| {
        OF_CHECKPOINT.into_iter().filter_map(|metric| {
            let found = cell.metric(metric)?;
            Some(Entry {
                experiment: cell.experiment.clone(),
                levels: if run.is_study() { cell.factors.clone() } else { levels_of_checkpoint(saved) },
                metric,
                value: found.value,
                repeats: found.repeats,
                by_rate: None,
            })
        })
    })
}

/// How well a workload's accelerators were used, and how much they trained on: more of both is better.
fn workloads<'a>(run: &'a Run<'a>) -> impl Iterator<Item = Entry> + 'a {
    run.workloads().flat_map(|(cell, workload)| {
        OF_WORKLOAD.into_iter().filter_map(|metric| {
            let found = run::metric(cell, metric)?;
            Some(Entry {
                experiment: cell.experiment.clone(),
                levels: if run.is_study() { cell.factors.clone() } else { levels_of_workload(workload) },
                metric,
                value: found.value,
                repeats: found.repeats,
                by_rate: None,
            })
        })
    })
}
