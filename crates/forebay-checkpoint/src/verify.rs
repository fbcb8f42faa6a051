//! Reads a whole checkpoint and checks it against its checksums.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::fs::{File, Kind, PAGE, Reading};
use crate::manifest::{FileSum, MANIFEST};
use crate::parallel::{self, Pace, Progress};
use crate::region::{Memory, Region};
use crate::tier::Tier;
use crate::{Damage, Error, Manifest, Name, damage};

/// Longer manifests are invalid: this length corresponds to a checkpoint of petabytes.
const MANIFEST_BYTES_MAX: u64 = 1 << 30;

/// Reads all of a checkpoint from its device and compares it with its manifest.
///
/// # Errors
/// The damage found.
pub fn verify(tier: &Tier, name: Name) -> Result<Manifest, Damage> {
    verify_paced(tier, name, &Pace::free())
}

/// The same, but returns early when `stop` is set. `progress` receives the bytes of each chunk; for an intact
/// checkpoint they add up to [`Manifest::n_bytes`].
///
/// # Errors
/// [`Error::Stopped`] within one chunk of the stop; [`Error::Damaged`] with the damage found.
pub fn verify_until(tier: &Tier, name: Name, progress: &Progress<'_>, stop: &AtomicBool) -> crate::Result<Manifest> {
    match verify_paced(tier, name, &Pace::free().telling(Some(progress)).until(stop)) {
        Err(Damage::Unreadable { .. }) if stop.load(Ordering::Relaxed) => Err(Error::Stopped),
        other => other.map_err(|damage| Error::Damaged { path: tier.path_of(name), damage }),
    }
}

pub(crate) fn verify_paced(tier: &Tier, name: Name, pace: &Pace<'_>) -> Result<Manifest, Damage> {
    let manifest = read_manifest_as(tier, name, Reading::Direct)?;
    for sum in &manifest.files {
        check_file(tier, name, &manifest, sum, None, pace)?;
    }
    Ok(manifest)
}

/// Reads all of a checkpoint into memory and verifies it; the files are in the manifest's order.
pub(crate) fn load(
    tier: &Tier,
    name: Name,
    memory: &mut Memory,
    pace: &Pace<'_>,
) -> Result<(Manifest, Vec<Region>), Damage> {
    let manifest = read_manifest(tier, name)?;
    let mut regions = Vec::new();
    for sum in &manifest.files {
        let outcome = load_file(tier, name, &manifest, sum, memory, &mut regions, pace);
        if let Err(damage) = outcome {
            regions.into_iter().for_each(|region| memory.give(region));
            return Err(damage);
        }
    }
    Ok((manifest, regions))
}

fn load_file(
    tier: &Tier,
    name: Name,
    manifest: &Manifest,
    sum: &FileSum,
    memory: &mut Memory,
    regions: &mut Vec<Region>,
    pace: &Pace<'_>,
) -> Result<(), Damage> {
    // Check before allocating: a corrupt manifest must not cause an allocation of terabytes.
    check_length(tier, name, sum)?;
    let mut region = memory.take(sum.len as usize).map_err(unreadable)?;
    let span = (sum.len as usize).next_multiple_of(PAGE);
    let outcome = check_file(tier, name, manifest, sum, Some(&mut region[..span]), pace);
    regions.push(region);
    outcome
}

/// Reads only the manifest: the content of the checkpoint when it was written.
///
/// # Errors
/// The damage found.
pub fn read_manifest(tier: &Tier, name: Name) -> Result<Manifest, Damage> {
    read_manifest_as(tier, name, Reading::Cached)
}

fn read_manifest_as(tier: &Tier, name: Name, reading: Reading) -> Result<Manifest, Damage> {
    let dir = tier.path_of(name);
    match tier.fs.kind(&dir) {
        Ok(Kind::Folder) => {}
        Ok(Kind::File | Kind::Other) => return Err(Damage::NotAFolder),
        Err(Error::NotFound { .. }) => return Err(Damage::NoManifest),
        Err(other) => return Err(unreadable(other)),
    }
    let file = open(tier, &dir, MANIFEST, reading)?.ok_or(Damage::NoManifest)?;
    let len = file.n_bytes().map_err(unreadable)?;
    if len > MANIFEST_BYTES_MAX {
        return Err(Damage::Foreign);
    }
    // Whole pages, so it can be read directly from the device.
    let mut bytes = Region::new(len as usize).map_err(unreadable)?;
    let n = file.read_at(0, &mut bytes).map_err(unreadable)?.min(len as usize);
    let manifest = Manifest::decode(&bytes[..n])?;
    match manifest.step {
        step if step == name.step => Ok(manifest),
        found => Err(Damage::OtherStep { found }),
    }
}

/// Opens a checkpoint's file; `None` if it does not exist.
fn open(tier: &Tier, dir: &Path, name: &str, reading: Reading) -> Result<Option<Box<dyn File>>, Damage> {
    let path = dir.join(name);
    match tier.fs.open(&path, reading) {
        Ok(file) => Ok(Some(file)),
        Err(Error::NotFound { .. }) => Ok(None),
        Err(_) if matches!(tier.fs.kind(&path), Ok(Kind::Folder | Kind::Other)) => {
            Err(Damage::NotAFile { file: name.to_owned() })
        }
        Err(other) => Err(unreadable(other)),
    }
}

pub(crate) fn check_length(tier: &Tier, name: Name, sum: &FileSum) -> Result<Box<dyn File>, Damage> {
    let missing = || Damage::Missing { file: sum.name.clone() };
    let file = open(tier, &tier.path_of(name), &sum.name, Reading::Direct)?.ok_or_else(missing)?;
    match file.n_bytes().map_err(unreadable)? {
        found if found == sum.len => Ok(file),
        found => Err(Damage::Length { file: sum.name.clone(), expected: sum.len, found }),
    }
}

/// Reads each chunk, into the given memory or a scratch buffer, and compares its checksum.
fn check_file(
    tier: &Tier,
    name: Name,
    manifest: &Manifest,
    sum: &FileSum,
    into: Option<&mut [u8]>,
    pace: &Pace<'_>,
) -> Result<(), Damage> {
    let file = check_length(tier, name, sum)?;
    let chunk_bytes = manifest.chunk_bytes as usize;
    let scratch_bytes = if into.is_some() { 0 } else { chunk_bytes.min((sum.len as usize).next_multiple_of(PAGE)) };
    let mut places: Vec<Option<&mut [u8]>> = match into {
        Some(memory) => memory.chunks_mut(chunk_bytes).map(Some).collect(),
        None => sum.crcs.iter().map(|_| None).collect(),
    };
    let chunks = sum.crcs.iter().zip(places.drain(..)).enumerate().collect::<Vec<_>>();
    let path = tier.path_of(name);
    let outcome = parallel::for_each(tier.fs.in_flight(), scratch_bytes, chunks.into_iter(), |item, scratch| {
        let (index, (expected, place)) = item;
        let offset = index as u64 * manifest.chunk_bytes;
        let len = manifest.chunk_bytes.min(sum.len - offset) as usize;
        let memory = &mut place.unwrap_or(scratch)[..len.next_multiple_of(PAGE)];
        pace.before(len)?;
        let n = file.read_at(offset, memory)?.min(len);
        let found = crc32c::crc32c(&memory[..n]);
        if n == len && found == *expected {
            pace.after(len);
            return Ok(());
        }
        let damage = damage::of_chunk(&sum.name, offset, &memory[..n], *expected, found);
        Err(Error::Damaged { path: path.clone(), damage })
    });
    outcome.map_err(|error| match error {
        Error::Damaged { damage, .. } => damage,
        other => unreadable(other),
    })
}

/// An error with its causes as one line of text.
pub(crate) fn unreadable(error: Error) -> Damage {
    Damage::Unreadable { what: forebay_units::chain(&error) }
}
