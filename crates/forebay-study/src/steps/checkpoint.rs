//! The checkpoint step: a cell of it saves and restores a state in one mode and one format.
//!
//! Its repeats are the saves that are kept. The first one warms up, which is why an experiment cannot choose another
//! number of warm-ups.

use forebay_bench::checkpoint::{self, Plan, State};
use forebay_checkpoint::Mode;
use forebay_measure::{Observer, Refused, value};
use forebay_record::Level;
use forebay_train::Model;
use forebay_units::Bytes;

use super::{Failed, Stage, StepResult, Work, record, route, train};

/// What a cell may be told.
pub(super) const NAMES: &[&str] = &["format", "mode", "model", "seed", "size"];

/// What is saved where nothing is said: AlexNet's weights and moments of the paper.
const SIZE: Bytes = Bytes(600_000_000);
/// Classes of a network that is only saved: ImageNet's.
const CLASSES: u64 = 1_000;

/// A checkpoint cell's settings.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckpointSettings {
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
        Self { size: None, model: None, mode: None, format: None, seed }
    }

    /// Sets one of [`NAMES`].
    pub(super) fn set(&mut self, name: &str, level: &Level) -> Result<(), Refused> {
        match name {
            "format" => self.format = Some(route::format(level)?),
            "mode" => self.mode = Some(route::mode(level)?),
            "model" => self.model = Some(value::word(Model::names())(level)?),
            "seed" => self.seed = value::seed(level)?,
            "size" => self.size = Some(value::bytes(1..=10_000_000_000_000)(level)?),
            _ => return Err("not a setting of checkpoint".to_owned()),
        }
        Ok(())
    }

    /// Bytes of the state, about.
    pub(crate) fn state_bytes(&self) -> u64 {
        match &self.model {
            Some(model) => train::network_bytes(model, CLASSES),
            None => self.size.unwrap_or(SIZE).0,
        }
    }
}

/// What contradicts itself.
pub(super) fn check(settings: &CheckpointSettings, work: &Work) -> Result<(), Refused> {
    if settings.size.is_some() && settings.model.is_some() {
        return Err("give size or model, not both".to_owned());
    }
    match &work.checkpoint {
        Some(Some(route)) => route.clone().behind(work.burst.as_deref())?.check(settings.mode),
        _ => Err("it has no tier to save to: give one".to_owned()),
    }
}

/// Runs a cell.
pub(super) fn run(
    settings: &CheckpointSettings,
    work: &Work,
    on: Stage,
    observer: Observer<'_>,
) -> Result<StepResult, Failed> {
    let plan = plan(settings, work, on)?;
    let record = checkpoint::run(&plan, record(), observer)?;
    match record.cells.into_iter().next() {
        Some(cell) => Ok(StepResult { measured: Some(cell.into()), notes: record.notes }),
        None => Err("no save was finished".into()),
    }
}

/// The plan of a cell.
fn plan(settings: &CheckpointSettings, work: &Work, on: Stage) -> Result<Plan, Failed> {
    let (Some(route), Some(places)) = (work.route(), on.saves) else {
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
    use crate::steps::Task;
    use forebay_measure::{Place, Places};
    use forebay_record::Step;

    fn work(with: &[(&str, &str)]) -> Work {
        let mut work = Work::new(Step::Checkpoint, 7);
        with.iter().for_each(|(name, level)| work.set(name, &Level::Text((*level).to_owned())).unwrap());
        work
    }

    fn settings(work: &Work) -> &CheckpointSettings {
        let Task::Checkpoint(settings) = &work.task else { panic!("{work:?}") };
        settings
    }

    fn planned(with: &[(&str, &str)]) -> Plan {
        let work = work(with);
        work.check().unwrap();
        let places = Places { slow: Place::new("slow"), fast: None, keep: 5 };
        let on = Stage { saves: Some(places), repeats: 3, ..Stage::default() };
        plan(settings(&work), &work, on).unwrap()
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
        assert_eq!(settings(&work(&[("model", "alexnet")])).state_bytes(), 61_100_840 * 12);
        assert_eq!(settings(&work(&[])).state_bytes(), 600_000_000);
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let refused = |with: &[(&str, &str)]| work(with).check().unwrap_err();
        let both = [("tier", "hdd"), ("size", "1MB"), ("model", "alexnet")];
        assert_eq!(refused(&both), "give size or model, not both");
        assert_eq!(refused(&[]), "it has no tier to save to: give one");
        assert_eq!(refused(&[("tier", "hdd"), ("mode", "burst")]), "burst saves need a tier in front: give burst");
    }
}
