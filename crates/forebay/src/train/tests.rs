//! What the flags come to.

use clap::Parser;
use forebay_bench::train::{Accelerator, Device, Input, Length, Plan, Validate};
use forebay_checkpoint::{Mode, WhenBehind};
use forebay_measure::{Cache, Io, ThreadCount};
use forebay_train::{Optimizer, Precision};

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
    parse(line).unwrap().args.into_plan(&Placement::default()).unwrap()
}

fn refused(line: &str) -> String {
    match parse(line) {
        Err(error) => error,
        Ok(parsed) => parsed.args.into_plan(&Placement::default()).unwrap_err().to_string(),
    }
}

fn network(plan: &Plan) -> (&str, Option<usize>, Device, Optimizer) {
    match &plan.accelerator {
        Accelerator::Network { model, classes, device, optimizer } => (model, *classes, *device, *optimizer),
        Accelerator::Emulated(_) => panic!("a network is planned"),
    }
}

#[test]
fn without_flags_alexnet_is_trained_for_an_epoch_on_the_cpu() {
    let plan = plan("set");
    assert_eq!((&plan.input, plan.batch, plan.length), (&Input::Data("set".into()), 64, Length::Epochs(1)));
    assert_eq!((plan.threads, plan.prefetch, plan.device_prefetch), (ThreadCount::Auto, 1, 0));
    assert_eq!((plan.cache, plan.io), (Cache::Warm, Io::Fixed("buffered".parse().unwrap())));
    assert_eq!((plan.validate.as_ref(), plan.baseline, plan.seed), (None, 10, 0));
    assert_eq!((plan.warmups, plan.repeats), (0, 1));
    let (model, classes, device, optimizer) = network(&plan);
    assert_eq!((model, classes), ("alexnet", None));
    assert!(matches!(device, Device::Cpu { threads: 1.. }), "{device:?}");
    assert_eq!(optimizer.learning_rate(), 0.0001);
}

#[test]
fn every_flag_is_in_the_plan() {
    let plan = plan(
        "set --model resnet-small --precision f32 --batch 8 --steps 7 --threads 3 --prefetch 4 --device-prefetch 0 --optimizer sgd \
         --lr 0.5 --classes 12 --seed 9 --tier hdd --cold --io direct --validate=other --baseline 2",
    );
    assert_eq!((plan.batch, plan.length, plan.threads), (8, Length::Steps(7), ThreadCount::Fixed(3)));
    assert_eq!((plan.prefetch, plan.device_prefetch, plan.seed, plan.baseline), (4, 0, 9, 2));
    assert_eq!((plan.cache, plan.io), (Cache::Cold, Io::Fixed("direct".parse().unwrap())));
    assert_eq!(plan.tier.as_ref().map(|profile| profile.name.as_str()), Some("hdd"));
    assert_eq!(plan.validate, Some(Validate::Data("other".into())));
    let (model, classes, _, optimizer) = network(&plan);
    assert_eq!((model, classes), ("resnet-small", Some(12)));
    assert!(matches!(optimizer, Optimizer::Sgd(_)) && optimizer.learning_rate() == 0.5, "{optimizer:?}");
}

#[test]
fn a_learning_rate_is_that_of_its_optimiser() {
    let rate = |name: &str| network(&plan(&format!("set --optimizer {name}"))).3.learning_rate();
    assert_eq!((rate("adam"), rate("adamw"), rate("sgd")), (0.0001, 0.0001, 0.01));
}

#[test]
fn a_gpu_computes_in_bf16_and_has_a_batch_sent_ahead_unless_told_otherwise() {
    let device = |flags: &str| {
        let plan = plan(&format!("set {flags}"));
        (network(&plan).2, plan.device_prefetch)
    };
    let cuda = |ordinal, precision| Device::Cuda { ordinal, precision };
    assert_eq!(device("--device cuda"), (cuda(0, Precision::Bf16), 1));
    assert_eq!(device("--device cuda:3 --precision tf32"), (cuda(3, Precision::Tf32), 1));
    assert_eq!(device("--device cuda --prefetch 0"), (cuda(0, Precision::Bf16), 0));
    assert_eq!(device("--device cuda --device-prefetch 5").1, 5);
    assert_eq!(plan("--synthetic --device cuda").device_prefetch, 1);
}

#[test]
fn a_batch_in_memory_is_trained_on_for_a_hundred_steps() {
    let synthetic = plan("--synthetic");
    assert_eq!((&synthetic.input, synthetic.length), (&Input::Synthetic, Length::Steps(100)));
    assert_eq!((synthetic.prefetch, synthetic.baseline), (0, 0));
    assert_eq!(plan("--synthetic --steps 3").length, Length::Steps(3));
}

#[test]
fn validation_is_on_a_tenth_a_share_or_other_data() {
    let validate = |flag: &str| plan(&format!("set {flag}")).validate;
    assert_eq!(validate("--validate"), Some(Validate::Share(0.1)));
    assert_eq!(validate("--validate=0.25"), Some(Validate::Share(0.25)));
    assert_eq!(validate("--validate=./0.25"), Some(Validate::Data("./0.25".into())));
    assert_eq!(plan("--validate set").input, Input::Data("set".into()), "a value needs its equals sign");
}

#[test]
fn an_emulated_accelerator_takes_its_time_from_the_flag() {
    match plan("set --accelerator emulated:normal(224ms,20ms),busy").accelerator {
        Accelerator::Emulated(emulation) => assert_eq!(emulation.to_string(), "emulated:normal(224ms,20ms),busy"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn checkpoints_go_by_way_of_a_burst_buffer_where_there_is_one() {
    let saves =
        |flags: &str| plan(&format!("set --checkpoint-every 20 --checkpoint-dir slow {flags}")).checkpoint.unwrap();
    let direct = saves("");
    assert_eq!((direct.every, direct.mode, direct.format, direct.places.keep), (20, Mode::Direct, "safetensors", 5));
    assert_eq!((direct.places.slow.dir.as_path(), direct.places.fast.as_ref()), (std::path::Path::new("slow"), None));
    assert_eq!((direct.when_behind, direct.drain_bytes_per_s, direct.resume), (WhenBehind::Wait, None, false));
    let burst = saves(
        "--burst-dir fast --keep 2 --resume --checkpoint-tier hdd --burst-tier optane --checkpoint-behind coalesce \
         --drain-rate 100MB/s --checkpoint-format tensorflow",
    );
    assert_eq!((burst.mode, burst.format, burst.places.keep), (Mode::Burst, "tensorflow", 2));
    assert_eq!(
        (burst.when_behind, burst.drain_bytes_per_s, burst.resume),
        (WhenBehind::Coalesce, Some(100_000_000), true)
    );
    let tiers: Vec<String> =
        burst.places.nearest_first().filter_map(|place| Some(place.shaped.clone()?.name)).collect();
    assert_eq!(tiers, ["optane", "hdd"]);
    assert_eq!(saves("--burst-dir fast --checkpoint-mode async").mode, Mode::Async);
    assert_eq!(saves("--accelerator emulated:1ms --checkpoint-size 600MB").size, Some(600_000_000));
    assert_eq!(plan("set").checkpoint, None);
}

#[test]
fn a_flag_that_would_do_nothing_is_refused() {
    for line in [
        "set --synthetic",
        "--synthetic --epochs 2",
        "--synthetic --threads 2",
        "--synthetic --prefetch 2",
        "--synthetic --tier hdd",
        "--synthetic --cold",
        "--synthetic --io direct",
        "--synthetic --validate",
        "--synthetic --baseline 3",
        "set --steps 2 --epochs 2",
        "set --accelerator emulated:1ms --model alexnet",
        "set --accelerator emulated:1ms --device cpu",
        "set --accelerator emulated:1ms --precision f32",
        "set --accelerator emulated:1ms --optimizer adam",
        "set --accelerator emulated:1ms --lr 0.1",
        "set --accelerator emulated:1ms --classes 3",
        "set --accelerator emulated:1ms --validate",
    ] {
        let said = refused(line);
        assert!(said.contains("cannot be used with"), "{line}\n{said}");
    }
    assert_eq!(
        refused("set --precision bf16"),
        "--precision bf16: the CPU computes in f32 alone; --device cuda has the others"
    );
    assert_eq!(
        refused("set --device-prefetch 1"),
        "--device-prefetch 1: the CPU has no memory of its own to send batches to"
    );
    assert_eq!(
        refused("set --accelerator emulated:1ms --device-prefetch 2"),
        "--device-prefetch 2: an emulated accelerator has no memory of its own to send batches to"
    );
}

#[test]
fn values_without_sense_are_refused_with_what_would_have_one() {
    for (line, wanted) in [
        ("", "required"),
        ("set --model vgg", "[possible values: alexnet, alexnet-small, resnet50, resnet-small]"),
        ("set --optimizer lion", "[possible values: adam, adamw, sgd]"),
        ("set --device tpu", "give cpu, cuda, or cuda:N with N from 0"),
        ("set --device cuda:", "give cpu, cuda, or cuda:N with N from 0"),
        ("set --device cuda --precision f64", "there are f32, tf32 and bf16"),
        ("set --accelerator v100", "it must begin with \"emulated:\""),
        ("set --accelerator emulated:224", "give a unit"),
        ("set --threads 1,2", "give a number from 1 to 1024, or auto"),
        ("set --batch 0", "--batch"),
        ("set --steps 0", "--steps"),
        ("set --epochs 0", "--epochs"),
        ("set --lr 0", "give a number above 0"),
        ("set --lr nan", "give a number above 0"),
        ("set --classes 0", "--classes"),
        ("set --validate=1.5", "give a share above 0 and below 1, or a path"),
        ("set --validate=", "--validate"),
        ("set --min-au 1.1", "give a share above 0, up to 1"),
        ("set --min-au 0", "give a share above 0, up to 1"),
    ] {
        let said = refused(line);
        assert!(said.contains(wanted), "{line}\n{said}");
    }
}
