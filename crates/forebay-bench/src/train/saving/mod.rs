//! The checkpoints of a run: when they are made, what they keep, and what a later run goes on from.
//!
//! A checkpoint keeps all that the next step depends on: the network's state, how many steps it made, and how many samples of
//! the order these used up. Everything else follows from the settings, which are kept as notes and must be the same when a
//! run goes on.

mod identity;
mod ledger;
mod resume;
mod state;
#[cfg(test)]
mod tests;
mod traffic;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use forebay_checkpoint::format::{self, Format, Layout};
use forebay_checkpoint::{CountedFs, Fate, Handle, Level, Mode, Options, Snapshot, Store, Tier};
use forebay_record::{TierKind, TrainCheckpoint, TrainCheckpoints};
use forebay_units::{Clock, Summary, count};

use super::drive::Reached;
use super::plan::{Checkpointing, Plan};
use super::run::{Error, Event};
use super::taker::Taker;
use super::trial::Trial;
use crate::checkpoint::{Place, device, mode_name};
use crate::probe::{self, Scratch};
use identity::Identity;
use ledger::Ledger;
pub(super) use resume::{Start, begin};
use state::Made;
use traffic::{TierCount, Traffic};

/// What the files of a checkpoint are called.
const STEM: &str = "model";
/// How the names of folders of a single run begin.
const SCRATCH: &str = ".forebay-train-";
/// How often somebody who waits for the drain is told how much is left.
const TELL: Duration = Duration::from_millis(100);

/// Whether every run of a plan has folders of its own.
fn is_scratch(plan: &Plan) -> bool {
    plan.warmups + plan.repeats > 1
}

/// What the next run begins with: what was found, or folders of its own where there are several runs.
pub(super) fn for_round(trial: &Trial<'_>, found: &mut Option<Start>) -> Result<Start, Error> {
    match &trial.plan.checkpoint {
        Some(plan) if is_scratch(trial.plan) => {
            let (mut plan, mut scratch) = (plan.clone(), Vec::new());
            for place in plan.places.fast.iter_mut().chain([&mut plan.places.slow]) {
                let own = Scratch::create_below(&place.dir, SCRATCH)?;
                place.dir = own.path().to_owned();
                scratch.push(own);
            }
            let saver = Saver { scratch, ..Saver::open(trial, &plan)? };
            Ok(Start { saver: Some(saver), ..Start::default() })
        }
        _ => Ok(found.take().unwrap_or_default()),
    }
}

/// Removes the folders of single runs that were killed; says which.
fn remove_left_overs(plan: &Checkpointing) -> Vec<String> {
    let said = |place: &Place| {
        let left = probe::remove_left_overs(&place.dir, SCRATCH);
        let dir = place.dir.display();
        (!left.is_empty()).then(|| format!("removed what a killed run had left in {dir}: {}", left.join(", ")))
    };
    plan.places.nearest_first().filter_map(said).collect()
}

/// What stays for a later run.
fn left_to_drain(plan: &Checkpointing, n_undrained: usize) -> String {
    let (n, slow) = (count(n_undrained as u64, "checkpoint"), plan.places.slow.dir.display());
    format!("{n} still to be drained to {slow}: the next start with --resume does that")
}

/// Makes the checkpoints of a run.
pub(super) struct Saver {
    plan: Checkpointing,
    store: Store,
    format: &'static dyn Format,
    identity: Identity,
    steps_per_epoch: u64,
    made: Option<Made>,
    /// Bytes of the last state.
    n_bytes: u64,
    clock: Arc<dyn Clock>,
    started_ns: u64,
    ledger: Ledger,
    counts: Vec<TierCount>,
    traffic: Option<Traffic>,
    /// The last save, and its step.
    last: Option<(u64, Arc<Handle>)>,
    /// Folders of this run alone, removed after the store is closed.
    scratch: Vec<Scratch>,
}

/// What the checkpoints of a run came to.
pub(super) struct Saved {
    pub(super) checkpoints: TrainCheckpoints,
    pub(super) notes: Vec<String>,
    /// What went wrong behind training's back.
    pub(super) error: Option<Error>,
}

impl Saver {
    fn open(trial: &Trial<'_>, plan: &Checkpointing) -> Result<Self, Error> {
        let made = match (trial.kind.emulation(), plan.size) {
            (Some(_), None) => return Err(Error::NoState),
            (Some(_), Some(size)) => Some(Made::new(size, trial.plan.seed)),
            (None, _) => None,
        };
        let (tiers, counts) = counted(plan);
        let options = Options {
            mode: plan.mode,
            when_behind: plan.when_behind,
            drain_bytes_per_s: plan.drain_bytes_per_s,
            ..Options::default()
        };
        let store = Store::open(tiers, options)?;
        Ok(Self {
            store,
            format: format::named(plan.format).expect("a plan names one of the formats"),
            plan: plan.clone(),
            identity: Identity::of(trial),
            steps_per_epoch: trial.steps_per_epoch,
            made,
            n_bytes: 0,
            clock: Arc::clone(&trial.clock),
            started_ns: 0,
            ledger: Ledger::start(Arc::clone(&trial.clock))?,
            counts,
            traffic: None,
            last: None,
            scratch: Vec::new(),
        })
    }

    /// Gets the memory that a save needs, before training begins.
    fn prepare(&mut self, taker: &dyn Taker) -> Result<(), Error> {
        let at = Reached { step: u64::MAX, position: Some(u64::MAX), is_stopping: false };
        let (store, mode) = (&self.store, self.plan.mode);
        self.n_bytes = self.with_snapshot(at, taker, |snapshot, layout| {
            if mode == Mode::Async {
                device::prepare(store, layout, snapshot)?;
            }
            Ok(snapshot.n_bytes())
        })?;
        Ok(())
    }

    /// Counts from the moment at which the run starts.
    pub(super) fn begin(&mut self, started_ns: u64) -> Result<(), Error> {
        self.started_ns = started_ns;
        self.traffic = Some(Traffic::start(&self.counts)?);
        Ok(())
    }

    /// The state as it is lent to be saved, and how it lies in files.
    fn with_snapshot<T>(
        &self,
        at: Reached,
        taker: &dyn Taker,
        act: impl FnOnce(&Snapshot<'_>, &Layout) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let view = taker.view()?;
        let headers = view.as_ref().map(device::headers).unwrap_or_default();
        let there = view.as_ref().and_then(device::OnDevice::of);
        let tensors = match (&view, &self.made) {
            (Some(view), _) => device::tensors(&headers, view, there.as_ref()),
            (None, Some(made)) => made.tensors(),
            (None, None) => return Err(Error::NoState),
        };
        let notes = self.identity.notes(at.step, at.step / self.steps_per_epoch.max(1), at.position);
        let snapshot = Snapshot { tensors, notes };
        act(&snapshot, &self.format.plan(STEM, &snapshot)?)
    }

    /// Saves if it is the time, or if the run ends here and the state was not saved yet.
    pub(super) fn save(&mut self, at: Reached, taker: &dyn Taker) -> Result<Option<Event>, Error> {
        let is_saved = self.last.as_ref().is_some_and(|(step, _)| *step == at.step);
        if is_saved || !(at.is_stopping || at.step.is_multiple_of(self.plan.every)) {
            return Ok(None);
        }
        let asked_ns = self.clock.now_ns();
        if let (true, Some((_, before))) = (at.is_stopping, &self.last) {
            // The last save must find the memory free. What went wrong with those before it is told by the store.
            let _ = before.wait(Level::DurableFast);
        }
        let store = &self.store;
        let handle = self
            .with_snapshot(at, taker, |snapshot, layout| Ok(Arc::new(store.save(at.step, None, snapshot, layout)?)))?;
        if at.is_stopping {
            handle.wait(Level::DurableFast)?;
        }
        let stall_s = (self.clock.now_ns() - asked_ns) as f64 / 1e9;
        self.ledger.add(at.step, (asked_ns - self.started_ns) as f64 / 1e9, asked_ns, stall_s, Arc::clone(&handle));
        self.last = Some((at.step, handle));
        Ok(Some(Event::Saved { step: at.step, stall_s }))
    }

    /// Waits until all is drained, unless the run was cut short or is now.
    pub(super) fn finish(self, is_cut: bool, observe: &mut dyn FnMut(Event), cancel: &AtomicBool) -> Saved {
        let ended_ns = self.clock.now_ns();
        let mut drain_after_s = 0.0;
        while !is_cut && !cancel.load(Ordering::Relaxed) {
            let n_left = self.ledger.n_open();
            if n_left == 0 {
                break;
            }
            observe(Event::Draining { n_left });
            self.ledger.wait(TELL);
            drain_after_s = (self.clock.now_ns() - ended_ns) as f64 / 1e9;
        }
        let stopped_at =
            self.last.as_ref().filter(|_| is_cut).map(|(step, handle)| (*step, handle.wait(Level::DurableFast)));
        let closed = self.store.close();
        let mode = self.plan.mode;
        let saves: Vec<TrainCheckpoint> = self.ledger.conclude().into_iter().map(|save| told(mode, save)).collect();
        let mut notes = Vec::new();
        if let Some((step, Ok(Fate::Reached))) = stopped_at {
            notes.push(format!("the state after step {step} is saved: --resume goes on from there"));
        }
        if closed.n_undrained > 0 && self.scratch.is_empty() {
            notes.push(left_to_drain(&self.plan, closed.n_undrained));
        }
        notes.iter().for_each(|text| observe(Event::Remark { text: text.clone() }));
        let mut errors = closed.errors.into_iter();
        let error = errors.next().map(Error::from);
        notes.extend(errors.map(|error| crate::supply::chain(&error)));
        let stalls: Vec<f64> = saves.iter().map(|save| save.stall_s).collect();
        let checkpoints = TrainCheckpoints {
            median_stall_s: Summary::of(&stalls).map(|stalls| stalls.median),
            drain_after_s,
            saves,
            traffic: self.traffic.map(Traffic::finish).unwrap_or_default(),
            ..described(&self.plan, self.n_bytes)
        };
        Saved { checkpoints, notes, error }
    }
}

/// What the caller knew before those who wait: that a save is as safe as its mode promises when it returns.
fn told(mode: Mode, save: TrainCheckpoint) -> TrainCheckpoint {
    let at_return = |found: Option<f64>| found.map(|_| save.stall_s);
    match mode {
        Mode::Direct => TrainCheckpoint {
            durable_fast_s: at_return(save.durable_fast_s),
            durable_slow_s: at_return(save.durable_slow_s),
            ..save
        },
        Mode::Burst => TrainCheckpoint { durable_fast_s: at_return(save.durable_fast_s), ..save },
        Mode::Async => save,
    }
}

/// The tiers of a plan, and what passes each.
fn counted(plan: &Checkpointing) -> (Vec<Tier>, Vec<TierCount>) {
    let (mut tiers, mut counts) = (plan.places.tiers(), Vec::new());
    let n_tiers = tiers.len();
    for (at, (tier, place)) in tiers.iter_mut().zip(plan.places.nearest_first()).enumerate() {
        let (fs, counters) = CountedFs::new(Arc::clone(&tier.fs));
        tier.fs = Arc::new(fs);
        let role = if at + 1 == n_tiers { "slow" } else { "fast" };
        counts.push(TierCount { name: emulated(place).0.unwrap_or_else(|| role.to_owned()), counters });
    }
    (tiers, counts)
}

/// The device that is emulated below a place: the shaper's if there is one, since it is the outer one.
fn emulated(place: &Place) -> (Option<String>, Option<TierKind>) {
    match (&place.shaped, &place.kernel) {
        (Some(profile), _) => (Some(profile.name.clone()), Some(TierKind::Shaped)),
        (None, Some(profile)) => (Some(profile.name.clone()), Some(TierKind::Kernel)),
        (None, None) => (None, None),
    }
}

/// What is known of checkpoints before the first is made.
fn described(plan: &Checkpointing, bytes: u64) -> TrainCheckpoints {
    let (tier, tier_kind) = emulated(&plan.places.slow);
    let (burst_tier, burst_tier_kind) = plan.places.fast.as_ref().map(emulated).unwrap_or_default();
    TrainCheckpoints {
        every: plan.every,
        mode: mode_name(plan.mode).to_owned(),
        format: plan.format.to_owned(),
        bytes,
        tier,
        tier_kind,
        burst_tier,
        burst_tier_kind,
        rated_mb_per_s: plan.places.rated_mb_per_s(plan.mode),
        median_stall_s: None,
        drain_after_s: 0.0,
        saves: Vec::new(),
        traffic: Vec::new(),
    }
}
