//! Finding the newest checkpoint that is good, wherever it is.
//!
//! Newest first, and of one checkpoint the nearest copy first. Nothing is returned that did not verify as it was read, or
//! that does not open as the format which its files' names tell;
//! what was wrong with each one passed over is part of the answer. No lock is taken: a checkpoint that is removed
//! meanwhile is one more that is passed over.

use std::collections::BTreeMap;

use forebay_units::PathText;

use crate::parallel::{Pace, Progress};
use crate::region::{Memory, Region};
use crate::tier::Tier;
use crate::{Damage, Error, Manifest, Name, PassedOver, Result, verify};

#[derive(Debug)]
pub struct Loaded {
    pub name: String,
    memory: Region,
    len: usize,
}

impl Loaded {
    pub fn bytes(&self) -> &[u8] {
        &self.memory[..self.len]
    }
}

/// A checkpoint that was found and verified.
#[derive(Debug)]
pub struct Restored {
    pub name: Name,
    /// The index of the tier it was read from.
    pub tier: usize,
    /// What it held when it was written, which it still does.
    pub manifest: Manifest,
    pub files: Vec<Loaded>,
    /// Newer or nearer ones that are not good.
    pub passed_over: Vec<PassedOver>,
}

impl Restored {
    /// The content of a file, by its name.
    pub fn file(&self, name: &str) -> Option<&[u8]> {
        self.files.iter().find(|file| file.name == name).map(Loaded::bytes)
    }

    /// Opens it by the format that its files' names tell: what was written badly verifies, and is of no use.
    fn open(&self) -> std::result::Result<(), Damage> {
        let Some((format, stem)) = self.manifest.format() else { return Ok(()) };
        format
            .open(stem, &self.by_name())
            .map(drop)
            .map_err(|error| Damage::Format { what: forebay_units::chain(&error) })
    }

    /// Leaves the memory to the next restore.
    pub fn give_back(self, memory: &mut Memory) {
        self.files.into_iter().for_each(|file| memory.give(file.memory));
    }

    /// All files by their names, as formats want them.
    pub fn by_name(&self) -> BTreeMap<String, &[u8]> {
        self.files.iter().map(|file| (file.name.clone(), file.bytes())).collect()
    }
}

/// How often everything is looked at anew because it changed meanwhile.
const TIMES_ANEW: usize = 8;

/// Which checkpoint is wanted, and a callback for progress.
#[derive(Default, Clone, Copy)]
pub struct Wanted<'a> {
    pub step: Option<u64>,
    /// Called after each chunk with its bytes.
    pub progress: Option<&'a Progress<'a>>,
}

impl Wanted<'_> {
    fn is(&self, name: Name) -> bool {
        self.step.is_none_or(|step| step == name.step)
    }
}

/// Reads the newest checkpoint that verifies from the nearest tier that has it.
///
/// # Errors
/// [`Error::NothingGood`] with what was found instead.
pub fn restore(tiers: &[Tier]) -> Result<Restored> {
    restore_with(tiers, Wanted::default(), &mut Memory::default())
}

/// Reads the checkpoint that is wanted, of a step saved several times the last good one, into memory that is there
/// already as far as it fits. [`Restored::give_back`] returns the memory.
///
/// # Errors
/// [`Error::NothingGood`] with what was found instead.
pub fn restore_with(tiers: &[Tier], wanted: Wanted<'_>, memory: &mut Memory) -> Result<Restored> {
    let mut n_anew = 0;
    let look = |unlisted: &mut Vec<PassedOver>| {
        let mut found = list(tiers, unlisted);
        found.retain(|name, _| wanted.is(*name));
        found
    };
    loop {
        let mut unlisted = Vec::new();
        let found = look(&mut unlisted);
        match restore_of(tiers, &found, unlisted, wanted, memory) {
            Ok(restored) if restored.passed_over.is_empty() => return Ok(restored),
            // One that was passed over may have been moved to a farther tier after the tiers were listed.
            other if n_anew < TIMES_ANEW && look(&mut Vec::new()) != found => {
                n_anew += 1;
                other.into_iter().for_each(|restored| restored.give_back(memory));
            }
            other => return other,
        }
    }
}

fn restore_of(
    tiers: &[Tier],
    found: &BTreeMap<Name, Vec<usize>>,
    mut passed_over: Vec<PassedOver>,
    wanted: Wanted<'_>,
    memory: &mut Memory,
) -> Result<Restored> {
    let pace = Pace::free().telling(wanted.progress);
    for (name, places) in found.iter().rev() {
        for tier in places {
            match verify::load(&tiers[*tier], *name, memory, &pace) {
                Ok((manifest, regions)) => {
                    let files = loaded(&manifest, regions);
                    let mut restored = Restored { name: *name, tier: *tier, files, manifest, passed_over };
                    let Err(damage) = restored.open() else { return Ok(restored) };
                    passed_over = std::mem::take(&mut restored.passed_over);
                    passed_over.push(PassedOver { tier: tiers[*tier].dir.clone(), name: Some(*name), damage });
                    restored.give_back(memory);
                }
                Err(damage) => {
                    passed_over.push(PassedOver { tier: tiers[*tier].dir.clone(), name: Some(*name), damage });
                }
            }
        }
    }
    let places: Vec<String> = tiers.iter().map(|tier| tier.dir.escaped().into_owned()).collect();
    Err(Error::NothingGood { step: wanted.step, places: places.join(", "), passed_over })
}

fn loaded(manifest: &Manifest, regions: Vec<Region>) -> Vec<Loaded> {
    let files = manifest.files.iter().zip(regions);
    files.map(|(sum, memory)| Loaded { name: sum.name.clone(), memory, len: sum.len as usize }).collect()
}

/// All finished checkpoints with the tiers that have them, nearest first. A tier that cannot be read is passed over.
pub fn list(tiers: &[Tier], passed_over: &mut Vec<PassedOver>) -> BTreeMap<Name, Vec<usize>> {
    let mut found: BTreeMap<Name, Vec<usize>> = BTreeMap::new();
    for (index, tier) in tiers.iter().enumerate() {
        match tier.names_of_all() {
            Ok(names) => names.into_iter().for_each(|name| found.entry(name).or_default().push(index)),
            Err(error) => {
                let damage = Damage::Unreadable { what: error.to_string() };
                passed_over.push(PassedOver { tier: tier.dir.clone(), name: None, damage });
            }
        }
    }
    found
}
