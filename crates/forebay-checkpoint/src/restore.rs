//! Finds the newest valid checkpoint on any tier.
//!
//! Tries the newest first, and of one checkpoint the nearest copy first. A checkpoint is returned only if it verifies
//! while it is read and opens in the format that its file names imply. The result lists every checkpoint that was
//! skipped, and why. No lock is taken: a checkpoint that is removed meanwhile is simply skipped.

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
    /// Its verified manifest.
    pub manifest: Manifest,
    pub files: Vec<Loaded>,
    /// Newer or nearer checkpoints that were skipped.
    pub passed_over: Vec<PassedOver>,
}

impl Restored {
    /// The content of a file.
    pub fn file(&self, name: &str) -> Option<&[u8]> {
        self.files.iter().find(|file| file.name == name).map(Loaded::bytes)
    }

    /// Opens it in the format that its file names imply. Data that was invalid when written passes verification but
    /// does not open.
    fn open(&self) -> std::result::Result<(), Damage> {
        let Some((format, stem)) = self.manifest.format() else { return Ok(()) };
        format
            .open(stem, &self.by_name())
            .map(drop)
            .map_err(|error| Damage::Format { what: forebay_units::chain(&error) })
    }

    /// Returns the memory for the next restore.
    pub fn give_back(self, memory: &mut Memory) {
        self.files.into_iter().for_each(|file| memory.give(file.memory));
    }

    /// All files by name, as formats expect them.
    pub fn by_name(&self) -> BTreeMap<String, &[u8]> {
        self.files.iter().map(|file| (file.name.clone(), file.bytes())).collect()
    }
}

/// How often the search restarts because tiers changed meanwhile.
const TIMES_ANEW: usize = 8;

/// Which checkpoint to restore, and a progress callback.
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

/// Reads the newest valid checkpoint from the nearest tier that has it.
///
/// # Errors
/// [`Error::NothingGood`] with every checkpoint that was skipped, and why.
pub fn restore(tiers: &[Tier]) -> Result<Restored> {
    restore_with(tiers, Wanted::default(), &mut Memory::default())
}

/// Reads the requested checkpoint into recycled memory where it fits. If a step was saved several times, reads the last
/// valid one. [`Restored::give_back`] returns the memory.
///
/// # Errors
/// [`Error::NothingGood`] with every checkpoint that was skipped, and why.
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
            // A skipped checkpoint may have moved to a farther tier since the tiers were listed.
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

/// All finished checkpoints with the tiers that have them, nearest first. Unreadable tiers are skipped.
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
