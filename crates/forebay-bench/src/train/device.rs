//! The consumer of batches on this machine: a network on a device, or an emulated accelerator.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::OnceLock;

use forebay_train::{Cuda, Emulation, Precision, cuda_devices};

use super::plan::Plan;
use super::run::Error;
use super::settings::TrainSettings;
use crate::checkpoint::StateDevice;

/// As the user requests it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrainDevice {
    /// The first GPU; without one the emulated accelerator, if given, otherwise the CPU.
    Auto,
    Cpu,
    Cuda {
        ordinal: usize,
    },
}

impl FromStr for TrainDevice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            _ if text == "auto" => Ok(Self::Auto),
            Ok(StateDevice::Cpu) => Ok(Self::Cpu),
            Ok(StateDevice::Cuda(ordinal)) => Ok(Self::Cuda { ordinal }),
            Err(_) => Err("give auto, cpu, cuda, or cuda:N with N from 0 to 1,023".to_owned()),
        }
    }
}

/// As found on this machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Device {
    Cpu { threads: usize },
    Cuda { ordinal: usize, precision: Precision },
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Accelerator {
    Network(Device),
    /// Only takes time.
    Emulated(Emulation),
}

/// The error says why there is none.
pub(super) type Gpu = Result<(), String>;

/// Opens the first GPU and closes it again. Done once per process, because it takes a moment and a study has many runs.
pub(super) fn gpu(folders: &[PathBuf]) -> Gpu {
    static FOUND: OnceLock<Gpu> = OnceLock::new();
    let open = || Cuda::with_folders(0, Precision::F32, folders).map(drop).map_err(|error| error.to_string());
    FOUND.get_or_init(open).clone()
}

/// Opens the plan's GPU, to fail before the run does.
pub(super) fn check(plan: &Plan) -> Result<(), Error> {
    if let (Accelerator::Network(Device::Cuda { ordinal, precision }), _) =
        plan.settings.accelerator(1, || gpu(&plan.cuda_folders))
    {
        Cuda::with_folders(ordinal, precision, &plan.cuda_folders)?;
    }
    Ok(())
}

impl Accelerator {
    /// That of rank `on_host` of this host: the devices in turn, from the one that was asked for.
    pub(super) fn of_rank(self, on_host: u64, folders: &[PathBuf]) -> Self {
        match self {
            Self::Network(Device::Cuda { ordinal, precision }) if on_host > 0 => {
                let n_devices = cuda_devices(folders).max(1);
                let ordinal = (ordinal + on_host as usize) % n_devices;
                Self::Network(Device::Cuda { ordinal, precision })
            }
            other => other,
        }
    }
}

impl TrainSettings {
    /// Adds a note if `auto` found no GPU.
    pub(super) fn accelerator(&self, cores: usize, gpu: impl FnOnce() -> Gpu) -> (Accelerator, Option<String>) {
        let precision = self.precision.unwrap_or(Precision::Bf16);
        let cuda = |ordinal| Accelerator::Network(Device::Cuda { ordinal, precision });
        let (otherwise, stands_in) = match self.accelerator {
            Some(emulation) => {
                let time = emulation.to_string();
                let time = time.strip_prefix("emulated:").unwrap_or(&time);
                (Accelerator::Emulated(emulation), format!("emulating an accelerator with {time} per step"))
            }
            None => {
                let said = format!("training {} on the CPU", self.model());
                (Accelerator::Network(Device::Cpu { threads: cores }), said)
            }
        };
        match self.device {
            Some(TrainDevice::Cuda { ordinal }) => (cuda(ordinal), None),
            None | Some(TrainDevice::Cpu) => (otherwise, None),
            Some(TrainDevice::Auto) => match gpu() {
                Ok(()) => (cuda(0), None),
                Err(why) => (otherwise, Some(format!("no CUDA device here ({why}): {stands_in}"))),
            },
        }
    }
}
