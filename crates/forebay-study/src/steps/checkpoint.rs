//! The checkpoint step: a cell of it saves and restores a state in one mode and one format.
//!
//! Its repeats are the saves that are kept. The first one warms up, which is why an experiment cannot choose another
//! number of warm-ups.

use forebay_bench::checkpoint::{self, Plan, State};
use forebay_checkpoint::Mode;
use forebay_measure::Observer;
use forebay_record::Level;
use forebay_train::Model;
use forebay_units::Bytes;

use super::route::{self, Route};
use super::value::{self, Refused};
use super::{Failed, Stage, StepResult, record, train};

/// What a cell may be told.
pub(super) const NAMES: &[&str] = &["burst", "format", "mode", "model", "seed", "size", "tier"];

/// What is saved where nothing is said: AlexNet's weights and moments of the paper.
const SIZE: Bytes = Bytes(600_000_000);
/// Classes of a network that is only saved: ImageNet's.
const CLASSES: u64 = 1_000;

/// A checkpoint cell's settings.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckpointSettings {
    /// Where checkpoints go.
    pub tier: Option<Route>,
    /// The tier that takes them first.
    pub burst: Option<String>,
    /// How many bytes are saved; 600 MB without it and without a model.
    pub size: Option<Bytes>,
    /// The network whose state is saved.
    pub model: Option<String>,
    /// When a save returns; the mode that goes with the tiers without it.
    pub mode: Option<Mode>,
    /// The form of the files; safetensors without it.
    pub format: Option<&'static str>,
    /// Seed of the values.
    pub seed: u64,
}

impl CheckpointSettings {
    /// The defaults of `forebay checkpoint bench`, and the study's seed.
    pub(super) fn new(seed: u64) -> Self {
        Self { tier: None, burst: None, size: None, model: None, mode: None, format: None, seed }
    }

    /// Sets one of [`NAMES`].
    pub(super) fn set(&mut self, name: &str, level: &Level) -> Result<(), Refused> {
        match name {
            "burst" => self.burst = route::burst(level)?,
            "format" => self.format = Some(route::format(level)?),
            "mode" => self.mode = Some(route::mode(level)?),
            "model" => self.model = Some(value::named(level, Model::names())?),
            "seed" => self.seed = value::integer(level, 0..=i64::MAX as u64)?,
            "size" => self.size = Some(value::bytes(level, 1..=10_000_000_000_000)?),
            "tier" => self.tier = Some(Route::of(level)?),
            _ => return Err("not a setting of checkpoint".to_owned()),
        }
        Ok(())
    }

    /// What contradicts itself.
    pub(super) fn check(&self) -> Result<(), Refused> {
        if self.size.is_some() && self.model.is_some() {
            return Err("give size or model, not both".to_owned());
        }
        match &self.tier {
            Some(route) => route.clone().behind(self.burst.as_deref())?.check(self.mode),
            None => Err("it has no tier to save to: give one".to_owned()),
        }
    }

    /// Where checkpoints go; `None` when what was said contradicts itself.
    pub(crate) fn route(&self) -> Option<Route> {
        self.tier.clone()?.behind(self.burst.as_deref()).ok()
    }

    /// Bytes of the state, about.
    pub(crate) fn state_bytes(&self) -> u64 {
        match &self.model {
            Some(model) => train::network_bytes(model, CLASSES),
            None => self.size.unwrap_or(SIZE).0,
        }
    }
}

/// Runs a cell.
pub(super) fn run(settings: &CheckpointSettings, on: Stage, observer: Observer<'_>) -> Result<StepResult, Failed> {
    let plan = plan(settings, on)?;
    let record = checkpoint::run(&plan, record(), observer)?;
    match record.cells.into_iter().next() {
        Some(cell) => Ok(StepResult { measured: Some(cell.into()), notes: record.notes }),
        None => Err("no save was finished".into()),
    }
}

/// The plan of a cell.
fn plan(settings: &CheckpointSettings, on: Stage) -> Result<Plan, Failed> {
    let (Some(route), Some(places)) = (settings.route(), on.saves) else {
        return Err("it has no tier to save to".into());
    };
    Ok(Plan {
        places,
        state: match &settings.model {
            Some(model) => State::Model(model.clone()),
            None => State::Bytes(settings.size.unwrap_or(SIZE).0),
        },
        gpu: None,
        modes: vec![route.mode(settings.mode)],
        formats: vec![settings.format.unwrap_or_else(route::usual_format)],
        saves: on.repeats,
        drain_bytes_per_s: None,
        ceiling: true,
        seed: settings.seed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_measure::{Place, Places};

    fn settings(with: &[(&str, &str)]) -> CheckpointSettings {
        let mut settings = CheckpointSettings::new(7);
        with.iter().for_each(|(name, level)| settings.set(name, &Level::Text((*level).to_owned())).unwrap());
        settings
    }

    fn planned(with: &[(&str, &str)]) -> Plan {
        let settings = settings(with);
        settings.check().unwrap();
        let places = Places { slow: Place::new("slow"), fast: None, keep: 5 };
        let on = Stage { saves: Some(places), repeats: 3, ..Stage::default() };
        plan(&settings, on).unwrap()
    }

    #[test]
    fn settings_come_to_the_plan() {
        let plan = planned(&[("tier", "hdd")]);
        assert_eq!((plan.state, plan.saves, plan.seed), (State::Bytes(600_000_000), 3, 7));
        assert_eq!((plan.modes, plan.formats), (vec![Mode::Direct], vec!["safetensors"]));
        let with = [("tier", "hdd"), ("burst", "optane"), ("format", "tensorflow"), ("size", "8MB")];
        let plan = planned(&with);
        assert_eq!(
            (plan.state, plan.modes, plan.formats),
            (State::Bytes(8_000_000), vec![Mode::Burst], vec!["tensorflow"])
        );
        let plan = planned(&[("tier", "optane → hdd"), ("mode", "async"), ("model", "alexnet")]);
        assert_eq!((plan.state, plan.modes), (State::Model("alexnet".to_owned()), vec![Mode::Async]));
    }

    #[test]
    fn a_state_has_the_bytes_of_its_model() {
        assert_eq!(settings(&[("model", "alexnet")]).state_bytes(), 61_100_840 * 12);
        assert_eq!(settings(&[]).state_bytes(), 600_000_000);
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let refused = |with: &[(&str, &str)]| settings(with).check().unwrap_err();
        let both = [("tier", "hdd"), ("size", "1MB"), ("model", "alexnet")];
        assert_eq!(refused(&both), "give size or model, not both");
        assert_eq!(refused(&[]), "it has no tier to save to: give one");
        assert_eq!(refused(&[("tier", "hdd"), ("mode", "burst")]), "burst saves need a tier in front: give burst");
    }
}
