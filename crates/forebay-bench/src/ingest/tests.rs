//! Files that vanish during the measurement: the remaining results and their notes.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use forebay_dataset::{Control, MakePlan, MakeSpec, Profile, make};
use forebay_format::example::KeyNames;
use forebay_measure::{Observer, ThreadCount};
use forebay_pipeline::Source;
use forebay_record::{AnyRecord, Environment, IngestCell, Record};
use forebay_storage::{Effect, Fault, Faulty, Local, Operation};

use crate::Gpus;

use super::plan::{IngestSettings, Plan};
use super::run::{Error, measure};
use super::trial::Trial;

const N: u64 = 12;

fn plan(data: &Path, threads: &[usize], repeats: usize) -> Plan {
    let settings = IngestSettings {
        threads: threads.iter().map(|n| ThreadCount::Fixed(*n)).collect(),
        batch: 4,
        size: Some((8, 8)),
        ..IngestSettings::default()
    };
    let data = data.to_owned();
    Plan {
        settings,
        data,
        keys: KeyNames::default(),
        tier: None,
        kernel_tier: None,
        gpus: Gpus::cuda(Vec::new()),
        warmups: 0,
        repeats,
        until: None,
    }
}

/// Measures over `N` images. The opens selected by `hit` fail as if the file did not exist.
fn measured(threads: &[usize], repeats: usize, hit: impl Fn(u64) -> bool) -> Result<Record<IngestCell>, Error> {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    let spec = MakeSpec { count: Some(N), dimensions: Some((16, 16)), ..MakeSpec::new(Profile::Caltech101) };
    let control = Control { threads: 1, cancel: &AtomicBool::new(false), progress: &|_| {} };
    make(&MakePlan::new(&spec).unwrap(), &set, &control).unwrap();
    let n_opens = N * (threads.len() * repeats) as u64;
    let gone = |nth| Fault { operation: Operation::Open, nth, effect: Effect::Fail(libc::ENOENT) };
    let storage = Faulty::new(Local::default(), (0..n_opens).filter(|nth| hit(*nth)).map(gone).collect());
    let plan = plan(&set, threads, repeats);
    let source = Source::discover(Arc::new(Local::default()), &set).unwrap();
    let trial = Trial::over(&plan, source, Arc::new(storage))?;
    let mut record = Record::new(Vec::new(), Environment::default());
    measure(&trial, &mut record, Observer::deaf(&AtomicBool::new(false)))?;
    Ok(record)
}

/// Checks that the record can be read back: NaN would be written as null.
fn assert_sound(record: &Record<IngestCell>) {
    AnyRecord::from_text(&record.to_json()).unwrap();
    for cell in &record.cells {
        let numbers = [cell.images_per_s, cell.mb_per_s, cell.cpu_s_per_1000, cell.spread.unwrap_or(0.0)];
        assert!(numbers.iter().all(|number| number.is_finite()) && cell.images_per_s > 0.0, "{cell:?}");
    }
}

fn images(cell: &IngestCell) -> Vec<u64> {
    cell.samples.iter().map(|repeat| repeat.images).collect()
}

#[test]
fn a_repeat_that_delivered_nothing_is_no_measurement_and_said() {
    // All files are gone from the middle of the second of three repeats.
    let record = measured(&[1], 3, |nth| nth >= N + 5).unwrap();
    assert_sound(&record);
    let cell = &record.cells[0];
    assert_eq!((images(cell), cell.empty_repeats, cell.failed_samples), (vec![12, 5], 1, 12));
    let note = &record.notes[0];
    assert!(note.starts_with("with 1 thread, 1 of 3 repeats delivered no image and is left out: "), "{note}");
    assert!(note.contains(".jpg: "), "the first failure is named: {note}");
}

#[test]
fn a_level_whose_every_repeat_delivered_nothing_has_no_cell() {
    let record = measured(&[1, 2], 1, |nth| nth >= N).unwrap();
    assert_sound(&record);
    assert_eq!(record.cells.len(), 1);
    assert_eq!((images(&record.cells[0]), record.cells[0].empty_repeats), (vec![12], 0));
    assert!(record.notes[0].starts_with("with 2 threads, 1 of 1 repeat delivered no image"), "{:?}", record.notes);
}

#[test]
fn a_run_without_a_single_image_has_no_record() {
    let error = measured(&[1, 2], 2, |_| true).unwrap_err();
    assert!(matches!(error, Error::AllFailed { n_failed: N, .. }), "{error}");
}

#[test]
fn samples_that_fail_are_counted_and_the_rest_is_measured() {
    let record = measured(&[1], 2, |nth| nth % 2 == 0).unwrap();
    assert_sound(&record);
    let cell = &record.cells[0];
    assert_eq!((images(cell), cell.empty_repeats, cell.failed_samples), (vec![6, 6], 0, 6));
    assert!(record.notes.iter().all(|note| !note.contains("delivered no image")), "{:?}", record.notes);
}

#[test]
fn one_image_of_one_repeat_is_a_measurement() {
    let record = measured(&[1], 1, |nth| nth != 3).unwrap();
    assert_sound(&record);
    assert_eq!((images(&record.cells[0]), record.cells[0].spread), (vec![1], None));
}
