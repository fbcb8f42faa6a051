//! One combination of a study, measured or failed.

use serde::{Deserialize, Serialize};

use super::spec::{Level, Levels, Step};
use crate::measured::Measured;
use crate::{AnyCell, Cell, Disturbed, Measurement, Metric};

/// One combination of levels and its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StudyCell {
    /// Experiment and levels, such as "ingest/read_only=false/threads=4/tier=hdd"; the same in every run of the plan.
    pub id: String,
    /// Name of the experiment.
    pub experiment: String,
    /// Kind of experiment, which decides what `measured` holds.
    pub step: Step,
    /// Level of each factor.
    pub factors: Levels,
    /// Start in UTC, such as "2026-11-15T17:03:00Z".
    pub started_at: String,
    /// Seconds for the whole cell, including preparation.
    pub elapsed_s: f64,
    /// Why it failed; `None` when it did not.
    #[serde(default)]
    pub error: Option<String>,
    /// Why it was planned but not run: unsupported by the machine or the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
    /// Result; missing when the cell failed or was left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
    /// Remarks that limit what the numbers mean.
    #[serde(default)]
    pub notes: Vec<String>,
}

impl StudyCell {
    /// Neither failed nor left out.
    pub fn is_measured(&self) -> bool {
        self.error.is_none() && self.left_out.is_none()
    }

    /// Whether the cell has these levels, among others.
    pub fn is_at(&self, levels: &Levels) -> bool {
        levels.iter().all(|(factor, level)| self.factors.get(factor) == Some(level))
    }

    /// `None` if the experiment has no such factor.
    pub fn level(&self, factor: &str) -> Option<&Level> {
        self.factors.get(factor)
    }

    /// `None` if the cell failed or was left out.
    pub fn result(&self) -> Option<&Measured> {
        self.measured.as_ref().filter(|_| self.is_measured())
    }

    /// By a name from [`Cell::METRICS`](crate::Cell::METRICS); `None` if the cell does not have it.
    pub fn metric(&self, name: &str) -> Option<Measurement> {
        self.result()?.metric(name)
    }

    /// Combined over all measurements of the cell.
    pub fn disturbed(&self) -> Option<Disturbed> {
        Disturbed::together(self.cells().filter_map(|cell| cell.disturbed()))
    }

    /// The least over the measurements of the cell.
    pub fn n_repeats(&self) -> usize {
        self.cells().map(|cell| cell.n_repeats()).min().unwrap_or(0)
    }

    fn cells(&self) -> impl Iterator<Item = &dyn AnyCell> {
        self.result().into_iter().flat_map(Measured::cells)
    }

    /// `None` if the cell is of another experiment or has no value.
    pub fn value<C: Cell>(&self, metric: &Metric<C>) -> Option<f64> {
        metric.of(self.measured_one()?).map(|found| found.value)
    }

    /// Several for a probe, one or none for other experiments.
    pub fn measured_as<C: Cell>(&self) -> impl Iterator<Item = &C> {
        self.result().into_iter().flat_map(Measured::of)
    }

    /// `None` if the cell was not measured, or by another experiment.
    pub fn measured_one<C: Cell>(&self) -> Option<&C> {
        self.measured_as().next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TrainCell, WorkloadCell, WorkloadTotals};

    #[test]
    fn of_a_workload_that_was_run_again_every_quantity_is_the_median() {
        let run = |au: f64, wall_s: f64| WorkloadTotals { au_epoch: Some(au), wall_s, ..WorkloadTotals::default() };
        let runs = vec![run(0.70, 3.0), run(0.60, 5.0), run(0.65, 2.0)];
        let mut cell = WorkloadCell { totals: runs[2].clone(), ..WorkloadCell::default() };
        assert_eq!(cell.metric("wall_s"), Some(Measurement { value: 2.0, repeats: Vec::new() }));
        cell.runs = runs;
        let kept: WorkloadCell = serde_json::from_str(&serde_json::to_string(&cell).unwrap()).unwrap();
        assert_eq!(kept, cell, "no name of a run's is also one of the cell's");
        assert_eq!(cell.metric("wall_s"), Some(Measurement { value: 3.0, repeats: vec![3.0, 5.0, 2.0] }));
        assert_eq!(cell.metric("au_epoch").unwrap().value, 0.65);
        assert_eq!(cell.metric("au_dlio"), None, "a quantity that no run has");
    }

    #[test]
    fn of_an_even_number_of_runs_every_quantity_is_the_median() {
        let run = |wall_s: f64, wait_s: f64| {
            serde_json::json!({
                "n_steps": 10, "images": 100, "failed": 0, "bytes": 1_000_000, "wall_s": wall_s, "wait_s": wait_s,
                "copy_s": 0.0, "compute_s": wall_s - wait_s, "checkpoint_s": 0.0, "other_s": 0.0, "first_wait_s": 0.0,
                "cpu_s": 1.0, "au_epoch": 0.5, "au_steady": null, "au_dlio": null, "overlap": null, "loss": null,
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
            "id": "a", "experiment": "a", "step": "train", "factors": {}, "started_at": "", "elapsed_s": 1.0, "measured": {"train": train},
        });
        let cell: StudyCell = serde_json::from_value(cell).expect("maps, lists and the lever may be missing");
        let value = |name: &str| cell.metric(name).unwrap().value;
        assert_eq!(["wall_s", "wait_s", "compute_s", "io_cost_s"].map(value), [3.0, 1.25, 1.75, 2.0]);
        assert_eq!(cell.metric("io_cost_s").unwrap().repeats, [1.0, 3.0]);
        assert_eq!(value("images_per_s"), (50.0 + 25.0) / 2.0);
        assert_eq!(cell.measured_one::<TrainCell>().unwrap().lever.name, "", "not known, which is not none");
    }
}
