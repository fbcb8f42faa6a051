//! What a number of accelerators would do with a workload.

use crate::Workload;
use crate::check::Problem;

/// Totals of a run, before it.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Accelerators over all ranks.
    pub accelerators: u64,
    /// Samples to train on.
    pub samples_train: u64,
    /// Samples to evaluate on.
    pub samples_eval: u64,
    /// Steps of an epoch and accelerator.
    pub steps_per_epoch: u64,
    /// Steps of an evaluation and accelerator.
    pub steps_eval: u64,
    /// Bytes of the training samples' values.
    pub bytes_train: u64,
    /// Bytes of the evaluation samples' values.
    pub bytes_eval: u64,
    /// Epochs after which it is evaluated.
    pub evaluations: Vec<u64>,
    /// Checkpoints of the whole run.
    pub checkpoints: u64,
    /// Bytes of one checkpoint, over all ranks.
    pub checkpoint_bytes: u64,
    /// Bytes a second that one accelerator asks for when it never waits; `None` when it does not compute.
    pub demand_bytes_per_s: Option<f64>,
    /// Seconds of computing of one accelerator.
    pub compute_s: f64,
}

impl Plan {
    /// Plans a workload for so many accelerators.
    ///
    /// # Errors
    /// When they have not one step to do, or more steps are asked for than there are, or a model cannot be spread over them.
    pub fn new(workload: &Workload, accelerators: u64) -> Result<Self, Problem> {
        let _ = (workload, accelerators);
        unimplemented!()
    }
}
