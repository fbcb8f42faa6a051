//! The drain: what a farther tier lacks and wants is copied there, read back, and only then may go from the nearer one.
//!
//! What is left to do is seen from the tiers themselves, so that a drain goes on after a crash where it was, and needs
//! no journal. A copy that was cut off has no checkpoint's name and is made anew.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Shared;
use super::state::{Entry, Health, Stage};
use crate::commit::{Writing, commit};
use crate::fs::lower_io_priority;
use crate::source::Copied;
use crate::verify::{read_manifest, verify_paced};
use crate::{Damage, Error, Name, Progress, Result};

impl Shared {
    /// What the drain thread does: drains whenever there is something to drain, until it is told to stop.
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
            (state.drain_wanted, state.is_draining) = (false, true);
            drop(state);
            let outcome = self.drain_all(None);
            let mut state = self.lock();
            // At once, so that whoever is told by a wait finds it told to the next call, too.
            (state.is_draining, state.drain_error) = (false, outcome.as_ref().err().cloned());
            state.errors.extend(outcome.err().filter(|error| !matches!(error, Error::Stopped)));
            drop(state);
            self.changed();
        }
    }

    /// Copies all that farther tiers lack and want; returns how many copies were made.
    pub(super) fn drain_all(&self, progress: Option<&Progress<'_>>) -> Result<usize> {
        let _turn = self.draining.lock().expect("no holder of this lock panics");
        let (mut n_drained, mut first_damaged) = (0, None);
        loop {
            let next = {
                let mut state = self.lock();
                state.supersede_unwanted(&self.tiers);
                state.copying = state.next_to_drain(&self.tiers);
                state.copying
            };
            self.changed();
            let Some((tier, name)) = next else { break };
            let outcome = self.drain_one(tier, name, progress);
            let mut state = self.lock();
            state.copying = None;
            let is_lost = state.tiers[tier].get(&name).is_some_and(|entry| entry.health == Health::Damaged);
            drop(state);
            match outcome {
                Ok(()) => n_drained += 1,
                Err(Error::Stopped) => return Err(Error::Stopped),
                Err(source) => {
                    let error = Error::Background { step: name.step, what: "drained", source: Box::new(source) };
                    // One that is damaged where it lies does not hold up the others.
                    if !is_lost {
                        return Err(error);
                    }
                    first_damaged.get_or_insert(error);
                    continue;
                }
            }
            self.tidy_after(tier)?;
        }
        (0..self.tiers.len()).try_for_each(|tier| self.prune(tier))?;
        first_damaged.map_or(Ok(n_drained), Err)
    }

    fn drain_one(&self, from: usize, name: Name, progress: Option<&Progress<'_>>) -> Result<()> {
        let pace = self.drain_pace().telling(progress);
        let (near, far) = (&self.tiers[from], &self.tiers[from + 1]);
        let path = near.path_of(name);
        let manifest = Arc::new(read_manifest(near, name).map_err(|damage| self.found_damaged(from, name, damage))?);
        if self.lock().tiers[from + 1].contains_key(&name) {
            // A copy that does not verify: the good one takes its place.
            self.discard_copy(from + 1, name)?;
        }
        let bytes = super::bytes_on_disk(manifest.files.iter().map(|file| file.len), manifest.chunk_bytes);
        while !self.has_room(from + 1, bytes)? {
            if !self.remove_for_room(from + 1)? {
                return Err(self.no_room(from + 1, bytes)?);
            }
        }
        let source = Copied::open(near, &path, Arc::clone(&manifest), &pace)?;
        let writing = Writing { chunk_bytes: manifest.chunk_bytes as usize, durability: self.options.durability };
        commit(far, name, manifest.metric, &source, writing).map_err(|error| match error {
            Error::Damaged { path: at, damage } if at == path => self.found_damaged(from, name, damage),
            other => other,
        })?;
        let read_back = verify_paced(far, name, &pace);
        let health = match &read_back {
            Ok(_) => Health::Good,
            Err(Damage::Unreadable { .. }) => Health::Unknown,
            Err(_) => Health::Damaged,
        };
        let mut state = self.lock();
        state.tiers[from + 1].insert(name, Entry { bytes: manifest.n_bytes(), metric: manifest.metric, health });
        drop(state);
        if let Err(damage) = read_back {
            pace.before(0)?; // A stop is no damage.
            return Err(Error::Damaged { path: far.path_of(name), damage });
        }
        self.drained(from, name);
        Ok(())
    }

    /// Notes that a checkpoint is safe on the next tier.
    fn drained(&self, from: usize, name: Name) {
        let mut state = self.lock();
        state.counts.drained += 1;
        state.set_health(from, name, Health::Good);
        if from + 2 == self.tiers.len() {
            state.set_stage(name, Stage::DurableSlow);
        }
        drop(state);
        self.changed();
    }

    /// Removes what need not stay, and then what it takes for the next checkpoint to find room at once.
    fn tidy_after(&self, from: usize) -> Result<()> {
        self.prune(from + 1)?;
        self.prune(from)?;
        let next_bytes = self.lock().last_bytes;
        while !self.has_room(from, next_bytes)? && self.remove_for_room(from)? {}
        Ok(())
    }

    fn found_damaged(&self, tier: usize, name: Name, damage: Damage) -> Error {
        let error = Error::Damaged { path: self.tiers[tier].path_of(name), damage: damage.clone() };
        if !matches!(damage, Damage::Unreadable { .. }) {
            let mut state = self.lock();
            state.set_health(tier, name, Health::Damaged);
            state.set_stage(name, Stage::Failed(error.clone()));
        }
        error
    }

    fn discard_copy(&self, tier: usize, name: Name) -> Result<()> {
        let _turn = self.removing.lock().expect("no holder of this lock panics");
        self.tiers[tier].discard(name)?;
        self.lock().tiers[tier].remove(&name);
        Ok(())
    }
}
