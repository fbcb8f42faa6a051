//! Inferring the batch size from rates, files and steps, if the workload is missing.

use super::run::{BlockRun, Run, Version};

/// How close an inferred batch must be to a whole number, given the precision of timestamps.
const NEAR: f64 = 0.2;

/// The batch size; `None` without steps, or with neither rates nor files.
pub(super) fn infer(run: &Run) -> Option<u64> {
    let most = by_files(run);
    let by_rate = [Version::Later, Version::V2_0].into_iter().filter_map(|version| by_rate(run, version));
    let fits = |batch: &(u64, f64)| batch.1 <= NEAR && most.is_none_or(|most| batch.0 <= most);
    let nearest = by_rate.filter(fits).min_by(|a, b| a.1.total_cmp(&b.1));
    nearest.map(|(batch, _)| batch).or(most)
}

/// Upper bound on samples per step, if every file was read in an epoch.
fn by_files(run: &Run) -> Option<u64> {
    let steps = run.ranks.iter().flat_map(|rank| &rank.epochs).map(|epoch| epoch.steps()).max()?;
    let samples = run.summary.num_files_train? * run.summary.num_samples_per_file.unwrap_or(1);
    let ranks = run.summary.num_accelerators.unwrap_or(0).max(run.ranks.len() as u64);
    (samples / ranks.max(1)).checked_div(steps).filter(|batch| *batch > 0)
}

/// The batch size by a version's formula from rates and timestamps, rounded, and the distance to it.
fn by_rate(run: &Run, version: Version) -> Option<(u64, f64)> {
    let first = run.ranks.first()?;
    let of_epoch = |epoch: &super::EpochRun| {
        let excluded = run.excluded(epoch.steps());
        let of = |block: &BlockRun| block.batch_by_rate(version, excluded);
        epoch.blocks.iter().filter_map(of).collect::<Vec<f64>>()
    };
    let mut found: Vec<f64> = first.epochs.iter().flat_map(of_epoch).collect();
    found.sort_by(f64::total_cmp);
    let batch = *found.get(found.len() / 2)?;
    let whole = batch.round();
    (1.0..1e15).contains(&whole).then(|| (whole as u64, (batch - whole).abs()))
}
