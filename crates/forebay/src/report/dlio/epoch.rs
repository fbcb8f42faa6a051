//! One epoch of one rank, from its steps and its clock.

use forebay_record::WorkloadEpoch;
use forebay_workload::dlio::{BlockRun, EpochRun, Span};

/// What an epoch comes to; `None` where its clock was not written.
pub(super) fn epoch(rank: u64, run: &EpochRun) -> Option<WorkloadEpoch> {
    let span = run.span?;
    let load: Vec<f64> = run.blocks.iter().flat_map(loads).collect();
    let compute: Vec<f64> = run.blocks.iter().flat_map(|block| block.compute_s.clone()).collect();
    let eval = run.eval.as_ref();
    // An evaluation inside the epoch is none of its training.
    let is_inside = |eval: &Span| eval.start_s >= span.start_s && eval.end_s <= span.end_s;
    let inside_s = eval.and_then(|eval| eval.span).filter(is_inside).map_or(0.0, |span| span.seconds());
    let wall_s = span.seconds() - inside_s;
    let checkpoint_s: f64 = run.saves.iter().map(Span::seconds).sum();
    let (wait_s, compute_s) = (load.iter().sum::<f64>(), compute.iter().sum::<f64>());
    let until_first_s =
        run.blocks.first().and_then(|block| block.span).map_or(0.0, |block| block.start_s - span.start_s);
    Some(WorkloadEpoch {
        accelerator: rank,
        epoch: run.epoch,
        start_s: span.start_s,
        wall_s,
        first_batch_s: until_first_s + load.first().copied().unwrap_or(0.0),
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

/// The wait for every batch of a block. Where DLIO lost one, all are taken from its whole steps.
fn loads(block: &BlockRun) -> Vec<f64> {
    let BlockRun { load_s, compute_s, whole_s, .. } = block;
    if load_s.len() == compute_s.len() || whole_s.len() != compute_s.len() {
        return load_s.clone();
    }
    whole_s.iter().zip(compute_s).map(|(whole, compute)| whole - compute).collect()
}

/// The utilisation that DLIO wrote for the blocks, by their steps.
fn weighted(blocks: &[BlockRun]) -> Option<f64> {
    let all: Vec<(f64, f64)> =
        blocks.iter().filter_map(|block| Some((block.au?, block.compute_s.len() as f64))).collect();
    let steps: f64 = all.iter().map(|(_, steps)| steps).sum();
    (steps > 0.0).then(|| all.iter().map(|(au, steps)| au * steps).sum::<f64>() / steps)
}
