//! The checkpoints of a run: when they are saved, what they hold, and how a later run resumes.
//!
//! A checkpoint holds everything that the next step depends on: the network's state, the number of steps, and the
//! number of samples of the order that these used. The rest follows from the settings, which are stored as notes and
//! must be the same when a run is resumed.

mod ask;
mod end;
mod failing;
mod identity;
mod ledger;
mod resume;
mod state;
#[cfg(test)]
mod tests;
mod traffic;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use forebay_checkpoint::format::{self, Format, Layout};
use forebay_checkpoint::{CountedFs, Fate, Handle, Level, Mode, Options, Snapshot, Store, Tier, WhenBehind};
use forebay_measure::{Event, Place, Places, Scratch};
use forebay_record::{Medium, TrainCheckpoints};
use forebay_storage::Device;
use forebay_units::{Clock, PathText, count};

use super::consumer::Consumer;
use super::data::TrainingData;
use super::drive::Reached;
use super::plan::Plan;
use super::run::Error;
use super::trial::Trial;
use crate::checkpoint::{device, mode_name};
use failing::Failing;
use identity::Identity;
use ledger::Ledger;
pub(super) use resume::{Start, begin, check};
use state::Made;
use traffic::{TierCount, Traffic};

const STEM: &str = "model";
const SCRATCH: &str = ".forebay-train-";
/// Interval of events while waiting for the drain.
const TELL: Duration = Duration::from_millis(100);

/// Whether each run has its own folders, because there are several.
fn is_scratch(plan: &Plan) -> bool {
    plan.warmups + plan.repeats > 1
}

/// The start that was found, or fresh folders if there are several runs.
pub(super) fn for_round(trial: &Trial<'_>, found: &mut Option<Start>) -> Result<Start, Error> {
    match &trial.plan.saves {
        // The first rank saves for all.
        Some(_) if trial.site.ranks.rank() > 0 => Ok(found.take().unwrap_or_default()),
        Some(saves) if is_scratch(trial.plan) => {
            let (mut places, mut scratch) = (saves.places.clone(), Vec::new());
            for place in places.fast.iter_mut().chain([&mut places.slow]) {
                let own = Scratch::create_below(&place.dir, SCRATCH)?;
                place.dir = own.path().to_owned();
                scratch.push(own);
            }
            let saver = Saver { scratch, ..Saver::open(trial, &places)? };
            Ok(Start { saver: Some(saver), ..Start::default() })
        }
        Some(saves) => found.take().unwrap_or_default().open(trial, &saves.places),
        None => Ok(Start::default()),
    }
}

/// Returns a note per place.
fn remove_left_overs(places: &Places) -> Vec<String> {
    let said = |place: &Place| {
        let left = forebay_measure::remove_left_overs(&place.dir, SCRATCH);
        let dir = place.dir.escaped();
        (!left.is_empty()).then(|| format!("removed leftovers of a killed run in {dir}: {}", left.join(", ")))
    };
    places.nearest_first().filter_map(said).collect()
}

fn left_to_drain(places: &Places, n_undrained: usize) -> String {
    let (n, slow) = (count(n_undrained as u64, "checkpoint"), places.slow.dir.escaped());
    format!("{n} still to be drained to {slow}: the next run with --resume drains them")
}

pub(super) struct Saver {
    places: Places,
    every: u64,
    mode: Mode,
    when_behind: WhenBehind,
    store: Store,
    format: &'static dyn Format,
    identity: Identity,
    steps_per_epoch: u64,
    made: Option<Made>,
    /// Size of the last state.
    n_bytes: u64,
    clock: Arc<dyn Clock>,
    started_ns: u64,
    ledger: Ledger,
    counts: Vec<TierCount>,
    traffic: Option<Traffic>,
    /// Bytes the tiers had read when the run started.
    read_before: u64,
    /// Drain failures reported so far.
    troubles: Vec<String>,
    /// Note on how the state was copied.
    doubt: OnceLock<String>,
    /// The ranks' positions at the next save; empty for one process.
    pub(super) positions: Vec<u64>,
    reached: u64,
    /// The last save that was not skipped, and its step.
    last: Option<(u64, Arc<Handle>)>,
    /// `None` if no failures are injected.
    failing: Option<Failing>,
    /// Whether a failure tore the last save.
    is_torn: bool,
    /// Folders of this run alone, removed after the store is closed.
    scratch: Vec<Scratch>,
}

pub(super) struct Saved {
    pub(super) checkpoints: TrainCheckpoints,
    pub(super) notes: Vec<String>,
    /// A failure in the background.
    pub(super) error: Option<Error>,
}

impl Saver {
    /// `places` are those of the plan, or this run's folders below them.
    fn open(trial: &Trial<'_>, places: &Places) -> Result<Self, Error> {
        let settings = &trial.plan.settings;
        let made = match (trial.kind.emulation(), settings.checkpoint_size) {
            (Some(_), None) => return Err(Error::NoState),
            (Some(_), Some(size)) => Some(Made::new(size.0, settings.seed)),
            (None, _) => None,
        };
        let device = trial.data.as_ref().and_then(TrainingData::device);
        let (tiers, counts) = counted(places, device);
        let (mode, when_behind) = (trial.plan.mode(), settings.checkpoint_behind.unwrap_or_default());
        let drain_bytes_per_s = settings.drain_rate.map(|rate| rate.0);
        let options = Options { mode, when_behind, drain_bytes_per_s, ..Options::default() };
        let store = Store::open(tiers, options)?;
        Ok(Self {
            store,
            format: format::named(settings.format()).expect("the name was looked up when it was set"),
            places: places.clone(),
            every: settings.every(),
            mode,
            when_behind,
            identity: Identity::of(trial),
            steps_per_epoch: trial.steps_per_epoch,
            made,
            n_bytes: 0,
            clock: Arc::clone(&trial.clock),
            started_ns: 0,
            ledger: Ledger::start(Arc::clone(&trial.clock)).map_err(forebay_measure::Error::Thread)?,
            counts,
            traffic: None,
            read_before: 0,
            troubles: Vec::new(),
            doubt: OnceLock::new(),
            positions: Vec::new(),
            reached: 0,
            last: None,
            failing: settings.fail_every.map(|mean| Failing::new(mean, settings.seed)),
            is_torn: false,
            scratch: Vec::new(),
        })
    }

    /// Allocates the memory of saves before training begins.
    fn prepare(&mut self, consumer: &dyn Consumer) -> Result<(), Error> {
        let at = Reached { step: u64::MAX, position: Some(u64::MAX), is_last: false, is_stopping: false };
        let (store, mode) = (&self.store, self.mode);
        self.n_bytes = self.with_snapshot(at, consumer, |snapshot, layout| {
            if mode == Mode::Async {
                device::prepare(store, layout, snapshot)?;
            }
            Ok(snapshot.n_bytes())
        })?;
        Ok(())
    }

    /// Times count from the start of the run. Every round has failures of its own.
    pub(super) fn begin(&mut self, started_ns: u64, round: u64) -> Result<(), Error> {
        self.started_ns = started_ns;
        if let Some(failing) = &mut self.failing {
            (0..=round).for_each(|_| failing.next_round());
            failing.go_on(started_ns);
        }
        let gone = Duration::from_nanos(self.clock.now_ns() - started_ns);
        self.traffic = Some(Traffic::start(&self.counts, gone).map_err(forebay_measure::Error::Thread)?);
        self.read_before = self.read_bytes();
        Ok(())
    }

    fn with_snapshot<T>(
        &self,
        at: Reached,
        consumer: &dyn Consumer,
        act: impl FnOnce(&Snapshot<'_>, &Layout) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let view = consumer.view()?;
        let headers = view.as_ref().map(device::headers).unwrap_or_default();
        let there = view.as_ref().and_then(device::OnDevice::of);
        let tensors = match (&view, &self.made) {
            (Some(view), _) => device::tensors(&headers, view, there.as_ref()),
            (None, Some(made)) => made.tensors(),
            (None, None) => return Err(Error::NoState),
        };
        let one = at.position.filter(|_| self.positions.is_empty());
        let positions: Vec<u64> = one.into_iter().chain(self.positions.iter().copied()).collect();
        let notes = self.identity.notes(at.step, at.step / self.steps_per_epoch.max(1), &positions);
        let snapshot = Snapshot { tensors, notes };
        let acted = act(&snapshot, &self.format.plan(STEM, &snapshot)?);
        if let Some(doubt) = there.as_ref().and_then(device::OnDevice::doubt) {
            self.doubt.get_or_init(|| doubt);
        }
        acted
    }

    /// Saves if a checkpoint is due, or if the run ends here with an unsaved state. Earlier failures do not prevent it:
    /// they are reported once the state is durable on the first tier.
    pub(super) fn save(
        &mut self,
        at: Reached,
        consumer: &dyn Consumer,
        cancel: &AtomicBool,
    ) -> Result<Option<Vec<Event>>, Error> {
        self.reached = at.step;
        let is_due = at.is_stopping || at.step.is_multiple_of(self.every);
        if !is_due || self.is_saved(at.step) {
            return Ok(None);
        }
        let asked_ns = self.clock.now_ns();
        let mut before = None;
        let must = at.is_stopping || at.is_last && self.when_behind == WhenBehind::Skip;
        let torn = AtomicBool::new(false);
        let save = || match must {
            true => self.insist(at, consumer, cancel, (&mut before, &torn)),
            false => self.ask(at, consumer, (&mut before, &torn)),
        };
        let asked = self.heeding(cancel, || self.strikes(&torn, save));
        let stall_s = || (self.clock.now_ns() - asked_ns) as f64 / 1e9;
        let at_s = (asked_ns - self.started_ns) as f64 / 1e9;
        let handle = match asked {
            Ok(handle) => handle,
            // What follows is up to the failure.
            Err(_) if torn.load(Ordering::Relaxed) => {
                self.is_torn = true;
                return Ok(None);
            }
            Err(error) => {
                self.ledger.add_failed(at.step, at_s, stall_s());
                return Err(before.unwrap_or(error));
            }
        };
        if (at.is_stopping || before.is_some())
            && let Err(error) = handle.wait(Level::DurableFast)
        {
            before.get_or_insert(error.into());
        }
        let stall_s = stall_s();
        self.ledger.add(at.step, at_s, asked_ns, stall_s, Arc::clone(&handle));
        // Later saves do not wait for one that was skipped at once.
        if matches!(handle.wait(Level::Staged), Ok(Fate::Reached)) {
            self.last = Some((at.step, handle));
        }
        let troubles = self.new_troubles().into_iter().map(|text| Event::Remark { text });
        let saved = Event::Saved { step: at.step, bytes: self.n_bytes, seconds: stall_s };
        before.map_or(Ok(Some([saved].into_iter().chain(troubles).collect())), Err)
    }

    /// The description that is known before the first save.
    fn described(&self) -> TrainCheckpoints {
        let medium = |place: &Place| Medium::new(String::new(), place.tier(), Vec::new());
        TrainCheckpoints {
            every: self.every,
            mode: mode_name(self.mode).to_owned(),
            format: self.format.name().to_owned(),
            bytes: self.n_bytes,
            medium: medium(&self.places.slow),
            burst: self.places.fast.as_ref().map(medium),
            rated_mb_per_s: self.places.rated_mb_per_s(self.mode),
            median_stall_s: None,
            drain_after_s: None,
            saves: Vec::new(),
            traffic: Vec::new(),
            injected: self.failing.as_ref().map(Failing::described),
        }
    }
}

fn counted(places: &Places, data: Option<&Arc<Device>>) -> (Vec<Tier>, Vec<TierCount>) {
    let (mut tiers, mut counts) = (places.tiers_beside(data), Vec::new());
    let n_tiers = tiers.len();
    for (at, (tier, place)) in tiers.iter_mut().zip(places.nearest_first()).enumerate() {
        let (fs, counters) = CountedFs::new(Arc::clone(&tier.fs));
        tier.fs = Arc::new(fs);
        let role = if at + 1 == n_tiers { "slow" } else { "fast" };
        counts.push(TierCount { name: place.tier().map_or(role, |(name, _)| name).to_owned(), counters });
    }
    (tiers, counts)
}
