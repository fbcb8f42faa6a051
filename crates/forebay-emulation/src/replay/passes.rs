//! The loop of a replayed job: workers fetch batches ahead as PyTorch's do, the loop takes them in order, computes and saves.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use forebay_measure::stall::Causes;
use forebay_measure::{Event, Observer};
use forebay_record::{WorkloadEpoch, WorkloadSave};
use forebay_units::{Clock, SystemClock};
use forebay_workload::replay::Replay;

use super::super::read::Nap;
use super::super::run::Error;
use super::fetch::{Done, Files, Pass, Worker};
use super::saves::Saves;

/// How often a wait looks whether the run is to stop.
const LOOK: Duration = Duration::from_millis(50);

/// What a run did.
#[derive(Default)]
pub(super) struct Played {
    pub(super) epochs: Vec<WorkloadEpoch>,
    pub(super) saves: Vec<WorkloadSave>,
    pub(super) done: Done,
    pub(super) stalls: Causes,
    pub(super) samples: u64,
    pub(super) is_stopped: bool,
}

/// Of one pass, in nanoseconds.
#[derive(Default)]
struct Times {
    wait: u64,
    compute: u64,
    checkpoint: u64,
    first_batch: u64,
    load: Vec<u64>,
    computed: Vec<u64>,
    saved_after: Vec<u64>,
}

pub(super) struct Player<'a> {
    pub(super) replay: &'a Replay,
    pub(super) files: &'a [Files],
    pub(super) clock: Arc<SystemClock>,
    pub(super) observer: Observer<'a>,
}

impl Player<'_> {
    pub(super) fn play(&self, saves: &mut Saves<'_>) -> Result<Played, Error> {
        let mut played = Played::default();
        let mut naps = Nap::default();
        let (n_passes, mut so_far) = (self.replay.passes.len() as u64, vec![0; self.replay.loader.len()]);
        let origin_ns = self.clock.now_ns();
        let mut steps_before = 0;
        for (epoch, index) in self.replay.passes.iter().enumerate() {
            let loader = &self.replay.loader[*index];
            let of = (so_far[*index], self.replay.n_passes(*index));
            so_far[*index] += 1;
            let pass = Pass::new(loader, &self.files[*index], of, &self.clock);
            let epoch = epoch as u64 + 1;
            self.observer.tell(Event::Steps { epoch: Some((epoch, n_passes)), first: 0, n_steps: loader.steps });
            let start_ns = self.clock.now_ns();
            let times = self.pass(&pass, (epoch, steps_before), saves, &mut naps, &mut played)?;
            steps_before += loader.steps;
            if epoch < n_passes {
                naps.sleep(loader.after_s, self.observer.cancel);
            }
            let wall_ns = self.clock.now_ns() - start_ns;
            played.samples += samples(loader.samples, of, loader.steps, times.load.len() as u64);
            played.epochs.push(epoch_of(epoch, start_ns - origin_ns, wall_ns, &times));
            if self.observer.is_cancelled() {
                played.is_stopped = true;
                break;
            }
        }
        played.saves = saves.take();
        Ok(played)
    }

    fn pass(
        &self,
        pass: &Pass<'_>,
        (epoch, steps_before): (u64, u64),
        saves: &mut Saves<'_>,
        naps: &mut Nap,
        played: &mut Played,
    ) -> Result<Times, Error> {
        let stop = AtomicBool::new(false);
        let gate = Gate::default();
        std::thread::scope(|scope| {
            // Whatever ends the pass, its workers must end too.
            let _ends = Ends { stop: &stop, gate: &gate };
            let mut batches = Vec::new();
            let start_ns = self.clock.now_ns();
            for worker in 0..pass.loader.workers {
                let (give, take) = mpsc::channel();
                batches.push(take);
                let name = format!("forebay:fetch-{worker}");
                let (gate, stop) = (&gate, &stop);
                let work = move || work(pass, worker, start_ns, gate, stop, &give);
                std::thread::Builder::new()
                    .name(name)
                    .spawn_scoped(scope, work)
                    .map_err(forebay_measure::Error::Thread)?;
            }
            let mut own = Worker::default();
            let mut times = Times::default();
            for step in 0..pass.loader.steps {
                let wait_ns = if step == 0 { start_ns } else { self.clock.now_ns() };
                if step == 0 && batches.is_empty() {
                    naps.sleep(pass.loader.start_s, self.observer.cancel);
                }
                let batch = match batches.get((step % pass.loader.workers.max(1)) as usize) {
                    Some(batches) => self.take(batches)?,
                    None => Some(own.fetch(pass, step, self.observer.cancel)?),
                };
                let Some(batch) = batch.filter(|_| !self.observer.is_cancelled()) else { break };
                self.clock.sleep_until_ns(batch.ready_ns);
                gate.taken();
                let got_ns = self.clock.now_ns();
                let list = &pass.loader.compute_s;
                let number = pass.first + step;
                naps.sleep(list[(number % list.len() as u64) as usize], self.observer.cancel);
                let computed_ns = self.clock.now_ns();
                times.add_step(wait_ns, got_ns, computed_ns);
                charge(&mut played.stalls, &batch, (wait_ns, got_ns, computed_ns), pass.loader.workers);
                played.done.add(&batch);
                if saves.run(steps_before + step + 1, (epoch, step + 1), self.observer)? {
                    times.saved_after.push(step + 1);
                }
                times.checkpoint += self.clock.now_ns() - computed_ns;
                self.tell(step, &batch, &times);
            }
            let end_ns = self.clock.now_ns();
            naps.sleep(pass.loader.end_s, self.observer.cancel);
            drop(batches);
            let ended_ns = self.clock.now_ns() - end_ns;
            times.wait += ended_ns;
            played.stalls.other += ended_ns as f64 / 1e9;
            Ok(times)
        })
    }

    /// `None` if the run is to stop.
    fn take(&self, batches: &Receiver<Result<Done, Error>>) -> Result<Option<Done>, Error> {
        loop {
            match batches.recv_timeout(LOOK) {
                Ok(batch) => return batch.map(Some),
                Err(RecvTimeoutError::Timeout) if !self.observer.is_cancelled() => {}
                Err(_) => return Ok(None),
            }
        }
    }

    fn tell(&self, step: u64, batch: &Done, times: &Times) {
        let all = times.wait + times.compute + times.checkpoint;
        self.observer.tell(Event::Step {
            step: step + 1,
            images: 0,
            bytes: batch.bytes,
            loss: None,
            wait_share: times.wait as f64 / (all as f64).max(1.0),
        });
    }
}

impl Times {
    fn add_step(&mut self, wait_ns: u64, got_ns: u64, computed_ns: u64) {
        if self.load.is_empty() {
            self.first_batch = got_ns - wait_ns;
        }
        self.wait += got_ns - wait_ns;
        self.compute += computed_ns - got_ns;
        self.load.push(got_ns - wait_ns);
        self.computed.push(computed_ns - got_ns);
    }
}

fn samples(all: u64, (pass, n): (u64, u64), steps: u64, n_done: u64) -> u64 {
    let until = |step: u64| (u128::from(all) * u128::from(step) / u128::from((n * steps).max(1))) as u64;
    until(pass * steps + n_done) - until(pass * steps)
}

/// Charges a wait to what its batch was made of. Of a loop that fetches itself, what its computing would have hidden is for want of
/// prefetching.
fn charge(stalls: &mut Causes, batch: &Done, (wait_ns, got_ns, computed_ns): (u64, u64, u64), workers: u64) {
    let mut wait = (got_ns - wait_ns) as f64 / 1e9;
    if workers == 0 {
        let hidden = wait.min((computed_ns - got_ns) as f64 / 1e9);
        stalls.prefetch += hidden;
        wait -= hidden;
    }
    let (io, decode) = (batch.io_ns as f64 / 1e9, batch.decode_ns as f64 / 1e9);
    let fetched = wait.min(io + decode);
    stalls.other += wait - fetched;
    if fetched > 0.0 {
        stalls.storage += fetched * io / (io + decode);
        stalls.preprocess += fetched * decode / (io + decode);
    }
}

fn epoch_of(epoch: u64, start_ns: u64, wall_ns: u64, times: &Times) -> WorkloadEpoch {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let list = |all: &[u64]| all.iter().map(|ns| seconds(*ns)).collect();
    WorkloadEpoch {
        epoch,
        start_s: seconds(start_ns),
        wall_s: seconds(wall_ns),
        first_batch_s: seconds(times.first_batch),
        n_steps: times.load.len() as u64,
        saved_after: times.saved_after.clone(),
        wait_s: seconds(times.wait),
        compute_s: seconds(times.compute),
        checkpoint_s: seconds(times.checkpoint),
        other_s: seconds(wall_ns.saturating_sub(times.wait + times.compute + times.checkpoint)),
        load: list(&times.load),
        compute: list(&times.computed),
        barrier: vec![0.0; times.load.len()],
        ..WorkloadEpoch::default()
    }
}

/// Worker `n` makes every batch whose number it is, as PyTorch deals them out.
fn work(pass: &Pass<'_>, n: u64, start_ns: u64, gate: &Gate, stop: &AtomicBool, give: &Sender<Result<Done, Error>>) {
    let mut worker = Worker::default();
    let loader = pass.loader;
    pass.sleep_until(start_ns + (loader.start_s * 1e9) as u64, stop);
    let mut step = n;
    while step < loader.steps && gate.wait_for(step, loader.workers * loader.prefetch, stop) {
        let made = worker.fetch(pass, step, stop);
        let is_error = made.is_err();
        if give.send(made).is_err() || is_error {
            return;
        }
        step += loader.workers;
    }
}

/// How many batches the loop has taken.
#[derive(Default)]
struct Gate {
    taken: Mutex<u64>,
    changed: Condvar,
}

impl Gate {
    fn taken(&self) {
        *self.taken.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.changed.notify_all();
    }

    /// Waits until a batch is no more than `ahead` before the loop; `false` if the pass ends first.
    fn wait_for(&self, step: u64, ahead: u64, stop: &AtomicBool) -> bool {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let is_early = |taken: &mut u64| step >= *taken + ahead && !stop.load(Ordering::Relaxed);
        drop(self.changed.wait_while(taken, is_early).unwrap_or_else(PoisonError::into_inner));
        !stop.load(Ordering::Relaxed)
    }
}

struct Ends<'a> {
    stop: &'a AtomicBool,
    gate: &'a Gate,
}

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        // Under the lock, or a worker that has just looked would sleep through it.
        let _taken = self.gate.taken.lock().unwrap_or_else(PoisonError::into_inner);
        self.stop.store(true, Ordering::Relaxed);
        self.gate.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_charged_to_what_its_batch_was_made_of() {
        let batch = Done { io_ns: 1_000_000_000, decode_ns: 3_000_000_000, ..Done::default() };
        let mut stalls = Causes::default();
        charge(&mut stalls, &batch, (0, 5_000_000_000, 6_000_000_000), 2);
        assert_eq!((stalls.storage, stalls.preprocess, stalls.other, stalls.prefetch), (1.0, 3.0, 1.0, 0.0));
        let mut stalls = Causes::default();
        charge(&mut stalls, &batch, (0, 4_000_000_000, 6_000_000_000), 0);
        assert_eq!((stalls.storage, stalls.preprocess, stalls.other, stalls.prefetch), (0.5, 1.5, 0.0, 2.0));
    }

    #[test]
    fn workers_are_at_most_their_prefetch_ahead_and_end_with_the_pass() {
        let (gate, stop) = (Gate::default(), AtomicBool::new(false));
        assert!(gate.wait_for(3, 4, &stop));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| gate.wait_for(4, 4, &stop));
            gate.taken();
            assert!(waiting.join().unwrap());
            let waiting = scope.spawn(|| gate.wait_for(9, 4, &stop));
            drop(Ends { stop: &stop, gate: &gate });
            assert!(!waiting.join().unwrap());
        });
    }

    #[test]
    fn samples_sum_over_passes() {
        let parts: Vec<u64> = (0..3).map(|pass| samples(10, (pass, 3), 4, 4)).collect();
        assert_eq!(parts.iter().sum::<u64>(), 10);
        assert_eq!(samples(10, (0, 1), 10, 3), 3);
    }
}
