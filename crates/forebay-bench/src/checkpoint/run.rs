//! Runs each mode with each format; fails if a restored state differs.

use std::path::PathBuf;
use std::slice;

use forebay_checkpoint::format;
use forebay_measure::{Event, Observer, Rounds};
use forebay_record::{CheckpointCell, Record};
use forebay_units::{Bytes, PathText};

use super::Plan;
use super::cell::{Measured, cell, scatter};
use super::scratch_dirs::ScratchDirs;
use super::trial::{Memories, Trial};
use super::values::Values;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(transparent)]
    Shared(forebay_measure::Error),
    #[error(transparent)]
    Train(#[from] forebay_train::Error),
    #[error(
        "{}: the benchmark needs {needed}, but only {free} are free; give a smaller --size, or another folder",
        path.escaped()
    )]
    TooLittleSpace { path: PathBuf, needed: Bytes, free: Bytes },
    #[error("the benchmark needs {needed} of memory, but only {available} are available; give a smaller --size")]
    TooLittleMemory { needed: Bytes, available: Bytes },
    #[error("the state restored from save {step} differs from the saved one")]
    Differs { step: u64 },
}

forebay_measure::share_errors!(Error);

/// Runs a benchmark in folders of its own below the places and removes them. If cancelled, it abandons the current save
/// and returns the finished ones.
///
/// # Errors
/// If a place cannot be used, or a save or restore fails.
pub fn run(
    plan: &Plan,
    mut record: Record<CheckpointCell>,
    observer: Observer<'_>,
) -> Result<Record<CheckpointCell>, Error> {
    let dirs = ScratchDirs::open(&plan.places)?;
    dirs.check(plan.settings.state_bytes())?;
    observer.tell(Event::phase(match &plan.settings.model {
        Some(name) => format!("making the state of {name}"),
        None => format!("making {} of state", Bytes(plan.settings.state_bytes())),
    }));
    let values = Values::of(plan, observer.cancel)?;
    record.dataset.path = plan.places.slow.dir.escaped().into_owned();
    record.notes.extend(dirs.notes.iter().cloned());
    if let Some(values) = values {
        dirs.check(values.bytes().len() as u64)?;
        record.cells = dirs.heeding(observer.cancel, || measure(plan, &dirs, &values, observer))?;
    }
    record.notes.extend(record.cells.iter().flat_map(scatter));
    if observer.is_cancelled() {
        record.notes.push(rounds(plan).interrupted(record.cells.len()));
    }
    Ok(record)
}

/// The first save is the warm-up.
fn rounds(plan: &Plan) -> Rounds {
    Rounds { warmups: 1, repeats: plan.saves, unit: "save", until: None }
}

/// Measures one mode and format after the other, not in rounds: a store is opened once for all of its saves.
fn measure(
    plan: &Plan,
    dirs: &ScratchDirs,
    values: &Values,
    observer: Observer<'_>,
) -> Result<Vec<CheckpointCell>, Error> {
    let mut cells = Vec::new();
    if observer.is_cancelled() {
        return Ok(cells);
    }
    let (modes, formats) = (plan.modes(), &plan.settings.format);
    let n_saves = (modes.len() * formats.len() * (plan.saves + 1)) as u64;
    observer.tell(Event::Planned { images: 0, bytes: values.bytes().len() as u64 * n_saves });
    let mut memories = Memories::new(values, observer.cancel)?;
    for mode in modes {
        for name in formats {
            if observer.is_cancelled() {
                return Ok(cells);
            }
            let format = format::named(name).expect("a plan has only formats of the table");
            let mut trial = Trial::open(plan, dirs, values, &mut memories, (mode, format))?;
            let ran = rounds(plan).run(slice::from_mut(&mut trial), observer)?;
            let measured = Measured { memory_bytes: trial.close(observer)?, ..Measured::new(ran.cells.concat()) };
            if !measured.samples.is_empty() {
                let cell = cell(plan, dirs, values, mode, name, measured);
                cells.push(CheckpointCell { disturbed: ran.disturbed[0], ..cell });
            }
        }
    }
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    use forebay_checkpoint::Mode;
    use forebay_measure::{Place, Places};
    use forebay_record::Environment;

    use super::super::CheckpointSettings;
    use super::super::device::tests::Fake;
    use super::*;

    fn run_it(plan: &Plan, hear: &(dyn Fn(Event) + Sync), cancel: &AtomicBool) -> Record<CheckpointCell> {
        run(plan, Record::new(Vec::new(), Environment::default()), Observer::new(hear, cancel)).unwrap()
    }

    fn plan(dir: &std::path::Path) -> Plan {
        let place = |name: &str| {
            std::fs::create_dir_all(dir.join(name)).unwrap();
            Place::new(dir.join(name))
        };
        Plan {
            settings: CheckpointSettings { size: Some(Bytes(3_000_000)), seed: 1, ..CheckpointSettings::default() },
            places: Places { slow: place("slow"), fast: Some(place("fast")), keep: forebay_measure::Kept::in_each(5) },
            saves: 2,
            cuda_folders: Vec::new(),
        }
    }

    #[test]
    fn every_mode_and_format_is_measured_beside_the_machine_and_nothing_stays() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let (saves, cancel) = (AtomicU64::new(0), AtomicBool::new(false));
        let hear = |event| _ = saves.fetch_add(u64::from(matches!(event, Event::Saved { .. })), Ordering::Relaxed);
        let record = run_it(&plan(dir.path()), &hear, &cancel);
        let found: Vec<_> = record.cells.iter().map(|cell| (cell.mode.as_str(), cell.format.as_str())).collect();
        let both = |mode| [(mode, "safetensors"), (mode, "tensorflow")];
        assert_eq!(found, [both("direct"), both("burst"), both("async")].concat());
        assert_eq!(saves.into_inner(), 18);
        for cell in &record.cells {
            assert_eq!((cell.bytes, cell.samples.len()), (3_000_000, 2));
            let (fast, slow) = (cell.durable_fast_s.unwrap(), cell.durable_slow_s.unwrap());
            assert!(0.0 < cell.stall_s && cell.stall_s <= fast && fast <= slow, "{cell:?}");
            assert!(cell.mode != "burst" || slow > fast, "{cell:?}");
            let machine = [cell.ceiling_mb_per_s, cell.read_ceiling_mb_per_s, cell.copy_s, cell.restore_s, cell.spread];
            assert!(machine.iter().all(|value| value.is_some_and(|value| value >= 0.0)), "{cell:?}");
            assert!(cell.burst.is_some() && cell.medium.tier.is_none());
        }
        for name in ["slow", "fast"] {
            assert_eq!(std::fs::read_dir(dir.path().join(name)).unwrap().count(), 0, "{name}");
        }
    }

    #[test]
    fn a_run_that_is_stopped_keeps_what_it_has_and_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let cancel = AtomicBool::new(false);
        let hear = |event| {
            if matches!(event, Event::Saved { step: 3, .. }) {
                cancel.store(true, Ordering::Relaxed);
            }
        };
        let record = run_it(&plan(dir.path()), &hear, &cancel);
        assert_eq!(record.cells.len(), 1);
        assert_eq!(record.cells[0].samples.len(), 1, "the current save is not kept, because it was interrupted");
        assert_eq!(record.notes, ["interrupted: the completed saves are kept"]);
        assert_eq!(std::fs::read_dir(dir.path().join("slow")).unwrap().count(), 0);
    }

    #[test]
    fn a_stop_gives_up_the_save_at_work_in_every_mode() {
        for mode in [Mode::Direct, Mode::Burst, Mode::Async] {
            let dir = tempfile::tempdir().unwrap();
            let mut plan = plan(dir.path());
            // A save takes a minute on this tier.
            let slow = forebay_storage::Profile { write_bytes_per_s: 1_000_000, ..forebay_storage::Profile::hdd() };
            (plan.places.slow.shaped, plan.settings.size) = (Some(slow.clone()), Some(Bytes(60_000_000)));
            if let Some(fast) = plan.places.fast.as_mut().filter(|_| mode == Mode::Async) {
                fast.shaped = Some(slow);
            }
            (plan.settings.mode, plan.settings.no_ceiling) = (vec![mode], true);
            let (cancel, start) = (AtomicBool::new(false), std::time::Instant::now());
            let record = std::thread::scope(|scope| {
                let hear = |event| {
                    if matches!(event, Event::Repeat { .. }) {
                        scope.spawn(|| {
                            std::thread::sleep(std::time::Duration::from_millis(300));
                            cancel.store(true, Ordering::Relaxed);
                        });
                    }
                };
                run_it(&plan, &hear, &cancel)
            });
            assert!(start.elapsed().as_secs() < 20, "{mode:?}: {:?}", start.elapsed());
            assert_eq!((record.cells.len(), record.notes.len()), (0, 1), "{mode:?}");
            for name in ["slow", "fast"] {
                assert_eq!(std::fs::read_dir(dir.path().join(name)).unwrap().count(), 0, "{mode:?} {name}");
            }
        }
    }

    #[test]
    fn a_state_on_a_device_is_saved_from_there_in_every_mode_and_restored_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let plan = plan(dir.path());
        let dirs = ScratchDirs::open(&plan.places).unwrap();
        let fake = Fake([vec![1.5; 700_000], vec![-2.0; 3]]);
        let values = Values::held("two tensors".to_owned(), Box::new(fake)).unwrap();
        let cells = measure(&plan, &dirs, &values, Observer::deaf(&AtomicBool::new(false))).unwrap();
        assert_eq!(cells.len(), 6);
        for cell in &cells {
            assert_eq!((cell.device.as_deref(), cell.bytes, cell.n_tensors), (Some("a fake"), 2_800_012, 2));
            assert!(cell.copy_s.is_some_and(|seconds| seconds > 0.0) && cell.restore_s.is_some(), "{cell:?}");
        }
    }
}
