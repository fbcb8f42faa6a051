//! The drain: copies missing checkpoints to the farther tier and reads them back. Only then may the nearer tier remove
//! them.
//!
//! The remaining work is derived from the tiers themselves. A drain therefore resumes after a crash and needs no
//! journal. An interrupted copy does not have the name of a checkpoint and is copied again. A copy that was not read
//! back because the process was killed is read back by the next drain.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Shared;
use super::room::Damaged;
use super::state::{About, Entry, Health, Stage};
use crate::commit::{Writing, commit};
use crate::fs::{PAGE, lower_io_priority};
use crate::parallel::Pace;
use crate::source::Copied;
use crate::verify::{read_manifest, verify_paced};
use crate::{Damage, Error, Manifest, Name, Progress, Result};

/// The result of one pass over everything that is to be drained.
#[derive(Default)]
struct Round {
    n_drained: usize,
    tried: BTreeSet<(usize, Name)>,
    troubles: Vec<(About, Error)>,
    is_stopped: bool,
}

impl Round {
    fn first_error(&self) -> Option<Error> {
        let first = self.troubles.first().map(|(_, error)| error.clone());
        first.or(self.is_stopped.then_some(Error::Stopped))
    }
}

impl Shared {
    /// Body of the drain thread: drains whenever there is work, until stopped.
    pub(super) fn drain_behind(&self) {
        lower_io_priority();
        loop {
            let mut state = self.lock();
            while !state.drain_wanted && !self.stop_draining.load(Ordering::Relaxed) {
                state = self.wait(state);
            }
            if self.stop_draining.load(Ordering::Relaxed) {
                return;
            }
            (state.drain_wanted, state.is_draining, state.drain_error) = (false, true, None);
            state.n_rounds += 1;
            drop(state);
            let round = self.drain_round(None);
            let mut state = self.lock();
            // Set this immediately, so a waiter that returns with an error also finds it in `take_errors`.
            (state.is_draining, state.drain_error) = (false, round.first_error());
            state.troubles.extend(round.troubles);
            drop(state);
            self.changed();
        }
    }

    /// Copies everything that farther tiers need. Returns the number of copies made, or the first unreported error.
    pub(super) fn drain_all(&self, progress: Option<&Progress<'_>>) -> Result<usize> {
        let round = self.drain_round(progress);
        let mut state = self.lock();
        state.troubles.extend(round.troubles);
        if round.is_stopped {
            return Err(Error::Stopped);
        }
        state.troubles.pop_first().map_or(Ok(round.n_drained), |(_, error)| Err(error))
    }

    /// Tries each checkpoint that a farther tier needs. One failure does not hold up the others.
    fn drain_round(&self, progress: Option<&Progress<'_>>) -> Round {
        let _turn = self.draining.lock().expect("no holder of this lock panics");
        let mut round = Round { troubles: self.tell_damaged(), ..Round::default() };
        while let Some((tier, name)) = self.begin_next(&round.tried) {
            let outcome = self.drain_one(tier, name, progress);
            self.lock().copying = None;
            round.tried.insert((tier, name));
            match outcome {
                Ok(is_copied) => round.n_drained += usize::from(is_copied),
                Err(Error::Stopped) => {
                    round.is_stopped = true;
                    return round;
                }
                Err(source) => {
                    let error = Error::Background { step: name.step, what: "drained", source: Box::new(source) };
                    round.troubles.push((Some((tier, name)), error));
                    continue;
                }
            }
            self.tidy_after(tier, &mut round.troubles);
        }
        (0..self.tiers.len()).for_each(|tier| self.prune(tier, Damaged::Stay, &mut round.troubles));
        round
    }

    /// A checkpoint whose manifest shows damage is not tried, but it is reported.
    fn tell_damaged(&self) -> Vec<(About, Error)> {
        let untold = self.lock().untold();
        self.lock().told.extend(&untold);
        let of = |(tier, name): (usize, Name)| {
            let damage = read_manifest(&self.tiers[tier], name).err()?;
            let source = Box::new(Error::Damaged { path: self.tiers[tier].path_of(name), damage });
            Some((Some((tier, name)), Error::Background { step: name.step, what: "drained", source }))
        };
        untold.into_iter().filter_map(of).collect()
    }

    /// Chooses the next checkpoint to drain and protects it from removal until it is drained.
    fn begin_next(&self, tried: &BTreeSet<(usize, Name)>) -> About {
        let is_short = (1..self.tiers.len()).any(|to| {
            let left = self.lock().undrained_to(&self.tiers, to);
            let bytes = super::bytes_on_disk([left.n_bytes].into_iter(), PAGE as u64);
            left.n_copies > 1 && !self.has_room(to, bytes).unwrap_or(true)
        });
        let mut state = self.lock();
        state.supersede_unwanted(&self.tiers);
        state.copying = state.next_to_drain(&self.tiers, tried, is_short);
        let next = state.copying;
        drop(state);
        self.changed();
        next
    }

    /// Ensures that the next tier has a good copy; false if it already had one.
    fn drain_one(&self, from: usize, name: Name, progress: Option<&Progress<'_>>) -> Result<bool> {
        let pace = self.drain_pace().telling(progress);
        let near = &self.tiers[from];
        let manifest = Arc::new(read_manifest(near, name).map_err(|damage| self.found_damaged(from, name, damage))?);
        let there = self.lock().tiers[from + 1].get(&name).map(|entry| entry.health);
        if there == Some(Health::Unknown) && self.is_there_already(from, name, &manifest, &pace)? {
            self.drained(from, name);
            return Ok(false);
        }
        if there.is_some() {
            // Replace a copy that fails verification with the good one.
            verify_paced(near, name, &pace).map_err(|damage| self.found_damaged(from, name, damage))?;
            self.discard_copy(from + 1, name)?;
        }
        let bytes = super::bytes_on_disk(manifest.files.iter().map(|file| file.len), manifest.chunk_bytes);
        while !self.has_room(from + 1, bytes)? {
            if !self.remove_for_room(from + 1) {
                return Err(self.no_room(from + 1, bytes)?);
            }
        }
        self.copy(from, name, &manifest, &pace)?;
        self.lock().counts.drained += 1;
        self.drained(from, name);
        Ok(true)
    }

    /// Reads the copy found on the next tier: is it the same checkpoint, and intact?
    fn is_there_already(&self, from: usize, name: Name, manifest: &Manifest, pace: &Pace<'_>) -> Result<bool> {
        let far = &self.tiers[from + 1];
        let found = verify_paced(far, name, pace);
        pace.before(0)?; // A stop is no damage.
        let (health, outcome) = match found {
            Ok(found) if found == *manifest => (Health::Good, Ok(true)),
            Ok(_) => (Health::Good, Err(Error::Conflict { path: far.path_of(name) })),
            Err(damage @ Damage::Unreadable { .. }) => {
                (Health::Unknown, Err(Error::Damaged { path: far.path_of(name), damage }))
            }
            Err(_) => (Health::Damaged, Ok(false)),
        };
        self.lock().set_health(from + 1, name, health);
        outcome
    }

    /// Copies a checkpoint to the next tier and reads it back.
    fn copy(&self, from: usize, name: Name, manifest: &Arc<Manifest>, pace: &Pace<'_>) -> Result<()> {
        let (near, far) = (&self.tiers[from], &self.tiers[from + 1]);
        let path = near.path_of(name);
        let damaged_here = |error| match error {
            Error::Damaged { path: at, damage } if at == path => self.found_damaged(from, name, damage),
            other => other,
        };
        let source = Copied::open(near, name, &path, Arc::clone(manifest), pace).map_err(damaged_here)?;
        let writing = Writing { chunk_bytes: manifest.chunk_bytes as usize, durability: self.options.durability };
        commit(far, name, manifest.metric, &source, writing).map_err(damaged_here)?;
        let read_back = verify_paced(far, name, pace);
        let health = match &read_back {
            Ok(_) => Health::Good,
            Err(Damage::Unreadable { .. }) => Health::Unknown,
            Err(_) => Health::Damaged,
        };
        let entry = Entry { bytes: manifest.n_bytes(), metric: manifest.metric, health };
        self.lock().tiers[from + 1].insert(name, entry);
        if let Err(damage) = read_back {
            pace.before(0)?; // A stop is no damage.
            return Err(Error::Damaged { path: far.path_of(name), damage });
        }
        self.lock().set_health(from, name, Health::Good);
        Ok(())
    }

    /// Marks a checkpoint as safe on the next tier.
    fn drained(&self, from: usize, name: Name) {
        let mut state = self.lock();
        state.troubles.remove(&Some((from, name)));
        if from + 2 == self.tiers.len() {
            state.set_stage(name, Stage::DurableSlow);
        }
        drop(state);
        self.changed();
    }

    /// Removes what the rules do not keep, then frees space for the next checkpoint in advance.
    fn tidy_after(&self, from: usize, troubles: &mut Vec<(About, Error)>) {
        self.prune(from + 1, Damaged::Stay, troubles);
        self.prune(from, Damaged::Stay, troubles);
        let next_bytes = self.lock().last_bytes;
        while !self.has_room(from, next_bytes).unwrap_or(true) && self.remove_for_room(from) {}
    }

    fn found_damaged(&self, tier: usize, name: Name, damage: Damage) -> Error {
        let error = Error::Damaged { path: self.tiers[tier].path_of(name), damage: damage.clone() };
        if !matches!(damage, Damage::Unreadable { .. }) {
            let mut state = self.lock();
            state.set_health(tier, name, Health::Damaged);
            state.told.insert((tier, name));
            state.set_stage(name, Stage::Failed(error.clone()));
        }
        error
    }

    fn discard_copy(&self, tier: usize, name: Name) -> Result<()> {
        let _turn = self.removing.lock().expect("no holder of this lock panics");
        if !self.tiers[tier].discard(name)? {
            return Err(Error::Conflict { path: self.tiers[tier].path_of(name) });
        }
        self.lock().tiers[tier].remove(&name);
        Ok(())
    }
}
