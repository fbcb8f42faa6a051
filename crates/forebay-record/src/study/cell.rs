//! One combination of a study, measured or failed.

use serde::{Deserialize, Serialize};

use super::spec::{Level, Levels, Step};
use crate::checkpoint::share;
use crate::{
    CheckpointCell, CheckpointSample, IngestCell, IngestRepeat, Inspection, ProbeCell, ProbeMode, TrainCell,
    TrainTotals, WorkloadCell, WorkloadTotals,
};

/// One combination of levels and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StudyCell {
    /// Experiment and levels, as "ingest/read_only=false/threads=4/tier=hdd": the same in every run of the plan.
    pub id: String,
    /// The experiment.
    pub experiment: String,
    /// What was run.
    pub step: Step,
    /// The factors' levels.
    pub factors: Levels,
    /// When it began, in UTC.
    pub started_at: String,
    /// How long it took with everything around the measuring, in seconds.
    pub elapsed_s: f64,
    /// Why it failed; `None` when it did not.
    #[serde(default)]
    pub error: Option<String>,
    /// Why it was planned and not run: the machine or the program is not made for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
    /// What the ingest step measured.
    #[serde(default)]
    pub ingest: Option<IngestCell>,
    /// What the probe step measured.
    #[serde(default)]
    pub probe: Vec<ProbeCell>,
    /// What the train step measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub train: Option<Box<TrainCell>>,
    /// What the checkpoint step measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Box<CheckpointCell>>,
    /// What the workload step measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<Box<WorkloadCell>>,
    /// What the inspect step found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inspection: Option<Inspection>,
    /// What a reader must know to understand the numbers.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// A quantity of a cell: its value and the repeats it is the median of.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// The cell's value.
    pub value: f64,
    /// The value of every kept repeat; empty where it has none.
    pub repeats: Vec<f64>,
}

impl StudyCell {
    /// Whether it was measured: neither failed nor left out.
    pub fn is_measured(&self) -> bool {
        self.error.is_none() && self.left_out.is_none()
    }

    /// Whether the cell has these levels, among others.
    pub fn is_at(&self, levels: &Levels) -> bool {
        levels.iter().all(|(factor, level)| self.factors.get(factor) == Some(level))
    }

    /// The level of a factor.
    pub fn level(&self, factor: &str) -> Option<&Level> {
        self.factors.get(factor)
    }

    /// A quantity by its name; `None` when the cell does not have it.
    ///
    /// Of ingest: `images_per_s`, `mb_per_s`, `cpu_s_per_1000`, `wait_s`, `wall_s`, `efficiency` (of the ceiling). Of
    /// probe: `read_mb_per_s`, `write_mb_per_s`, `random_mb_per_s`, `random_iops`, `files_per_s`, each of the best
    /// setting that was measured. Of train: `images_per_s`, `mb_per_s`, `wall_s`, `wait_s`, `compute_s`, `copy_s`,
    /// `wait_share` (of the wall clock after the first batch), `au_epoch`, `au_steady`, `au_dlio`, `overlap`, `io_cost_s`;
    /// of one with checkpoints also `checkpoint_s` (all of a run's), `stall_s` (the median of one), `drain_after_s`. Of
    /// checkpoint: `stall_s`, `durable_fast_s`, `durable_slow_s`, `restore_s`, `save_mb_per_s`, `restore_mb_per_s`, and
    /// `efficiency`, `restore_efficiency` of their ceilings. Of workload: `au_epoch`, `au_steady`, `au_dlio` (percent),
    /// `samples_per_s`, `mb_per_s_moved`, `mb_per_s_device`, `first_batch_s`, `barrier_s`, `wall_s`, `dlio_mib_per_s`,
    /// `dlio_samples_per_s`, `checkpoint_max_s` (the median over saves of the slowest rank's time).
    pub fn metric(&self, name: &str) -> Option<Metric> {
        match self.step {
            Step::Ingest => of_ingest(self.ingest.as_ref()?, name),
            Step::Probe => of_probe(&self.probe, name),
            Step::Train => of_train(self.train.as_ref()?, name),
            Step::Inspect => None,
            Step::Checkpoint => of_checkpoint(self.checkpoint.as_ref()?, name),
            Step::Workload => of_workload(self.workload.as_ref()?, name),
        }
    }
}

/// The median of the runs, each quantity for itself; of a workload that was run once, that run's. Checkpoints are those of the run in the
/// middle, as everything else of the cell is.
fn of_workload(cell: &WorkloadCell, name: &str) -> Option<Metric> {
    let of = |value: &dyn Fn(&WorkloadTotals) -> Option<f64>| {
        let repeats: Vec<f64> = cell.runs.iter().filter_map(value).collect();
        let value = forebay_units::median(&repeats).or_else(|| value(&cell.totals))?;
        Some(Metric { value, repeats })
    };
    match name {
        "au_epoch" => of(&|run| run.au_epoch),
        "au_steady" => of(&|run| run.au_steady),
        "au_dlio" => of(&|run| run.au_dlio),
        "samples_per_s" => of(&|run| Some(run.samples_per_s)),
        "mb_per_s_moved" => of(&|run| Some(run.mb_per_s_moved)),
        "mb_per_s_device" => of(&|run| run.mb_per_s_device),
        "first_batch_s" => of(&|run| Some(run.first_batch_s)),
        "barrier_s" => of(&|run| Some(run.barrier_s)),
        "wall_s" => of(&|run| Some(run.wall_s)),
        "dlio_mib_per_s" => of(&|run| run.dlio_mib_per_s),
        "dlio_samples_per_s" => of(&|run| run.dlio_samples_per_s),
        "checkpoint_max_s" => {
            let saves = cell.saves.iter().filter(|save| !save.is_restore).map(|save| save.seconds);
            let value = forebay_units::median(&saves.collect::<Vec<_>>())?;
            Some(Metric { value, repeats: Vec::new() })
        }
        _ => None,
    }
}

/// Medians and every save or restore that came so far.
fn of_checkpoint(cell: &CheckpointCell, name: &str) -> Option<Metric> {
    let of = |value: Option<f64>, repeat: &dyn Fn(&CheckpointSample) -> Option<f64>| {
        Some(Metric { value: value?, repeats: cell.samples.iter().filter_map(repeat).collect() })
    };
    let rate = |seconds: Option<f64>| seconds.map(|seconds| cell.bytes as f64 / 1e6 / seconds);
    match name {
        "stall_s" => of(Some(cell.stall_s), &|sample| Some(sample.stall_s)),
        "durable_fast_s" => of(cell.durable_fast_s, &|sample| sample.durable_fast_s),
        "durable_slow_s" => of(cell.durable_slow_s, &|sample| sample.durable_slow_s),
        "restore_s" => of(cell.restore_s, &|sample| sample.restore_s),
        "save_mb_per_s" => of(cell.save_mb_per_s(), &|sample| rate(sample.durable_fast_s)),
        "restore_mb_per_s" => of(cell.restore_mb_per_s(), &|sample| rate(sample.restore_s)),
        "efficiency" => {
            of(cell.save_efficiency(), &|sample| share(cell.bytes, sample.durable_fast_s, cell.ceiling_mb_per_s))
        }
        "restore_efficiency" => {
            of(cell.restore_efficiency(), &|sample| share(cell.bytes, sample.restore_s, cell.read_ceiling_mb_per_s))
        }
        _ => None,
    }
}

fn of_ingest(cell: &IngestCell, name: &str) -> Option<Metric> {
    let of = |value: f64, repeat: fn(&IngestRepeat) -> f64| {
        Some(Metric { value, repeats: cell.samples.iter().map(repeat).collect() })
    };
    match name {
        "images_per_s" => of(cell.images_per_s, IngestRepeat::images_per_s),
        "mb_per_s" => of(cell.mb_per_s, IngestRepeat::mb_per_s),
        "wait_s" => of(cell.wait_s, |repeat| repeat.wait_s),
        "wall_s" => of(cell.wall_s, |repeat| repeat.wall_s),
        "cpu_s_per_1000" => Some(Metric { value: cell.cpu_s_per_1000, repeats: Vec::new() }),
        "efficiency" => {
            let ceiling = cell.ceiling_mb_per_s?;
            let repeats = cell.samples.iter().map(|repeat| repeat.mb_per_s() / ceiling).collect();
            Some(Metric { value: cell.mb_per_s / ceiling, repeats })
        }
        _ => None,
    }
}

/// The median of the runs, each quantity for itself; of a record that kept no runs, the totals it has.
fn of_train(cell: &TrainCell, name: &str) -> Option<Metric> {
    let of = |value: &dyn Fn(&TrainTotals) -> Option<f64>| {
        let repeats: Vec<f64> = cell.samples.iter().filter_map(value).collect();
        let value = forebay_units::median(&repeats).or_else(|| value(&cell.totals))?;
        Some(Metric { value, repeats })
    };
    match name {
        "images_per_s" => of(&|run| Some(run.images_per_s())),
        "io_cost_s" => match (cell.io_cost_s, cell.baseline) {
            (Some(_), Some(baseline)) if cell.samples.len() > 1 => {
                of(&|run| Some(run.wall_s - run.validate_s - baseline.step_s * run.n_steps as f64))
            }
            (cost, _) => cost.map(|value| Metric { value, repeats: Vec::new() }),
        },
        "mb_per_s" => of(&|run| Some(run.mb_per_s())),
        "wall_s" => of(&|run| Some(run.wall_s)),
        "wait_s" => of(&|run| Some(run.wait_s)),
        "compute_s" => of(&|run| Some(run.compute_s)),
        "copy_s" => of(&|run| Some(run.copy_s)),
        "wait_share" => of(&TrainTotals::wait_share),
        "au_epoch" => of(&|run| Some(run.au_epoch)),
        "au_steady" => of(&|run| run.au_steady),
        "au_dlio" => of(&|run| run.au_dlio),
        "overlap" => of(&|run| run.overlap),
        "checkpoint_s" => of(&|run| Some(run.checkpoint_s).filter(|_| cell.checkpoints.is_some())),
        "stall_s" => {
            let saved = cell.checkpoints.as_ref()?;
            Some(Metric { value: saved.median_stall_s?, repeats: saved.stalls().collect() })
        }
        "drain_after_s" => Some(Metric { value: cell.checkpoints.as_ref()?.drain_after_s?, repeats: Vec::new() }),
        _ => None,
    }
}

fn of_probe(cells: &[ProbeCell], name: &str) -> Option<Metric> {
    let (mode, by_requests) = match name {
        "read_mb_per_s" => (ProbeMode::SequentialRead, false),
        "write_mb_per_s" => (ProbeMode::SequentialWrite, false),
        "random_mb_per_s" => (ProbeMode::RandomRead, false),
        "random_iops" => (ProbeMode::RandomRead, true),
        "files_per_s" => (ProbeMode::Files, true),
        _ => return None,
    };
    let value_of = |cell: &ProbeCell| if by_requests { cell.iops } else { cell.mb_per_s };
    let of_mode = cells.iter().filter(|cell| cell.mode == mode);
    let best = of_mode.max_by(|a, b| value_of(a).total_cmp(&value_of(b)))?;
    let repeats = best.samples.iter().map(|repeat| if by_requests { repeat.iops() } else { repeat.mb_per_s() });
    Some(Metric { value: value_of(best), repeats: repeats.collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_workload_that_was_run_again_every_quantity_is_the_median() {
        let run = |au: f64, wall_s: f64| WorkloadTotals { au_epoch: Some(au), wall_s, ..WorkloadTotals::default() };
        let runs = vec![run(70.0, 3.0), run(60.0, 5.0), run(65.0, 2.0)];
        let mut cell = WorkloadCell { totals: runs[2].clone(), ..WorkloadCell::default() };
        assert_eq!(of_workload(&cell, "wall_s"), Some(Metric { value: 2.0, repeats: Vec::new() }));
        cell.runs = runs;
        let kept: WorkloadCell = serde_json::from_str(&serde_json::to_string(&cell).unwrap()).unwrap();
        assert_eq!(kept, cell, "no name of a run's is also one of the cell's");
        assert_eq!(of_workload(&cell, "wall_s"), Some(Metric { value: 3.0, repeats: vec![3.0, 5.0, 2.0] }));
        assert_eq!(of_workload(&cell, "au_epoch").unwrap().value, 65.0);
        assert_eq!(of_workload(&cell, "au_dlio"), None, "a quantity that no run has");
    }

    #[test]
    fn of_an_even_number_of_runs_every_quantity_is_the_median() {
        let run = |wall_s: f64, wait_s: f64| {
            serde_json::json!({
                "n_steps": 10, "images": 100, "failed": 0, "bytes": 1_000_000, "wall_s": wall_s, "wait_s": wait_s,
                "copy_s": 0.0, "compute_s": wall_s - wait_s, "checkpoint_s": 0.0, "other_s": 0.0, "first_wait_s": 0.0,
                "cpu_s": 1.0, "au_epoch": 0.5, "au_steady": null, "au_dlio": null, "overlap": null, "loss": null,
                "cache": null,
            })
        };
        let mut train = run(2.0, 1.0);
        train.as_object_mut().unwrap().extend([
            ("model".to_owned(), serde_json::Value::Null),
            ("device".to_owned(), "emulated:60ms".into()),
            ("batch".to_owned(), 10.into()),
            ("steps_per_epoch".to_owned(), 10.into()),
            ("threads".to_owned(), 1.into()),
            ("prefetch".to_owned(), 0.into()),
            ("images_per_s".to_owned(), 50.into()),
            ("baseline".to_owned(), serde_json::json!({"n_steps": 5, "step_s": 0.1})),
            ("io_cost_s".to_owned(), 1.0.into()),
            ("samples".to_owned(), serde_json::json!([run(2.0, 1.0), run(4.0, 1.5)])),
        ]);
        let cell = serde_json::json!({
            "id": "a", "experiment": "a", "step": "train", "factors": {}, "started_at": "", "elapsed_s": 1.0, "train": train,
        });
        let cell: StudyCell = serde_json::from_value(cell).expect("maps, lists and the lever may be missing");
        let value = |name: &str| cell.metric(name).unwrap().value;
        assert_eq!(["wall_s", "wait_s", "compute_s", "io_cost_s"].map(value), [3.0, 1.25, 1.75, 2.0]);
        assert_eq!(cell.metric("io_cost_s").unwrap().repeats, [1.0, 3.0]);
        assert_eq!(value("images_per_s"), (50.0 + 25.0) / 2.0);
        assert_eq!(cell.train.unwrap().lever.name, "", "not known, which is not none");
    }
}
