//! Processes that run one experiment together: they meet, gather, broadcast and sum.
//!
//! They are those of MPI (feature `mpi`), threads of one process, or one process by itself. It starts no process:
//! `mpirun` and `srun` do.
//!
//! A rank that fails reports it at the next meeting, and all ranks end with its reason. If a rank dies silently, the
//! launcher ends the job (`mpirun`, `srun --kill-on-bad-exit`). A rank that neither dies nor arrives is reported while
//! the others wait.

mod launch;
#[cfg(feature = "mpi")]
mod mpi;
mod solo;
mod threads;
mod waiting;

use std::time::Duration;

pub use launch::Launch;
#[cfg(feature = "mpi")]
pub use mpi::Mpi;
pub use solo::Solo;
pub use threads::Threads;
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

    /// Replaces the values of every rank by their sums over the ranks: the same bits on all of them. All ranks pass
    /// the same number of values. Once all are there, it keeps a core busy until the values have moved.
    ///
    /// # Errors
    /// If a rank has failed.
    fn sum(&self, values: &mut [f32]) -> Result<(), Failed>;
}

/// Ends all ranks if one has failed: that one with its own error, the others with its reason.
///
/// # Errors
/// The outcome's own, or another rank's.
pub fn together<T, E: From<Failed>>(
    ranks: &dyn Ranks,
    outcome: Result<T, E>,
    in_words: impl FnOnce(&E) -> String,
) -> Result<T, E> {
    match outcome {
        Ok(value) => Ok(ranks.meet(Ok(())).map(|()| value)?),
        Err(error) => {
            // All ranks learn the reason; this rank has the details.
            let _ = ranks.meet(Err(in_words(&error)));
            Err(error)
        }
    }
}

/// Returns every rank's bytes, by rank, on all of them.
///
/// # Errors
/// If a rank has failed.
pub fn all(ranks: &dyn Ranks, mine: Vec<u8>) -> Result<Vec<Vec<u8>>, Failed> {
    let gathered = ranks.gather(mine)?.unwrap_or_default();
    let lengths = gathered.iter().flat_map(|bytes| (bytes.len() as u64).to_le_bytes()).collect();
    let (lengths, bytes) = (ranks.broadcast(lengths)?, ranks.broadcast(gathered.concat())?);
    let (lengths, _) = lengths.as_chunks::<8>();
    let mut rest = bytes.as_slice();
    let split = |length: &[u8; 8]| {
        let length = usize::try_from(u64::from_le_bytes(*length)).expect("lengths of what was in memory");
        let (own, after) = rest.split_at(length);
        rest = after;
        own.to_vec()
    };
    Ok(lengths.iter().map(split).collect())
}

/// Returns every rank's text, by rank, on all of them.
///
/// # Errors
/// If a rank has failed.
pub fn everybody(ranks: &dyn Ranks, mine: &str) -> Result<Vec<String>, Failed> {
    Ok(all(ranks, mine.as_bytes().to_vec())?.iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect())
}

/// The first line in which two texts differ; `None` if they are equal.
pub fn difference(theirs: &str, ours: &str) -> Option<String> {
    if theirs == ours {
        return None;
    }
    let mut lines = theirs.lines().zip(ours.lines());
    let differs = lines.find(|(theirs, ours)| theirs != ours);
    let line = |text: &str| text.trim().trim_end_matches(',').to_owned();
    Some(match differs {
        Some((theirs, ours)) => format!("the first rank has \"{}\", this one \"{}\"", line(theirs), line(ours)),
        None => "one rank has more settings than the other".to_owned(),
    })
}

/// Index of this rank among those of its host, and their number.
///
/// # Errors
/// If a rank has failed.
pub fn on_host(ranks: &dyn Ranks) -> Result<(u64, u64), Failed> {
    let (me, host) = (ranks.rank(), ranks.host());
    let all = everybody(ranks, &host)?;
    let here = || (0..).zip(&all).filter(|(_, of)| **of == host).map(|(rank, _)| rank);
    Ok((here().filter(|rank: &u64| *rank < me).count() as u64, here().count() as u64))
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

    #[test]
    fn all_ranks_get_what_each_of_them_sent_and_the_same_sums() {
        let said = Threads::run(3, |ranks| {
            let me = ranks.rank();
            let (_, n_here) = on_host(ranks).unwrap();
            let mut values = vec![me as f32, 0.5, -1.0];
            ranks.sum(&mut values).unwrap();
            (everybody(ranks, &"x".repeat(me as usize)).unwrap(), values, n_here)
        });
        let expected = (vec![String::new(), "x".to_owned(), "xx".to_owned()], vec![3.0, 1.5, -3.0], 3);
        assert_eq!(said, [expected.clone(), expected.clone(), expected]);
    }

    #[test]
    fn a_rank_that_fails_gives_its_reason_to_all() {
        let said = Threads::run(2, |ranks| {
            let mine = if ranks.rank() == 1 { Err("the disk is full".to_owned()) } else { Ok(()) };
            ranks.meet(mine).unwrap_err().to_string()
        });
        assert!(said.iter().all(|said| said.starts_with("rank 1 on ") && said.ends_with(" failed: the disk is full")));
        let stopped = Threads::run(2, |ranks| {
            ranks.meet_or_stop(Ok(if ranks.rank() == 1 { Verdict::Stop } else { Verdict::Go }))
        });
        assert_eq!(stopped, [Ok(Verdict::Stop), Ok(Verdict::Stop)]);
    }
}
