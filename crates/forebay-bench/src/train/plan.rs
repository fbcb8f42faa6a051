//! A complete description of a training run: data, devices, checkpoints, rounds.

use std::path::PathBuf;

use forebay_checkpoint::Mode;
use forebay_format::example::KeyNames;
use forebay_measure::{Places, Until};
use forebay_storage::Profile;

use super::settings::TrainSettings;
use crate::decoder::Gpus;

/// Data for evaluation after every epoch.
#[derive(Debug, Clone, PartialEq)]
pub enum Validate {
    Data(PathBuf),
    /// Fraction of the training data, which is then held out.
    Share(f64),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Saves {
    pub places: Places,
    /// Whether to resume from the newest valid checkpoint.
    pub resume: bool,
}

#[derive(Debug, Clone)]
pub struct Plan {
    pub settings: TrainSettings,
    /// A folder of images, a list, or shards; `None` for synthetic batches.
    pub data: Option<PathBuf>,
    /// TFRecord features that hold image and label, if known.
    pub keys: KeyNames,
    /// Emulated by this process.
    pub tier: Option<Profile>,
    /// Emulated by the kernel below the data.
    pub kernel_tier: Option<Profile>,
    /// Searched for CUDA's libraries, beside the system's own.
    pub cuda_folders: Vec<PathBuf>,
    /// GPUs that may decode.
    pub gpus: Gpus,
    pub validate: Option<Validate>,
    /// `None` if the run saves no checkpoints.
    pub saves: Option<Saves>,
    /// Dropped runs before the kept ones.
    pub warmups: usize,
    /// Kept runs.
    pub repeats: usize,
    /// When more rounds follow.
    pub until: Option<Until>,
}

impl Plan {
    /// When training continues after a checkpoint.
    pub fn mode(&self) -> Mode {
        self.settings.mode(self.saves.as_ref().is_some_and(|saves| saves.places.fast.is_some()))
    }
}
