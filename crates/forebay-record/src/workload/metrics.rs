//! The metrics of a workload, each declared once with its unit and its value.

use forebay_units::{Bytes, format_seconds, group_digits};

use super::WorkloadCell;
use crate::check::Checked;
use crate::level::LevelsOf;
use crate::metric::{Measurement, Metric, Unit};
use crate::{Cell, CheckpointPlace, Disturbed, Levels, Medium, Remarks, Step};

/// Metrics that code refers to; their labels describe them.
impl WorkloadCell {
    #[allow(missing_docs)]
    pub const DLIO_MIB_PER_S: Metric<Self> =
        Metric::higher("dlio_mib_per_s", "as DLIO counts", Unit::Rate("MiB"), |cell: &Self| {
            cell.median(|run| run.dlio_mib_per_s)
        });
    #[allow(missing_docs)]
    pub const AU_EPOCH: Metric<Self> =
        Metric::higher("au_epoch", "AU, whole epoch", Unit::Share, |cell: &Self| cell.median(|run| run.au_epoch))
            .headline()
            .compared();
    #[allow(missing_docs)]
    pub const AU_DLIO: Metric<Self> =
        Metric::higher("au_dlio", "AU, as DLIO counts", Unit::Share, |cell: &Self| cell.median(|run| run.au_dlio));
    #[allow(missing_docs)]
    pub const BARRIER_S: Metric<Self> = Metric::lower("barrier_s", "barriers", Unit::Seconds, |cell: &Self| {
        // DLIO does not time them.
        cell.median(|run| Some(run.barrier_s)).filter(|_| cell.made_by.is_none())
    });
}

impl Cell for WorkloadCell {
    const STEP: Step = Step::Workload;
    const METRICS: &'static [Metric<Self>] = &[
        Metric::lower("wall_s", "wall clock", Unit::Seconds, |cell: &Self| cell.median(|run| Some(run.wall_s))),
        Self::AU_EPOCH,
        Metric::higher("au_steady", "AU, steady state", Unit::Share, |cell: &Self| cell.median(|run| run.au_steady)),
        Self::AU_DLIO,
        Metric::higher("samples_per_s", "samples/s", Unit::Rate("samples"), |cell: &Self| {
            cell.median(|run| Some(run.samples_per_s))
        })
        .headline()
        .compared(),
        Metric::higher("mb_per_s_moved", "moved", Unit::Rate("MB"), |cell: &Self| {
            // What somebody else measured may not say what was moved.
            cell.median(|run| (run.bytes_moved > 0 || run.mb_per_s_moved > 0.0).then_some(run.mb_per_s_moved))
        })
        .headline(),
        Metric::higher("mb_per_s_device", "from the device", Unit::Rate("MB"), |cell: &Self| {
            cell.median(|run| run.mb_per_s_device)
        }),
        Metric::lower("wait_s", "wait", Unit::Seconds, |cell: &Self| cell.median(|run| Some(run.wait_s)))
            .for_programs(),
        Metric::fact("steps_per_epoch", "steps per epoch", Unit::Count("steps"), |cell: &Self| {
            Some(Measurement::single(cell.steps_per_epoch as f64))
        }),
        Metric::lower("first_batch_s", "first batch per epoch", Unit::Seconds, |cell: &Self| {
            cell.median(|run| Some(run.first_batch_s))
        }),
        Self::BARRIER_S,
        Self::DLIO_MIB_PER_S,
        Metric::higher("dlio_samples_per_s", "as DLIO counts", Unit::Rate("samples"), |cell: &Self| {
            cell.median(|run| run.dlio_samples_per_s)
        }),
        Metric::fact("checkpoints", "checkpoints", Unit::Count("checkpoints"), |cell: &Self| {
            let n = cell.written().count();
            (n > 0).then(|| Measurement::single(n as f64))
        }),
        Metric::lower("checkpoint_s", "checkpoints, total", Unit::Seconds, |cell: &Self| {
            cell.written().next()?;
            cell.median(|run| Some(run.checkpoint_s))
        }),
        // Of the run in the middle: the record keeps no other run's saves.
        Metric::lower("checkpoint_max_s", "checkpoint, slowest rank", Unit::Seconds, |cell: &Self| {
            let seconds: Vec<f64> = cell.written().map(|save| save.seconds).collect();
            forebay_units::median(&seconds).map(Measurement::single)
        })
        .for_programs(),
        Metric::fact("demand_mb_per_s", "demand per accelerator", Unit::Rate("MB"), |cell: &Self| {
            cell.demand_bytes_per_s.map(|bytes| Measurement::single(bytes / 1e6))
        }),
        Metric::lower("first_step_s", "start to first step", Unit::Seconds, |cell: &Self| {
            cell.median(|run| run.first_step_s)
        }),
        Metric::lower("eval_s", "evaluation", Unit::Seconds, |cell: &Self| {
            cell.median(|run| Some(run.eval_s).filter(|seconds| *seconds > 0.0))
        }),
        Metric::higher("au_eval", "AU, evaluation", Unit::Share, |cell: &Self| cell.median(|run| run.au_eval)),
        Metric::lower("peak_rss_bytes", "peak memory", Unit::Bytes, |cell: &Self| {
            cell.median(|run| run.peak_rss_bytes.map(|bytes| bytes as f64))
        }),
        Metric::lower("cpu_s", "CPU time", Unit::Seconds, |cell: &Self| cell.median(|run| run.cpu_s)),
        Metric::lower("failed_samples", "failed samples", Unit::Count("samples"), |cell: &Self| {
            let n = cell.failures.len();
            (n > 0).then(|| Measurement::single(n as f64))
        }),
    ];
    const ALWAYS: &'static [&'static str] = &["workload", "accelerators", "tier"];

    fn levels(&self) -> Levels {
        LevelsOf::default()
            .integer("accelerators", self.totals.accelerators)
            .integer("ranks", self.totals.ranks)
            .integer("batch", self.batch)
            .integer("epochs", self.epochs)
            .integer("files", self.n_files)
            .integer("prefetch", self.prefetch)
            .integer("threads", self.read_threads)
            .text("workload", self.workload.as_str())
            .text("format", self.format.as_str())
            .text("order", self.order.as_str())
            .medium(&self.medium)
            .text("made_by", self.made_by.as_deref())
            .done()
    }

    fn media(&self) -> Vec<&Medium> {
        let saved = self.checkpoint_place.as_ref().filter(|place| place.medium.tier.is_some());
        std::iter::once(&self.medium).chain(saved.map(|place| &place.medium)).collect()
    }

    fn n_repeats(&self) -> usize {
        self.runs.len().max(1)
    }

    fn spread(&self) -> Option<f64> {
        let walls: Vec<f64> = self.runs.iter().map(|run| run.wall_s).collect();
        forebay_units::Summary::of(&walls).filter(|summary| summary.n > 1)?.relative_spread()
    }

    fn remarks(&self) -> Remarks {
        let place = self.checkpoint_place.as_ref().filter(|_| !self.saves.is_empty());
        let place = place.map(CheckpointPlace::describe).unwrap_or_default();
        let mut samples = format!("{} per file", group_digits(self.samples_per_file));
        if self.record_length_bytes > 0.0 {
            samples += &format!(", {} each", Bytes(self.record_length_bytes as u64));
        }
        // What somebody else measured may say neither.
        let computes = if self.computation_s > 0.0 { format_seconds(self.computation_s) } else { String::new() };
        vec![
            ("samples", "samples", if self.n_files > 0 { samples } else { String::new() }),
            ("computes", "compute per step", computes),
            ("lever", "lever", self.lever.short()),
            ("checkpoint_place", "checkpoints in", place),
        ]
    }

    fn disturbed(&self) -> Option<Disturbed> {
        self.disturbed
    }

    fn check(&self) -> Checked {
        crate::check::workload::check(self)
    }
}
