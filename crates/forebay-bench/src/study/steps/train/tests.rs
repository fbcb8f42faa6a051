//! What settings become, on a machine with a GPU and on one without.

use super::*;
use crate::ingest::Cache;
use crate::study::steps::Stage;
use crate::train::{Accelerator, Device, Input, Plan};

fn text(text: &str) -> Level {
    Level::Text(text.to_owned())
}

fn settings(with: &[(&str, Level)]) -> TrainSettings {
    let mut settings = TrainSettings::new(7);
    with.iter().for_each(|(name, level)| settings.set(name, level).unwrap());
    settings
}

fn refused(with: &[(&str, Level)]) -> String {
    settings(with).check().unwrap_err()
}

fn planned(with: &[(&str, Level)], gpu: Gpu) -> (Plan, Option<String>) {
    let settings = settings(with);
    settings.check().unwrap();
    let on = Stage {
        shaped: Some(forebay_storage::Profile::hdd()),
        kernel: None,
        warmups: 1,
        repeats: 2,
        cuda_folders: Vec::new(),
    };
    run::plan(&settings, (!settings.synthetic).then(|| "set".into()), on, &gpu)
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
    let refused = |name: &str, level: Level| TrainSettings::new(0).set(name, &level).unwrap_err();
    assert_eq!(refused("device", text("gpu")), "\"gpu\": give auto, cpu, cuda or cuda:N");
    assert_eq!(refused("device", text("cuda:x")), "\"cuda:x\": give auto, cpu, cuda or cuda:N");
    assert_eq!(refused("precision", text("f16")), "\"f16\": give f32, tf32 or bf16");
    assert_eq!(refused("optimizer", text("lamb")), "\"lamb\": give one of adam, adamw, sgd");
    assert!(refused("model", text("vgg")).starts_with("\"vgg\": give one of alexnet, "));
    assert_eq!(refused("lr", Level::Integer(0)), "0: give a number above 0, as 0.0001");
    assert!(refused("accelerator", text("224ms")).contains("it must begin with \"emulated:\""));
}
