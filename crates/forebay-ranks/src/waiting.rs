//! The report of a waiting rank: whom it waits for, and their states.
//!
//! A stopped or hanging rank does not arrive, and nothing ends it. The others wait until their patience ends, which
//! takes long, so the first of them reports the missing ranks now and then.

use std::fmt;
use std::time::Duration;

/// Maximum number of missing ranks listed; more are only counted.
const NAMED: usize = 4;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    pub rank: u64,
    /// So far.
    pub waited: Duration,
    pub missing: Vec<Missing>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    pub rank: u64,
    /// Its number as seen by the process itself.
    pub pid: Option<u32>,
    pub host: String,
    /// If the waiting rank can see it.
    pub condition: Option<Condition>,
}

/// Of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// By a signal.
    Stopped,
    /// Held by a debugger.
    Traced,
    /// A thread is in uninterruptible sleep.
    Storage,
    /// A thread is running.
    Running,
    /// All threads sleep.
    Sleeping,
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stopped => "is stopped (SIGSTOP)",
            Self::Traced => "is held by a debugger",
            Self::Storage => "is in uninterruptible sleep (waiting for storage)",
            Self::Running => "is running, but has not arrived",
            Self::Sleeping => "is sleeping and has not arrived",
        })
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} (", self.rank)?;
        if let Some(pid) = self.pid {
            write!(f, "pid {pid} ")?;
        }
        write!(f, "on {}) ", self.host)?;
        match self.condition {
            Some(condition) => condition.fmt(f),
            None => f.write_str("has not arrived"),
        }
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} has waited {} s: ", self.rank, self.waited.as_secs())?;
        for (i, missing) in self.missing.iter().take(NAMED).enumerate() {
            write!(f, "{}{missing}", if i == 0 { "" } else { "; " })?;
        }
        match self.missing.len().saturating_sub(NAMED) {
            0 => Ok(()),
            more => write!(f, "; {more} more are missing"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(rank: u64, condition: Option<Condition>) -> Missing {
        Missing { rank, pid: Some(120 + rank as u32), host: "a".to_owned(), condition }
    }

    #[test]
    fn it_says_who_is_missing_and_how_they_are() {
        let waited = Duration::from_millis(10_900);
        let mut waiting = Waiting { rank: 0, waited, missing: vec![missing(2, Some(Condition::Stopped))] };
        assert_eq!(waiting.to_string(), "rank 0 has waited 10 s: rank 2 (pid 122 on a) is stopped (SIGSTOP)");
        waiting.missing.push(Missing { pid: None, host: "b".to_owned(), ..missing(3, None) });
        assert_eq!(
            waiting.to_string(),
            "rank 0 has waited 10 s: rank 2 (pid 122 on a) is stopped (SIGSTOP); rank 3 (on b) has not arrived"
        );
    }

    #[test]
    fn of_many_the_first_few_are_named() {
        let missing = (1..=9).map(|rank| missing(rank, Some(Condition::Storage))).collect();
        let said = Waiting { rank: 0, waited: Duration::from_secs(40), missing }.to_string();
        assert!(said.ends_with(
            "; rank 4 (pid 124 on a) is in uninterruptible sleep (waiting for storage); 5 more are missing"
        ));
    }
}
