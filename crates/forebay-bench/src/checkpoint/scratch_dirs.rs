//! The folders of a benchmark: created, checked for space, and removed.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use forebay_checkpoint::{Tier, heeding};
use forebay_measure::{FileSystem, Memory, Places, Scratch, remove_left_overs, remove_objects};
use forebay_storage::is_url;
use forebay_units::Bytes;

use super::Error;

const PREFIX: &str = ".forebay-checkpoint-bench-";
/// Checkpoints on a place at once: the last one and the one being written.
pub const COPIES: u64 = 2;
/// Space for manifests, indices, and the file system's own needs.
const BESIDE: u64 = 16 << 20;
/// Interval of the checks for cancellation.
const LOOK: Duration = Duration::from_millis(50);
/// States in memory at once: the state, its plain copy, the pool of an async save, and the restored state.
const STATES: u64 = 4;

/// One folder per place, nearest first.
pub(super) struct ScratchDirs {
    places: Places,
    scratch: Vec<Scratch>,
    /// Set when the run is cancelled: saves, drains and restores end at their next chunk.
    stop: Arc<AtomicBool>,
    /// For the record.
    pub(super) notes: Vec<String>,
}

impl ScratchDirs {
    /// Creates the folders, after removing leftovers of a killed run.
    pub(super) fn open(places: &Places) -> Result<Self, Error> {
        let (mut scratch, mut notes) = (Vec::new(), Vec::new());
        for place in places.nearest_first() {
            let left = remove_left_overs(&place.dir, PREFIX);
            if !left.is_empty() {
                notes.push(format!("removed leftovers of a killed benchmark: {}", left.join(", ")));
            }
            scratch.push(Scratch::create(&place.dir, PREFIX)?);
        }
        let mut own = places.clone();
        own.keep = forebay_measure::Kept::in_each(1);
        let dirs = scratch.iter().map(|scratch| scratch.path().join("checkpoints"));
        for (place, dir) in own.fast.iter_mut().chain([&mut own.slow]).zip(dirs) {
            place.dir = dir;
        }
        Ok(Self { places: own, scratch, stop: Arc::default(), notes })
    }

    pub(super) fn places(&self) -> &Places {
        &self.places
    }

    /// By index from the nearest.
    pub(super) fn scratch(&self, tier: usize) -> &Scratch {
        &self.scratch[tier]
    }

    /// Nearest first.
    pub(super) fn tiers(&self) -> Vec<Tier> {
        self.places.tiers_until(&self.stop)
    }

    /// Runs `work` while a thread watches for a cancellation.
    pub(super) fn heeding<T>(&self, cancel: &AtomicBool, work: impl FnOnce() -> T) -> T {
        let look = || {
            let is_stopped = cancel.load(Ordering::Relaxed);
            self.stop.fetch_or(is_stopped, Ordering::Relaxed);
            is_stopped
        };
        heeding(LOOK, look, work)
    }

    pub(super) fn clear(&self) -> Result<(), Error> {
        for place in self.places.nearest_first() {
            if is_url(&place.dir) {
                remove_objects(&place.dir)?;
                continue;
            }
            let failed = |source| {
                Error::Shared(forebay_measure::Error::Io { what: "removing", path: place.dir.clone(), source })
            };
            std::fs::remove_dir_all(&place.dir).map_err(failed)?;
        }
        Ok(())
    }

    /// Checks for enough space on the places and in memory.
    pub(super) fn check(&self, bytes: u64) -> Result<(), Error> {
        let mut wanted: Vec<(u64, &Path, u64)> = Vec::new();
        // A store does not say what is free.
        for scratch in self.scratch.iter().filter(|scratch| !is_url(scratch.path())) {
            let device = std::fs::metadata(scratch.path()).map_or(0, |found| found.dev());
            match wanted.iter_mut().find(|(known, ..)| *known == device) {
                Some((_, _, needed)) => *needed += COPIES * bytes + BESIDE,
                None => wanted.push((device, scratch.path(), COPIES * bytes + BESIDE)),
            }
        }
        for (_, path, needed) in wanted {
            let free = FileSystem::of(path).ok().and_then(|system| system.free_bytes);
            if let Some(free) = free.filter(|free| *free < needed) {
                let path = path.parent().unwrap_or(path).to_owned();
                return Err(Error::TooLittleSpace { path, needed: Bytes(needed), free: Bytes(free) });
            }
        }
        match Memory::now().map(|memory| memory.available) {
            Some(available) if available < STATES * bytes => {
                Err(Error::TooLittleMemory { needed: Bytes(STATES * bytes), available: Bytes(available) })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_measure::Place;

    fn places(dir: &Path) -> Places {
        let place = |name: &str| {
            std::fs::create_dir_all(dir.join(name)).unwrap();
            Place::new(dir.join(name))
        };
        Places { slow: place("slow"), fast: Some(place("fast")), keep: forebay_measure::Kept::in_each(5) }
    }

    #[test]
    fn folders_are_its_own_and_go_and_left_overs_go() {
        let dir = tempfile::tempdir().unwrap();
        let places = places(dir.path());
        std::fs::create_dir_all(dir.path().join("slow/.forebay-checkpoint-bench-1-0/x")).unwrap();
        std::fs::create_dir_all(dir.path().join("slow/step-000000000001")).unwrap();
        let dirs = ScratchDirs::open(&places).unwrap();
        assert_eq!(dirs.notes.len(), 1, "{:?}", dirs.notes);
        let tiers = dirs.tiers();
        assert!(tiers[0].dir.starts_with(dir.path().join("fast")) && tiers[1].dir.starts_with(dir.path().join("slow")));
        assert_eq!(tiers[0].keep.last, 1);
        drop(dirs);
        let left: Vec<_> =
            std::fs::read_dir(dir.path().join("slow")).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["step-000000000001"]);
        assert_eq!(std::fs::read_dir(dir.path().join("fast")).unwrap().count(), 0);
    }

    #[test]
    fn too_little_room_is_said_with_the_figures() {
        let dir = tempfile::tempdir().unwrap();
        let dirs = ScratchDirs::open(&places(dir.path())).unwrap();
        dirs.check(1 << 20).unwrap();
        let error = dirs.check(1 << 50).unwrap_err();
        assert!(matches!(error, Error::TooLittleSpace { .. }), "{error}");
        assert!(error.to_string().contains("needs 4503.6"), "both folders are on one disk: {error}");
    }
}
