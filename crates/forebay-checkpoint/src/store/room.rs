//! Frees space for the next checkpoint: what may be removed from a tier, and when.
//!
//! A tier removes a checkpoint only when nothing is lost: the next tier has an identical copy that was read back, or no
//! rule keeps the checkpoint and a newer one is known to be good. A checkpoint is known to be good if this store wrote
//! or read it; one that was found at opening is read before anything is removed in its favour.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use super::state::{About, Health};
use super::{Shared, WhenBehind};
use crate::parallel::Pace;
use crate::verify::{read_manifest, verify_paced};
use crate::{Damage, Error, Name, Result};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    Made,
    Skip,
}

/// What happens to damaged checkpoints that the rules do not keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Damaged {
    /// They stay for inspection, unless a farther tier has a good copy.
    Stay,
    /// They are removed if a newer one is good.
    Go,
}

impl Shared {
    /// Frees space on a tier for a save; applies the policy if there is none.
    pub(super) fn make_room(&self, tier: usize, bytes: u64, pace: &Pace<'_>) -> Result<Room> {
        let mut has_waited = false;
        let n_rounds = self.lock().n_rounds;
        loop {
            pace.before(0)?;
            let seen = self.lock().n_changes;
            if self.has_room(tier, bytes)? || self.remove_for_room(tier) {
                if self.has_room(tier, bytes)? {
                    return Ok(Room::Made);
                }
                continue;
            }
            if !self.can_wait(tier, n_rounds)? {
                // The drain may have freed space and ended since the last check.
                if self.lock().n_changes != seen {
                    continue;
                }
                return Err(self.no_room(tier, bytes)?);
            }
            match self.options.when_behind {
                WhenBehind::Skip => return Ok(Room::Skip),
                WhenBehind::Coalesce if self.drop_pending(tier)? => continue,
                WhenBehind::Coalesce | WhenBehind::Wait => {}
            }
            self.lock().counts.waited += u64::from(!std::mem::replace(&mut has_waited, true));
            self.wait_for_change(seen, pace)?;
        }
    }

    /// Whether the drain will free space here. If a drain that began after `n_rounds` failed, returns its error.
    fn can_wait(&self, tier: usize, n_rounds: u64) -> Result<bool> {
        let mut state = self.lock();
        if !self.is_background() || tier + 1 == self.tiers.len() {
            return Ok(false);
        }
        if state.is_draining || state.drain_wanted {
            return Ok(true);
        }
        if state.next_to_drain(&self.tiers, &BTreeSet::new(), false).is_none() {
            return Ok(false);
        }
        match &state.drain_error {
            Some(error) if state.n_rounds > n_rounds => Err(error.clone()),
            // Ask the drain to try again.
            _ => {
                state.drain_wanted = true;
                self.change.notify_all();
                Ok(true)
            }
        }
    }

    pub(super) fn has_room(&self, tier: usize, bytes: u64) -> Result<bool> {
        let used = self.lock().used(tier);
        Ok(self.tiers[tier].room(used)? >= bytes)
    }

    /// The error when no checkpoint of a tier may be removed.
    pub(super) fn no_room(&self, tier: usize, wanted: u64) -> Result<Error> {
        // Release the lock first: querying the file system may take long.
        let used = self.lock().used(tier);
        let free = self.tiers[tier].room(used)?;
        Ok(Error::NoRoom { path: self.tiers[tier].dir.clone(), wanted, free })
    }

    /// Removes the oldest checkpoint of a tier that may be removed, even one that the rules keep; false if there is
    /// none. If one cannot be removed, tries the next.
    pub(super) fn remove_for_room(&self, tier: usize) -> bool {
        let is_last = tier + 1 == self.tiers.len();
        let mut candidates: Vec<Name> = self.lock().tiers[tier].keys().copied().collect();
        if is_last {
            // Those that the rules remove anyway once the new checkpoint exists.
            let mut keep = self.tiers[tier].keep.clone();
            keep.last = keep.last.saturating_sub(1);
            let kept = keep.kept(&self.lock().sound(tier));
            candidates.retain(|name| !kept.contains(name));
        }
        let _turn = self.removing.lock().expect("no holder of this lock panics");
        candidates.into_iter().any(|name| {
            let outcome = self.may_go(tier, name, Damaged::Stay).and_then(|may| Ok(may && self.remove(tier, name)?));
            outcome.unwrap_or_else(|error| {
                self.lock().troubles.insert(Some((tier, name)), error);
                false
            })
        })
    }

    /// Removes from a tier what its rules do not keep. One failure does not hold up the others.
    pub(super) fn prune(&self, tier: usize, damaged: Damaged, troubles: &mut Vec<(About, Error)>) {
        let _ = self.prune_unless(tier, damaged, troubles, || false);
    }

    /// The same, but stops on request; checkpoints not removed by then are intact.
    pub(super) fn prune_unless(
        &self,
        tier: usize,
        damaged: Damaged,
        troubles: &mut Vec<(About, Error)>,
        is_to_stop: impl Fn() -> bool,
    ) -> Result<()> {
        let unkept = || {
            let state = self.lock();
            let kept = self.tiers[tier].keep.kept(&state.sound(tier));
            state.tiers[tier].keys().filter(|name| !kept.contains(name)).copied().collect::<Vec<_>>()
        };
        for name in unkept() {
            let _turn = self.removing.lock().expect("no holder of this lock panics");
            let outcome = self.may_go(tier, name, damaged).and_then(|may| {
                // Others may have turned out to be damaged and no longer count.
                if may && unkept().contains(&name) { self.remove(tier, name) } else { Ok(false) }
            });
            troubles.extend(outcome.err().map(|error| (Some((tier, name)), error)));
            if is_to_stop() {
                return Err(Error::Stopped);
            }
        }
        Ok(())
    }

    fn may_go(&self, tier: usize, name: Name, damaged: Damaged) -> Result<bool> {
        let (is_copied, is_wanted) = {
            let state = self.lock();
            if state.copying == Some((tier, name)) || !state.tiers[tier].contains_key(&name) {
                return Ok(false);
            }
            match self.tiers.get(tier + 1) {
                Some(_) => {
                    let is_sound = state.sound(tier).contains_key(&name);
                    let is_wanted = is_sound && state.wanted(&self.tiers, tier + 1).contains(&name);
                    (state.tiers[tier + 1].contains_key(&name), is_wanted)
                }
                None => (false, false),
            }
        };
        if is_copied && self.is_copy_good(tier, name)? {
            return Ok(true);
        }
        let is_damaged = self.lock().tiers[tier].get(&name).is_some_and(|entry| entry.health == Health::Damaged);
        let is_left_alone = is_damaged && damaged == Damaged::Stay;
        Ok(!is_wanted && !is_left_alone && self.has_newer_good(tier, name))
    }

    /// Whether the next tier's checkpoint with this name is good and identical.
    fn is_copy_good(&self, tier: usize, name: Name) -> Result<bool> {
        if !self.is_good(tier + 1, name) {
            return Ok(false);
        }
        match (read_manifest(&self.tiers[tier], name), read_manifest(&self.tiers[tier + 1], name)) {
            (Ok(near), Ok(far)) if near != far => Err(Error::Conflict { path: self.tiers[tier + 1].path_of(name) }),
            // A nearer copy that is itself damaged is no loss.
            (Err(Damage::Unreadable { .. }), _) | (_, Err(_)) => Ok(false),
            _ => Ok(true),
        }
    }

    fn has_newer_good(&self, tier: usize, name: Name) -> bool {
        let newer: Vec<Name> = {
            let state = self.lock();
            let newer = state.tiers[tier].range(name..).map(|(newer, _)| *newer).filter(|newer| *newer != name);
            newer.collect()
        };
        newer.into_iter().rev().any(|newer| self.is_good(tier, newer))
    }

    /// Whether a checkpoint is good; reads it if that is not known.
    pub(super) fn is_good(&self, tier: usize, name: Name) -> bool {
        let health = self.lock().tiers[tier].get(&name).map(|entry| entry.health);
        if health != Some(Health::Unknown) {
            return health == Some(Health::Good);
        }
        let pace = self.drain_pace();
        let found = match verify_paced(&self.tiers[tier], name, &pace) {
            Ok(_) => Health::Good,
            // A checkpoint that cannot be read now may be readable later: neither good nor removable.
            Err(Damage::Unreadable { .. }) => Health::Unknown,
            Err(_) => Health::Damaged,
        };
        self.lock().set_health(tier, name, found);
        found == Health::Good
    }

    /// Removes a checkpoint, unless it is being copied or contains foreign files.
    fn remove(&self, tier: usize, name: Name) -> Result<bool> {
        let mut state = self.lock();
        if state.copying == Some((tier, name)) {
            return Ok(false);
        }
        // From now on no copy of it starts.
        let Some(entry) = state.tiers[tier].remove(&name) else { return Ok(false) };
        drop(state);
        let outcome = self.tiers[tier].discard(name);
        let is_gone = matches!(outcome, Ok(true)) || self.tiers[tier].names().is_ok_and(|names| !names.contains(&name));
        let mut state = self.lock();
        if is_gone {
            state.counts.removed += 1;
            if !state.tiers.iter().any(|others| others.contains_key(&name)) {
                state.supersede(name);
            }
        } else {
            state.tiers[tier].insert(name, entry);
        }
        drop(state);
        self.changed();
        outcome
    }

    /// Drops the oldest checkpoint that waits to be drained if a newer good one waits too; false if none may be
    /// dropped.
    fn drop_pending(&self, tier: usize) -> Result<bool> {
        let _turn = self.removing.lock().expect("no holder of this lock panics");
        let pending: Vec<Name> = {
            let state = self.lock();
            let is_free = |name: &&Name| state.copying != Some((tier, **name));
            state.tiers[tier].keys().filter(is_free).copied().collect()
        };
        for name in pending {
            if self.has_newer_good(tier, name) && self.remove(tier, name)? {
                self.lock().counts.superseded += 1;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The drain's rate limit, lifted while a save waits for it.
    pub(super) fn drain_pace(&self) -> Pace<'_> {
        Pace::new(self.options.drain_bytes_per_s, &self.stop_draining, &self.hurry)
    }

    pub(super) fn is_background(&self) -> bool {
        self.options.drains_behind && !self.stop_draining.load(Ordering::Relaxed)
    }
}
