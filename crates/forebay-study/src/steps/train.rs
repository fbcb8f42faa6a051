//! The train step: a cell of it is one training run, or one of an emulated accelerator.
//!
//! With `device = "auto"` a study says the same on every machine: the network is trained where there is a GPU, and where
//! there is none the emulated accelerator stands in for it, which the cell's notes say.

mod device;
mod run;
mod saving;

use forebay_bench::train::Length;
use forebay_measure::{Io, Refused, ThreadCount, value};
use forebay_record::Level;
use forebay_train::{Emulation, Model, Optimizer, Precision};

pub use device::TrainDevice;
pub(super) use device::{Gpu, open_gpu};
pub(super) use run::run;
pub use saving::Saving;
pub(super) use saving::{KEEP, check as check_saves};

/// What a cell may be told.
pub(super) const NAMES: &[&str] = &[
    "accelerator",
    "baseline",
    "batch",
    "checkpoint_every",
    "checkpoint_format",
    "checkpoint_mode",
    "checkpoint_size",
    "classes",
    "cold",
    "device",
    "device_prefetch",
    "epochs",
    "io",
    "keep",
    "lr",
    "model",
    "optimizer",
    "precision",
    "prefetch",
    "seed",
    "steps",
    "synthetic",
    "threads",
];

/// The most images of one run: years of them.
const MAX_IMAGES: u64 = 1_000_000_000_000;

/// A train cell's settings.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainSettings {
    /// Batches are made once, in memory.
    pub synthetic: bool,
    /// What computes; without it the emulated accelerator if there is one, else this machine's cores.
    pub device: Option<TrainDevice>,
    /// The emulated accelerator; with a device of `auto`, the one that stands in where there is no GPU.
    pub accelerator: Option<Emulation>,
    /// The network; AlexNet without it.
    pub model: Option<String>,
    /// The arithmetic of a GPU; bf16 without it.
    pub precision: Option<Precision>,
    /// How gradients change the network; Adam without it.
    pub optimizer: Option<String>,
    /// How far a step goes.
    pub learning_rate: Option<f64>,
    /// Classes told apart; as many as the data has without it.
    pub classes: Option<u64>,
    /// Samples a step.
    pub batch: u64,
    /// Steps of a run.
    pub steps: Option<u64>,
    /// Passes over the data; one without it and without steps.
    pub epochs: Option<u64>,
    /// Threads that make samples.
    pub threads: ThreadCount,
    /// Batches made ahead.
    pub prefetch: u64,
    /// Batches sent to a GPU ahead; one where batches are made ahead, without it.
    pub device_prefetch: Option<u64>,
    /// Evict before each run.
    pub cold: bool,
    /// How files are read.
    pub io: Io,
    /// Steps on a batch in memory that are measured first.
    pub baseline: u64,
    /// The checkpoints it makes.
    pub saving: Saving,
    /// Seed of shuffle, weights and emulated times.
    pub seed: u64,
}

impl TrainSettings {
    /// The defaults of `forebay train`, and the study's seed.
    pub(super) fn new(seed: u64) -> Self {
        Self {
            synthetic: false,
            device: None,
            accelerator: None,
            model: None,
            precision: None,
            optimizer: None,
            learning_rate: None,
            classes: None,
            batch: 64,
            steps: None,
            epochs: None,
            threads: ThreadCount::Auto,
            prefetch: 1,
            device_prefetch: None,
            cold: false,
            io: Io::Fixed(forebay_storage::Mode::Buffered),
            baseline: 10,
            saving: Saving::default(),
            seed,
        }
    }

    /// Sets one of [`NAMES`].
    pub(super) fn set(&mut self, name: &str, level: &Level) -> Result<(), Refused> {
        match name {
            "accelerator" => self.accelerator = Some(value::parsed(level)?),
            "baseline" => self.baseline = value::integer(0..=10_000)(level)?,
            "batch" => self.batch = value::integer(1..=1_000_000)(level)?,
            "classes" => self.classes = Some(value::integer(2..=1_000_000)(level)?),
            "cold" => self.cold = value::flag(level)?,
            "device" => self.device = Some(TrainDevice::of(level)?),
            "device_prefetch" => self.device_prefetch = Some(value::integer(0..=1_000)(level)?),
            "epochs" => self.epochs = Some(value::integer(1..=1_000_000)(level)?),
            "io" => self.io = value::io(level)?,
            "lr" => {
                self.learning_rate =
                    Some(value::number("a number above 0, as 0.0001", |rate| rate > 0.0 && rate <= 1_000.0)(level)?)
            }
            "model" => self.model = Some(value::word(Model::names())(level)?),
            "optimizer" => self.optimizer = Some(value::word(Optimizer::names())(level)?),
            "precision" => self.precision = Some(value::parsed(level)?),
            "prefetch" => self.prefetch = value::integer(0..=10_000)(level)?,
            "seed" => self.seed = value::seed(level)?,
            "steps" => self.steps = Some(value::integer(1..=1_000_000_000)(level)?),
            "synthetic" => self.synthetic = value::flag(level)?,
            "threads" => self.threads = value::threads(level)?,
            _ => return self.saving.set(name, level).unwrap_or_else(|| Err("not a setting of train".to_owned())),
        }
        Ok(())
    }

    /// What contradicts itself or lacks something.
    pub(super) fn check(&self) -> Result<(), Refused> {
        if self.steps.is_some() && self.epochs.is_some() {
            return Err("give steps or epochs, not both".to_owned());
        }
        if self.synthetic && self.steps.is_none() {
            return Err("synthetic batches have no end: give steps".to_owned());
        }
        if self.images_a_run(0) > MAX_IMAGES {
            let most = forebay_units::group_digits(MAX_IMAGES);
            return Err(format!("a run has more than {most} images: give fewer steps"));
        }
        device::check(self)
    }

    /// How long a run is.
    pub(crate) fn length(&self) -> Length {
        match (self.steps, self.epochs) {
            (Some(steps), _) => Length::Steps(steps),
            (None, epochs) => Length::Epochs(epochs.unwrap_or(1)),
        }
    }

    /// Images of one run over a dataset with so many, in whole batches.
    pub(crate) fn images_a_run(&self, n_samples: u64) -> u64 {
        match self.length() {
            Length::Steps(steps) => steps.saturating_mul(self.batch),
            Length::Epochs(epochs) => (n_samples / self.batch * self.batch).saturating_mul(epochs),
        }
    }
}

#[cfg(test)]
mod tests;
