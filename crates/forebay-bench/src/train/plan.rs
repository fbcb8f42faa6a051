//! What a training run is going to do.

use std::path::PathBuf;

use forebay_checkpoint::Mode;
use forebay_format::example::KeyNames;
use forebay_measure::Places;
use forebay_storage::Profile;

use super::settings::TrainSettings;

/// What a network is judged on after every epoch.
#[derive(Debug, Clone, PartialEq)]
pub enum Validate {
    /// This data.
    Data(PathBuf),
    /// This share of the training data, which is then not learnt from.
    Share(f64),
}

/// Where a run's checkpoints go.
#[derive(Debug, Clone, PartialEq)]
pub struct Saves {
    /// The folders.
    pub places: Places,
    /// Whether the run goes on from the newest good one instead of beginning anew.
    pub resume: bool,
}

/// A training run: its settings, on what, and how often.
#[derive(Debug, Clone)]
pub struct Plan {
    /// How it is done.
    pub settings: TrainSettings,
    /// A folder of images, a list, or shards; `None` for a batch in memory.
    pub data: Option<PathBuf>,
    /// The features of TFRecord records that hold image and label, where they are known.
    pub keys: KeyNames,
    /// The device to emulate.
    pub tier: Option<Profile>,
    /// The device that the kernel emulates below the data.
    pub kernel_tier: Option<Profile>,
    /// Folders that CUDA's libraries may lie in, beside those the system knows.
    pub cuda_folders: Vec<PathBuf>,
    /// What the network is judged on after every epoch.
    pub validate: Option<Validate>,
    /// Where its checkpoints go; `None` when it makes none.
    pub saves: Option<Saves>,
    /// Runs that are not kept.
    pub warmups: usize,
    /// Runs that are kept.
    pub repeats: usize,
}

impl Plan {
    /// When training goes on after a checkpoint.
    pub fn mode(&self) -> Mode {
        self.settings.mode(self.saves.as_ref().is_some_and(|saves| saves.places.fast.is_some()))
    }
}
