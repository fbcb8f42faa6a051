//! The effect of settings on a machine with and without a GPU, and their contradictions.

use forebay_measure::Settings;
use forebay_record::Level;

use super::super::device::{Accelerator, Device, Gpu};
use super::*;

fn of(given: &[(&str, &str)]) -> TrainSettings {
    let mut settings = TrainSettings::default();
    for (name, text) in given {
        let level = if *text == "true" { Level::Flag(true) } else { Level::of_text(text) };
        settings.set(name, &level).unwrap();
    }
    settings
}

fn refused(given: &[(&str, &str)]) -> String {
    of(given).check().unwrap_err()
}

/// The consumer on four cores, the number of batches sent ahead, and the note.
fn on_machine(given: &[(&str, &str)], gpu: Gpu) -> (Accelerator, usize, Option<String>) {
    let settings = of(given);
    settings.check().unwrap();
    let (accelerator, note) = settings.accelerator(4, || gpu);
    let has_memory = matches!(accelerator, Accelerator::Network(Device::Cuda { .. }));
    (accelerator, settings.sent_ahead(has_memory), note)
}

fn no_gpu() -> Gpu {
    Err("libcuda does not load".to_owned())
}

fn cuda(ordinal: usize, precision: Precision) -> Accelerator {
    Accelerator::Network(Device::Cuda { ordinal, precision })
}

const CORES: Accelerator = Accelerator::Network(Device::Cpu { threads: 4 });
const EMULATED: (&str, &str) = ("accelerator", "emulated:224ms");
const AUTO: (&str, &str) = ("device", "auto");

#[test]
fn auto_trains_on_a_gpu_where_there_is_one() {
    let given = [AUTO, EMULATED, ("model", "resnet50"), ("baseline", "5")];
    assert_eq!(on_machine(&given, Ok(())), (cuda(0, Precision::Bf16), 1, None));
    assert_eq!((of(&given).model(), of(&given).optimizer().learning_rate()), ("resnet50", 0.0001));
}

#[test]
fn auto_emulates_where_there_is_no_gpu_and_says_so() {
    let (accelerator, ahead, note) = on_machine(&[AUTO, EMULATED, ("device_prefetch", "3")], no_gpu());
    assert_eq!(accelerator, Accelerator::Emulated("emulated:224ms".parse().unwrap()));
    assert_eq!(ahead, 0, "it has no memory of its own");
    let said = "no CUDA device here (libcuda does not load): emulating an accelerator with 224ms per step";
    assert_eq!(note.as_deref(), Some(said));
}

#[test]
fn auto_without_an_accelerator_trains_on_the_cores_and_says_so() {
    let (accelerator, _, note) = on_machine(&[AUTO], no_gpu());
    assert_eq!(accelerator, CORES);
    assert_eq!(note.unwrap(), "no CUDA device here (libcuda does not load): training alexnet on the CPU");
}

#[test]
fn a_device_that_is_named_is_the_one_that_is_used() {
    let device = |given: &[(&str, &str)]| {
        let (accelerator, ahead, note) = on_machine(given, Ok(()));
        assert_eq!(note, None);
        (accelerator, ahead)
    };
    assert_eq!(device(&[("device", "cuda:1"), ("precision", "tf32")]), (cuda(1, Precision::Tf32), 1));
    assert_eq!(device(&[("device", "cuda"), ("prefetch", "0")]), (cuda(0, Precision::Bf16), 0));
    assert_eq!(device(&[("device", "cuda"), ("device_prefetch", "5")]).1, 5);
    assert_eq!(device(&[("device", "cuda"), ("synthetic", "true")]).1, 1);
    assert_eq!(device(&[("device", "cpu"), ("precision", "f32"), ("device_prefetch", "0")]), (CORES, 0));
    assert_eq!(device(&[]), (CORES, 0));
    assert!(matches!(device(&[EMULATED]).0, Accelerator::Emulated(_)));
}

#[test]
fn where_nothing_is_said_alexnet_learns_for_an_epoch_and_a_batch_in_memory_for_a_hundred_steps() {
    let plain = of(&[]);
    assert_eq!((plain.model(), plain.batch, plain.length()), ("alexnet", 64, Length::Epochs(1)));
    assert_eq!((plain.threads, plain.made_ahead(), plain.baseline_steps()), (ThreadCount::Auto, 1, 10));
    assert_eq!((plain.cache(), plain.max_sample_size.0), (Cache::Warm, forebay_format::MAX_SAMPLE_SIZE));
    assert_eq!((plain.kept(), plain.format()), (Kept::in_each(5), "safetensors"));
    // In a study, settings of data may accompany a level that reads none.
    let given = [("synthetic", "true"), ("cold", "true"), ("prefetch", "2"), ("baseline", "5")];
    let synthetic = of(&given);
    assert_eq!((synthetic.check(), synthetic.length()), (Ok(()), Length::Steps(100)));
    assert_eq!((synthetic.made_ahead(), synthetic.baseline_steps(), synthetic.cache()), (0, 0, Cache::Warm));
    assert_eq!(of(&[("synthetic", "true"), ("steps", "3")]).length(), Length::Steps(3));
}

#[test]
fn a_learning_rate_is_that_of_its_optimiser_unless_one_is_given() {
    let rate = |given: &[(&str, &str)]| of(given).optimizer().learning_rate();
    assert_eq!(["adam", "adamw", "sgd"].map(|name| rate(&[("optimizer", name)])), [0.0001, 0.0001, 0.01]);
    assert_eq!(rate(&[("optimizer", "sgd"), ("lr", "0.5")]), 0.5);
    let help = TrainSettings::TABLE.iter().find(|setting| setting.name == "lr").unwrap().help;
    assert!(help.contains("[default: 0.0001, or 0.01 with sgd]"), "{help}");
}

#[test]
fn a_run_counts_whole_batches() {
    assert_eq!(of(&[]).images_per_run(9_144), 142 * 64);
    assert_eq!(of(&[("epochs", "2"), ("batch", "1000")]).images_per_run(9_144), 18_000);
    assert_eq!(of(&[("steps", "200")]).images_per_run(9_144), 200 * 64);
}

#[test]
fn what_contradicts_itself_is_refused() {
    let network = "an emulated accelerator learns nothing, so `model` would have no effect: omit it, or give auto as \
                   `device` to emulate only where there is no GPU";
    let device = "an emulated accelerator replaces the device: omit `device`, or give auto to emulate only \
                  where there is no GPU";
    let baseline = "an emulated accelerator uses the run's own steps as the baseline: give 0 as `baseline`, or omit it";
    let memory = "`device_prefetch` needs a GPU";
    let steps = "a run has more than 1,000,000,000,000 images: give fewer `steps`";
    let cases: [(&[(&str, &str)], &str); 10] = [
        (&[("steps", "3"), ("epochs", "1")], "give `steps` or `epochs`, not both"),
        (&[("synthetic", "true"), ("epochs", "1")], "a synthetic batch has no epochs: give `steps`"),
        (&[("steps", "1000000000"), ("batch", "100000")], steps),
        (&[EMULATED, ("device", "cpu")], device),
        (&[EMULATED, ("device", "cuda:1")], device),
        (&[EMULATED, ("model", "alexnet")], network),
        (&[EMULATED, ("baseline", "5")], baseline),
        (&[("precision", "bf16")], "the CPU computes only in f32: `precision` is for a GPU"),
        (&[("device", "cpu"), ("device_prefetch", "1")], memory),
        (&[EMULATED, ("device_prefetch", "1")], memory),
    ];
    for (given, said) in cases {
        assert_eq!(refused(given), said, "{given:?}");
    }
    for (name, value) in [("precision", "f32"), ("optimizer", "adam"), ("lr", "0.1"), ("classes", "3")] {
        assert_eq!(refused(&[EMULATED, (name, value)]), network.replace("model", name));
    }
}

#[test]
fn values_say_what_they_may_be() {
    let refused = |name: &str, text: &str| of(&[]).set(name, &Level::of_text(text)).unwrap_err();
    for text in ["gpu", "cuda:", "cuda:x", "cuda:1024", "4"] {
        assert_eq!(refused("device", text), "give auto, cpu, cuda, or cuda:N with N from 0 to 1,023");
    }
    assert!(refused("precision", "f16").ends_with("expected f32, tf32 or bf16"));
    assert_eq!(refused("optimizer", "lamb"), "give adam, adamw or sgd");
    assert_eq!(refused("model", "vgg"), "give alexnet, alexnet-small, resnet50 or resnet-small");
    for rate in ["0", "-1", "nan", "1e39", "1e-46"] {
        assert_eq!(refused("lr", rate), "give a number above 0 that an f32 can hold, such as 0.0001");
    }
    assert!(refused("accelerator", "224ms").contains("expected \"emulated:\" at the beginning"));
    assert_eq!(refused("threads", "1,2"), "give a number from 1 to 1,024, or auto");
    assert_eq!(refused("checkpoint_behind", "hurry"), "give wait, skip or coalesce");
    assert_eq!(refused("checkpoint_format", "pickle"), "give safetensors or tensorflow");
}

#[test]
fn checkpoints_that_contradict_their_places_are_refused() {
    let every = ("checkpoint_every", "20");
    for (name, value) in [every, ("keep", "3"), ("drain_rate", "1MB/s"), ("checkpoint_behind", "wait")] {
        let said = format!("`{name}` needs checkpoints: give `checkpoint`");
        assert_eq!(of(&[(name, value)]).check_saves(None), Err(said));
    }
    assert_eq!(of(&[]).check_saves(None), Ok(()));
    let refused = |given: &[(&str, &str)], has_burst| of(given).check_saves(Some(has_burst)).unwrap_err();
    assert_eq!(refused(&[], true), "checkpoint interval missing: give `checkpoint_every`");
    let said = "a run of 19 steps saves no checkpoint with `checkpoint_every` 20";
    assert_eq!(refused(&[every, ("steps", "19")], false), said);
    let said = "burst saves need a burst buffer: give `burst`";
    assert_eq!(refused(&[every, ("checkpoint_mode", "burst")], false), said);
    let said = "direct saves go straight to the last place: omit `burst`";
    assert_eq!(refused(&[every, ("checkpoint_mode", "direct")], true), said);
    let said = "a direct save always ends before the next one: omit `checkpoint_behind`";
    assert_eq!(refused(&[every, ("checkpoint_behind", "skip")], false), said);
    let said = "`drain_rate` needs a burst buffer: give `burst`";
    assert_eq!(refused(&[every, ("drain_rate", "1MB/s")], false), said);
    let said = "an emulated accelerator has no state to save: give `checkpoint_size`";
    assert_eq!(refused(&[every, EMULATED], false), said);
    let said = "`checkpoint_size` needs an emulated `accelerator`: a network's state has a fixed size";
    assert_eq!(refused(&[every, ("checkpoint_size", "1MB")], false), said);
    let all = [every, ("checkpoint_behind", "coalesce"), ("drain_rate", "1MB/s"), EMULATED, ("checkpoint_size", "1MB")];
    assert_eq!(of(&all).check_saves(Some(true)), Ok(()));
}

#[test]
fn training_goes_on_as_the_places_and_the_mode_say() {
    let modes = |given: &[(&str, &str)]| [false, true].map(|has_burst| of(given).mode(has_burst));
    assert_eq!(modes(&[]), [Mode::Direct, Mode::Burst]);
    assert_eq!(modes(&[("checkpoint_mode", "async")]), [Mode::Async; 2]);
}
