//! One epoch of one rank, from its steps and its clock.

use forebay_record::WorkloadEpoch;
use forebay_workload::dlio::{BlockRun, EpochRun};

/// What an epoch comes to; `None` where not even its steps tell how long it took.
pub(super) fn epoch(rank: u64, run: &EpochRun) -> Option<WorkloadEpoch> {
    let load: Vec<f64> = run.blocks.iter().flat_map(BlockRun::loads_s).collect();
    let compute: Vec<f64> = run.blocks.iter().flat_map(|block| block.compute_s.clone()).collect();
    let eval = run.eval.as_ref();
    let wall_s = run.wall_s()?;
    let saves = run.saves.iter().filter(|save| !save.is_restore);
    // From 0: the sum of nothing is -0.
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

/// The utilisation that DLIO wrote for the blocks, by their steps.
fn weighted(blocks: &[BlockRun]) -> Option<f64> {
    let all: Vec<(f64, f64)> =
        blocks.iter().filter_map(|block| Some((block.au?, block.compute_s.len() as f64))).collect();
    let steps: f64 = all.iter().map(|(_, steps)| steps).sum();
    (steps > 0.0).then(|| all.iter().map(|(au, steps)| au * steps).sum::<f64>() / steps / 100.0)
}
