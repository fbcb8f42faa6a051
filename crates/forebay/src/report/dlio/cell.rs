//! Sums DLIO's times over all ranks and epochs into a cell.

use std::collections::BTreeMap;

use forebay_record::{Judged, Quantiles, WorkloadCell, WorkloadEpoch, WorkloadRank, WorkloadSave, WorkloadTotals};
use forebay_units::count;
use forebay_workload::dlio::{BlockRun, EpochRun, RankRun, Run};
use forebay_workload::{Workload, metric};

/// With fewer steps per epoch, DLIO's AU says little.
const FEW_STEPS: u64 = 50;

pub(super) fn of(run: &Run) -> WorkloadCell {
    let mut epochs_of: Vec<WorkloadEpoch> = run.ranks.iter().flat_map(of_rank).collect();
    let steps_per_epoch = epochs_of.iter().map(|epoch| epoch.n_steps).max().unwrap_or(0);
    let began_s = epochs_of.iter().map(|epoch| epoch.start_s).fold(f64::INFINITY, f64::min);
    epochs_of.iter_mut().for_each(|epoch| epoch.start_s -= began_s);
    let mut cell = WorkloadCell {
        workload: name(run),
        n_files: run.summary.num_files_train.unwrap_or(0),
        samples_per_file: run.summary.num_samples_per_file.unwrap_or(1),
        batch: run.batch.unwrap_or(0),
        epochs: epochs_of.iter().map(|epoch| epoch.epoch).max().unwrap_or(0),
        steps_per_epoch,
        made_by: Some("DLIO".to_owned()),
        ..WorkloadCell::default()
    };
    if let Some(workload) = &run.workload {
        settings(&mut cell, run, workload);
    }
    cell.totals = totals(run, &epochs_of, cell.batch);
    let limit = run.workload.as_ref().map(|workload| workload.limits).unwrap_or_default().au;
    let values = [
        (WorkloadCell::AU_EPOCH.info.name, cell.totals.au_epoch),
        (WorkloadCell::AU_DLIO.info.name, cell.totals.au_dlio),
    ];
    let values = values.into_iter().filter(|(_, value)| steps_per_epoch > 0 || value.is_some());
    cell.judged = values.map(|(what, value)| judged(what, value, limit)).collect();
    cell.totals.warnings = warnings(run, steps_per_epoch);
    cell.processes = processes(run);
    cell.saves = saves(run);
    cell.epochs_of = epochs_of;
    cell
}

/// The workload's name: that of the model, or the one in the overrides.
fn name(run: &Run) -> String {
    let model = run.workload.as_ref().map(|workload| workload.model.name.clone()).filter(|name| name != "default");
    model.or_else(|| run.name.clone()).unwrap_or_else(|| "DLIO".to_owned())
}

fn of_rank(rank: &RankRun) -> Vec<WorkloadEpoch> {
    let mut epochs: Vec<WorkloadEpoch> = rank.trained().filter_map(|run| epoch(rank.rank, run)).collect();
    // Without times of day, epochs are placed one after another.
    if rank.trained().any(|run| run.span.is_none()) {
        let mut at_s = 0.0;
        for epoch in &mut epochs {
            epoch.start_s = at_s;
            at_s += epoch.wall_s + epoch.eval_s.unwrap_or(0.0);
        }
    }
    epochs
}

/// The times of an epoch; `None` if its duration is unknown.
fn epoch(rank: u64, run: &EpochRun) -> Option<WorkloadEpoch> {
    let load: Vec<f64> = run.blocks.iter().flat_map(BlockRun::loads_s).collect();
    let compute: Vec<f64> = run.blocks.iter().flat_map(|block| block.compute_s.clone()).collect();
    let eval = run.eval.as_ref();
    let wall_s = run.wall_s()?;
    let saves = run.saves.iter().filter(|save| !save.is_restore);
    // Starts at 0, since an empty sum of floats is -0.
    let checkpoint_s = saves.fold(0.0, |sum, save| sum + save.span.seconds());
    let (wait_s, compute_s) = (load.iter().sum::<f64>(), run.compute_s());
    Some(WorkloadEpoch {
        accelerator: rank,
        epoch: run.epoch,
        start_s: run.span.map_or(0.0, |span| span.start_s),
        wall_s,
        first_batch_s: run.first_batch_s(),
        n_steps: compute.len() as u64,
        wait_s,
        compute_s,
        checkpoint_s,
        other_s: wall_s - wait_s - compute_s - checkpoint_s,
        au_dlio: weighted(&run.blocks),
        eval_s: eval.and_then(|eval| eval.wall_s),
        eval_steps: eval.map_or(0, |eval| eval.compute_s.len() as u64),
        eval_compute_s: eval.map_or(0.0, |eval| eval.compute_s.iter().sum()),
        load,
        compute,
        ..WorkloadEpoch::default()
    })
}

/// The AU that DLIO wrote for the blocks, weighted by their steps.
fn weighted(blocks: &[BlockRun]) -> Option<f64> {
    let all: Vec<(f64, f64)> =
        blocks.iter().filter_map(|block| Some((block.au?, block.compute_s.len() as f64))).collect();
    let steps: f64 = all.iter().map(|(_, steps)| steps).sum();
    (steps > 0.0).then(|| all.iter().map(|(au, steps)| au * steps).sum::<f64>() / steps / 100.0)
}

/// The settings of the workload; unknown keys are left out.
fn settings(cell: &mut WorkloadCell, run: &Run, workload: &Workload) {
    let (dataset, reader) = (&workload.dataset, &workload.reader);
    if run.is_known("dataset.format") {
        cell.format = dataset.format.name().to_owned();
    }
    if run.is_known("dataset.record_length_bytes") {
        cell.record_length_bytes = dataset.record_length_bytes;
    }
    // Without a summary, the workload has the value.
    if run.summary.num_files_train.is_none() && run.is_known("dataset.num_files_train") {
        (cell.n_files, cell.samples_per_file) = (dataset.n_files_train, dataset.n_samples_per_file);
    }
    (cell.read_threads, cell.prefetch) = (reader.read_threads, reader.prefetch_size);
    cell.computation_s = workload.train.computation_time.mean();
}

fn judged(what: &str, value: Option<f64>, limit: f64) -> Judged {
    let is_met = value.is_some_and(|value| value >= limit);
    Judged { what: what.to_owned(), value, limit, is_met, is_decisive: false }
}

fn warnings(run: &Run, steps: u64) -> Vec<String> {
    let mut warnings = Vec::new();
    if (1..FEW_STEPS).contains(&steps) {
        warnings.push(format!(
            "only {} per epoch: DLIO leaves out the first one, and with it the first loads of all readers; an accelerator sees \
             whole epochs",
            count(steps, "step")
        ));
    }
    if run.summary.may_be_cached {
        warnings.push("the data fits in a host's memory and may have been read from there".to_owned());
    }
    warnings
}

fn processes(run: &Run) -> Vec<WorkloadRank> {
    let host = |rank: &RankRun| rank.hostname.clone().or_else(|| run.summary.hostname.clone()).unwrap_or_default();
    let one = |rank: &RankRun| WorkloadRank {
        rank: rank.rank,
        host: host(rank),
        n_cores: run.summary.host_cpu_count.unwrap_or(0),
        accelerators: 1,
        ..WorkloadRank::default()
    };
    run.ranks.iter().map(one).collect()
}

/// Every checkpoint, saves before restores in each epoch, with the slowest rank's time. Parts of ranks are matched by
/// number, since a rank may have none.
fn saves(run: &Run) -> Vec<WorkloadSave> {
    let bytes = run.summary.checkpoint_size_gib.map_or(0, |gib| (gib * f64::from(1 << 30)) as u64);
    let mut shares: BTreeMap<(u64, bool, u64), Vec<(u64, f64)>> = BTreeMap::new();
    for (rank, epoch) in run.ranks.iter().flat_map(|rank| rank.epochs.iter().map(move |epoch| (rank.rank, epoch))) {
        for save in &epoch.saves {
            let which = (epoch.epoch, save.is_restore, save.number);
            shares.entry(which).or_default().push((rank, save.span.seconds()));
        }
    }
    let whole = |((epoch, is_restore, _), shares): ((u64, bool, u64), Vec<(u64, f64)>)| {
        let seconds = shares.iter().map(|(_, seconds)| *seconds).fold(0.0, f64::max);
        let first = shares.iter().find(|(rank, _)| *rank == 0);
        let seconds_rank_0 = first.map_or(seconds, |(_, seconds)| *seconds);
        WorkloadSave { epoch, is_restore, bytes, seconds, seconds_rank_0, ..WorkloadSave::default() }
    };
    shares.into_iter().map(whole).collect()
}

fn totals(run: &Run, epochs: &[WorkloadEpoch], batch: u64) -> WorkloadTotals {
    let sum = |of: fn(&WorkloadEpoch) -> f64| epochs.iter().map(of).sum::<f64>();
    let (accelerator_s, compute_s) = (sum(|epoch| epoch.wall_s), sum(|epoch| epoch.compute_s));
    let steps: u64 = epochs.iter().map(|epoch| epoch.n_steps).sum();
    let sum_of = |rank: &RankRun, of: &dyn Fn(&WorkloadEpoch) -> f64| {
        epochs.iter().filter(|epoch| epoch.accelerator == rank.rank).map(of).sum::<f64>()
    };
    // If files are missing, the values are those of the available ranks.
    let accelerators = Some(run.trained().count().max(run.ranks.len()) as u64).filter(|n| *n > 0);
    let accelerators = accelerators.or(run.summary.num_accelerators).unwrap_or(1);
    let wall_s = run.ranks.iter().map(|rank| sum_of(rank, &|epoch| epoch.wall_s)).fold(0.0, f64::max);
    let printed = &run.summary.train;
    let by_epoch: Vec<f64> = epochs.iter().filter_map(|epoch| epoch.au_dlio).collect();
    let mean = |values: &[f64]| metric::mean_and_stdev(values).map(|(mean, _)| mean);
    // The value that DLIO prints at the end of a complete run.
    let again = run.dlio();
    // Computed as for forebay's own runs.
    let au = |time: &dyn Fn(&WorkloadEpoch) -> f64| {
        metric::au_mean(run.trained().map(|rank| (sum_of(rank, &|epoch| epoch.compute_s), sum_of(rank, time))))
    };
    let (eval_s, eval_compute_s) = (sum(|epoch| epoch.eval_s.unwrap_or(0.0)), sum(|epoch| epoch.eval_compute_s));
    WorkloadTotals {
        au_epoch: au(&|epoch| epoch.wall_s),
        au_steady: au(&|epoch| epoch.wall_s - epoch.first_batch_s),
        au_dlio: printed
            .au_mean
            .or_else(|| mean(&again.as_ref()?.au))
            .map(|percent| percent / 100.0)
            .or_else(|| mean(&by_epoch)),
        samples_per_s: if wall_s > 0.0 { (steps * batch) as f64 / wall_s } else { 0.0 },
        first_batch_s: sum(|epoch| epoch.first_batch_s) / epochs.len().max(1) as f64,
        steps,
        ranks: accelerators,
        accelerators,
        samples: steps * batch,
        wall_s,
        accelerator_s,
        compute_s,
        wait_s: sum(|epoch| epoch.wait_s),
        checkpoint_s: sum(|epoch| epoch.checkpoint_s),
        other_s: sum(|epoch| epoch.other_s),
        eval_s,
        au_eval: (eval_s > 0.0).then(|| eval_compute_s / eval_s),
        load: Quantiles::of(epochs.iter().flat_map(|epoch| epoch.load.clone()).collect()),
        step: Quantiles::of(epochs.iter().flat_map(whole_steps).collect()),
        dlio_samples_per_s: printed.samples_per_s_mean,
        dlio_mib_per_s: printed.mib_per_s_mean,
        ..WorkloadTotals::default()
    }
}

fn whole_steps(epoch: &WorkloadEpoch) -> Vec<f64> {
    epoch.load.iter().zip(&epoch.compute).map(|(load, compute)| load + compute).collect()
}
