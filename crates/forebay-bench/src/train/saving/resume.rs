//! What a run begins with: nothing, or the newest good checkpoint of an earlier one.
//!
//! All is looked at before anything is opened for writing, so that a run that is refused changes nothing.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use forebay_checkpoint::format::{self, Catalog};
use forebay_checkpoint::{Error as StoreError, Name, PassedOver, Restored, Store, Tier, restore};

use super::super::plan::Checkpointing;
use super::super::run::{Error, Event};
use super::super::taker::Taker;
use super::super::trial::Trial;
use super::identity::{self, Identity};
use super::{Saver, is_scratch, left_to_drain, remove_left_overs, state};

/// How often a drain that is waited for is looked at, and whether it is to stop.
const LOOK: Duration = Duration::from_millis(20);

/// What a run begins with.
#[derive(Default)]
pub(in super::super) struct Start {
    /// Steps made before.
    pub(in super::super) step: u64,
    /// Samples of the order that these used up.
    pub(in super::super) position: Option<u64>,
    /// The state after them, until it is loaded.
    pub(super) found: Option<(Restored, Catalog)>,
    pub(in super::super) saver: Option<Saver>,
}

impl Start {
    /// Brings what takes the batches to where the run begins.
    pub(in super::super) fn load(&mut self, taker: &mut dyn Taker) -> Result<(), Error> {
        if let Some((restored, catalog)) = self.found.take() {
            let is_learnt = taker.view()?.is_some();
            match is_learnt {
                true => taker.go_on(self.step, Some(&state::loaded(&restored, &catalog)?))?,
                false => taker.go_on(self.step, None)?,
            }
        }
        self.saver.as_mut().map_or(Ok(()), |saver| saver.prepare(taker))
    }

    /// Ends a run that has nothing to do, with what an earlier one left to be drained unless it is to stop: what to say
    /// of it.
    pub(in super::super) fn nothing_left(
        self,
        n_steps: u64,
        observe: &mut dyn FnMut(Event),
        cancel: &AtomicBool,
    ) -> Result<Vec<String>, Error> {
        let text =
            format!("the checkpoint is of step {}, and {n_steps} were asked for: nothing is left to do", self.step);
        let mut notes = Vec::new();
        tell(text, observe, &mut notes);
        if let Some(saver) = self.saver {
            match drain(&saver.store, observe, cancel) {
                Err(StoreError::Stopped) => {}
                other => other?,
            }
            let closed = saver.store.close();
            if closed.n_undrained > 0 {
                tell(left_to_drain(&saver.plan, closed.n_undrained), observe, &mut notes);
            }
            if let Some(error) = closed.errors.into_iter().next() {
                return Err(error.into());
            }
        }
        Ok(notes)
    }
}

/// Drains what is left, until it is done or to stop.
fn drain(store: &Store, observe: &mut dyn FnMut(Event), cancel: &AtomicBool) -> Result<(), StoreError> {
    std::thread::scope(|scope| {
        let draining = scope.spawn(|| store.drain());
        while !draining.is_finished() {
            if cancel.load(Ordering::Relaxed) {
                store.stop_draining();
            }
            observe(Event::Draining { n_left: store.undrained().n_copies });
            std::thread::sleep(LOOK);
        }
        draining.join().expect("no drain panics").map(drop)
    })
}

/// Looks for what a run shall go on from, and opens the places of its checkpoints; both in vain where every run has its own.
pub(in super::super) fn begin(
    trial: &Trial<'_>,
    observe: &mut dyn FnMut(Event),
    notes: &mut Vec<String>,
) -> Result<Start, Error> {
    let Some(plan) = &trial.plan.checkpoint else { return Ok(Start::default()) };
    if is_scratch(trial.plan) {
        remove_left_overs(plan).into_iter().for_each(|text| tell(text, observe, notes));
        return Ok(Start::default());
    }
    let tiers = plan.places.tiers();
    let newest = newest(&tiers)?;
    let mut start = match (plan.resume, newest) {
        (false, Some((tier, name))) => {
            return Err(Error::Occupied { path: tiers[tier].dir.clone(), step: name.step });
        }
        (false, None) => Start::default(),
        (true, None) => {
            tell(format!("no checkpoint in {}: training begins anew", folders(plan)), observe, notes);
            Start::default()
        }
        (true, Some(_)) => found(trial, tiers, observe, notes)?,
    };
    remove_left_overs(plan).into_iter().for_each(|text| tell(text, observe, notes));
    start.saver = Some(Saver::open(trial, plan)?);
    Ok(start)
}

fn tell(text: String, observe: &mut dyn FnMut(Event), notes: &mut Vec<String>) {
    observe(Event::Remark { text: text.clone() });
    notes.push(text);
}

fn folders(plan: &Checkpointing) -> String {
    let dirs: Vec<String> = plan.places.nearest_first().map(|place| place.dir.display().to_string()).collect();
    dirs.join(" and ")
}

/// The newest checkpoint of all, good or not, and the tier that has it.
fn newest(tiers: &[Tier]) -> Result<Option<(usize, Name)>, Error> {
    let mut newest: Option<(usize, Name)> = None;
    for (at, tier) in tiers.iter().enumerate() {
        let last = names(tier)?.into_iter().next_back();
        newest = match (newest, last) {
            (Some((_, known)), Some(name)) if name > known => Some((at, name)),
            (None, Some(name)) => Some((at, name)),
            (known, _) => known,
        };
    }
    Ok(newest)
}

/// The checkpoints of a tier; none where there is no folder yet.
fn names(tier: &Tier) -> Result<Vec<Name>, Error> {
    match tier.names() {
        Err(StoreError::NotFound { .. }) => Ok(Vec::new()),
        names => names.map_err(Error::from),
    }
}

/// Reads the newest good checkpoint, and refuses one of another run.
fn found(
    trial: &Trial<'_>,
    mut tiers: Vec<Tier>,
    observe: &mut dyn FnMut(Event),
    notes: &mut Vec<String>,
) -> Result<Start, Error> {
    observe(Event::Preparing { what: "reading the newest checkpoint".to_owned() });
    // A folder that is not there yet is no fault.
    tiers.retain(|tier| !matches!(tier.names(), Err(StoreError::NotFound { .. })));
    let restored = restore(&tiers)?;
    let path = tiers[restored.tier].path_of(restored.name);
    let catalog = catalog_of(&restored)?;
    let identity = Identity::of(trial);
    if let Some(what) = identity.difference(&catalog.notes) {
        return Err(Error::OtherRun { path, what });
    }
    let position = identity::position(&catalog.notes);
    if trial.stock.is_some() && position.is_none() {
        return Err(Error::OtherRun { path, what: "it does not say which samples it has used".to_owned() });
    }
    restored.passed_over.iter().for_each(|one| tell(passed(one), observe, notes));
    identity.other_rate(&catalog.notes).into_iter().for_each(|text| tell(text, observe, notes));
    let step = restored.name.step;
    tell(format!("resumed after step {step} from {}", path.display()), observe, notes);
    Ok(Start { step, position, found: Some((restored, catalog)), saver: None })
}

fn passed(one: &PassedOver) -> String {
    format!("passed over {one}")
}

/// What the checkpoint's files hold, in whichever format they are.
fn catalog_of(restored: &Restored) -> Result<Catalog, Error> {
    let files = restored.by_name();
    let known = files.keys().find_map(|file| format::recognise(file));
    let (format, stem) = known.unwrap_or((format::FORMATS[0], super::STEM));
    Ok(format.open(stem, &files)?)
}
