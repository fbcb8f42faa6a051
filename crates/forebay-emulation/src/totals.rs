//! Sums over accelerators and processes.

use std::collections::BTreeMap;

use forebay_record::{CacheEvidence, CacheState, Cause, Quantiles, WorkloadEpoch, WorkloadSave, WorkloadTotals};
use forebay_workload::{Workload, metric};

use forebay_measure::stall::Causes;

use super::rank_report::RankReport;
use super::times::{Epoch, Saved};

pub(super) struct Run<'a> {
    pub(super) workload: &'a Workload,
    pub(super) n_steps: u64,
    pub(super) reports: &'a [RankReport],
}

impl<'a> Run<'a> {
    pub(super) fn epochs(&self) -> impl Iterator<Item = &'a Epoch> + use<'a> {
        self.reports.iter().flat_map(|report| &report.epochs)
    }

    /// Over accelerators and epochs.
    fn seconds(&self, ns: impl Fn(&Epoch) -> u64) -> f64 {
        self.epochs().map(ns).sum::<u64>() as f64 / 1e9
    }

    /// Summed over epochs.
    fn by_accelerator(&self, value: impl Fn(&Epoch) -> u64) -> BTreeMap<u64, u64> {
        let mut sums = BTreeMap::new();
        self.epochs().for_each(|epoch| *sums.entry(epoch.accelerator).or_insert(0) += value(epoch));
        sums
    }

    /// Mean over accelerators of the fraction of `time` that they computed.
    fn au(&self, time: impl Fn(&Epoch) -> u64) -> Option<f64> {
        let (computed, times) = (self.by_accelerator(|epoch| epoch.compute_ns), self.by_accelerator(time));
        metric::au_mean(computed.iter().map(|(who, ns)| (*ns as f64 / 1e9, times[who] as f64 / 1e9)))
    }

    /// As DLIO computes it: per epoch, the mean of utilisations and the sum of rates over accelerators; then means over
    /// epochs.
    fn dlio(&self) -> Option<metric::Dlio> {
        let mut by_epoch: BTreeMap<u64, Vec<metric::Dlio>> = BTreeMap::new();
        for epoch in self.epochs() {
            by_epoch.entry(epoch.epoch).or_default().extend(dlio_of(self.workload, self.n_steps, epoch));
        }
        let epochs: Vec<&Vec<metric::Dlio>> = by_epoch.values().filter(|of| !of.is_empty()).collect();
        let au = epochs.iter().filter_map(|of| mean(&of.iter().map(|dlio| dlio.au).collect::<Vec<_>>()));
        let rates = epochs.iter().map(|of| of.iter().map(|dlio| dlio.samples_per_s).sum::<f64>());
        Some(metric::Dlio { au: mean(&au.collect::<Vec<_>>())?, samples_per_s: mean(&rates.collect::<Vec<_>>())? })
    }

    pub(super) fn stalls(&self, of: impl Fn(&Epoch) -> &Causes) -> Causes {
        let mut sum = Causes::default();
        self.epochs().for_each(|epoch| sum.add(of(epoch)));
        sum
    }

    pub(super) fn evidence(&self) -> CacheEvidence {
        all(self.reports.iter().map(|report| report.evidence.clone()))
    }

    pub(super) fn totals(&self) -> WorkloadTotals {
        let wall_s = self.by_accelerator(Epoch::wall_ns).into_values().max().unwrap_or(0) as f64 / 1e9;
        let samples: u64 = self.epochs().map(|epoch| epoch.samples).sum();
        let bytes_moved: u64 = self.epochs().map(|epoch| epoch.bytes).sum();
        let bytes_device = self.evidence().block_bytes.filter(|_| bytes_moved > 0);
        let rate = |amount: f64| if wall_s > 0.0 { amount / wall_s } else { 0.0 };
        let dlio = self.dlio();
        let dlio_rate = dlio.map(|dlio| dlio.samples_per_s);
        let first_waits: Vec<f64> = self.epochs().map(|epoch| epoch.first_wait_ns as f64 / 1e9).collect();
        let evaluations = || self.epochs().filter_map(|epoch| epoch.evaluated.as_ref());
        let evaluated_s = evaluations().map(|done| done.wall_ns).sum::<u64>() as f64 / 1e9;
        let eval_compute_s = evaluations().flat_map(|done| &done.compute).sum::<u64>() as f64 / 1e9;
        let mut stall_by_cause = self.stalls(|epoch| &epoch.stalls).by_cause();
        stall_by_cause.insert(Cause::Barrier, self.seconds(|epoch| epoch.barrier_ns));
        WorkloadTotals {
            au_epoch: self.au(Epoch::wall_ns),
            au_steady: self.au(|epoch| epoch.wall_ns() - epoch.first_wait_ns),
            au_dlio: dlio.map(|dlio| dlio.au / 100.0),
            samples_per_s: rate(samples as f64),
            mb_per_s_moved: rate(bytes_moved as f64 / 1e6),
            mb_per_s_device: bytes_device.map(|bytes| rate(bytes as f64 / 1e6)),
            first_batch_s: mean(&first_waits).unwrap_or(0.0),
            first_step_s: self.first_step_s(),
            stall_by_cause,
            barrier_s: self.seconds(|epoch| epoch.barrier_ns),
            steps: self.epochs().map(|epoch| epoch.barrier.len() as u64).sum(),
            ranks: self.reports.len() as u64,
            accelerators: self.reports.iter().map(|report| report.process.accelerators).sum(),
            warnings: Vec::new(),
            samples,
            bytes_moved,
            bytes_device,
            wall_s,
            accelerator_s: self.seconds(Epoch::wall_ns),
            wait_s: self.seconds(|epoch| epoch.wait_ns),
            compute_s: self.seconds(|epoch| epoch.compute_ns),
            checkpoint_s: self.seconds(|epoch| epoch.checkpoint_ns),
            other_s: self.seconds(|epoch| epoch.other_ns),
            eval_s: evaluated_s,
            load: quantiles(self.epochs().flat_map(|epoch| epoch.load.iter().copied())),
            step: quantiles(self.epochs().flat_map(steps)),
            dlio_samples_per_s: dlio_rate,
            dlio_mib_per_s: dlio_rate.map(|rate| rate * self.workload.dataset.record_length_bytes / f64::from(1 << 20)),
            au_eval: metric::au_epoch(eval_compute_s, evaluated_s),
            peak_rss_bytes: self.reports.iter().map(|report| report.process.peak_rss_bytes).sum(),
            cpu_s: Some(self.reports.iter().map(|report| report.cpu_s).sum()),
        }
    }

    /// From the start of the first process to the first computation of its first accelerator.
    fn first_step_s(&self) -> Option<f64> {
        let first = self.reports.first()?;
        let epoch = first.epochs.iter().find(|epoch| epoch.epoch == 1 && !epoch.load.is_empty())?;
        Some(first.age_s? + (epoch.start_ns + epoch.first_wait_ns) as f64 / 1e9)
    }

    /// Each combined from all accelerators' parts.
    pub(super) fn saves(&self) -> Vec<WorkloadSave> {
        let mut shares: BTreeMap<u64, Vec<&Saved>> = BTreeMap::new();
        for saved in self.reports.iter().flat_map(|report| &report.saves) {
            shares.entry(saved.number).or_default().push(saved);
        }
        shares.into_values().map(|shares| whole_save(&shares)).collect()
    }

    /// By activity, summed over readers.
    pub(super) fn worker_time(&self) -> BTreeMap<String, f64> {
        let mut sums = BTreeMap::new();
        for (name, seconds) in self.epochs().flat_map(|epoch| &epoch.worker_time) {
            *sums.entry(name.clone()).or_insert(0.0) += seconds;
        }
        sums
    }
}

pub(super) fn dlio_of(workload: &Workload, n_steps: u64, epoch: &Epoch) -> Option<metric::Dlio> {
    let limits = &workload.limits;
    let of = |block: &metric::Block| {
        let (batch, start, end) = (workload.reader.batch_size, limits.exclude_start_steps, limits.exclude_end_steps);
        (metric::dlio(block, batch, start, end, n_steps), block.load_s.len())
    };
    metric::dlio_epoch(&blocks(epoch).iter().map(of).collect::<Vec<_>>())
}

pub(super) fn blocks(epoch: &Epoch) -> Vec<metric::Block> {
    let mut from = 0;
    let seconds = |ns: &[u64]| ns.iter().map(|ns| *ns as f64 / 1e9).collect();
    let block = |block: &super::times::Block| {
        let steps = from..from + block.n_steps as usize;
        from = steps.end;
        metric::Block {
            load_s: seconds(&epoch.load[steps.clone()]),
            compute_s: seconds(&epoch.compute[steps]),
            wall_s: (block.end_ns - block.start_ns) as f64 / 1e9,
        }
    };
    epoch.blocks.iter().map(block).collect()
}

/// `with_steps`: whether to keep single steps.
pub(super) fn recorded(workload: &Workload, n_steps: u64, epoch: &Epoch, with_steps: bool) -> WorkloadEpoch {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let array = |ns: &[u64]| if with_steps { ns.iter().copied().map(seconds).collect() } else { Vec::new() };
    let evaluated = epoch.evaluated.as_ref();
    WorkloadEpoch {
        accelerator: epoch.accelerator,
        epoch: epoch.epoch,
        start_s: seconds(epoch.start_ns),
        wall_s: seconds(epoch.wall_ns()),
        first_batch_s: seconds(epoch.first_wait_ns),
        n_steps: epoch.barrier.len() as u64,
        saved_after: epoch.saved_after.clone(),
        wait_s: seconds(epoch.wait_ns),
        compute_s: seconds(epoch.compute_ns),
        barrier_s: seconds(epoch.barrier_ns),
        checkpoint_s: seconds(epoch.checkpoint_ns),
        other_s: seconds(epoch.other_ns),
        au_dlio: dlio_of(workload, n_steps, epoch).map(|dlio| dlio.au / 100.0),
        eval_s: evaluated.map(|done| seconds(done.wall_ns)),
        eval_steps: evaluated.map_or(0, |done| done.compute.len() as u64),
        eval_compute_s: evaluated.map_or(0.0, |done| seconds(done.compute.iter().sum())),
        load: array(&epoch.load),
        compute: array(&epoch.compute),
        barrier: array(&epoch.barrier),
    }
}

fn whole_save(shares: &[&Saved]) -> WorkloadSave {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let slowest = shares.iter().map(|share| share.ns).max().unwrap_or(0);
    let first = shares.iter().find(|share| share.accelerator == 0).map_or(slowest, |share| share.ns);
    let Saved { epoch, step, is_restore, .. } = *shares[0];
    WorkloadSave {
        epoch,
        step,
        is_restore,
        bytes: shares.iter().map(|share| share.bytes).sum(),
        seconds: seconds(slowest),
        seconds_rank_0: seconds(first),
        is_durable: !is_restore,
    }
}

/// Above this ratio of device bytes to bytes read, there was readahead or other traffic.
const AMPLIFIED: f64 = 1.05;

/// If so, device bytes do not show how much of the data came from the device.
pub(super) fn is_amplified(bytes_device: Option<u64>, bytes_moved: u64) -> bool {
    bytes_device.is_some_and(|device| bytes_moved > 0 && device as f64 > AMPLIFIED * bytes_moved as f64)
}

/// With readahead, only files that were not in memory before count as cold.
pub(super) fn state_of(evidence: &CacheEvidence) -> CacheState {
    let was_cold = evidence.resident_before.is_some_and(|share| share <= 0.05);
    match is_amplified(evidence.block_bytes, evidence.bytes_read) {
        true if !was_cold => CacheState::Mixed,
        _ => evidence.state(),
    }
}

/// Sums bytes; of the resident fractions, the greatest counts.
pub(super) fn all(of: impl Iterator<Item = CacheEvidence>) -> CacheEvidence {
    of.reduce(|a, b| CacheEvidence {
        resident_before: a.resident_before.zip(b.resident_before).map(|(a, b)| a.max(b)),
        block_bytes: a.block_bytes.zip(b.block_bytes).map(|(a, b)| a + b),
        bytes_read: a.bytes_read + b.bytes_read,
    })
    .unwrap_or_default()
}

/// Including the barrier.
fn steps(epoch: &Epoch) -> impl Iterator<Item = u64> + '_ {
    let parts = epoch.load.iter().zip(&epoch.compute).zip(&epoch.barrier);
    parts.map(|((load, compute), barrier)| load + compute + barrier)
}

fn quantiles(ns: impl Iterator<Item = u64>) -> Quantiles {
    Quantiles::of(ns.map(|ns| ns as f64 / 1e9).collect())
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}
