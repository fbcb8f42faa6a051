//! The checkpoints of a train cell.

use forebay_bench::checkpoint::{MODES, network_bytes};
use forebay_bench::train::{Accelerator, Checkpointing, Length};
use forebay_checkpoint::{Mode, WhenBehind, format};
use forebay_measure::{Places, Refused, value};
use forebay_record::Level;
use forebay_units::Bytes;

use super::TrainSettings;
use crate::steps::Work;
use crate::steps::route::Route;

/// Checkpoints that stay on each tier, where nothing is said.
pub(in crate::steps) const KEEP: u64 = 5;
/// Classes of a network whose data is not looked at yet: no dataset here has more.
const MOST_CLASSES: usize = 1_000;

/// What a cell is told of checkpoints.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Saving {
    /// Steps between two.
    pub every: Option<u64>,
    /// When training goes on; the one that goes with the tiers without it.
    pub mode: Option<Mode>,
    /// The form of their files; safetensors without it.
    pub format: Option<&'static str>,
    /// Bytes of an emulated accelerator's state.
    pub size: Option<Bytes>,
    /// Checkpoints that stay on each tier; five without it.
    pub keep: Option<u64>,
}

impl Saving {
    /// Sets one of the names; `None` when it is none of checkpoints.
    pub(super) fn set(&mut self, name: &str, level: &Level) -> Option<Result<(), Refused>> {
        let done = match name {
            "checkpoint_every" => value::integer(1..=1_000_000_000)(level).map(|every| self.every = Some(every)),
            "checkpoint_format" => {
                value::word(format::FORMATS.map(|format| format.name()))(level).map(|format| self.format = Some(format))
            }
            "checkpoint_mode" => value::one_of(MODES)(level).map(|mode| self.mode = Some(mode)),
            "checkpoint_size" => value::bytes(1..=10_000_000_000_000)(level).map(|size| self.size = Some(size)),
            "keep" => value::integer(1..=1_000)(level).map(|keep| self.keep = Some(keep)),
            _ => return None,
        };
        Some(done)
    }

    /// Checkpoints that stay on each tier.
    pub(crate) fn keep(&self) -> u64 {
        self.keep.unwrap_or(KEEP)
    }

    /// The first setting that would do nothing without a place for checkpoints.
    fn idle(&self) -> Option<&'static str> {
        let given = [
            ("checkpoint_every", self.every.is_some()),
            ("checkpoint_mode", self.mode.is_some()),
            ("checkpoint_format", self.format.is_some()),
            ("checkpoint_size", self.size.is_some()),
            ("keep", self.keep.is_some()),
        ];
        given.iter().find(|(_, given)| *given).map(|(name, _)| *name)
    }
}

/// What a cell's checkpoints and the rest of it say against each other.
pub(in crate::steps) fn check(settings: &TrainSettings, work: &Work) -> Result<(), Refused> {
    let saving = &settings.saving;
    let burst = work.burst.as_ref().map(|_| "burst");
    let route = match &work.checkpoint {
        // A level of a factor that has others: what is said of those stands beside it.
        Some(None) => return Ok(()),
        None => match burst.or(saving.idle()) {
            Some(name) => return Err(format!("{name} is for checkpoints, of which there are none: give checkpoint")),
            None => return Ok(()),
        },
        Some(Some(route)) => route.clone().behind(work.burst.as_deref())?,
    };
    route.check(saving.mode)?;
    let Some(every) = saving.every else {
        return Err("how many steps lie between two checkpoints? give checkpoint_every".to_owned());
    };
    if let Length::Steps(steps) = settings.length()
        && steps < every
    {
        return Err(format!("a run of {steps} steps makes no checkpoint when one is made every {every}"));
    }
    match (&settings.accelerator, saving.size) {
        (Some(_), None) => {
            Err("an emulated accelerator has no state of its own to save: give checkpoint_size".to_owned())
        }
        (None, Some(_)) => {
            Err("checkpoint_size is for an emulated accelerator: a network's state has the size it has".to_owned())
        }
        _ => Ok(()),
    }
}

/// The checkpoints of a plan, at the places made for them.
pub(super) fn plan(saving: &Saving, route: &Route, places: Places, accelerator: &Accelerator) -> Option<Checkpointing> {
    let is_emulated = matches!(accelerator, Accelerator::Emulated(_));
    Some(Checkpointing {
        every: saving.every?,
        mode: route.mode(saving.mode),
        places,
        format: saving.format.unwrap_or("safetensors"),
        when_behind: WhenBehind::default(),
        drain_bytes_per_s: None,
        resume: false,
        size: saving.size.filter(|_| is_emulated).map(|size| size.0),
    })
}

impl TrainSettings {
    /// The most bytes that its state may have.
    pub(crate) fn state_bytes(&self) -> u64 {
        let emulated = self.saving.size.map_or(0, |size| size.0);
        match self.device.is_none() && self.accelerator.is_some() {
            true => emulated,
            false => emulated
                .max(network_bytes(super::device::model(self), self.classes.map_or(MOST_CLASSES, |n| n as usize))),
        }
    }

    /// The most checkpoints that a tier has at a time.
    pub(crate) fn most_copies(&self) -> u64 {
        let kept = self.saving.keep() + 1;
        match self.length() {
            Length::Steps(_) => kept.min(self.n_saves(0)),
            Length::Epochs(_) => kept,
        }
    }

    /// Checkpoints of a run over so many samples.
    pub(crate) fn n_saves(&self, n_samples: u64) -> u64 {
        self.saving.every.map_or(0, |every| self.images_a_run(n_samples) / self.batch / every)
    }
}
