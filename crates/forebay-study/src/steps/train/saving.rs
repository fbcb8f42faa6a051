//! The checkpoints of a train cell.

use forebay_bench::train::{Accelerator, Checkpointing, Length};
use forebay_checkpoint::{Mode, WhenBehind};
use forebay_measure::Places;
use forebay_record::Level;
use forebay_train::Model;
use forebay_units::Bytes;

use super::TrainSettings;
use crate::steps::route::{self, Route};
use crate::steps::value::{self, Refused};

/// Checkpoints that stay on each tier, where nothing is said.
pub(in crate::steps) const KEEP: u64 = 5;
/// Classes of a network whose data is not looked at yet: no dataset here has more.
const MOST_CLASSES: u64 = 1_000;

/// What a cell is told of checkpoints.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Saving {
    /// Where they go: `Some(None)` when it is said that none are made.
    pub to: Option<Option<Route>>,
    /// The tier that takes them first.
    pub burst: Option<String>,
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
            "burst" => route::burst(level).map(|burst| self.burst = burst),
            "checkpoint" => to(level).map(|to| self.to = Some(to)),
            "checkpoint_every" => value::integer(level, 1..=1_000_000_000).map(|every| self.every = Some(every)),
            "checkpoint_format" => route::format(level).map(|format| self.format = Some(format)),
            "checkpoint_mode" => route::mode(level).map(|mode| self.mode = Some(mode)),
            "checkpoint_size" => value::bytes(level, 1..=10_000_000_000_000).map(|size| self.size = Some(size)),
            "keep" => value::integer(level, 1..=1_000).map(|keep| self.keep = Some(keep)),
            _ => return None,
        };
        Some(done)
    }

    /// Where they go; `None` when none are made, or what was said contradicts itself.
    pub(crate) fn route(&self) -> Option<Route> {
        self.to.clone()??.behind(self.burst.as_deref()).ok()
    }

    /// Checkpoints that stay on each tier.
    pub(crate) fn keep(&self) -> u64 {
        self.keep.unwrap_or(KEEP)
    }

    /// The first setting that would do nothing without a place for checkpoints.
    fn idle(&self) -> Option<&'static str> {
        let given = [
            ("burst", self.burst.is_some()),
            ("checkpoint_every", self.every.is_some()),
            ("checkpoint_mode", self.mode.is_some()),
            ("checkpoint_format", self.format.is_some()),
            ("checkpoint_size", self.size.is_some()),
            ("keep", self.keep.is_some()),
        ];
        given.iter().find(|(_, given)| *given).map(|(name, _)| *name)
    }
}

/// A route, or "none".
fn to(level: &Level) -> Result<Option<Route>, Refused> {
    match value::text(level)? {
        "none" => Ok(None),
        _ => Route::of(level).map(Some),
    }
}

/// What a cell's checkpoints and the rest of it say against each other.
pub(super) fn check(settings: &TrainSettings) -> Result<(), Refused> {
    let saving = &settings.saving;
    let route = match &saving.to {
        // A level of a factor that has others: what is said of those stands beside it.
        Some(None) => return Ok(()),
        None => match saving.idle() {
            Some(name) => return Err(format!("{name} is for checkpoints, of which there are none: give checkpoint")),
            None => return Ok(()),
        },
        Some(Some(route)) => route.clone().behind(saving.burst.as_deref())?,
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
pub(super) fn plan(saving: &Saving, places: Places, accelerator: &Accelerator) -> Option<Checkpointing> {
    let is_emulated = matches!(accelerator, Accelerator::Emulated(_));
    Some(Checkpointing {
        every: saving.every?,
        mode: saving.route()?.mode(saving.mode),
        places,
        format: saving.format.unwrap_or_else(route::usual_format),
        when_behind: WhenBehind::default(),
        drain_bytes_per_s: None,
        resume: false,
        size: saving.size.filter(|_| is_emulated).map(|size| size.0),
    })
}

impl TrainSettings {
    /// The most bytes that a state of its may have; 0 when it saves none.
    pub(crate) fn state_bytes(&self) -> u64 {
        if self.saving.route().is_none() {
            return 0;
        }
        let emulated = self.saving.size.map_or(0, |size| size.0);
        match self.device.is_none() && self.accelerator.is_some() {
            true => emulated,
            false => emulated.max(network_bytes(super::device::model(self), self.classes.unwrap_or(MOST_CLASSES))),
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
        match (self.saving.route(), self.saving.every) {
            (Some(_), Some(every)) => self.images_a_run(n_samples) / self.batch / every,
            _ => 0,
        }
    }
}

/// Weights and the two moments that Adam has of each; no optimizer here has more.
pub(in crate::steps) fn network_bytes(model: &str, classes: u64) -> u64 {
    let parameters = Model::named(model, classes as usize).and_then(|model| model.n_parameters());
    parameters.map_or(0, |n| n as u64 * 4 * 3)
}
