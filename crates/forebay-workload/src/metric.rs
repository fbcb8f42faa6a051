//! What the times of steps come to: the whole epoch, the steady state, and DLIO's own arithmetic to the last digit.

/// The times of one accelerator's steps in one epoch, or in one block between checkpoints of it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Block {
    /// From asking for a batch to having it, in seconds.
    pub load_s: Vec<f64>,
    /// What each step computed, in seconds.
    pub compute_s: Vec<f64>,
    /// From the block's start to its end.
    pub wall_s: f64,
}

/// What DLIO makes of a block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dlio {
    /// Its accelerator utilisation, in percent.
    pub au: f64,
    /// Its samples a second; 0 or negative where a block has too few steps, as DLIO itself prints.
    pub samples_per_s: f64,
}

/// DLIO's arithmetic for one block: its excluded steps, and its constant 2.
pub fn dlio(block: &Block, batch: u64, exclude_start: u64, exclude_end: u64, steps_per_epoch: u64) -> Dlio {
    let _ = (block, batch, exclude_start, exclude_end, steps_per_epoch);
    unimplemented!()
}

/// The step-weighted mean over the blocks of an epoch, as DLIO takes it.
pub fn dlio_epoch(blocks: &[(Dlio, usize)]) -> Option<Dlio> {
    let _ = blocks;
    unimplemented!()
}

/// Computing over the whole time, in percent; `None` of no time.
pub fn au_epoch(compute_s: f64, wall_s: f64) -> Option<f64> {
    (wall_s > 0.0).then(|| 100.0 * compute_s / wall_s)
}
