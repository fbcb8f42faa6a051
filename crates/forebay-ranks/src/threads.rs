//! Ranks that are threads of one process and communicate through memory.
//!
//! They follow the rules of MPI's ranks: every call begins with a word of each rank, so one that fails meets the others
//! whatever they were about to do.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::{Failed, Ranks, Verdict};

const GO: u8 = 0;
const STOP: u8 = 1;
const FAILED: u8 = 2;

/// What each rank has said in a round.
type Said = Vec<Option<Vec<u8>>>;

#[derive(Default)]
struct Round {
    said: Said,
    n_rounds: u64,
    heard: Arc<Vec<Vec<u8>>>,
    /// Ranks that have ended.
    n_gone: usize,
    /// The failure that ended the run.
    over: Option<Failed>,
}

/// The meeting point of the ranks.
struct Hall {
    round: Mutex<Round>,
    done: Condvar,
}

impl Hall {
    fn round(&self) -> MutexGuard<'_, Round> {
        self.round.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends `mine`, and returns what all ranks sent; `None` if one of them has ended.
    fn exchange(&self, rank: usize, mine: Vec<u8>) -> Option<Arc<Vec<Vec<u8>>>> {
        let mut round = self.round();
        round.said[rank] = Some(mine);
        let this = round.n_rounds;
        if round.said.iter().all(Option::is_some) {
            round.heard = Arc::new(round.said.iter_mut().map(|said| said.take().unwrap_or_default()).collect());
            round.n_rounds += 1;
            self.done.notify_all();
        }
        while round.n_rounds == this && round.n_gone == 0 {
            round = self.done.wait(round).unwrap_or_else(PoisonError::into_inner);
        }
        (round.n_rounds > this).then(|| Arc::clone(&round.heard))
    }

    fn leave(&self) {
        self.round().n_gone += 1;
        self.done.notify_all();
    }
}

/// One rank.
pub struct Threads<'a> {
    hall: &'a Hall,
    rank: usize,
    n: usize,
}

impl Threads<'_> {
    /// Calls `work` on `n` ranks at once, all of this host; returns what they returned, by rank. A rank that panics ends
    /// the others.
    ///
    /// # Panics
    /// If a rank does.
    pub fn run<T: Send>(n: usize, work: impl Fn(&dyn Ranks) -> T + Sync) -> Vec<T> {
        let round = Round { said: vec![None; n], ..Round::default() };
        let hall = Hall { round: Mutex::new(round), done: Condvar::new() };
        let (hall, work) = (&hall, &work);
        let one = move |rank| {
            let rank = Threads { hall, rank, n };
            let done = catch_unwind(AssertUnwindSafe(|| work(&rank)));
            if done.is_err() {
                let _ = rank.say(Err("it panicked".to_owned()));
            }
            hall.leave();
            done
        };
        let ended: Vec<_> = std::thread::scope(|scope| {
            let ranks: Vec<_> = (0..n).map(|rank| scope.spawn(move || one(rank))).collect();
            ranks.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
        });
        let unwind = |panic| resume_unwind(panic);
        ended.into_iter().map(|ended| ended.and_then(|done| done).unwrap_or_else(unwind)).collect()
    }

    fn lost(&self, reason: &str) -> Failed {
        Failed { rank: self.rank as u64, host: self.host(), reason: reason.to_owned(), is_lost: true }
    }

    /// What every call begins with.
    fn say(&self, mine: Result<Verdict, String>) -> Result<Verdict, Failed> {
        if let Some(failed) = self.hall.round().over.clone() {
            return Err(failed);
        }
        let word = match mine {
            Ok(Verdict::Go) => vec![GO],
            Ok(Verdict::Stop) => vec![STOP],
            Err(reason) => [&[FAILED], reason.as_bytes()].concat(),
        };
        let heard = self.exchange(word)?;
        let Some(rank) = heard.iter().position(|word| word.first() == Some(&FAILED)) else {
            let stops = heard.iter().any(|word| word.first() == Some(&STOP));
            return Ok(if stops { Verdict::Stop } else { Verdict::Go });
        };
        let reason = String::from_utf8_lossy(&heard[rank][1..]).into_owned();
        let failed = Failed { rank: rank as u64, host: self.host(), reason, is_lost: false };
        self.hall.round().over = Some(failed.clone());
        Err(failed)
    }

    fn exchange(&self, mine: Vec<u8>) -> Result<Arc<Vec<Vec<u8>>>, Failed> {
        self.hall.exchange(self.rank, mine).ok_or_else(|| self.lost("another rank ended before it"))
    }
}

impl Ranks for Threads<'_> {
    fn rank(&self) -> u64 {
        self.rank as u64
    }

    fn size(&self) -> u64 {
        self.n as u64
    }

    fn host(&self) -> String {
        super::host()
    }

    fn meet_or_stop(&self, mine: Result<Verdict, String>) -> Result<Verdict, Failed> {
        self.say(mine)
    }

    fn gather(&self, mine: Vec<u8>) -> Result<Option<Vec<Vec<u8>>>, Failed> {
        self.say(Ok(Verdict::Go))?;
        let all = self.exchange(mine)?;
        Ok((self.rank == 0).then(|| all.to_vec()))
    }

    fn broadcast(&self, mine: Vec<u8>) -> Result<Vec<u8>, Failed> {
        self.say(Ok(Verdict::Go))?;
        let mine = if self.rank == 0 { mine } else { Vec::new() };
        Ok(self.exchange(mine)?[0].clone())
    }

    fn sum(&self, values: &mut [f32]) -> Result<(), Failed> {
        self.say(Ok(Verdict::Go))?;
        let all = self.exchange(values.iter().flat_map(|value| value.to_le_bytes()).collect())?;
        values.fill(0.0);
        for theirs in all.iter() {
            let (words, _) = theirs.as_chunks::<4>();
            values.iter_mut().zip(words).for_each(|(sum, word)| *sum += f32::from_le_bytes(*word));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_that_fails_or_panics_meets_the_others_whatever_they_do() {
        for panics in [false, true] {
            let ended = std::panic::catch_unwind(|| {
                Threads::run(3, |ranks| match ranks.rank() {
                    1 if panics => panic!("on purpose"),
                    1 => ranks.meet(Err("its disk broke".to_owned())).unwrap_err(),
                    0 => ranks.gather(vec![1]).unwrap_err(),
                    _ => ranks.sum(&mut [1.0]).unwrap_err(),
                })
            });
            match ended {
                Ok(failed) => assert!(failed.iter().all(|one| one.rank == 1 && one.reason == "its disk broke")),
                Err(_) => assert!(panics, "only a panic is one"),
            }
        }
    }

    #[test]
    fn a_rank_that_leaves_ends_the_wait_of_the_others() {
        let ended = Threads::run(2, |ranks| if ranks.rank() == 0 { Ok(()) } else { ranks.meet(Ok(())) });
        assert!(ended[1].as_ref().is_err_and(|failed| failed.is_lost), "{ended:?}");
    }
}
