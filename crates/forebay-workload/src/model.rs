//! What each rank saves: DLIO's sizing, ZeRO, tensor and pipeline parallelism.

use crate::Workload;
use crate::check::Problem;
use crate::spec::Element;

/// One tensor of a rank's shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardTensor {
    /// Its name.
    pub name: String,
    /// What it is made of.
    pub element: Element,
    /// Its shape.
    pub shape: Vec<u64>,
}

/// One file of a rank's shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardFile {
    /// The name DLIO gives it, without its ending: "zero_pp_rank_0_mp_rank_0_optim_states".
    pub name: String,
    /// What is in it.
    pub tensors: Vec<ShardTensor>,
}

impl ShardFile {
    /// Bytes of its values.
    pub fn bytes(&self) -> u64 {
        self.tensors.iter().map(|tensor| tensor.shape.iter().product::<u64>() * tensor.element.bytes()).sum()
    }
}

/// What rank `rank` of `ranks` saves; nothing where others save for it.
///
/// # Errors
/// When the model cannot be spread over so many ranks.
pub fn shard_of(workload: &Workload, rank: u64, ranks: u64) -> Result<Vec<ShardFile>, Problem> {
    let _ = (workload, rank, ranks);
    unimplemented!()
}

/// How many values a transformer learns; `None` for other models.
pub fn n_parameters(workload: &Workload) -> Option<u64> {
    let _ = workload;
    unimplemented!()
}
