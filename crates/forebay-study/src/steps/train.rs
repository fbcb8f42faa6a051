//! The train step: a cell of it is one training run, or one of an emulated accelerator.
//!
//! With `device = "auto"` a study says the same on every machine: the network is trained where there is a GPU, and where
//! there is none the emulated accelerator stands in for it, which the cell's notes say.

mod device;
mod run;
mod saving;

use forebay_bench::train::Length;
use forebay_measure::{Io, ThreadCount};
use forebay_record::Level;
use forebay_train::{Emulation, Model, Optimizer, Precision};

use super::value::{self, Refused};

pub use device::TrainDevice;
pub(super) use device::{Gpu, open_gpu};
pub(super) use run::run;
pub use saving::Saving;
pub(super) use saving::{KEEP, network_bytes};

/// What a cell may be told.
pub(super) const NAMES: &[&str] = &[
    "accelerator",
    "baseline",
    "batch",
    "burst",
    "checkpoint",
    "checkpoint_every",
    "checkpoint_format",
    "checkpoint_mode",
    "checkpoint_size",
    "classes",
    "cold",
    "dataset",
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
    "tier",
];

/// The most images of one run: years of them.
const MAX_IMAGES: u64 = 1_000_000_000_000;

/// A train cell's settings.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainSettings {
    /// The dataset's name; not looked at when batches are synthetic.
    pub dataset: Option<String>,
    /// Batches are made once, in memory.
    pub synthetic: bool,
    /// The tier's name; without one the data is read where it lies.
    pub tier: Option<String>,
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
            dataset: None,
            synthetic: false,
            tier: None,
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
            "accelerator" => self.accelerator = Some(accelerator(level)?),
            "baseline" => self.baseline = value::integer(level, 0..=10_000)?,
            "batch" => self.batch = value::integer(level, 1..=1_000_000)?,
            "classes" => self.classes = Some(value::integer(level, 2..=1_000_000)?),
            "cold" => self.cold = value::flag(level)?,
            "dataset" => self.dataset = Some(value::text(level)?.to_owned()),
            "device" => self.device = Some(TrainDevice::of(level)?),
            "device_prefetch" => self.device_prefetch = Some(value::integer(level, 0..=1_000)?),
            "epochs" => self.epochs = Some(value::integer(level, 1..=1_000_000)?),
            "io" => self.io = value::io(level)?,
            "lr" => self.learning_rate = Some(learning_rate(level)?),
            "model" => self.model = Some(value::named(level, Model::names())?),
            "optimizer" => self.optimizer = Some(value::named(level, Optimizer::names())?),
            "precision" => self.precision = Some(precision(level)?),
            "prefetch" => self.prefetch = value::integer(level, 0..=10_000)?,
            "seed" => self.seed = value::integer(level, 0..=i64::MAX as u64)?,
            "steps" => self.steps = Some(value::integer(level, 1..=1_000_000_000)?),
            "synthetic" => self.synthetic = value::flag(level)?,
            "threads" => self.threads = value::threads(level)?,
            "tier" => self.tier = Some(value::text(level)?.to_owned()),
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
        device::check(self)?;
        saving::check(self)
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

fn accelerator(level: &Level) -> Result<Emulation, Refused> {
    value::text(level)?.parse().map_err(|error: forebay_train::Error| error.to_string())
}

fn precision(level: &Level) -> Result<Precision, Refused> {
    value::text(level)?.parse().map_err(|_| value::refuse(level, "f32, tf32 or bf16"))
}

fn learning_rate(level: &Level) -> Result<f64, Refused> {
    let rate = match level {
        Level::Number(rate) => Some(*rate),
        Level::Integer(rate) => Some(*rate as f64),
        _ => None,
    };
    rate.filter(|rate| *rate > 0.0 && *rate <= 1_000.0)
        .ok_or_else(|| value::refuse(level, "a number above 0, as 0.0001"))
}

#[cfg(test)]
mod tests;
