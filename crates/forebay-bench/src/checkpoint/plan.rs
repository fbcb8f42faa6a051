//! Settings and plan of a checkpoint benchmark.

use std::path::PathBuf;
use std::str::FromStr;

use forebay_checkpoint::{Mode, format};
use forebay_measure::value::{bytes, bytes_per_s, flag, list, one_of, parsed, seed, some, word};
use forebay_measure::{Places, Refused};
use forebay_train::Model;
use forebay_units::Bytes;

pub const MODES: [(&str, Mode); 3] = [("direct", Mode::Direct), ("burst", Mode::Burst), ("async", Mode::Async)];
/// Default size: AlexNet's weights and moments in the paper.
const USUAL_SIZE: Bytes = Bytes(600_000_000);
/// More than any machine's memory, yet small enough to be multiplied by the number of copies.
const MAX_BYTES: u64 = 1_000_000_000_000_000;
/// ImageNet's classes, for a network that is only saved.
pub(super) const CLASSES: usize = 1_000;

pub fn mode_name(mode: Mode) -> &'static str {
    let named = MODES.iter().find(|(_, known)| *known == mode);
    named.map_or("unknown", |(name, _)| name)
}

forebay_measure::settings! {
    pub struct CheckpointSettings for Checkpoint {
        /// Size of the state: AlexNet's tensors with optimizer moments, plus filler tensors [default: 600MB]
        size: Option<Bytes>, some(bytes(4..=MAX_BYTES)), "SIZE";
        /// Save the state of this network instead: weights and Adam's moments after one step
        model: Option<String>, some(word(Model::names())), "MODEL" [one: Model::names()];
        /// Where the network's state is: cpu, cuda, or cuda:N [default: cpu]
        device: Option<StateDevice>, some(parsed), "cpu|cuda[:N]";
        /// When a save returns: direct, burst or async, or a list to sweep
        ///
        /// Defaults to all three modes with a burst buffer, otherwise to direct. A cell of a study has one mode: burst with a burst buffer,
        /// otherwise direct.
        mode: Vec<Mode>, list(one_of(MODES)), "MODE,…" [sweep: MODES.map(|(name, _)| name)];
        /// File format, or a list to sweep
        format: Vec<&'static str> = "safetensors,tensorflow", list(word(formats())), "FORMAT,…" [sweep: formats()];
        /// Limit draining to this many bytes per second, such as 100MB; reading back the copy has the same limit
        drain_rate: Option<Bytes>, some(bytes_per_s), "SIZE";
        /// Skip the measurement of the bare storage and memory
        no_ceiling: bool, flag;
        /// Seed of the values
        seed: u64 = "0", seed, "S";
    }
}

fn formats() -> [&'static str; 2] {
    format::FORMATS.map(|format| format.name())
}

impl CheckpointSettings {
    fn check(&self) -> Result<(), Refused> {
        match (&self.model, self.size, self.device) {
            (Some(_), Some(_), _) => Err("give `size` or `model`, not both".to_owned()),
            (None, _, Some(_)) => Err("`device` applies only to a network's state: give `model`".to_owned()),
            _ => Ok(()),
        }
    }

    pub fn needs_burst(&self) -> Option<&'static str> {
        let needs = [("`mode` burst", self.mode.contains(&Mode::Burst)), ("`drain_rate`", self.drain_rate.is_some())];
        needs.iter().find(|(_, needs)| *needs).map(|(name, _)| *name)
    }

    /// Approximate.
    pub fn state_bytes(&self) -> u64 {
        match &self.model {
            Some(model) => network_bytes(model, CLASSES),
            None => self.size.unwrap_or(USUAL_SIZE).0,
        }
    }
}

/// Weights and Adam's two moments of each; no optimizer here has more.
pub fn network_bytes(model: &str, classes: usize) -> u64 {
    let parameters = Model::named(model, classes).and_then(|model| model.n_parameters());
    parameters.map_or(0, |n| n as u64 * 4 * 3)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateDevice {
    /// Host memory.
    Cpu,
    /// Ordinal of an NVIDIA GPU.
    Cuda(usize),
}

impl FromStr for StateDevice {
    type Err = Refused;

    fn from_str(text: &str) -> Result<Self, Refused> {
        let ordinal = match text.split_once(':') {
            None if text == "cpu" => return Ok(Self::Cpu),
            None if text == "cuda" => Some(0),
            Some(("cuda", n)) => n.parse().ok().filter(|n| *n < 1_024),
            _ => None,
        };
        ordinal.map(Self::Cuda).ok_or_else(|| "give cpu, cuda, or cuda:N with N from 0".to_owned())
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub settings: CheckpointSettings,
    pub places: Places,
    /// Kept saves and restores per mode and format; one warm-up comes before them.
    pub saves: usize,
    /// Searched for CUDA's libraries.
    pub cuda_folders: Vec<PathBuf>,
}

impl Plan {
    /// In order; without a setting, all modes that the places allow.
    pub(super) fn modes(&self) -> Vec<Mode> {
        match (self.settings.mode.as_slice(), &self.places.fast) {
            ([], Some(_)) => MODES.map(|(_, mode)| mode).to_vec(),
            ([], None) => vec![Mode::Direct],
            (named, _) => named.to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use forebay_measure::Settings;
    use forebay_record::Level;

    use super::*;

    #[test]
    fn a_state_has_its_size_or_that_of_its_network() {
        let of = |model: &str| CheckpointSettings { model: Some(model.to_owned()), ..CheckpointSettings::default() };
        assert_eq!(of("alexnet").state_bytes(), 61_100_840 * 12);
        assert_eq!(CheckpointSettings::default().state_bytes(), 600_000_000);
    }

    #[test]
    fn what_would_be_ignored_is_refused() {
        let (size, model) = (Some(Bytes(8)), Some("alexnet".to_owned()));
        let settings = CheckpointSettings { size, model, ..CheckpointSettings::default() };
        assert_eq!(settings.check().unwrap_err(), "give `size` or `model`, not both");
        let device = Some("cuda:3".parse().unwrap());
        let settings = CheckpointSettings { device, ..CheckpointSettings::default() };
        assert_eq!((device, settings.needs_burst()), (Some(StateDevice::Cuda(3)), None));
        assert_eq!(settings.check().unwrap_err(), "`device` applies only to a network's state: give `model`");
        let settings = CheckpointSettings { drain_rate: size, ..CheckpointSettings::default() };
        assert_eq!((settings.check(), settings.needs_burst()), (Ok(()), Some("`drain_rate`")));
        let word = |text: &str| Level::Text(text.to_owned());
        let refused = |name: &str, text: &str| CheckpointSettings::default().set(name, &word(text)).unwrap_err();
        assert_eq!(refused("mode", "lazy"), "give direct, burst or async");
        assert_eq!(refused("format", "pickle"), "give safetensors or tensorflow");
        assert!("cuda:1024".parse::<StateDevice>().is_err() && "gpu".parse::<StateDevice>().is_err());
    }
}
