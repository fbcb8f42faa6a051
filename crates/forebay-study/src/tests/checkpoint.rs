//! Studies that make checkpoints: what is refused, and what room and time they take.

use forebay_storage::Profile;
use forebay_units::Bytes;

use super::*;
use crate::{Estimator, Places, spaces};

/// Training on synthetic batches, and saving alone, to one tier and over another.
const SAVES: &str = r#"
name = "saves"
title = "a study that saves"

[[tier]]
name = "slow"
profile = "hdd"

[[tier]]
name = "fast"
profile = "optane"

[[experiment]]
name = "train"
run = "train"
warmups = 0
repeats = 2
[experiment.factors]
checkpoint = ["none", "slow", "fast → slow"]
[experiment.settings]
synthetic = true
steps = 100
accelerator = "emulated:30ms"
checkpoint_every = 20
checkpoint_size = "64MB"
keep = 3

[[experiment]]
name = "save"
run = "checkpoint"
repeats = 4
[experiment.factors]
tier = ["slow", "fast → slow"]
[experiment.settings]
format = "safetensors"
size = "100MB"
"#;

#[track_caller]
fn refused(from: &str, to: &str) -> (String, Option<String>) {
    assert!(SAVES.contains(from), "{from}");
    let error = Plan::new(parse(&SAVES.replacen(from, to, 1)).unwrap(), Scale::Quick).unwrap_err();
    (error.to_string(), error.hint())
}

#[test]
fn a_tier_of_checkpoints_that_is_not_there_is_refused_with_the_nearest() {
    let (said, hint) = refused(
        "\"fast → slow\"]\n[experiment.settings]\nsynthetic",
        "\"fats → slow\"]\n[experiment.settings]\nsynthetic",
    );
    assert_eq!(said, "cell train/checkpoint=fats → slow: unknown tier \"fats\"");
    assert_eq!(hint.unwrap(), "did you mean `fast`?");
    let (said, _) = refused("tier = [\"slow\",", "tier = [\"slo\",");
    assert_eq!(said, "cell save/tier=slo: unknown tier \"slo\"");
}

#[test]
fn what_a_cell_says_of_checkpoints_must_go_together() {
    let (said, _) = refused("checkpoint_every = 20\n", "");
    assert!(said.starts_with("cell train/checkpoint=slow: checkpoint interval missing"), "{said}");
    let (said, _) = refused("checkpoint_every = 20", "checkpoint_every = 0");
    assert!(
        said.starts_with("experiment \"train\", settings.checkpoint_every: 0: give a whole number from 1 "),
        "{said}"
    );
    let (said, _) = refused("size = \"100MB\"", "size = \"100MB\"\nmode = \"direct\"");
    assert_eq!(said, "cell save/tier=fast → slow: mode direct writes to the last tier only; omit the burst buffer");
    let (said, _) = refused("repeats = 4", "repeats = 4\nwarmups = 0");
    let wanted = "experiment \"save\", warmups: checkpoints have exactly one warm-up, the first save; set this to 1";
    assert_eq!(said, wanted);
    let (said, hint) = refused("size = \"100MB\"", "saves = 5");
    assert_eq!(said, "experiment \"save\", settings.saves: checkpoint has no setting \"saves\"");
    assert!(hint.unwrap().starts_with("expected one of burst, device, "));
}

#[test]
fn room_for_the_checkpoints_of_the_largest_cell_is_counted_once_a_tier() {
    let dir = tempfile::tempdir().unwrap();
    let plan = plan_of(SAVES);
    let places = Places::new(&plan, dir.path());
    let all = spaces(&places, &plan.cells);
    let [space] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!(space.to_save, Bytes(2 * 4 * 64_000_000), "both tiers lie here, three are kept and one more is written");
    assert_eq!(space.needed(), space.to_save);
    let (train, save): (Vec<CellPlan>, _) = plan.cells.iter().cloned().partition(|cell| cell.experiment == "train");
    assert_eq!(spaces(&places, &train)[0].to_save, space.to_save);
    let save = spaces(&places, &save)[0].to_save;
    assert_eq!(save, Bytes(2 * 2 * 100_000_000), "a benchmark keeps one however often it saves, and writes one more");
    assert!(spaces(&places, &train[..1]).is_empty(), "without checkpoints nothing is written");
    assert_eq!(places.checkpoints_of("slow"), dir.path().join("checkpoints-slow"));
}

#[test]
fn stalls_and_the_last_drain_are_estimated() {
    let plan = plan_of(SAVES);
    let estimator = Estimator::new(&plan, &Places::new(&plan, Path::new("data")));
    let of = |id: &str| estimator.cell(plan.cells.iter().find(|cell| cell.id == id).unwrap());
    let (hdd, optane) = (Profile::hdd(), Profile::optane());
    let s = |mb: f64, bytes_per_s: u64| mb * 1e6 / bytes_per_s as f64;
    let drain_s = |mb: f64| s(mb, hdd.write_bytes_per_s) + s(mb, hdd.read_bytes_per_s);
    let near = |id: &str, seconds: f64| {
        let got = of(id).seconds.unwrap();
        assert!((got - seconds).abs() < 1e-6, "{id}: {got} s, not {seconds} s");
    };
    near("train/checkpoint=none", 2.0 * 3.0);
    near("train/checkpoint=slow", 2.0 * (3.0 + 5.0 * s(64.0, hdd.write_bytes_per_s)));
    near("train/checkpoint=fast → slow", 2.0 * (3.0 + 5.0 * s(64.0, optane.write_bytes_per_s) + drain_s(64.0)));
    let behind = plan_of(&SAVES.replacen("keep = 3", "checkpoint_mode = \"async\"", 1));
    let cell = behind.cells.iter().find(|cell| cell.id == "train/checkpoint=slow").unwrap();
    let estimator_behind = Estimator::new(&behind, &Places::new(&behind, Path::new("data")));
    let seconds = estimator_behind.cell(cell).seconds.unwrap();
    assert!(
        (seconds - 2.0 * (3.0 + s(64.0, hdd.write_bytes_per_s))).abs() < 1e-6,
        "only the last is waited for: {seconds}"
    );
    let save_s = s(100.0, optane.write_bytes_per_s) + drain_s(100.0) + s(100.0, optane.read_bytes_per_s);
    near("save/tier=fast → slow", 5.0 * save_s);
    let written = ["none", "slow", "fast → slow"].map(|to| of(&format!("train/checkpoint={to}")).written.0);
    assert_eq!(written, [0, 2 * 5 * 64_000_000, 2 * 2 * 5 * 64_000_000]);
}

#[test]
fn formats_that_are_not_said_are_a_factor_as_the_command_sweeps_them() {
    let plan = plan_of(&SAVES.replacen("format = \"safetensors\"\n", "", 1));
    let formats = plan.cells.iter().filter_map(|cell| cell.factors.get("format")).map(ToString::to_string);
    assert_eq!(formats.collect::<Vec<_>>(), ["safetensors", "safetensors", "tensorflow", "tensorflow"]);
}
