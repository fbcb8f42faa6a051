//! Checkpoint tiers as the user named them: folders, each possibly on an emulated device, or object stores.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use forebay_checkpoint::{Fs, Keep, LocalFs, Mode, ObjectFs, ShapedFs, StoppingFs, Tier};
use forebay_record::TierKind;
use forebay_storage::{Device, Profile, Routed, bucket, is_url};

#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    pub dir: PathBuf,
    /// Emulated in this process.
    pub shaped: Option<Profile>,
    /// Emulated by the kernel below the folder.
    pub kernel: Option<Profile>,
    /// Whether the device that this process emulates is that of the data, too.
    pub is_of_data: bool,
}

impl Place {
    /// A folder on a device that is not emulated.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), shaped: None, kernel: None, is_of_data: false }
    }

    /// The emulated device; if there are two, the in-process one, because it is the outer one.
    pub fn tier(&self) -> Option<(&str, TierKind)> {
        let shaped = self.shaped.as_ref().map(|profile| (profile.name.as_str(), TierKind::Shaped));
        shaped.or_else(|| self.kernel.as_ref().map(|profile| (profile.name.as_str(), TierKind::Kernel)))
    }

    pub fn fs(&self) -> Arc<dyn Fs> {
        self.fs_beside(None)
    }

    /// `data` is the device of the data, if this process emulates it.
    fn fs_beside(&self, data: Option<&Arc<Device>>) -> Arc<dyn Fs> {
        let local: Arc<dyn Fs> = match is_url(&self.dir) {
            true => Arc::new(ObjectFs::new(Arc::new(Routed::default()), bucket())),
            false => Arc::new(LocalFs),
        };
        match (&self.shaped, data.filter(|_| self.is_of_data)) {
            (Some(_), Some(device)) => Arc::new(ShapedFs::on(local, Arc::clone(device))),
            (Some(profile), None) => Arc::new(ShapedFs::new(local, profile.clone())),
            (None, _) => local,
        }
    }
}

/// Checkpoints end up in the slow folder; with a fast one they are written there first.
#[derive(Debug, Clone, PartialEq)]
pub struct Places {
    pub slow: Place,
    /// The burst buffer, if there is one.
    pub fast: Option<Place>,
    pub keep: Kept,
}

/// How many checkpoints each folder keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    pub slow: usize,
    /// In the burst buffer, if there is one.
    pub fast: usize,
}

impl Kept {
    pub fn in_each(n: usize) -> Self {
        Self { slow: n, fast: n }
    }
}

impl Places {
    pub fn nearest_first(&self) -> impl Iterator<Item = &Place> {
        self.fast.iter().chain([&self.slow])
    }

    fn with_kept(&self) -> impl Iterator<Item = (&Place, usize)> {
        self.fast.iter().map(|fast| (fast, self.keep.fast)).chain([(&self.slow, self.keep.slow)])
    }

    /// Rated megabytes (10^6 bytes) per second of the first tier that this mode writes to, if it is emulated.
    pub fn rated_mb_per_s(&self, mode: Mode) -> Option<f64> {
        let first = self.fast.as_ref().filter(|_| mode != Mode::Direct).unwrap_or(&self.slow);
        let profile = first.shaped.as_ref().or(first.kernel.as_ref())?;
        Some(profile.write_bytes_per_s as f64 / 1e6)
    }

    /// The tiers, nearest first; setting `stop` interrupts all their transfers.
    pub fn tiers_until(&self, stop: &Arc<AtomicBool>) -> Vec<Tier> {
        let fs = |place: &Place| Arc::new(StoppingFs::new(place.fs(), Arc::clone(stop)));
        let tier = |(place, keep): (&Place, usize)| Tier { keep: Keep::last(keep), ..Tier::new(fs(place), &place.dir) };
        self.with_kept().map(tier).collect()
    }

    pub fn tiers(&self) -> Vec<Tier> {
        self.tiers_beside(None)
    }

    /// `data` is the device of the data, if this process emulates it.
    pub fn tiers_beside(&self, data: Option<&Arc<Device>>) -> Vec<Tier> {
        let tier = |(place, keep): (&Place, usize)| Tier {
            keep: Keep::last(keep),
            ..Tier::new(place.fs_beside(data), &place.dir)
        };
        self.with_kept().map(tier).collect()
    }
}
