//! The start of a run: from scratch, or from the newest valid checkpoint of an earlier run.
//!
//! Everything is inspected before anything is opened for writing, so a refused run changes nothing. The folders are
//! locked during the inspection, so no other process changes them. The store is opened right before the first step,
//! because draining what an earlier run left would disturb measurements before it.

use std::time::Duration;

use forebay_checkpoint::format::{self, Catalog};
use forebay_checkpoint::{Error as StoreError, Guard, Name, PassedOver, Restored, Store, Tier, restore};
use forebay_measure::{Event, Observer, Places};
use forebay_units::PathText;

use super::super::consumer::Consumer;
use super::super::plan::{Plan, Saves};
use super::super::run::Error;
use super::super::trial::Trial;
use super::identity::{self, Identity};
use super::{Saver, is_scratch, left_to_drain, remove_left_overs, state};

/// Poll interval while waiting for a drain or a cancellation.
const LOOK: Duration = Duration::from_millis(20);

#[derive(Default)]
pub(in super::super) struct Start {
    /// Steps made by earlier runs.
    pub(in super::super) step: u64,
    /// Samples of the order used by those steps, by rank; empty for synthetic batches.
    pub(in super::super) positions: Vec<u64>,
    /// The state after these steps, until it is loaded.
    pub(super) found: Option<(Restored, Catalog)>,
    pub(in super::super) saver: Option<Saver>,
    /// Held until the store is opened, which locks the folders itself.
    pub(super) locks: Vec<Box<dyn Guard>>,
    /// The newest checkpoint at the time of the inspection, to detect changes since.
    pub(super) newest: Option<Name>,
}

impl Start {
    /// Fails if another process has changed the folders since they were inspected.
    pub(super) fn open(self, trial: &Trial<'_>, places: &Places) -> Result<Self, Error> {
        drop(self.locks);
        let saver = Saver::open(trial, places)?;
        if let Some((tier, name)) = newest(saver.store.tiers())?.filter(|(_, name)| Some(*name) != self.newest) {
            return Err(Error::Occupied { path: saver.store.tiers()[tier].dir.clone(), step: name.step });
        }
        Ok(Self { saver: Some(saver), locks: Vec::new(), ..self })
    }

    pub(in super::super) fn load(&mut self, consumer: &mut dyn Consumer) -> Result<(), Error> {
        if let Some((restored, catalog)) = self.found.take() {
            let is_learnt = consumer.view()?.is_some();
            match is_learnt {
                true => consumer.go_on(self.step, Some(&state::loaded(&restored, &catalog)?))?,
                false => consumer.go_on(self.step, None)?,
            }
        }
        self.saver.as_mut().map_or(Ok(()), |saver| saver.prepare(consumer))
    }

    /// Ends a run that has no steps left: drains what an earlier run left, unless cancelled, and returns a note.
    pub(in super::super) fn nothing_left(
        self,
        trial: &Trial<'_>,
        observer: Observer<'_>,
    ) -> Result<Vec<String>, Error> {
        let (step, wanted) = (self.step, trial.n_steps);
        let text = format!("nothing left to do: the checkpoint is of step {step}, and {wanted} were requested");
        let mut notes = Vec::new();
        tell(text, observer, &mut notes);
        let Some(saves) = &trial.plan.saves else { return Ok(notes) };
        if let Some(saver) = self.open(trial, &saves.places)?.saver {
            match drain(&saver.store, observer) {
                Err(StoreError::Stopped) => {}
                other => other?,
            }
            let closed = saver.store.close();
            if closed.n_undrained > 0 {
                tell(left_to_drain(&saver.places, closed.n_undrained), observer, &mut notes);
            }
            if let Some(error) = closed.errors.into_iter().next() {
                return Err(error.into());
            }
        }
        Ok(notes)
    }
}

/// Drains until done or cancelled.
fn drain(store: &Store, observer: Observer<'_>) -> Result<(), StoreError> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("forebay:drain".to_owned());
        // Without a spare thread, a cancellation is not noticed.
        let Ok(draining) = thread.spawn_scoped(scope, || store.drain()) else { return store.drain().map(drop) };
        while !draining.is_finished() {
            if observer.is_cancelled() {
                store.stop_draining();
            }
            observer.tell(Event::Draining { n_left: store.undrained().n_copies });
            std::thread::sleep(LOOK);
        }
        draining.join().expect("no drain panics").map(drop)
    })
}

/// Finds the checkpoint to resume from and opens the places; does neither if every run has its own folders.
pub(in super::super) fn begin(
    trial: &Trial<'_>,
    observer: Observer<'_>,
    notes: &mut Vec<String>,
) -> Result<Start, Error> {
    let Some(Saves { places, resume }) = &trial.plan.saves else { return Ok(Start::default()) };
    if is_scratch(trial.plan) {
        remove_left_overs(places).into_iter().for_each(|text| tell(text, observer, notes));
        return Ok(Start::default());
    }
    let tiers = places.tiers();
    let locks = locked(&tiers)?;
    let newest = newest(&tiers)?;
    let name = newest.map(|(_, name)| name);
    let start = match (*resume, newest) {
        (false, Some((tier, name))) => {
            return Err(Error::Occupied { path: tiers[tier].dir.clone(), step: name.step });
        }
        (false, None) => Start::default(),
        (true, None) => {
            tell(format!("no checkpoint in {}: training starts from scratch", folders(places)), observer, notes);
            Start::default()
        }
        (true, Some(_)) => found(trial, tiers, observer, notes)?,
    };
    remove_left_overs(places).into_iter().for_each(|text| tell(text, observer, notes));
    Ok(Start { locks, newest: name, ..start })
}

/// Refuses folders with checkpoints for a run from scratch. Neither changes nor locks anything.
pub(in super::super) fn check(plan: &Plan) -> Result<(), Error> {
    let Some(saves) = plan.saves.as_ref().filter(|saves| !is_scratch(plan) && !saves.resume) else {
        return Ok(());
    };
    let tiers = saves.places.tiers();
    match newest(&tiers)? {
        Some((tier, name)) => Err(Error::Occupied { path: tiers[tier].dir.clone(), step: name.step }),
        None => Ok(()),
    }
}

fn locked(tiers: &[Tier]) -> Result<Vec<Box<dyn Guard>>, Error> {
    let holder = format!("process {}", std::process::id());
    let mut locks = Vec::new();
    for tier in tiers {
        match tier.fs.lock(&tier.lock_path(), &holder) {
            Err(StoreError::NotFound { .. }) => {}
            lock => locks.push(lock?),
        }
    }
    Ok(locks)
}

fn tell(text: String, observer: Observer<'_>, notes: &mut Vec<String>) {
    observer.tell(Event::Remark { text: text.clone() });
    notes.push(text);
}

fn folders(places: &Places) -> String {
    let dirs: Vec<String> = places.nearest_first().map(|place| place.dir.escaped().into_owned()).collect();
    dirs.join(" and ")
}

/// The newest checkpoint, intact or not, with its tier.
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

/// The checkpoints of a tier; none if the folder does not exist yet.
fn names(tier: &Tier) -> Result<Vec<Name>, Error> {
    match tier.names() {
        Err(StoreError::NotFound { .. }) => Ok(Vec::new()),
        names => names.map_err(Error::from),
    }
}

/// Refuses a checkpoint of another run.
fn found(
    trial: &Trial<'_>,
    mut tiers: Vec<Tier>,
    observer: Observer<'_>,
    notes: &mut Vec<String>,
) -> Result<Start, Error> {
    observer.tell(Event::phase("reading the newest checkpoint"));
    // A folder may not exist yet.
    tiers.retain(|tier| !matches!(tier.names(), Err(StoreError::NotFound { .. })));
    let restored = restore(&tiers)?;
    let path = tiers[restored.tier].path_of(restored.name);
    let catalog = catalog_of(&restored)?;
    let identity = Identity::of(trial);
    if let Some(what) = identity.difference(&catalog.notes) {
        return Err(Error::OtherRun { path, what });
    }
    let positions = identity::positions(&catalog.notes);
    if trial.data.is_some() && positions.len() as u64 != trial.site.ranks.size() {
        return Err(Error::OtherRun { path, what: "it does not record the number of samples used".to_owned() });
    }
    restored.passed_over.iter().for_each(|one| tell(passed(one), observer, notes));
    identity.other_rate(&catalog.notes).into_iter().for_each(|text| tell(text, observer, notes));
    let step = restored.name.step;
    tell(format!("resumed after step {step} from {}", path.escaped()), observer, notes);
    Ok(Start { step, positions, found: Some((restored, catalog)), ..Start::default() })
}

fn passed(one: &PassedOver) -> String {
    format!("passed over {one}")
}

/// The catalog, in whichever format it is.
pub(super) fn catalog_of(restored: &Restored) -> Result<Catalog, Error> {
    let files = restored.by_name();
    let known = files.keys().find_map(|file| format::recognise(file));
    let (format, stem) = known.unwrap_or((format::FORMATS[0], super::STEM));
    Ok(format.open(stem, &files)?)
}
