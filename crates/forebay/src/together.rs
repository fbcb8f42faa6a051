//! Ranks of one run: joins them, and prints an error that ends all of them once.

use std::time::Duration;

use anyhow::{Result, anyhow};
use forebay_bench::train;
use forebay_ranks::{Failed, Launch, Ranks, Waiting};

use crate::output::{Outcome, complain, in_words, remark, status};
use crate::values::time;

/// The flag of commands that run on several ranks.
#[derive(Debug, clap::Args)]
pub(crate) struct RankArgs {
    /// How long ranks wait for a missing rank before all of them end
    #[arg(long, default_value = "30min", value_name = "TIME", value_parser = time("above 0", |time| !time.is_zero()))]
    rank_timeout: Duration,
}

impl RankArgs {
    /// Joins the ranks that were started with this process.
    pub(crate) fn join(&self) -> Result<Box<dyn Ranks>> {
        join(self.rank_timeout)
    }
}

/// Joins the ranks that were started with this process. Prints which ranks are missing, and gives up after `patience`.
pub(crate) fn join(patience: Duration) -> Result<Box<dyn Ranks>> {
    let launch = Launch::of(|name| std::env::var(name).ok());
    let observe = Box::new(|waiting: &Waiting| remark(&format!("forebay: {waiting}")));
    forebay_ranks::join_within(launch.as_ref(), patience, observe).map_err(|error| anyhow!(error))
}

/// Ends all ranks if one of them failed, with its reason.
pub(crate) fn shared<T>(ranks: &dyn Ranks, mine: Result<T>) -> Result<T> {
    if ranks.size() == 1 {
        return mine;
    }
    let said = mine.as_ref().map(|_| ()).map_err(in_words);
    ranks.meet(said)?;
    mine
}

/// Prints the error that ended all ranks on the first rank, while they are still together: the launcher may kill the others as
/// soon as one exits with an error. If a rank was lost, all others print the error.
pub(crate) fn said_once(ranks: &dyn Ranks, outcome: Result<Outcome>) -> Result<Outcome> {
    match outcome {
        Err(error) if ranks.size() > 1 => {
            if ranks.rank() == 0 || is_of_a_lost_rank(&error) {
                complain(&error);
            }
            Ok(Outcome::Status(status(&error)))
        }
        outcome => outcome,
    }
}

fn is_of_a_lost_rank(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let of_run = match cause.downcast_ref() {
            Some(forebay_emulation::Error::Rank(failed)) => Some(failed),
            _ => None,
        };
        let of_run = of_run.or_else(|| match cause.downcast_ref() {
            Some(train::Error::Rank(failed)) => Some(failed),
            _ => None,
        });
        of_run.or_else(|| cause.downcast_ref::<Failed>()).is_some_and(|failed| failed.is_lost)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_rank_differs_from_a_failed_one() {
        let failed = |is_lost| Failed { rank: 0, host: "a".to_owned(), reason: "gone".to_owned(), is_lost };
        assert!(is_of_a_lost_rank(&anyhow::Error::from(failed(true))));
        assert!(is_of_a_lost_rank(&anyhow::Error::from(forebay_emulation::Error::Rank(failed(true)))));
        assert!(!is_of_a_lost_rank(&anyhow::Error::from(forebay_emulation::Error::Rank(failed(false)))));
        assert!(!is_of_a_lost_rank(&anyhow!("no such file")));
    }
}
