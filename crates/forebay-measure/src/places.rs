//! The tiers that a command was given, as folders.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use forebay_checkpoint::{Fs, Keep, LocalFs, Mode, ShapedFs, StoppingFs, Tier};
use forebay_record::TierKind;
use forebay_storage::Profile;

/// A folder for checkpoints.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    /// The folder.
    pub dir: PathBuf,
    /// The device to emulate in this process.
    pub shaped: Option<Profile>,
    /// The device that the kernel emulates below the folder.
    pub kernel: Option<Profile>,
}

impl Place {
    /// The folder as it is.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), shaped: None, kernel: None }
    }

    /// The device that is emulated there: the shaper's if there is one, since it is the outer one.
    pub fn tier(&self) -> Option<(&str, TierKind)> {
        let shaped = self.shaped.as_ref().map(|profile| (profile.name.as_str(), TierKind::Shaped));
        shaped.or_else(|| self.kernel.as_ref().map(|profile| (profile.name.as_str(), TierKind::Kernel)))
    }

    /// How its files are reached.
    pub fn fs(&self) -> Arc<dyn Fs> {
        let local: Arc<dyn Fs> = Arc::new(LocalFs);
        match &self.shaped {
            Some(profile) => Arc::new(ShapedFs::new(local, profile.clone())),
            None => local,
        }
    }
}

/// Where checkpoints go: at last to the slow folder, first to the fast one where there is one.
#[derive(Debug, Clone, PartialEq)]
pub struct Places {
    /// The last tier.
    pub slow: Place,
    /// The burst buffer.
    pub fast: Option<Place>,
    /// Checkpoints that stay on each tier.
    pub keep: usize,
}

impl Places {
    /// The places, nearest first.
    pub fn nearest_first(&self) -> impl Iterator<Item = &Place> {
        self.fast.iter().chain([&self.slow])
    }

    /// What the place that this mode writes first promises to take, in megabytes (10^6) a second, if it is emulated.
    pub fn rated_mb_per_s(&self, mode: Mode) -> Option<f64> {
        let first = self.fast.as_ref().filter(|_| mode != Mode::Direct).unwrap_or(&self.slow);
        let profile = first.shaped.as_ref().or(first.kernel.as_ref())?;
        Some(profile.write_bytes_per_s as f64 / 1e6)
    }

    /// The tiers, nearest first, on which no more bytes move once `stop` is set.
    pub fn tiers_until(&self, stop: &Arc<AtomicBool>) -> Vec<Tier> {
        let fs = |place: &Place| Arc::new(StoppingFs::new(place.fs(), Arc::clone(stop)));
        let tier = |place: &Place| Tier { keep: Keep::last(self.keep), ..Tier::new(fs(place), &place.dir) };
        self.nearest_first().map(tier).collect()
    }

    /// The tiers, nearest first.
    pub fn tiers(&self) -> Vec<Tier> {
        let tier = |place: &Place| Tier { keep: Keep::last(self.keep), ..Tier::new(place.fs(), &place.dir) };
        self.nearest_first().map(tier).collect()
    }
}
