//! The flags of `forebay train`, and the plan they come to.
//!
//! A flag that would do nothing beside another is refused: by clap where the two exclude each other, here where it depends on
//! their values.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Result, bail};
use clap::builder::{OsStringValueParser, PossibleValuesParser, TypedValueParser};
use forebay_bench::train::{Accelerator, Device, Input, Length, Plan, Validate};
use forebay_measure::{Cache, Io, ThreadCount};
use forebay_storage::Profile;
use forebay_train::{Emulation, Model, Optimizer, Precision};

use super::saving::Saving;
use crate::data::InputArgs;
use crate::output::JsonArgs;
use crate::values::{SampleLimit, parse_io, parse_threads};
use forebay_study::Placement;

/// Steps of a run on a batch in memory, which has no end of its own.
const SYNTHETIC_STEPS: u64 = 100;

/// Steps of the baseline, where nobody says.
const BASELINE: u32 = 10;

/// The flags of `forebay train`.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("input").required(true).args(["data", "synthetic"])))]
pub(crate) struct Args {
    /// A folder of images, a list of `path label` lines, or TFRecord, tar or tensor shards
    pub(super) data: Option<PathBuf>,

    #[command(flatten)]
    pub(super) input: InputArgs,

    /// Train on one batch made once, in memory, instead of data: the upper bound
    #[arg(
        long,
        conflicts_with_all = [
            "epochs", "threads", "prefetch", "tier", "cold", "io", "max_sample_size", "validate", "baseline", "split",
            "image_key", "label_key"
        ]
    )]
    synthetic: bool,

    /// The network
    #[arg(long, default_value = "alexnet", value_parser = PossibleValuesParser::new(Model::names()))]
    model: String,

    /// What computes it: cpu, cuda, or cuda:N for one of several
    #[arg(long, default_value = "cpu", value_name = "cpu|cuda[:N]")]
    device: DeviceName,

    /// The arithmetic: f32, tf32 or bf16; bf16 by default on a GPU, and f32 is the only one of the CPU
    #[arg(long, value_name = "NAME")]
    precision: Option<Precision>,

    /// Take a network's time instead of training one, as emulated:224ms, or emulated:224ms,busy to keep a core busy meanwhile
    ///
    /// The time may be drawn: uniform(FROM,TO), normal(MEAN,DEVIATION), exponential(MEAN), gamma(SHAPE,SCALE), poisson(MEAN).
    #[arg(
        long,
        value_name = "emulated:TIME",
        conflicts_with_all = ["model", "device", "precision", "optimizer", "lr", "classes", "validate"]
    )]
    accelerator: Option<Emulation>,

    /// Samples a step
    #[arg(long, default_value_t = 64, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    batch: u32,

    /// Steps, over the data again where it ends; with --synthetic 100 by default
    #[arg(long, value_name = "N", conflicts_with = "epochs", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    steps: Option<u64>,

    /// Epochs, each of as many steps as a pass over the data has whole batches; one by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    epochs: Option<u64>,

    /// Threads that make samples; `auto` finds the knee
    #[arg(long, default_value = "auto", value_parser = parse_threads, value_name = "N|auto")]
    threads: ThreadCount,

    /// Batches made ahead of the accelerator; 0 works only while it waits
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(..=10_000))]
    prefetch: u32,

    /// Batches sent to a GPU ahead of the one computed; 1 by default where batches are made ahead
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=64))]
    device_prefetch: Option<u32>,

    /// How gradients change the network
    #[arg(long, default_value = Optimizer::DEFAULT, value_parser = PossibleValuesParser::new(Optimizer::names()))]
    optimizer: String,

    /// How far a step goes; 0.0001 by default, and 0.01 with sgd
    #[arg(long, value_name = "X", value_parser = parse_rate)]
    lr: Option<f64>,

    /// Classes to tell apart; by default as many as the data has, and 102 for a batch in memory
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    classes: Option<u32>,

    /// Seed of shuffle, weights and emulated times
    #[arg(long, default_value_t = 0, value_name = "S")]
    seed: u64,

    /// Emulate a device in this process: hdd, ssd, optane or lustre; data on a tier that is up needs no such word
    #[arg(long, value_name = "NAME")]
    pub(super) tier: Option<Profile>,

    /// Evict the files before the run, and prove it
    #[arg(long)]
    cold: bool,

    /// How files are read: buffered, direct, uring, uring-direct, or auto to measure and choose
    #[arg(long, default_value = "buffered", value_parser = parse_io, value_name = "MODE")]
    io: Io,

    #[command(flatten)]
    limit: SampleLimit,

    /// Judge the network after every epoch, on other data or on a share of this that is not learnt from; alone on 0.1 of it
    #[arg(
        long,
        value_name = "PATH|SHARE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "0.1",
        value_parser = OsStringValueParser::new().try_map(parse_validate)
    )]
    validate: Option<Validate>,

    /// Steps on a batch in memory that are measured first, to know what I/O costs; 10 by default, 0 measures none
    ///
    /// An emulated accelerator takes no longer for having waited: there the run's own steps serve, and only 0 can be given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=100_000))]
    baseline: Option<u32>,

    #[command(flatten)]
    pub(super) saving: Saving,

    /// Exit with status 1 when the accelerator computes for less than this share of the run
    #[arg(long, value_name = "SHARE", value_parser = parse_share, conflicts_with = "dry_run")]
    pub(super) min_au: Option<f64>,

    /// Say what would be trained, and train nothing
    #[arg(long, conflicts_with = "json")]
    pub(super) dry_run: bool,

    #[command(flatten)]
    pub(super) json: JsonArgs,
}

impl Args {
    /// What is read.
    pub(super) fn inputs(&self) -> impl Iterator<Item = &Path> {
        let validation = match &self.validate {
            Some(Validate::Data(path)) => Some(path.as_path()),
            Some(Validate::Share(_)) | None => None,
        };
        self.data.as_deref().into_iter().chain(validation)
    }

    /// What the flags come to on this placement.
    pub(super) fn into_plan(self, placement: &Placement) -> Result<Plan> {
        let length = self.length();
        let device_prefetch = self.device_prefetch()?;
        let accelerator = self.accelerator()?;
        let checkpoint = self.saving.plan(self.accelerator.is_some(), self.data.as_deref())?;
        if let (Some(n @ 1..), Some(_)) = (self.baseline, self.accelerator) {
            bail!(
                "--baseline {n}: an emulated accelerator is measured by the run's own steps; give 0, or leave it out"
            );
        }
        // Nothing is made ahead of a batch that is there, and it needs no measure beside itself.
        let (prefetch, baseline) =
            if self.synthetic { (0, 0) } else { (self.prefetch, self.baseline.unwrap_or(BASELINE)) };
        Ok(Plan {
            keys: self.input.keys(),
            input: self.data.map_or(Input::Synthetic, Input::Data),
            accelerator,
            batch: self.batch as usize,
            length,
            threads: self.threads,
            prefetch: prefetch as usize,
            device_prefetch,
            cache: if self.cold { Cache::Cold } else { Cache::Warm },
            io: self.io,
            max_sample: self.limit.bytes(),
            tier: self.tier.or_else(|| placement.shaped.clone()),
            kernel_tier: placement.kernel.clone(),
            cuda_folders: crate::cuda::folders(),
            validate: self.validate,
            checkpoint,
            baseline: u64::from(baseline),
            seed: self.seed,
            warmups: 0,
            repeats: 1,
        })
    }

    fn length(&self) -> Length {
        match (self.steps, self.epochs) {
            (Some(steps), _) => Length::Steps(steps),
            (None, Some(epochs)) => Length::Epochs(epochs),
            (None, None) if self.synthetic => Length::Steps(SYNTHETIC_STEPS),
            (None, None) => Length::Epochs(1),
        }
    }

    fn accelerator(&self) -> Result<Accelerator> {
        if let Some(emulation) = self.accelerator {
            return Ok(Accelerator::Emulated(emulation));
        }
        let Some(optimizer) = Optimizer::named(&self.optimizer, self.lr) else {
            bail!("--optimizer: there is none called {}", self.optimizer);
        };
        let classes = self.classes.map(|n| n as usize);
        Ok(Accelerator::Network { model: self.model.clone(), classes, device: self.device()?, optimizer })
    }

    fn device(&self) -> Result<Device> {
        match (self.device, self.precision) {
            (DeviceName::Cuda(ordinal), precision) => {
                Ok(Device::Cuda { ordinal, precision: precision.unwrap_or(Precision::Bf16) })
            }
            (DeviceName::Cpu, None | Some(Precision::F32)) => {
                Ok(Device::Cpu { threads: std::thread::available_parallelism().map_or(1, usize::from) })
            }
            (DeviceName::Cpu, Some(precision)) => {
                bail!("--precision {precision}: the CPU computes in f32 alone; --device cuda has the others")
            }
        }
    }

    fn device_prefetch(&self) -> Result<usize> {
        let on_gpu = self.accelerator.is_none() && matches!(self.device, DeviceName::Cuda(_));
        match self.device_prefetch {
            Some(n) if n > 0 && !on_gpu => {
                let what = if self.accelerator.is_some() { "an emulated accelerator" } else { "the CPU" };
                bail!("--device-prefetch {n}: {what} has no memory of its own to send batches to")
            }
            Some(n) => Ok(n as usize),
            None => Ok(usize::from(on_gpu && self.prefetch > 0)),
        }
    }
}

/// A device as the command line has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeviceName {
    Cpu,
    Cuda(usize),
}

impl FromStr for DeviceName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let ordinal = match text.split_once(':') {
            None if text == "cpu" => return Ok(Self::Cpu),
            None if text == "cuda" => Some(0),
            Some(("cuda", n)) => n.parse().ok().filter(|n| *n < 1024),
            _ => None,
        };
        ordinal.map(Self::Cuda).ok_or_else(|| "give cpu, cuda, or cuda:N with N from 0".to_owned())
    }
}

/// A number is a share; a path that looks like one is written `./0.5`.
fn parse_validate(text: OsString) -> Result<Validate, String> {
    match text.to_str().and_then(|text| text.parse::<f64>().ok()) {
        None if text.is_empty() => Err("give a path, or a share above 0 and below 1".to_owned()),
        None => Ok(Validate::Data(PathBuf::from(text))),
        Some(share) if share > 0.0 && share < 1.0 => Ok(Validate::Share(share)),
        Some(_) => Err("give a share above 0 and below 1, or a path".to_owned()),
    }
}

/// A number that is neither nothing nor infinite in the arithmetic of networks.
fn parse_rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate as f32 > 0.0 && (rate as f32).is_finite() => Ok(rate),
        Ok(rate) if rate > 0.0 => Err("give a number that an f32 can hold, from 1e-45 to 3.4e38".to_owned()),
        _ => Err("give a number above 0".to_owned()),
    }
}

fn parse_share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if share > 0.0 && share <= 1.0 => Ok(share),
        _ => Err("give a share above 0, up to 1".to_owned()),
    }
}
