//! The state of a store: where each checkpoint is and whether it is intact, who waits for what, and which errors
//! occurred.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::staging::Waiting;
use crate::tier::Tier;
use crate::{Damage, Error, Name, Region, verify};

/// What is known about a checkpoint's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Health {
    /// Present when the store was opened; not read since.
    Unknown,
    /// Written by this store without an error, or read completely.
    Good,
    Damaged,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Entry {
    pub(super) bytes: u64,
    pub(super) metric: Option<f64>,
    pub(super) health: Health,
}

#[derive(Debug, Clone)]
pub(super) enum Stage {
    Begun,
    Staged,
    DurableFast,
    DurableSlow,
    Skipped,
    Superseded {
        /// It was durable on the first tier before.
        was_durable: bool,
    },
    Failed(Error),
}

/// What a store has done since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Checkpoints made durable on the tier they were first written to.
    pub saved: u64,
    /// Saves skipped because earlier ones were not finished.
    pub skipped: u64,
    /// Saves replaced by a newer one because there was no space for both.
    pub superseded: u64,
    /// Saves that had to wait for earlier ones.
    pub waited: u64,
    /// Copies made to a farther tier and verified there.
    pub drained: u64,
    pub removed: u64,
}

/// What farther tiers need, or have but nobody has read since the store was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Undrained {
    /// Copies to be made, or to be read back.
    pub n_copies: usize,
    pub n_bytes: u64,
}

/// Tier and name of the checkpoint that caused the error; `None` if no checkpoint did.
pub(super) type About = Option<(usize, Name)>;

#[derive(Default)]
pub(super) struct State {
    pub(super) tiers: Vec<BTreeMap<Name, Entry>>,
    /// All names ever assigned, so none is assigned twice.
    pub(super) taken: BTreeSet<Name>,
    /// Tier and name of the checkpoint being copied, which must stay until then.
    pub(super) copying: Option<(usize, Name)>,
    pub(super) stages: BTreeMap<Name, Stage>,
    /// Background saves that failed after the caller had continued: each fails one later save.
    pub(super) errors: VecDeque<Error>,
    /// Other unreported errors, by subject; a later success removes them.
    pub(super) troubles: BTreeMap<About, Error>,
    /// Checkpoints whose damage is visible from the manifest and was reported.
    pub(super) told: BTreeSet<(usize, Name)>,
    pub(super) counts: Counts,
    pub(super) drain_wanted: bool,
    pub(super) is_draining: bool,
    /// Rounds of the drain thread: a waiting save compares it to learn whether a later drain has failed.
    pub(super) n_rounds: u64,
    /// The first error of the drain; retried on demand.
    pub(super) drain_error: Option<Error>,
    pub(super) is_closed: bool,
    /// States copied into memory, waiting to be written, oldest first.
    pub(super) queue: VecDeque<Waiting>,
    pub(super) pool: Vec<Region>,
    /// Bytes of all regions, in use or not.
    pub(super) pool_bytes: u64,
    /// The size of the last checkpoint, used as an estimate for the next one.
    pub(super) last_bytes: u64,
    /// Incremented on every change that a thread may wait for.
    pub(super) n_changes: u64,
}

impl State {
    /// The current content of the tiers, according to the manifests.
    pub(super) fn survey(tiers: &[Tier]) -> crate::Result<Self> {
        let mut state = Self::default();
        for tier in tiers {
            let names = tier.names_of_all()?;
            state.tiers.push(names.iter().filter_map(|name| Some((*name, entry_of(tier, *name)?))).collect());
            // A foreign folder still occupies its name.
            state.taken.extend(names);
        }
        Ok(state)
    }

    /// An unused name for a checkpoint of this step.
    pub(super) fn take_name(&mut self, step: u64) -> Name {
        let of_step = Name { step, take: 0 }..=Name { step, take: u32::MAX };
        let on_tiers = self.tiers.iter().flat_map(|tier| tier.range(of_step.clone()).map(|(name, _)| name.take));
        let before = on_tiers.chain(self.taken.range(of_step.clone()).map(|name| name.take)).max();
        let name = Name { step, take: before.map_or(0, |take| take + 1) };
        self.taken.insert(name);
        name
    }

    /// Bytes of the checkpoints on a tier.
    pub(super) fn used(&self, tier: usize) -> u64 {
        self.tiers[tier].values().map(|entry| entry.bytes).sum()
    }

    /// The undamaged checkpoints on a tier with their metrics.
    pub(super) fn sound(&self, tier: usize) -> BTreeMap<Name, Option<f64>> {
        let sound = self.tiers[tier].iter().filter(|(_, entry)| entry.health != Health::Damaged);
        sound.map(|(name, entry)| (*name, entry.metric)).collect()
    }

    /// Those that a tier would keep if it had everything that the previous tier has.
    pub(super) fn wanted(&self, tiers: &[Tier], tier: usize) -> BTreeSet<Name> {
        let mut all = self.sound(tier);
        all.extend(self.sound(tier - 1));
        tiers[tier].keep.kept(&all)
    }

    /// What a tier needs from the previous one, oldest first. A copy found there and not read since counts as missing
    /// while the previous tier has it too: a drain may have been interrupted before reading it back.
    fn lacking(&self, tiers: &[Tier], to: usize) -> Vec<Name> {
        let near = self.sound(to - 1);
        let is_lacking = |name: &Name| match self.tiers[to].get(name).map(|entry| entry.health) {
            Some(Health::Good) => false,
            Some(Health::Unknown | Health::Damaged) | None => near.contains_key(name),
        };
        self.wanted(tiers, to).into_iter().filter(is_lacking).collect()
    }

    pub(super) fn undrained_to(&self, tiers: &[Tier], to: usize) -> Undrained {
        let lacking = self.lacking(tiers, to);
        let bytes = |name: &Name| self.tiers[to - 1].get(name).map_or(0, |entry| entry.bytes);
        Undrained { n_copies: lacking.len(), n_bytes: lacking.iter().map(bytes).sum() }
    }

    /// What farther tiers need from nearer ones.
    pub(super) fn undrained(&self, tiers: &[Tier]) -> Undrained {
        (1..tiers.len()).map(|to| self.undrained_to(tiers, to)).fold(Undrained::default(), |sum, one| Undrained {
            n_copies: sum.n_copies + one.n_copies,
            n_bytes: sum.n_bytes + one.n_bytes,
        })
    }

    /// The next untried checkpoint that a tier needs, with the tier that has it: the oldest, or the newest if space may
    /// not suffice for all.
    pub(super) fn next_to_drain(&self, tiers: &[Tier], tried: &BTreeSet<(usize, Name)>, is_short: bool) -> About {
        (1..tiers.len()).rev().find_map(|to| {
            let mut left =
                self.lacking(tiers, to).into_iter().map(|name| (to - 1, name)).filter(|one| !tried.contains(one));
            if is_short { left.next_back() } else { left.next() }
        })
    }

    /// Those that wait for the last tier and will never reach it because it would not keep them.
    pub(super) fn supersede_unwanted(&mut self, tiers: &[Tier]) {
        for to in 1..tiers.len() {
            let wanted = self.wanted(tiers, to);
            let farther = |state: &Self, name: &Name| state.tiers[to..].iter().any(|tier| tier.contains_key(name));
            let here: Vec<Name> = self.tiers[to - 1].keys().copied().collect();
            for name in here {
                if !wanted.contains(&name) && !farther(self, &name) {
                    self.supersede(name);
                }
            }
        }
    }

    /// Wakes waiters of a save that a newer one replaced.
    pub(super) fn supersede(&mut self, name: Name) {
        if let Some(stage @ (Stage::Begun | Stage::Staged | Stage::DurableFast)) = self.stages.get_mut(&name) {
            *stage = Stage::Superseded { was_durable: matches!(stage, Stage::DurableFast) };
        }
    }

    /// Sets a save's stage and wakes its waiters.
    pub(super) fn set_stage(&mut self, name: Name, stage: Stage) {
        if let Some(known) = self.stages.get_mut(&name) {
            *known = stage;
        }
    }

    /// Damaged checkpoints on a nearer tier that have no good copy farther away and were not reported.
    pub(super) fn untold(&self) -> Vec<(usize, Name)> {
        let near = self.tiers.len() - 1;
        let lost = |tier: usize, name: &Name| {
            let is_sound = |far: &BTreeMap<Name, Entry>| far.get(name).is_some_and(|e| e.health != Health::Damaged);
            !self.tiers[tier + 1..].iter().any(is_sound) && !self.told.contains(&(tier, *name))
        };
        let damaged = |(name, entry): (&Name, &Entry)| (entry.health == Health::Damaged).then_some(*name);
        let of = |tier: usize| self.tiers[tier].iter().filter_map(damaged).map(move |name| (tier, name));
        (0..near).flat_map(of).filter(|(tier, name)| lost(*tier, name)).collect()
    }

    pub(super) fn set_health(&mut self, tier: usize, name: Name, health: Health) {
        if let Some(entry) = self.tiers[tier].get_mut(&name) {
            entry.health = health;
        }
    }
}

/// Information from a manifest; `None` for a folder that is not one of our checkpoints.
fn entry_of(tier: &Tier, name: Name) -> Option<Entry> {
    match verify::read_manifest(tier, name) {
        Ok(manifest) => Some(Entry { bytes: manifest.n_bytes(), metric: manifest.metric, health: Health::Unknown }),
        Err(Damage::NoManifest | Damage::NotAFolder) => None,
        Err(Damage::Unreadable { .. }) => Some(Entry { bytes: 0, metric: None, health: Health::Unknown }),
        Err(_) => Some(Entry { bytes: 0, metric: None, health: Health::Damaged }),
    }
}
