//! The ranks of MPI.
//!
//! Every call begins with the same small reduction, in which each rank reports that it is fine, was asked to stop,
//! failed, or leaves. So a failed rank meets the others whatever they were about to do, and all get the same answer. If
//! a rank's process dies, the launcher notices; if the launcher does nothing, the other ranks of its host notice and
//! end the job, or patience ends the wait. A rank that is missing for another reason is reported now and then by the
//! first waiting rank.

mod peers;
mod pending;
mod roll;

use std::mem::ManuallyDrop;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use mpi::Threading;
use mpi::environment::Universe;
use mpi::topology::SimpleCommunicator;
use mpi::traits::Communicator;

use super::{Failed, Launch, Missing, Observe, Ranks, Verdict, Waiting};
use peers::{Peers, Place};
use pending::{PIECE, Pending, SUMMED};
use roll::Roll;

/// Shorter waits yield, because a sleep would take longer.
const YIELD: Duration = Duration::from_micros(50);
/// How often a waiting rank checks that the others of its host are alive.
const LOOK: Duration = Duration::from_secs(2);
/// Exit status of a job that lost a rank.
const STATUS: i32 = 2;
/// When the first rank asks who is present. Each of the next few ranks asks a second later, so usually only one asks.
const ASK: Duration = Duration::from_secs(5);
/// When it then reports the ranks that did not answer; again after each doubling of the wait.
const ANSWERED: Duration = Duration::from_secs(5);
/// Longest interval between two reports.
const PAUSE_MAX: Duration = Duration::from_secs(600);
/// Shorter waits do not check for questions.
const QUIET: Duration = Duration::from_millis(10);

pub struct Mpi {
    universe: ManuallyDrop<Universe>,
    rank: u64,
    size: u64,
    /// By rank.
    places: Vec<Place>,
    peers: Peers,
    patience: Duration,
    observe: Observe,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    n_meetings: i64,
    /// Questions about a meeting that this rank has not reached yet.
    early: roll::Early,
    /// The failure that ended the run.
    over: Option<Failed>,
    /// A rank did not arrive: MPI must not be used any more.
    is_broken: bool,
    /// That rank's process is gone: there is nothing to wait for.
    is_bereft: bool,
    /// Much data moves, which MPI does only while it is called.
    is_moving: bool,
}

enum Word {
    Fine,
    Stop,
    Failed(String),
    Leaves,
}

impl Mpi {
    /// Waits for other ranks end after `patience`; long ones are reported to `observe`.
    ///
    /// # Errors
    /// If several threads cannot use MPI, or MPI reports another number of ranks than were started.
    pub fn new(launch: &Launch, patience: Duration, observe: Observe) -> Result<Self, String> {
        let (universe, threading) =
            mpi::initialize_with_threading(Threading::Serialized).ok_or("MPI was already started in this process")?;
        let world = universe.world();
        let of = |number: i32| u64::try_from(number).expect("MPI counts from 0");
        let (rank, size) = (of(world.rank()), of(world.size()));
        let state = Mutex::new(State::default());
        let mut ranks = Self {
            universe: ManuallyDrop::new(universe),
            rank,
            size,
            places: Vec::new(),
            peers: Peers::default(),
            patience,
            observe,
            state,
        };
        if threading < Threading::Serialized {
            return Err("this MPI library does not support calls from several threads".to_owned());
        }
        if size != launch.size {
            let (by, n) = (launch.by, launch.size);
            return Err(format!("{by} started {n} processes, but MPI sees {size}; with srun, add --mpi=pmix"));
        }
        let introductions = ranks.introductions().map_err(|failed| failed.to_string())?;
        (ranks.places, ranks.peers) = peers::introduced(&introductions, rank);
        Ok(ranks)
    }

    fn introductions(&self) -> Result<Vec<String>, Failed> {
        let names = self.gather(peers::introduction(&super::host()).into_bytes())?;
        let names = names.map(|names| names.join(&b'\n')).unwrap_or_default();
        let names = self.broadcast(names)?;
        Ok(String::from_utf8_lossy(&names).split('\n').map(str::to_owned).collect())
    }

    fn place_of(&self, rank: u64) -> Place {
        let known = usize::try_from(rank).ok().and_then(|rank| self.places.get(rank));
        known.cloned().unwrap_or_else(|| Place { pid: None, host: "an unknown host".to_owned() })
    }

    fn world(&self) -> SimpleCommunicator {
        self.universe.world()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The reduction that every call begins with, and what follows if a rank is not fine.
    fn say(&self, state: &mut State, word: Word) -> Result<Verdict, Failed> {
        if let Some(failed) = &state.over {
            return Err(failed.clone());
        }
        state.n_meetings += 1;
        let outcome = self.agree(state, word);
        if let Err(failed) = &outcome {
            state.over = Some(failed.clone());
        }
        outcome
    }

    fn agree(&self, state: &mut State, word: Word) -> Result<Verdict, Failed> {
        let n = i64::try_from(self.size).expect("MPI counts in 32 bits");
        let me = i64::try_from(self.rank).expect("MPI counts in 32 bits");
        let mine = match word {
            Word::Fine => vec![n, n, me, n],
            Word::Stop => vec![n, n, me, me],
            Word::Failed(_) => vec![me, n, me, n],
            Word::Leaves => vec![n, me, n, n],
        };
        let (_, first) = self.wait(state, pending::least(mine))?;
        let rank = |value: i64| u64::try_from(value).expect("ranks are not negative");
        let (failed, left, stays, stops) = (first[0], first[1], first[2], first[3]);
        if failed < n {
            let reason = if let Word::Failed(reason) = word { reason } else { String::new() };
            let reason = self.tell(state, reason.into_bytes(), rank(failed))?;
            return Err(self.failed(rank(failed), String::from_utf8_lossy(&reason).into_owned()));
        }
        if left < n && stays < n {
            return Err(self.lost(rank(left), "it ended before the others".to_owned()));
        }
        Ok(if stops < n { Verdict::Stop } else { Verdict::Go })
    }

    fn failed(&self, rank: u64, reason: String) -> Failed {
        Failed { rank, host: self.place_of(rank).host, reason, is_lost: false }
    }

    fn lost(&self, rank: u64, reason: String) -> Failed {
        Failed { is_lost: true, ..self.failed(rank, reason) }
    }

    /// Broadcasts bytes of any length.
    fn tell(&self, state: &mut State, mine: Vec<u8>, from: u64) -> Result<Vec<u8>, Failed> {
        let length = self.wait(state, pending::broadcast((mine.len() as u64).to_le_bytes().to_vec(), from))?;
        let length = usize_of(&length);
        let mut all = Vec::with_capacity(length);
        while all.len() < length {
            let piece = (length - all.len()).min(PIECE);
            let bytes = if from == self.rank { mine[all.len()..][..piece].to_vec() } else { vec![0; piece] };
            all.extend(self.wait(state, pending::broadcast(bytes, from))?);
        }
        Ok(all)
    }

    fn send(&self, state: &mut State, bytes: &[u8]) -> Result<(), Failed> {
        self.wait_for(state, pending::send((bytes.len() as u64).to_le_bytes().to_vec(), 0), Some(0))?;
        let mut send = |piece: &[u8]| self.wait_for(state, pending::send(piece.to_vec(), 0), Some(0)).map(drop);
        bytes.chunks(PIECE).try_for_each(&mut send)
    }

    fn receive(&self, state: &mut State, from: u64) -> Result<Vec<u8>, Failed> {
        let length = usize_of(&self.wait_for(state, pending::receive(8, from), Some(from))?);
        let mut all = Vec::with_capacity(length);
        while all.len() < length {
            let piece = pending::receive((length - all.len()).min(PIECE), from);
            all.extend(self.wait_for(state, piece, Some(from))?);
        }
        Ok(all)
    }

    /// Waits for a collective operation without occupying a core that readers need.
    fn wait<B>(&self, state: &mut State, operation: Pending<B>) -> Result<B, Failed> {
        self.wait_for(state, operation, None)
    }

    /// `whom`: the only rank to wait for, if known.
    fn wait_for<B>(&self, state: &mut State, mut operation: Pending<B>, whom: Option<u64>) -> Result<B, Failed> {
        let (start, world) = (Instant::now(), self.world());
        let mut roll = Roll::new(state.n_meetings, &world, std::mem::take(&mut state.early));
        let asks_at = ASK + Duration::from_secs(self.rank.min(8));
        let (mut looks_at, mut tells_at) = (LOOK, asks_at + ANSWERED);
        loop {
            if operation.is_done() {
                state.early = roll.into_early();
                return Ok(operation.take());
            }
            let waited = start.elapsed();
            if waited > self.patience {
                state.is_broken = true;
                return Err(self.missing(&absent(&roll, whom)));
            }
            if waited > looks_at {
                looks_at = waited + LOOK;
                if let Some(rank) = self.peers.gone() {
                    (state.is_broken, state.is_bereft) = (true, true);
                    return Err(self.lost(rank, "its process is gone".to_owned()));
                }
            }
            if waited > asks_at && !roll.is_led() || waited > self.patience / 2 {
                roll.ask(&world);
            }
            if waited > QUIET {
                roll.hear(&world);
            }
            if waited > tells_at {
                tells_at = waited + waited.min(PAUSE_MAX);
                self.tell_of_wait(waited, &roll, whom);
            }
            rest(if state.is_moving { Duration::ZERO } else { waited });
        }
    }

    /// Reports the missing ranks, unless a rank before this one does.
    fn tell_of_wait(&self, waited: Duration, roll: &Roll, whom: Option<u64>) {
        let missing = absent(roll, whom);
        if roll.is_led() || missing.is_empty() {
            return;
        }
        let named = |rank| {
            let Place { pid, host } = self.place_of(rank);
            Missing { rank, pid, host, condition: self.peers.condition(rank) }
        };
        let missing = missing.into_iter().map(named).collect();
        (self.observe)(&Waiting { rank: self.rank, waited, missing });
    }

    fn missing(&self, missing: &[u64]) -> Failed {
        let seconds = self.patience.as_secs_f64();
        let Some(first) = missing.first() else {
            return self
                .lost(self.rank, format!("it waited for the others for {seconds} s, although all were present"));
        };
        let others = match missing.len() {
            1 => String::new(),
            n if n + 1 == self.places.len() => ", nor did any other".to_owned(),
            n => format!(", nor did {} others", n - 1),
        };
        self.lost(*first, format!("it did not come to a meeting within {seconds} s{others}"))
    }
}

impl Ranks for Mpi {
    fn rank(&self) -> u64 {
        self.rank
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn host(&self) -> String {
        super::host()
    }

    fn meet_or_stop(&self, mine: Result<Verdict, String>) -> Result<Verdict, Failed> {
        let word = mine.map_or_else(Word::Failed, |mine| if mine == Verdict::Stop { Word::Stop } else { Word::Fine });
        self.say(&mut self.state(), word)
    }

    fn gather(&self, mine: Vec<u8>) -> Result<Option<Vec<Vec<u8>>>, Failed> {
        let state = &mut *self.state();
        self.say(state, Word::Fine)?;
        if self.rank > 0 {
            self.send(state, &mine)?;
            return Ok(None);
        }
        let others = (1..self.size).map(|rank| self.receive(state, rank));
        std::iter::once(Ok(mine)).chain(others).collect::<Result<_, _>>().map(Some)
    }

    fn broadcast(&self, mine: Vec<u8>) -> Result<Vec<u8>, Failed> {
        let state = &mut *self.state();
        self.say(state, Word::Fine)?;
        self.tell(state, mine, 0)
    }

    fn sum(&self, values: &mut [f32]) -> Result<(), Failed> {
        let state = &mut *self.state();
        self.say(state, Word::Fine)?;
        state.is_moving = true;
        let (mut mine, mut sums) = (Vec::new(), Vec::new());
        for piece in values.chunks_mut(SUMMED) {
            mine.clear();
            mine.extend_from_slice(piece);
            sums.resize(piece.len(), 0.0);
            (mine, sums) = self.wait(state, pending::sum(mine, sums))?;
            piece.copy_from_slice(&sums);
        }
        state.is_moving = false;
        Ok(())
    }
}

impl Drop for Mpi {
    /// Leaves together with the others. A process that panics or has lost a rank skips `MPI_Finalize`, which would wait
    /// forever; the launcher then ends the others.
    fn drop(&mut self) {
        if thread::panicking() {
            return;
        }
        let mut state = self.state();
        let _ = self.say(&mut state, Word::Leaves);
        let (is_broken, is_bereft) = (state.is_broken, state.is_bereft);
        drop(state);
        if is_bereft {
            // Ranks on other hosts cannot see the loss; they would wait until patience ends.
            self.world().abort(STATUS);
        }
        if !is_broken {
            // SAFETY: only this line drops it, and a value is dropped once.
            unsafe { ManuallyDrop::drop(&mut self.universe) };
        }
    }
}

/// The ranks that did not answer, or the only one to wait for.
fn absent(roll: &Roll, whom: Option<u64>) -> Vec<u64> {
    whom.map_or_else(|| roll.missing(), |rank| vec![rank])
}

/// Yields first, then sleeps for a sixteenth of the wait so far: a barrier is noticed at most a sixteenth late.
fn rest(waited: Duration) {
    if waited < YIELD {
        thread::yield_now();
    } else {
        thread::sleep((waited / 16).clamp(Duration::from_micros(20), Duration::from_micros(200)));
    }
}

fn usize_of(bytes: &[u8]) -> usize {
    let bytes = bytes.try_into().expect("a length has eight bytes");
    usize::try_from(u64::from_le_bytes(bytes)).expect("lengths of what was in memory")
}
