//! Tests of the flags; settings are tested in forebay-bench.

use clap::Parser;
use forebay_bench::DecodeOn;
use forebay_bench::train::{Plan, Saves, TrainDevice, TrainSettings, Validate};
use forebay_checkpoint::{Mode, WhenBehind};
use forebay_measure::{Io, ThreadCount};
use forebay_units::Bytes;

use super::Args;
use forebay_study::Placement;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

fn parse(line: &str) -> Result<Line, String> {
    Line::try_parse_from(["train"].into_iter().chain(line.split_whitespace())).map_err(|error| error.to_string())
}

fn plan(line: &str) -> Plan {
    parse(line).unwrap().args.into_plan(&Placement::default()).unwrap().0
}

fn refused(line: &str) -> String {
    match parse(line) {
        Err(error) => error,
        Ok(parsed) => parsed.args.into_plan(&Placement::default()).unwrap_err().to_string(),
    }
}

#[test]
fn without_flags_the_settings_are_the_defaults_and_one_run_is_kept() {
    let plan = plan("set");
    assert_eq!((plan.settings, plan.data), (TrainSettings::default(), Some("set".into())));
    assert_eq!((plan.validate, plan.saves, plan.warmups, plan.repeats), (None, None, 0, 1));
}

#[test]
fn every_flag_is_in_the_plan() {
    let plan = plan(
        "set --model resnet-small --device cuda:3 --precision f32 --batch 8 --steps 7 --threads 3 --prefetch 4 \
         --device-prefetch 0 --optimizer sgd --lr 0.5 --classes 12 --seed 9 --tier hdd --cold --io direct --validate=other \
         --baseline 2 --max-sample-size 1MB --decode auto",
    );
    let settings = TrainSettings {
        model: Some("resnet-small".to_owned()),
        device: Some(TrainDevice::Cuda { ordinal: 3 }),
        precision: Some("f32".parse().unwrap()),
        batch: 8,
        steps: Some(7),
        threads: ThreadCount::Fixed(3),
        prefetch: 4,
        device_prefetch: Some(0),
        optimizer: Some("sgd".to_owned()),
        lr: Some(0.5),
        classes: Some(12),
        seed: 9,
        cold: true,
        io: Io::Fixed("direct".parse().unwrap()),
        baseline: Some(2),
        max_sample_size: Bytes(1_000_000),
        decode: DecodeOn::Auto,
        ..TrainSettings::default()
    };
    assert_eq!(plan.settings, settings);
    assert_eq!(plan.tier.as_ref().map(|profile| profile.name.as_str()), Some("hdd"));
    assert_eq!(plan.validate, Some(Validate::Data("other".into())));
    let emulated = crate::train::tests::plan("--synthetic --accelerator emulated:normal(224ms,20ms),busy");
    let said = emulated.settings.accelerator.unwrap().to_string();
    assert_eq!((said.as_str(), emulated.data), ("emulated:normal(224ms,20ms),busy", None));
}

#[test]
fn validation_is_on_a_tenth_a_share_or_other_data() {
    let validate = |flag: &str| plan(&format!("set {flag}")).validate;
    assert_eq!(validate("--validate"), Some(Validate::Share(0.1)));
    assert_eq!(validate("--validate=0.25"), Some(Validate::Share(0.25)));
    assert_eq!(validate("--validate=./0.25"), Some(Validate::Data("./0.25".into())));
    assert_eq!(plan("--validate set").data, Some("set".into()), "a value needs its equals sign");
}

#[test]
fn checkpoints_go_by_way_of_a_burst_buffer_where_there_is_one() {
    let saves = |flags: &str| {
        let plan = plan(&format!("set --checkpoint-every 20 --checkpoint-dir slow {flags}"));
        (plan.mode(), plan.settings, plan.saves.unwrap())
    };
    let (mode, settings, Saves { places, resume }) = saves("");
    assert_eq!(
        (settings.checkpoint_every, mode, settings.format(), places.keep),
        (Some(20), Mode::Direct, "safetensors", forebay_measure::Kept::in_each(5))
    );
    assert_eq!((places.slow.dir.as_path(), places.fast, resume), (std::path::Path::new("slow"), None, false));
    let (mode, settings, Saves { places, resume }) = saves(
        "--burst-dir fast --keep 2 --resume --checkpoint-tier hdd --burst-tier optane --checkpoint-behind coalesce \
         --drain-rate 100MB/s --checkpoint-format tensorflow",
    );
    assert_eq!(
        (mode, settings.format(), places.keep, resume),
        (Mode::Burst, "tensorflow", forebay_measure::Kept::in_each(2), true)
    );
    assert_eq!(settings.checkpoint_behind, Some(WhenBehind::Coalesce));
    assert_eq!(settings.drain_rate, Some(Bytes(100_000_000)));
    let tiers: Vec<String> = places.nearest_first().filter_map(|place| Some(place.shaped.clone()?.name)).collect();
    assert_eq!(tiers, ["optane", "hdd"]);
    assert_eq!(saves("--burst-dir fast --checkpoint-mode async").0, Mode::Async);
    let (_, settings, _) = saves("--accelerator emulated:1ms --checkpoint-size 600MB");
    assert_eq!(settings.checkpoint_size, Some(Bytes(600_000_000)));
}

#[test]
fn a_flag_that_would_do_nothing_is_refused() {
    for line in [
        "set --synthetic",
        "--synthetic --threads 2",
        "--synthetic --prefetch 2",
        "--synthetic --tier hdd",
        "--synthetic --cold",
        "--synthetic --io direct",
        "--synthetic --max-sample-size 1MB",
        "--synthetic --split train",
        "--synthetic --validate",
        "--synthetic --baseline 3",
        "set --accelerator emulated:1ms --validate",
    ] {
        let said = refused(line);
        assert!(said.contains("cannot be used with"), "{line}\n{said}");
    }
    for (line, wanted) in [
        ("--synthetic --epochs 2", "a synthetic batch has no epochs: give --steps"),
        ("set --steps 2 --epochs 2", "give --steps or --epochs, not both"),
        ("set --accelerator emulated:1ms --device cpu", "omit --device"),
        ("set --accelerator emulated:1ms --lr 0.1", "so --lr would have no effect"),
        ("set --device-prefetch 1", "--device-prefetch needs a GPU"),
        ("set --checkpoint-every 3", "needs checkpoints: give --checkpoint-dir"),
    ] {
        let said = refused(line);
        assert!(said.contains(wanted), "{line}\n{said}");
    }
}

#[test]
fn values_without_sense_are_refused_with_what_would_have_one() {
    for (line, wanted) in [
        ("", "required"),
        ("set --model vgg", "give alexnet, alexnet-small, resnet50 or resnet-small"),
        ("set --optimizer lion", "give adam, adamw or sgd"),
        ("set --device tpu", "give auto, cpu, cuda, or cuda:N with N from 0 to 1,023"),
        ("set --device cuda --precision f64", "expected f32, tf32 or bf16"),
        ("set --accelerator v100", "expected \"emulated:\" at the beginning"),
        ("set --accelerator emulated:224", "missing unit; use ns, us, ms, s, min or h"),
        ("set --threads 1,2", "give a number from 1 to 1,024, or auto"),
        ("set --batch 0", "give a whole number from 1 to 1,000,000"),
        ("set --lr 0", "give a number above 0"),
        ("set --validate=1.5", "give a fraction above 0 and below 1, or a path"),
        ("set --validate=", "--validate"),
        ("set --min-au 1.1", "give a fraction above 0, at most 1"),
        ("set --min-au 0", "give a fraction above 0, at most 1"),
    ] {
        let said = refused(line);
        assert!(said.contains(wanted), "{line}\n{said}");
    }
}
