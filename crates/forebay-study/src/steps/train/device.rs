//! What takes a cell's batches: a network on a device, or the emulated accelerator.

use std::path::PathBuf;

use forebay_bench::train::{Accelerator, Device};
use forebay_measure::{Refused, value};
use forebay_record::Level;
use forebay_train::{Cuda, Optimizer, Precision};

use super::TrainSettings;

/// What is learnt where nothing is said: as the paper's mini-application.
const MODEL: &str = "alexnet";

/// What computes a cell's network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrainDevice {
    /// The first GPU; where there is none, the emulated accelerator, and without one this machine's cores.
    Auto,
    /// This machine's cores.
    Cpu,
    /// An NVIDIA GPU.
    Cuda {
        /// Which one.
        ordinal: usize,
    },
}

impl TrainDevice {
    pub(super) fn of(level: &Level) -> Result<Self, Refused> {
        let wanted = "give auto, cpu, cuda or cuda:N";
        match value::text(level)?.as_str() {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda { ordinal: 0 }),
            text => match text.strip_prefix("cuda:").and_then(|n| n.parse().ok()).filter(|n| *n < 1_024) {
                Some(ordinal) => Ok(Self::Cuda { ordinal }),
                None => Err(wanted.to_owned()),
            },
        }
    }
}

/// Whether there is a GPU: `Ok`, or why not.
pub(in crate::steps) type Gpu = Result<(), String>;

/// Opens the first GPU and closes it again.
pub(in crate::steps) fn open_gpu(folders: &[PathBuf]) -> Gpu {
    Cuda::with_folders(0, Precision::F32, folders).map(drop).map_err(|error| error.to_string())
}

/// What an accelerator and its settings say against each other.
pub(super) fn check(settings: &TrainSettings) -> Result<(), Refused> {
    let of_network = [
        ("model", settings.model.is_some()),
        ("precision", settings.precision.is_some()),
        ("optimizer", settings.optimizer.is_some()),
        ("lr", settings.learning_rate.is_some()),
        ("classes", settings.classes.is_some()),
    ];
    let given = of_network.iter().find(|(_, given)| *given).map(|(name, _)| *name);
    match (settings.device, &settings.accelerator, given) {
        (Some(TrainDevice::Cpu | TrainDevice::Cuda { .. }), Some(_), _) => {
            return Err(
                "an emulated accelerator takes the place of the device: leave device out, or give \"auto\" to \
                        emulate only where there is no GPU"
                    .to_owned(),
            );
        }
        (None, Some(_), Some(name)) => {
            return Err(format!(
                "an emulated accelerator learns nothing, so {name} would be ignored: leave it out, or give device = \
                 \"auto\" to emulate only where there is no GPU"
            ));
        }
        _ => {}
    }
    let on_gpu = matches!(settings.device, Some(TrainDevice::Auto | TrainDevice::Cuda { .. }));
    if !on_gpu && settings.precision.is_some_and(|precision| precision != Precision::F32) {
        return Err("cores compute in f32: precision is for a GPU".to_owned());
    }
    if !on_gpu && settings.device_prefetch.is_some_and(|n| n > 0) {
        return Err("device_prefetch is for a device with memory of its own: a GPU".to_owned());
    }
    Ok(())
}

/// What takes the batches, and what a reader must know of that.
pub(super) fn accelerator(settings: &TrainSettings, gpu: impl FnOnce() -> Gpu) -> (Accelerator, Option<String>) {
    let precision = settings.precision.unwrap_or(Precision::Bf16);
    let cuda = |ordinal| network(settings, Device::Cuda { ordinal, precision });
    let without = |note: Option<String>| match &settings.accelerator {
        Some(emulation) => {
            let time = emulation.to_string();
            let time = time.strip_prefix("emulated:").unwrap_or(&time);
            let note = note.map(|why| format!("{why}: an accelerator of {time} a step is emulated"));
            (Accelerator::Emulated(*emulation), note)
        }
        None => {
            let threads = std::thread::available_parallelism().map_or(1, usize::from);
            let note = note.map(|why| format!("{why}: {} is trained on the cores", model(settings)));
            (network(settings, Device::Cpu { threads }), note)
        }
    };
    match settings.device {
        Some(TrainDevice::Cuda { ordinal }) => (cuda(ordinal), None),
        None | Some(TrainDevice::Cpu) => without(None),
        Some(TrainDevice::Auto) => match gpu() {
            Ok(()) => (cuda(0), None),
            Err(why) => without(Some(format!("no CUDA device here ({why})"))),
        },
    }
}

fn network(settings: &TrainSettings, device: Device) -> Accelerator {
    let name = settings.optimizer.as_deref().unwrap_or(Optimizer::DEFAULT);
    let optimizer = Optimizer::named(name, settings.learning_rate).expect("the name was looked up when it was set");
    let classes = settings.classes.map(|n| n as usize);
    Accelerator::Network { model: model(settings).to_owned(), classes, device, optimizer }
}

pub(super) fn model(settings: &TrainSettings) -> &str {
    settings.model.as_deref().unwrap_or(MODEL)
}
