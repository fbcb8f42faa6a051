//! `decode`: where images are decoded, on the kernels compiled for this CPU in the place of a GPU.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use forebay_bench::train::{self, TrainSettings, Validate};
use forebay_bench::{DecodeOn, DecoderError, Gpus, ingest};
use forebay_dataset::{Control, MakePlan, MakeSpec, PackOptions, PackPlan, Packing, Profile, make, pack};
use forebay_decode::{Decoded, Device, Samples, Times};
use forebay_format::example::KeyNames;
use forebay_jpeg::device::Batch;
use forebay_measure::{Observer, Settings, ThreadCount};
use forebay_record::{AnyRecord, Environment, IngestCell, Level, Record, TrainCell};

use crate::emulated::Emulated;

/// Forty photographs, one that is cut off, and one whose kind a GPU does not decode.
const N: u64 = 42;

fn data(dir: &Path) -> PathBuf {
    let set = dir.join("set");
    let spec = MakeSpec { count: Some(40), ..MakeSpec::new(Profile::Caltech101) };
    make(&MakePlan::new(&spec).unwrap(), &set, &Control::default()).unwrap();
    let folder =
        std::fs::read_dir(&set).unwrap().map(|entry| entry.unwrap().path()).find(|path| path.is_dir()).unwrap();
    let photo = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).next().unwrap();
    let bytes = std::fs::read(photo).unwrap();
    std::fs::write(folder.join("cut.jpg"), &bytes[..bytes.len() / 2]).unwrap();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../forebay-jpeg/tests/fixtures");
    std::fs::copy(fixtures.join("progressive-40x25.jpg"), folder.join("progressive.jpg")).unwrap();
    set
}

fn gpus() -> Option<Gpus> {
    Emulated::new(usize::MAX)?;
    Some(Gpus::of(|_| Ok(Box::new(Emulated::new(usize::MAX).ok_or("no C compiler")?))))
}

/// A device whose samples are zeros after a time per image, without using a core.
struct Idle {
    each: Duration,
    samples: Vec<u8>,
}

impl Idle {
    fn gpus(each: Duration) -> Gpus {
        Gpus::of(move |_| Ok(Box::new(Self { each, samples: Vec::new() })))
    }
}

impl Device for Idle {
    fn sibling(&self) -> forebay_decode::Result<Box<dyn Device>> {
        Ok(Box::new(Self { each: self.each, samples: Vec::new() }))
    }

    fn describe(&self) -> String {
        "an idle device".to_owned()
    }

    fn decode(&mut self, batch: &Batch<'_>) -> forebay_decode::Result<Decoded> {
        let n = batch.faults().len() / 4;
        let time = self.each * n as u32;
        std::thread::sleep(time);
        self.samples = vec![0; batch.out().len()];
        Ok(Decoded { is_marked: vec![false; n], times: Times { upload_ms: 0.0, kernels_ms: time.as_secs_f32() * 1e3 } })
    }

    fn samples(&mut self) -> forebay_decode::Result<Samples<'_>> {
        Ok(Samples { bytes: &self.samples, download_ms: 0.0 })
    }
}

fn ingest_plan(data: &Path, gpus: Gpus, decode: DecodeOn) -> ingest::Plan {
    ingest::Plan {
        settings: ingest::IngestSettings {
            threads: vec![ThreadCount::Fixed(2)],
            batch: 8,
            size: Some((32, 24)),
            decode,
            ..ingest::IngestSettings::default()
        },
        data: data.to_owned(),
        keys: KeyNames::default(),
        tier: None,
        kernel_tier: None,
        gpus,
        warmups: 0,
        repeats: 2,
        until: None,
    }
}

fn ingested(plan: &ingest::Plan) -> Result<Record<IngestCell>, ingest::Error> {
    let record = Record::new(Vec::new(), Environment::default());
    ingest::run(plan, record, Observer::deaf(&AtomicBool::new(false)))
}

fn train_plan(data: &Path, gpus: Gpus, decode: DecodeOn) -> train::Plan {
    train::Plan {
        settings: TrainSettings {
            model: Some("resnet-small".to_owned()),
            batch: 8,
            threads: ThreadCount::Fixed(2),
            baseline: Some(0),
            decode,
            ..TrainSettings::default()
        },
        data: Some(data.to_owned()),
        keys: KeyNames::default(),
        tier: None,
        kernel_tier: None,
        cuda_folders: Vec::new(),
        gpus,
        validate: None,
        saves: None,
        warmups: 0,
        repeats: 1,
        until: None,
    }
}

/// On an accelerator that takes this long for a step.
fn emulated(plan: train::Plan, step: &str) -> train::Plan {
    let settings =
        TrainSettings { model: None, baseline: None, accelerator: Some(step.parse().unwrap()), ..plan.settings };
    train::Plan { settings, ..plan }
}

fn trained(plan: &train::Plan) -> Result<Record<TrainCell>, train::Error> {
    let record = Record::new(Vec::new(), Environment::default());
    train::run(plan, record, Observer::deaf(&AtomicBool::new(false))).map(|ended| ended.record)
}

#[test]
fn ingest_on_a_gpu_has_the_samples_and_failures_of_the_cpu() {
    let Some(gpus) = gpus() else { return };
    let dir = tempfile::tempdir().unwrap();
    let data = data(dir.path());
    let on = |decode| ingested(&ingest_plan(&data, gpus.clone(), decode)).unwrap();
    let (cpu, gpu) = (on(DecodeOn::Cpu), on(DecodeOn::Gpu));
    AnyRecord::from_text(&gpu.to_json()).unwrap();
    let (cpu, gpu) = (&cpu.cells[0], &gpu.cells[0]);
    assert_eq!(gpu.failed_samples, 1);
    assert_eq!((gpu.failed_samples, &gpu.failures), (cpu.failed_samples, &cpu.failures));
    assert_eq!((&cpu.decode, cpu.samples[0].decoded_on_gpu), (&None, None));
    assert_eq!(gpu.decode.as_deref(), Some("the kernels on the CPU"));
    for repeat in &gpu.samples {
        let work = repeat.decoded_on_gpu.unwrap();
        assert_eq!((repeat.images, work.images, work.on_cpu), (N - 1, N - 2, 2));
        assert!(work.upload_s > 0.0 && work.kernels_s > work.upload_s && work.download_s > work.kernels_s, "{work:?}");
        assert!(repeat.worker_time["decoding_on_gpu"] > 0.0, "{:?}", repeat.worker_time);
    }
}

#[test]
fn a_network_learns_from_a_gpus_samples_what_it_learns_from_the_cpus() {
    let Some(gpus) = gpus() else { return };
    let dir = tempfile::tempdir().unwrap();
    let data = data(dir.path());
    let on = |decode| {
        let plan = train_plan(&data, gpus.clone(), decode);
        let plan = train::Plan { validate: Some(Validate::Share(0.25)), ..plan };
        let record = trained(&plan).unwrap();
        AnyRecord::from_text(&record.to_json()).unwrap();
        record.cells.into_iter().next().unwrap()
    };
    let (cpu, gpu) = (on(DecodeOn::Cpu), on(DecodeOn::Gpu));
    assert_eq!((gpu.totals.images, gpu.totals.failed), (cpu.totals.images, cpu.totals.failed));
    for (a, b) in cpu.steps.iter().zip(&gpu.steps) {
        let (a, b) = (a.loss.unwrap(), b.loss.unwrap());
        assert!((a - b).abs() < 0.02 * a, "{a} and {b}");
    }
    let judged = |cell: &TrainCell| cell.epochs[0].validation.unwrap().n_samples;
    assert_eq!(judged(&gpu), judged(&cpu));
    assert!((gpu.totals.parts_s() - gpu.totals.wall_s).abs() < 1e-6);
    let work = gpu.totals.decoded_on_gpu.unwrap();
    assert!(work.images + work.on_cpu >= gpu.totals.images + judged(&gpu), "{work:?}");
    assert!(gpu.totals.worker_time["decoding_on_gpu"] > 0.0);
    assert_eq!((cpu.decode, cpu.totals.decoded_on_gpu), (None, None));
}

#[test]
fn auto_takes_the_faster_and_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let data = data(dir.path());
    let auto = |gpus| {
        let record = ingested(&ingest_plan(&data, gpus, DecodeOn::Auto)).unwrap();
        (record.cells[0].decode.clone().unwrap(), record.notes.join("\n"))
    };
    let (place, notes) = auto(Idle::gpus(Duration::ZERO));
    assert_eq!(place, "an idle device");
    assert!(notes.contains("decoding on an idle device, measured on up to 128 samples in memory: "), "{notes}");
    let (place, notes) = auto(Idle::gpus(Duration::from_millis(20)));
    assert_eq!(place, "cpu");
    assert!(
        notes.contains("decoding on the CPU, measured on") && notes.contains(" images/s on an idle device, "),
        "{notes}"
    );
    let (place, notes) = auto(Gpus::of(|_| Err("it is elsewhere".to_owned())));
    assert_eq!(place, "cpu");
    assert!(notes.contains("decoding on the CPU: no GPU to decode on: it is elsewhere"), "{notes}");
}

#[test]
fn auto_settles_before_a_training_and_notes_it() {
    let dir = tempfile::tempdir().unwrap();
    let data = data(dir.path());
    // Faster than the CPU decodes, or either decoder would do.
    let record =
        trained(&emulated(train_plan(&data, Idle::gpus(Duration::ZERO), DecodeOn::Auto), "emulated:50us")).unwrap();
    assert_eq!(record.cells[0].decode.as_deref(), Some("an idle device"));
    assert!(record.notes[0].starts_with("decoding on an idle device, measured on"), "{:?}", record.notes);
    assert!(record.cells[0].totals.decoded_on_gpu.unwrap().images > 0);
}

#[test]
fn where_decoding_is_the_limit_a_gpu_is_advised_and_keeps_what_the_advice_promises() {
    let dir = tempfile::tempdir().unwrap();
    let spec = MakeSpec { count: Some(64), dimensions: Some((1200, 900)), ..MakeSpec::new(Profile::Caltech101) };
    let data = dir.path().join("set");
    make(&MakePlan::new(&spec).unwrap(), &data, &Control::default()).unwrap();
    let on = |decode| {
        let plan = emulated(train_plan(&data, Idle::gpus(Duration::from_micros(500)), decode), "emulated:1ms");
        trained(&plan).unwrap().cells.remove(0)
    };
    // A busy machine may hide it, but not every time.
    let promised = |cell: &TrainCell| {
        let mut chain = std::iter::successors(Some(&cell.lever), |lever| lever.runner_up.as_deref());
        chain.find(|lever| lever.name == "gpu").cloned()
    };
    let (cpu, lever) =
        (0..5).map(|_| on(DecodeOn::Cpu)).find_map(|cell| Some((promised(&cell)?, cell))).map(|(a, b)| (b, a)).unwrap();
    assert_eq!(lever.advice, "--decode gpu: decode on the GPU (an idle device)");
    let change = lever.setting.clone().unwrap();
    assert_eq!((change.setting.as_str(), change.value), ("decode", Level::Text("gpu".to_owned())));
    let gpu = on(DecodeOn::Gpu);
    assert!(
        gpu.totals.wall_s < cpu.totals.wall_s - 0.5 * lever.saves_s,
        "{} of {}: {lever:?}",
        gpu.totals.wall_s,
        cpu.totals.wall_s
    );
    assert!(promised(&gpu).is_none_or(|lever| lever.advice == "a faster GPU"), "{:?}", gpu.lever);
}

#[test]
fn a_gpu_that_cannot_be_had_is_an_error_before_anything_is_measured() {
    let dir = tempfile::tempdir().unwrap();
    let data = data(dir.path());
    let none = || Gpus::of(|_| Err("it is elsewhere".to_owned()));
    let plan = ingest_plan(&data, none(), DecodeOn::Gpu);
    for error in [ingested(&plan).unwrap_err(), ingest::preview(&plan).unwrap_err()] {
        assert!(matches!(error, ingest::Error::Decoder(DecoderError::NoGpu { .. })), "{error}");
        assert_eq!(error.to_string(), "no GPU to decode on: it is elsewhere");
    }
    let plan = train_plan(&data, none(), DecodeOn::Gpu);
    for error in [trained(&plan).unwrap_err(), train::check(&plan).unwrap_err()] {
        assert!(matches!(error, train::Error::Decoder(DecoderError::NoGpu { .. })), "{error}");
    }
    let shards = dir.path().join("shards");
    let options = PackOptions::new(Packing::Tensor { width: 16, height: 16 });
    pack(&PackPlan::new(&data, options).unwrap(), &shards, &Control::default()).unwrap();
    let error = ingested(&ingest_plan(&shards, Idle::gpus(Duration::ZERO), DecodeOn::Gpu)).unwrap_err();
    assert!(matches!(error, ingest::Error::Decoder(DecoderError::NothingToDecode)), "{error}");
}

#[test]
fn settings_that_a_gpu_does_not_support_are_refused_with_gpu_alone() {
    let refused = |decode: &str, other: &str| {
        let mut settings = ingest::IngestSettings::default();
        settings.set("decode", &Level::Text(decode.to_owned())).unwrap();
        settings.set(other, &Level::Flag(true)).unwrap();
        Settings::check(&settings).err()
    };
    assert_eq!(
        refused("gpu", "antialias").as_deref(),
        Some("a GPU that decodes does not support `antialias`: omit it, or give auto or cpu as `decode`")
    );
    assert!(refused("gpu", "scaled").is_some() && refused("gpu", "read_only").is_some());
    assert!(refused("auto", "read_only").unwrap().contains("`decode` would have no effect"));
    assert_eq!((refused("auto", "antialias"), refused("cpu", "read_only")), (None, None));
    let synthetic =
        |decode| Settings::check(&TrainSettings { synthetic: true, decode, ..TrainSettings::default() }).err();
    assert!(synthetic(DecodeOn::Auto).unwrap().contains("`decode` would have no effect"));
    assert_eq!(synthetic(DecodeOn::Cpu), None);
}
