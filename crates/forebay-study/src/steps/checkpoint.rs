//! The checkpoint step: a cell saves and restores a state in one mode and one format.
//!
//! Its repeats are the saves after the first one, which is the warm-up; an experiment cannot have more or fewer warm-ups.

use forebay_bench::checkpoint::{self, CheckpointSettings, Plan};
use forebay_measure::{Observer, Refused, Settings};

use super::{Failed, StepContext, StepResult, Work, record};

pub(super) fn check(settings: &CheckpointSettings, work: &Work) -> Result<(), Refused> {
    Settings::check(settings)?;
    let Some(Some(route)) = &work.checkpoint else { return Err("missing `tier` to save to".to_owned()) };
    let route = route.clone().behind(work.burst.as_deref())?;
    route.check(settings.mode.first().copied())?;
    match settings.needs_burst().filter(|_| route.fast.is_none()) {
        Some(needs) => Err(format!("{needs} needs a burst buffer: set burst")),
        None => Ok(()),
    }
}

pub(super) fn run(
    settings: &CheckpointSettings,
    work: &Work,
    on: StepContext,
    observer: Observer<'_>,
) -> Result<StepResult, Failed> {
    let plan = plan(settings, work, on)?;
    let record = checkpoint::run(&plan, record(), observer)?;
    match record.cells.into_iter().next() {
        Some(cell) => Ok(StepResult { measured: Some(cell.into()), notes: record.notes }),
        None => Err("no save finished".into()),
    }
}

fn plan(settings: &CheckpointSettings, work: &Work, on: StepContext) -> Result<Plan, Failed> {
    let (Some(route), Some(places)) = (work.route(), on.saves) else {
        return Err("no tier to save to".into());
    };
    let settings = CheckpointSettings { mode: vec![route.mode(settings.mode.first().copied())], ..settings.clone() };
    Ok(Plan { settings, places, saves: on.repeats, cuda_folders: on.cuda_folders })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::Task;
    use forebay_checkpoint::Mode;
    use forebay_measure::{Place, Places};
    use forebay_record::{Level, Step};
    use forebay_units::Bytes;

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
        let places = Places { slow: Place::new("slow"), fast: None, keep: forebay_measure::Kept::in_each(5) };
        let on = StepContext { saves: Some(places), repeats: 3, ..StepContext::default() };
        plan(settings(&work), &work, on).unwrap()
    }

    #[test]
    fn settings_come_to_the_plan() {
        let plan = planned(&[("tier", "hdd"), ("format", "safetensors")]);
        assert_eq!((plan.saves, plan.settings.state_bytes(), plan.settings.seed), (3, 600_000_000, 7));
        assert_eq!((plan.settings.mode, plan.settings.format), (vec![Mode::Direct], vec!["safetensors"]));
        let with = [("tier", "hdd"), ("burst", "optane"), ("format", "tensorflow"), ("size", "8MB")];
        let settings = planned(&[&with[..], &[("drain_rate", "9MB/s")]].concat()).settings;
        assert_eq!((settings.size, settings.drain_rate), (Some(Bytes(8_000_000)), Some(Bytes(9_000_000))));
        assert_eq!((settings.mode, settings.format), (vec![Mode::Burst], vec!["tensorflow"]));
        let settings = planned(&[("tier", "optane → hdd"), ("mode", "async"), ("model", "alexnet")]).settings;
        assert_eq!((settings.model.as_deref(), settings.mode), (Some("alexnet"), vec![Mode::Async]));
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let refused = |with: &[(&str, &str)]| work(with).check().unwrap_err();
        let both = [("tier", "hdd"), ("size", "1MB"), ("model", "alexnet")];
        assert_eq!(refused(&both), "give size or model, not both");
        assert_eq!(refused(&[]), "missing tier to save to");
        assert_eq!(refused(&[("tier", "hdd"), ("mode", "burst")]), "mode burst needs a burst buffer: set burst");
        let said = refused(&[("tier", "hdd"), ("drain_rate", "9MB/s")]);
        assert_eq!(said, "drain_rate needs a burst buffer: set burst");
    }
}
