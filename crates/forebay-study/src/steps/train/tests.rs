//! What a cell's settings and places come to; what settings alone come to is the experiment's to test.

use forebay_measure::{Place, Places};
use forebay_record::{Level, Step};

use super::*;
use crate::steps::Task;

fn text(text: &str) -> Level {
    Level::Text(text.to_owned())
}

fn work(with: &[(&str, Level)]) -> Work {
    let mut work = Work::new(Step::Train, 7);
    with.iter().for_each(|(name, level)| work.set(name, level).unwrap());
    work
}

fn settings(with: &[(&str, Level)]) -> TrainSettings {
    let Task::Train(settings) = work(with).task else { panic!("not a training") };
    *settings
}

fn refused(with: &[(&str, Level)]) -> String {
    work(with).check().unwrap_err()
}

fn planned(with: &[(&str, Level)]) -> Plan {
    assert_eq!(work(with).check(), Ok(()));
    let settings = settings(with);
    let places = Places { slow: Place::new("slow"), fast: None, keep: forebay_measure::Kept::in_each(5) };
    let on = StepContext {
        shaped: Some(forebay_storage::Profile::hdd()),
        warmups: 1,
        repeats: 2,
        saves: work(with).route().map(|_| places),
        ..StepContext::default()
    };
    plan(&settings, (!settings.synthetic).then(|| "set".into()), on)
}

#[test]
fn settings_and_places_come_to_the_plan() {
    let with = [("batch", Level::Integer(16)), ("epochs", Level::Integer(3)), ("cold", Level::Flag(true))];
    let plan = planned(&with);
    assert_eq!(plan.settings, TrainSettings { seed: 7, batch: 16, epochs: Some(3), cold: true, ..Default::default() });
    assert_eq!((plan.data, plan.warmups, plan.repeats), (Some("set".into()), 1, 2));
    assert_eq!((plan.tier.unwrap().name.as_str(), plan.saves), ("hdd", None));
    assert_eq!(settings(&[("seed", Level::Integer(9))]).seed, 9);
}

#[test]
fn synthetic_batches_come_from_no_device() {
    let plan = planned(&[("synthetic", Level::Flag(true)), ("steps", Level::Integer(12)), ("cold", Level::Flag(true))]);
    assert_eq!((plan.data, plan.tier), (None, None));
}

#[test]
fn a_cell_has_places_for_its_checkpoints_unless_it_makes_none() {
    let every = ("checkpoint_every", Level::Integer(20));
    let saves = |to: &str| planned(&[("checkpoint", text(to)), every.clone(), ("keep", Level::Integer(3))]).saves;
    assert!(saves("hdd").is_some_and(|saves| !saves.resume && saves.places.slow == Place::new("slow")));
    assert_eq!(saves("none"), None, "said of the other levels");
    assert_eq!(planned(&[]).saves, None);
}

#[test]
fn checkpoints_are_counted_before_they_are_made() {
    let with = |more: &[(&str, Level)]| {
        let given = [("checkpoint", text("optane → hdd")), ("checkpoint_every", Level::Integer(20))];
        settings(&[&given[..], more].concat())
    };
    let counted = |of: &TrainSettings| (n_saves(of, 9_144), of.kept().slow, most_copies(of));
    let steps = || ("steps", Level::Integer(100));
    assert_eq!(counted(&with(&[steps(), ("keep", Level::Integer(2))])), (5, 2, 3));
    assert_eq!(counted(&with(&[])), (142 / 20, 5, 6));
    assert_eq!(most_copies(&with(&[steps()])), 5, "no more than are made");
    assert_eq!(n_saves(&settings(&[steps()]), 9_144), 0);
    let size = ("checkpoint_size", text("1GB"));
    let emulated = || ("accelerator", text("emulated:1ms"));
    assert_eq!(state_bytes(&with(&[emulated(), size.clone()])), 1_000_000_000);
    assert_eq!(state_bytes(&with(&[])), 61_100_840 * 12, "AlexNet and two moments of each weight");
    let auto = [emulated(), size, ("device", text("auto")), ("model", text("alexnet-small"))];
    assert_eq!(state_bytes(&with(&auto)), 1_000_000_000, "the larger of what it may be");
}

#[test]
fn settings_are_named_as_a_study_has_them_and_agree_with_the_places() {
    let to = |route: &str| ("checkpoint", text(route));
    let every = || ("checkpoint_every", Level::Integer(20));
    assert_eq!(
        refused(&[("steps", Level::Integer(3)), ("epochs", Level::Integer(1))]),
        "give steps or epochs, not both"
    );
    let said = refused(&[every()]);
    assert_eq!(said, "checkpoint_every needs checkpoints: give checkpoint");
    assert_eq!(refused(&[("burst", text("optane"))]), "burst needs checkpoint");
    let said = refused(&[to("hdd")]);
    assert_eq!(said, "checkpoint interval missing: give checkpoint_every");
    let said = refused(&[to("optane → hdd"), every(), ("burst", text("ssd"))]);
    assert_eq!(said, "\"optane → hdd\" names a burst buffer, and so does burst = ssd; omit one");
    assert_eq!(refused(&[to("hdd → hdd"), every()]), "hdd cannot be its own burst buffer; name another tier");
    let said = refused(&[to("hdd"), every(), ("checkpoint_mode", text("burst"))]);
    assert_eq!(said, "burst saves need a burst buffer: give burst");
    let burst = [to("hdd"), every(), ("burst", text("optane")), ("checkpoint_mode", text("burst"))];
    assert_eq!(work(&burst).check(), Ok(()));
    let refused = |name: &str, level: Level| Work::new(Step::Train, 0).set(name, &level).unwrap_err();
    assert_eq!(refused("optimizer", text("lamb")), "\"lamb\": give adam, adamw or sgd");
}
