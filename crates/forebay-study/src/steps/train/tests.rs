//! What settings become, on a machine with a GPU and on one without.

use forebay_bench::train::{Accelerator, Device, Input, Plan};
use forebay_checkpoint::Mode;
use forebay_measure::Cache;
use forebay_measure::{Place, Places};

use super::*;
use crate::steps::{Stage, Task, Work};
use forebay_record::Step;

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

fn planned(with: &[(&str, Level)], gpu: Gpu) -> (Plan, Option<String>) {
    let (work, settings) = (work(with), settings(with));
    work.check().unwrap();
    let route = work.route();
    let on = Stage {
        shaped: Some(forebay_storage::Profile::hdd()),
        warmups: 1,
        repeats: 2,
        saves: route.as_ref().map(|_| places()),
        ..Stage::default()
    };
    run::plan(&settings, route.as_ref(), (!settings.synthetic).then(|| "set".into()), on, &gpu)
}

const NO_GPU: &str = "libcuda does not load";

#[test]
fn auto_trains_on_a_gpu_where_there_is_one() {
    let with = [("device", text("auto")), ("accelerator", text("emulated:224ms")), ("model", text("resnet50"))];
    let (plan, note) = planned(&with, Ok(()));
    let Accelerator::Network { model, device, optimizer, .. } = plan.accelerator else { panic!("{plan:?}") };
    assert_eq!((model.as_str(), optimizer.learning_rate()), ("resnet50", 0.0001));
    assert_eq!(device, Device::Cuda { ordinal: 0, precision: Precision::Bf16 });
    assert_eq!((plan.device_prefetch, note), (1, None));
}

#[test]
fn auto_emulates_where_there_is_no_gpu_and_says_so() {
    let with =
        [("device", text("auto")), ("accelerator", text("emulated:224ms")), ("device_prefetch", Level::Integer(3))];
    let (plan, note) = planned(&with, Err(NO_GPU.to_owned()));
    assert_eq!(plan.accelerator, Accelerator::Emulated("emulated:224ms".parse().unwrap()));
    assert_eq!(plan.device_prefetch, 0, "it has no memory of its own");
    let said = "no CUDA device here (libcuda does not load): an accelerator of 224ms a step is emulated";
    assert_eq!(note.as_deref(), Some(said));
}

#[test]
fn auto_without_an_accelerator_trains_on_the_cores_and_says_so() {
    let (plan, note) = planned(&[("device", text("auto"))], Err(NO_GPU.to_owned()));
    assert!(matches!(plan.accelerator, Accelerator::Network { device: Device::Cpu { .. }, .. }));
    assert_eq!(note.unwrap(), "no CUDA device here (libcuda does not load): alexnet is trained on the cores");
}

#[test]
fn a_device_that_is_named_is_the_one_that_is_used() {
    let device = |with: &[(&str, Level)]| match planned(with, Ok(())).0.accelerator {
        Accelerator::Network { device, .. } => Some(device),
        Accelerator::Emulated(_) => None,
    };
    let with = [("device", text("cuda:1")), ("precision", text("tf32"))];
    assert_eq!(device(&with), Some(Device::Cuda { ordinal: 1, precision: Precision::Tf32 }));
    assert!(matches!(device(&[("device", text("cpu"))]), Some(Device::Cpu { threads: 1.. })));
    assert!(matches!(device(&[]), Some(Device::Cpu { .. })));
    assert_eq!(device(&[("accelerator", text("emulated:1ms"))]), None);
}

#[test]
fn settings_come_to_the_plan() {
    let with = [
        ("batch", Level::Integer(16)),
        ("epochs", Level::Integer(3)),
        ("threads", Level::Integer(4)),
        ("prefetch", Level::Integer(0)),
        ("cold", Level::Flag(true)),
        ("io", text("auto")),
        ("optimizer", text("sgd")),
        ("classes", Level::Integer(102)),
        ("baseline", Level::Integer(5)),
        ("seed", Level::Integer(9)),
        ("device", text("cuda")),
    ];
    let (plan, _) = planned(&with, Ok(()));
    assert_eq!((plan.batch, plan.length, plan.prefetch), (16, Length::Epochs(3), 0));
    assert_eq!((plan.threads, plan.cache, plan.io), (ThreadCount::Fixed(4), Cache::Cold, Io::Auto));
    assert_eq!((plan.baseline, plan.seed, plan.warmups, plan.repeats), (5, 9, 1, 2));
    assert_eq!((plan.device_prefetch, plan.tier.unwrap().name.as_str()), (0, "hdd"));
    let Accelerator::Network { classes, optimizer, .. } = plan.accelerator else { panic!() };
    assert_eq!((classes, optimizer.learning_rate()), (Some(102), 0.01));
    let rate = planned(&[("lr", Level::Number(0.5))], Ok(())).0.accelerator;
    assert!(matches!(rate, Accelerator::Network { optimizer, .. } if optimizer.learning_rate() == 0.5));
}

#[test]
fn synthetic_batches_come_from_no_device() {
    let with = [("synthetic", Level::Flag(true)), ("steps", Level::Integer(12)), ("cold", Level::Flag(true))];
    let (plan, _) = planned(&with, Ok(()));
    assert_eq!((plan.input, plan.length, plan.baseline), (Input::Synthetic, Length::Steps(12), 0));
    assert_eq!((plan.tier, plan.cache), (None, Cache::Warm));
}

#[test]
fn a_run_counts_whole_batches() {
    let of = |with: &[(&str, Level)]| settings(with).images_a_run(9_144);
    assert_eq!(of(&[]), 142 * 64);
    assert_eq!(of(&[("epochs", Level::Integer(2)), ("batch", Level::Integer(1_000))]), 18_000);
    assert_eq!(of(&[("steps", Level::Integer(200))]), 200 * 64);
}

#[test]
fn what_contradicts_itself_is_refused() {
    let emulated = || ("accelerator", text("emulated:224ms"));
    let steps = |n| ("steps", Level::Integer(n));
    assert_eq!(refused(&[steps(3), ("epochs", Level::Integer(1))]), "give steps or epochs, not both");
    assert_eq!(refused(&[("synthetic", Level::Flag(true))]), "synthetic batches have no end: give steps");
    let said = refused(&[steps(1_000_000_000), ("batch", Level::Integer(100_000))]);
    assert_eq!(said, "a run has more than 1,000,000,000,000 images: give fewer steps");
    let said = refused(&[emulated(), ("device", text("cpu"))]);
    assert!(said.starts_with("an emulated accelerator takes the place of the device: leave device out"), "{said}");
    let said = refused(&[emulated(), ("model", text("alexnet"))]);
    assert!(said.starts_with("an emulated accelerator learns nothing, so model would be ignored"), "{said}");
    let said = refused(&[("precision", text("bf16"))]);
    assert_eq!(said, "cores compute in f32: precision is for a GPU");
    let said = refused(&[("device", text("cpu")), ("device_prefetch", Level::Integer(1))]);
    assert_eq!(said, "device_prefetch is for a device with memory of its own: a GPU");
}

#[test]
fn values_say_what_they_may_be() {
    let refused = |name: &str, level: Level| Work::new(Step::Train, 0).set(name, &level).unwrap_err();
    assert_eq!(refused("device", text("gpu")), "\"gpu\": give auto, cpu, cuda or cuda:N");
    assert_eq!(refused("device", text("cuda:x")), "\"cuda:x\": give auto, cpu, cuda or cuda:N");
    assert_eq!(
        refused("precision", text("f16")),
        "\"f16\": there is no precision \"f16\"; there are f32, tf32 and bf16"
    );
    assert_eq!(refused("optimizer", text("lamb")), "\"lamb\": give adam, adamw or sgd");
    assert!(refused("model", text("vgg")).starts_with("\"vgg\": give alexnet, "));
    assert_eq!(refused("lr", Level::Integer(0)), "0: give a number above 0, as 0.0001");
    assert!(refused("accelerator", text("224ms")).contains("it must begin with \"emulated:\""));
}

fn places() -> Places {
    Places { slow: Place::new("slow"), fast: Some(Place::new("fast")), keep: 5 }
}

#[test]
fn checkpoints_come_to_the_plan() {
    let every = |n| ("checkpoint_every", Level::Integer(n));
    let emulated = [("accelerator", text("emulated:1ms")), ("checkpoint_size", text("8MB")), every(20)];
    let with = |more: &[(&'static str, Level)]| [&emulated[..], more].concat();
    let made = |with: &[(&str, Level)], gpu: Gpu| planned(with, gpu).0.checkpoint;
    let plan = made(&with(&[("checkpoint", text("optane → hdd"))]), Ok(())).unwrap();
    assert_eq!((plan.every, plan.mode, plan.format, plan.size), (20, Mode::Burst, "safetensors", Some(8_000_000)));
    assert_eq!((plan.places, plan.resume), (places(), false));
    let more = [("checkpoint", text("hdd")), ("checkpoint_format", text("tensorflow"))];
    let plan = made(&with(&more), Ok(())).unwrap();
    assert_eq!((plan.mode, plan.format), (Mode::Direct, "tensorflow"));
    let more = [("checkpoint", text("hdd")), ("burst", text("optane")), ("checkpoint_mode", text("async"))];
    assert_eq!(made(&with(&more), Ok(())).unwrap().mode, Mode::Async);
    assert_eq!(made(&with(&[("checkpoint", text("none"))]), Ok(())), None, "said of the other levels");
    assert_eq!(made(&[], Ok(())), None);
    let auto = with(&[("checkpoint", text("hdd")), ("device", text("auto"))]);
    assert_eq!(made(&auto, Ok(())).unwrap().size, None, "a network has a state of its own");
    assert_eq!(made(&auto, Err(NO_GPU.to_owned())).unwrap().size, Some(8_000_000));
}

#[test]
fn checkpoints_are_counted_before_they_are_made() {
    let with = |more: &[(&str, Level)]| {
        let given = [("checkpoint", text("optane → hdd")), ("checkpoint_every", Level::Integer(20))];
        settings(&[&given[..], more].concat())
    };
    let of = with(&[("steps", Level::Integer(100)), ("keep", Level::Integer(2))]);
    assert_eq!((of.n_saves(9_144), of.saving.keep(), of.most_copies()), (5, 2, 3));
    assert_eq!((with(&[]).n_saves(9_144), with(&[]).saving.keep(), with(&[]).most_copies()), (142 / 20, 5, 6));
    let few = with(&[("steps", Level::Integer(100))]);
    assert_eq!(few.most_copies(), 5, "no more than are made");
    assert_eq!(settings(&[("steps", Level::Integer(100))]).n_saves(9_144), 0);
    let size = ("checkpoint_size", text("1GB"));
    let emulated = || ("accelerator", text("emulated:1ms"));
    assert_eq!(with(&[emulated(), size.clone()]).state_bytes(), 1_000_000_000);
    assert_eq!(with(&[]).state_bytes(), 61_100_840 * 12, "AlexNet and two moments of each weight");
    let auto = [emulated(), size, ("device", text("auto")), ("model", text("alexnet-small"))];
    assert_eq!(with(&auto).state_bytes(), 1_000_000_000, "the larger of what it may be");
}

#[test]
fn checkpoints_that_contradict_themselves_are_refused() {
    let to = |route: &str| ("checkpoint", text(route));
    let every = || ("checkpoint_every", Level::Integer(20));
    let said = refused(&[every()]);
    assert_eq!(said, "checkpoint_every is for checkpoints, of which there are none: give checkpoint");
    assert!(refused(&[("burst", text("optane"))]).starts_with("burst is for checkpoints, "));
    assert!(refused(&[("keep", Level::Integer(3))]).starts_with("keep is for checkpoints, "));
    let said = refused(&[to("hdd")]);
    assert_eq!(said, "how many steps lie between two checkpoints? give checkpoint_every");
    let said = refused(&[to("hdd"), every(), ("steps", Level::Integer(19))]);
    assert_eq!(said, "a run of 19 steps makes no checkpoint when one is made every 20");
    let said = refused(&[to("optane → hdd"), every(), ("burst", text("ssd"))]);
    assert_eq!(said, "\"optane → hdd\" has a burst buffer, and burst says ssd: give one of them");
    let said = refused(&[to("hdd"), every(), ("checkpoint_mode", text("burst"))]);
    assert_eq!(said, "burst saves need a tier in front: give burst");
    let said = refused(&[to("hdd"), every(), ("accelerator", text("emulated:1ms"))]);
    assert_eq!(said, "an emulated accelerator has no state of its own to save: give checkpoint_size");
    let said = refused(&[to("hdd"), every(), ("checkpoint_size", text("1MB"))]);
    assert_eq!(said, "checkpoint_size is for an emulated accelerator: a network's state has the size it has");
    assert_eq!(settings(&[to("none"), every(), ("keep", Level::Integer(3))]).check(), Ok(()));
}
