//! Processes that run a workload together.
//!
//! A rank that fails reports it at the next meeting, and all ranks end with its reason. If a rank dies silently, the
//! launcher ends the job (`mpirun`, `srun --kill-on-bad-exit`). A rank that neither dies nor arrives is reported while
//! the others wait.

mod launch;
#[cfg(feature = "mpi")]
mod mpi;
mod slurm;
mod solo;
mod waiting;

use std::time::Duration;

pub use launch::Launch;
#[cfg(feature = "mpi")]
pub use mpi::Mpi;
pub use slurm::{Job, job_script};
pub use solo::Solo;
pub use waiting::{Condition, Missing, Waiting};

/// Default limit of a wait for other ranks; a rank may be busy on its own for long, making data or saving a checkpoint.
pub const PATIENCE: Duration = Duration::from_secs(1800);

/// Called during a long wait, by the waiting thread.
pub type Observe = Box<dyn Fn(&Waiting) + Send + Sync>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Go,
    /// All ranks end here, because one of them was asked to.
    Stop,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("rank {rank} on {host} failed: {reason}")]
pub struct Failed {
    pub rank: u64,
    pub host: String,
    pub reason: String,
    /// Whether the rank went missing and so cannot report the failure itself.
    pub is_lost: bool,
}

/// The ranks of a run, as seen by one of them. Only one thread of the process may call it at a time.
pub trait Ranks: Send + Sync {
    /// From 0.
    fn rank(&self) -> u64;

    fn size(&self) -> u64;

    fn host(&self) -> String;

    /// A barrier that also tells every rank if one was asked to stop or has failed. After a stop the ranks can meet
    /// again. Does not spin on a core that readers need.
    ///
    /// # Errors
    /// The reason of the first failed rank, the same on every rank.
    fn meet_or_stop(&self, mine: Result<Verdict, String>) -> Result<Verdict, Failed>;

    /// A barrier without a stop request.
    ///
    /// # Errors
    /// As [`Self::meet_or_stop`].
    fn meet(&self, mine: Result<(), String>) -> Result<(), Failed> {
        self.meet_or_stop(mine.map(|()| Verdict::Go)).map(|_| ())
    }

    /// Returns the bytes of all ranks, by rank, on the first; `None` on the others.
    ///
    /// # Errors
    /// If a rank has failed.
    fn gather(&self, mine: Vec<u8>) -> Result<Option<Vec<Vec<u8>>>, Failed>;

    /// Returns the first rank's bytes on all ranks.
    ///
    /// # Errors
    /// If a rank has failed.
    fn broadcast(&self, mine: Vec<u8>) -> Result<Vec<u8>, Failed>;
}

/// The ranks this process was started with: those of MPI if `mpirun` or `srun` started several processes, otherwise
/// only this one. A rank that waits for another for longer than `patience` gives up; before that, one of the waiting
/// ranks calls `observe` now and then.
///
/// # Errors
/// If MPI cannot be started, or a launcher started several processes of a build without MPI.
pub fn join_within(launch: Option<&Launch>, patience: Duration, observe: Observe) -> Result<Box<dyn Ranks>, String> {
    match launch.filter(|launch| launch.is_shared()) {
        Some(launch) => several(launch, patience, observe),
        None => Ok(Box::new(Solo)),
    }
}

#[cfg(feature = "mpi")]
fn several(launch: &Launch, patience: Duration, observe: Observe) -> Result<Box<dyn Ranks>, String> {
    Ok(Box::new(Mpi::new(launch, patience, observe)?))
}

#[cfg(not(feature = "mpi"))]
fn several(launch: &Launch, _: Duration, _: Observe) -> Result<Box<dyn Ranks>, String> {
    Err(refusal(launch))
}

#[cfg(any(test, not(feature = "mpi")))]
fn refusal(launch: &Launch) -> String {
    let Launch { by, size } = launch;
    format!("{by} started {size} processes, but this forebay was built without MPI; build it with --features mpi")
}

fn host() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").map_or_else(|_| String::new(), |name| name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_by_itself_is_the_only_rank() {
        let ranks = join_within(None, PATIENCE, Box::new(|_| {})).expect("needs nothing");
        assert_eq!((ranks.rank(), ranks.size()), (0, 1));
        assert_eq!(ranks.gather(vec![7]), Ok(Some(vec![vec![7]])));
        let failed = ranks.meet(Err("the disk is full".to_owned())).expect_err("it failed");
        assert_eq!((failed.rank, failed.reason.as_str()), (0, "the disk is full"));
    }

    #[test]
    fn several_processes_of_a_build_without_mpi_are_told_how_to_build() {
        let launch = Launch { by: "mpirun", size: 2 };
        assert!(refusal(&launch).starts_with("mpirun started 2 processes"));
        assert!(refusal(&launch).ends_with("--features mpi"));
        #[cfg(not(feature = "mpi"))]
        assert_eq!(join_within(Some(&launch), PATIENCE, Box::new(|_| {})).err(), Some(refusal(&launch)));
    }
}
