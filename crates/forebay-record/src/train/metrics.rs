//! The metrics of a training, each declared once with its unit and its value.

use super::{NEED_ACCELERATORS, TrainCell, TrainTotals};
use crate::check::Checked;
use crate::ingest::{bytes_per_request, threads_reading};
use crate::level::LevelsOf;
use crate::metric::{Measurement, Metric, Unit};
use crate::{Cell, Disturbed, InjectedFailures, Levels, Medium, Remarks, Step, TriedThreads, Tuning};

/// Metrics that code refers to; their labels describe them.
impl TrainCell {
    #[allow(missing_docs)]
    pub const WALL_S: Metric<Self> =
        Metric::lower("wall_s", "wall clock", Unit::Seconds, |cell: &Self| cell.median(|run| Some(run.wall_s)))
            .headline()
            .compared()
            .or_by_rate(Self::IMAGES_PER_S.info.name);
    #[allow(missing_docs)]
    pub const IMAGES_PER_S: Metric<Self> =
        Metric::higher("images_per_s", "images/s", Unit::Rate("images"), |cell: &Self| {
            cell.median(|run| Some(run.images_per_s()))
        })
        .headline();
    #[allow(missing_docs)]
    pub const STEADY_IMAGES_PER_S: Metric<Self> =
        Metric::higher("steady_images_per_s", "steady state", Unit::Rate("images"), |cell: &Self| {
            cell.median(TrainTotals::steady_images_per_s)
        });
    #[allow(missing_docs)]
    pub const CHECKPOINT_SHARE: Metric<Self> =
        Metric::lower("checkpoint_share", "share of checkpoints", Unit::Share, |cell: &Self| {
            cell.checkpoints.as_ref()?;
            cell.median(|run| Some(run.checkpoint_s / run.wall_s).filter(|share| share.is_finite()))
        })
        .for_programs();
    #[allow(missing_docs)]
    pub const WAIT_S: Metric<Self> =
        Metric::lower("wait_s", "wait", Unit::Seconds, |cell: &Self| cell.median(|run| Some(run.wait_s)))
            .headline()
            .for_programs();
    #[allow(missing_docs)]
    pub const COMPUTE_S: Metric<Self> =
        Metric::lower("compute_s", "compute", Unit::Seconds, |cell: &Self| cell.median(|run| Some(run.compute_s)))
            .for_programs();
    #[allow(missing_docs)]
    pub const COPY_S: Metric<Self> =
        Metric::lower("copy_s", "copy to the device", Unit::Seconds, |cell: &Self| cell.median(|run| Some(run.copy_s)))
            .for_programs();
    #[allow(missing_docs)]
    pub const EXCHANGE_S: Metric<Self> =
        Metric::lower("exchange_s", "waiting for other ranks, exchanging gradients", Unit::Seconds, |cell: &Self| {
            (!cell.ranks.is_empty()).then(|| cell.median(|run| Some(run.exchange_s)))?
        });
    #[allow(missing_docs)]
    pub const WAIT_SHARE: Metric<Self> =
        Metric::lower("wait_share", "wait after the first batch", Unit::Share, |cell: &Self| {
            cell.median(TrainTotals::wait_share)
        });
    #[allow(missing_docs)]
    pub const AU_EPOCH: Metric<Self> =
        Metric::higher("au_epoch", "AU, whole epoch", Unit::Share, |cell: &Self| cell.median(|run| Some(run.au_epoch)));
    #[allow(missing_docs)]
    pub const NEED_MB_PER_S: Metric<Self> =
        Metric::fact("need_mb_per_s", "disk rate for 8 accelerators", Unit::Rate("MB"), |cell: &Self| {
            cell.needs_mb_per_s(NEED_ACCELERATORS).map(Measurement::single)
        })
        .for_programs();
    #[allow(missing_docs)]
    pub const NOT_SAVED: Metric<Self> =
        Metric::lower("not_saved", "not saved", Unit::Count("checkpoints"), |cell: &Self| {
            let not_saved = cell.checkpoints.as_ref()?.n_not_saved();
            (not_saved > 0).then(|| Measurement::single(not_saved as f64))
        });
    #[allow(missing_docs)]
    pub const CHECKPOINT_S: Metric<Self> =
        Metric::lower("checkpoint_s", "checkpoints, total", Unit::Seconds, |cell: &Self| {
            cell.checkpoints.as_ref()?;
            cell.median(|run| Some(run.checkpoint_s))
        });
    #[allow(missing_docs)]
    pub const STALL_S: Metric<Self> = Metric::lower("stall_s", "stall per checkpoint", Unit::Seconds, |cell: &Self| {
        let saved = cell.checkpoints.as_ref()?;
        Some(Measurement { value: saved.median_stall_s?, repeats: saved.stalls().collect() })
    })
    .headline()
    .compared();
    // Direct saves are not drained, however long their end takes.
    #[allow(missing_docs)]
    pub const DRAIN_AFTER_S: Metric<Self> =
        Metric::lower("drain_after_s", "drain after the end", Unit::Seconds, |cell: &Self| {
            let saved = cell.checkpoints.as_ref().filter(|saved| saved.mode != "direct")?;
            saved.drain_after_s.map(Measurement::single)
        })
        .headline();
    #[allow(missing_docs)]
    pub const RESTORE_S: Metric<Self> = Metric::lower("restore_s", "restore", Unit::Seconds, |cell: &Self| {
        let times = cell.injected()?.failures.iter().map(|failure| failure.restore_s).collect();
        Measurement::median(times, None)
    });
    #[allow(missing_docs)]
    pub const OVERHEAD: Metric<Self> =
        Metric::lower("overhead", "run time over useful computing", Unit::Times, |cell: &Self| {
            let useful = cell.totals.n_steps.checked_sub(cell.injected()?.n_lost_steps())?;
            cell.median(|run| {
                let computing_s = useful as f64 * run.compute_s / run.n_steps as f64;
                Some(run.wall_s / computing_s).filter(|ratio| ratio.is_finite())
            })
        });
    #[allow(missing_docs)]
    pub const STEP_S: Metric<Self> = Metric::fact("step_s", "computing per step", Unit::Seconds, |cell: &Self| {
        cell.median(|run| Some(run.compute_s / run.n_steps as f64).filter(|seconds| seconds.is_finite()))
    })
    .for_programs();

    /// Failures that were injected; `None` unless they were asked for.
    pub fn injected(&self) -> Option<&InjectedFailures> {
        self.checkpoints.as_ref()?.injected.as_ref()
    }
}

impl Cell for TrainCell {
    const STEP: Step = Step::Train;
    const METRICS: &'static [Metric<Self>] = &[
        Self::WALL_S,
        Self::IMAGES_PER_S,
        Self::STEADY_IMAGES_PER_S,
        Metric::higher("mb_per_s", "MB/s", Unit::Rate("MB"), |cell: &Self| {
            cell.median(|run| (run.bytes > 0).then(|| run.mb_per_s()))
        }),
        Self::WAIT_S,
        Self::COMPUTE_S,
        Self::COPY_S,
        Self::EXCHANGE_S,
        Self::WAIT_SHARE,
        Self::AU_EPOCH,
        Metric::higher("au_steady", "AU, steady state", Unit::Share, |cell: &Self| cell.median(|run| run.au_steady)),
        Metric::higher("au_dlio", "AU, as DLIO counts", Unit::Share, |cell: &Self| cell.median(|run| run.au_dlio)),
        Metric::higher("overlap", "overlap", Unit::Share, |cell: &Self| cell.median(|run| run.overlap)),
        Metric::lower("io_cost_s", "cost of I/O", Unit::Seconds, Self::io_cost).signed(),
        Self::NEED_MB_PER_S,
        Metric::fact("bytes_per_request", "bytes per read", Unit::Bytes, |cell: &Self| {
            cell.median(|run| bytes_per_request(run.bytes, run.requests))
        })
        .for_programs(),
        Metric::fact("threads_reading", "mean threads reading", Unit::Named("threads"), |cell: &Self| {
            cell.median(|run| threads_reading(&run.worker_time, run.wall_s))
        })
        .for_programs(),
        Metric::lower("worker_cpu", "cores used by the workers", Unit::Named("cores"), |cell: &Self| {
            cell.median(|run| run.on_core_s.map(|s| s / run.wall_s))
        })
        .for_programs(),
        Metric::lower(
            "gpu_s_per_1000",
            "GPU s per 1,000 images",
            Unit::Named("GPU s per 1,000 images"),
            |cell: &Self| cell.median(|run| run.decoded_on_gpu?.kernels_s_per_1000()),
        ),
        Metric::lower("failed_samples", "failed samples", Unit::Count("samples"), |cell: &Self| {
            (cell.totals.failed > 0).then(|| Measurement::single(cell.totals.failed as f64))
        }),
        Metric::fact("resumed_from", "resumed from step", Unit::Count("steps"), |cell: &Self| {
            cell.resumed_from.map(|step| Measurement::single(step as f64))
        }),
        Metric::fact("checkpoints", "checkpoints", Unit::Count("checkpoints"), |cell: &Self| {
            cell.checkpoints.as_ref().map(|made| Measurement::single(made.n_made() as f64))
        }),
        Self::NOT_SAVED,
        Self::CHECKPOINT_S,
        Self::CHECKPOINT_SHARE,
        Self::STALL_S,
        Self::DRAIN_AFTER_S,
        Metric::fact("failures", "injected failures", Unit::Count("failures"), |cell: &Self| {
            cell.injected().map(|injected| Measurement::single(injected.failures.len() as f64))
        }),
        Metric::lower("lost_steps", "steps lost to failures", Unit::Count("steps"), |cell: &Self| {
            cell.injected().map(|injected| Measurement::single(injected.n_lost_steps() as f64))
        }),
        Self::RESTORE_S,
        Self::OVERHEAD,
        Self::STEP_S,
    ];
    const ALWAYS: &'static [&'static str] = &["model", "tier", "batch", "threads", "prefetch"];

    fn levels(&self) -> Levels {
        let is_read = !self.synthetic;
        let levels = LevelsOf::default()
            .integer("batch", self.batch)
            .integer("ranks", (!self.ranks.is_empty()).then_some(self.ranks.len() as u64))
            .integer("steps", self.totals.n_steps)
            .flag("synthetic", self.synthetic.then_some(true))
            .integer("threads", is_read.then_some(self.threads))
            .integer("prefetch", is_read.then_some(self.prefetch))
            .text("shuffle", self.shuffle.as_deref())
            .text("interleave", self.interleave.as_deref())
            .text("decode", self.decode.as_deref())
            .flag("threads_auto", self.threads_auto.then_some(true))
            .integer("device_prefetch", (self.device_prefetch > 0).then_some(self.device_prefetch))
            .text("model", self.model.as_deref())
            .text("device", self.device.as_str())
            .text("precision", self.precision.as_deref())
            .text("optimizer", self.optimizer.as_deref())
            .medium(&self.medium)
            .text("dataset", self.tuning.as_ref().and_then(Tuning::dataset))
            .integer("resumed_from", self.resumed_from);
        let Some(saved) = &self.checkpoints else { return levels.done() };
        levels
            .integer("checkpoint_every", saved.every)
            .text("checkpoint_mode", saved.mode.as_str())
            .text("checkpoint_format", saved.format.as_str())
            .text("checkpoint_tier", saved.medium.tier.as_deref())
            .text("burst_tier", saved.burst_tier())
            .text("fail_every", self.injected().map(|injected| format!("{} s", injected.every_s)).as_deref())
            .done()
    }

    fn media(&self) -> Vec<&Medium> {
        let saved = self.checkpoints.iter().flat_map(|saved| saved.burst.iter().chain([&saved.medium]));
        std::iter::once(&self.medium).chain(saved).collect()
    }

    fn n_repeats(&self) -> usize {
        self.samples.len()
    }

    fn spread(&self) -> Option<f64> {
        self.spread
    }

    fn work(&self) -> Option<u64> {
        Some(self.totals.images)
    }

    fn remarks(&self) -> Remarks {
        vec![
            ("lever", "lever", self.lever.short()),
            ("network", "network", self.network()),
            ("output", "output", self.output.clone().unwrap_or_default()),
            ("tried", "threads tried", TriedThreads::describe(&self.tried)),
            ("decoded_on_gpu", "decoded", self.totals.decoded_on_gpu.map(|work| work.describe()).unwrap_or_default()),
        ]
    }

    fn disturbed(&self) -> Option<Disturbed> {
        self.disturbed
    }

    fn check(&self) -> Checked {
        crate::check::train::check(self)
    }
}
