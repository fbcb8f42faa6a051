//! Running the plan.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use forebay_checkpoint::format;
use forebay_record::{CheckpointCell, Environment, Record};
use forebay_units::{Bytes, PathText};

use super::cell::{cell, scatter};
use super::plan::mode_name;
use super::scratch_dirs::ScratchDirs;
use super::trial::Trial;
use super::values::Values;
use super::{Plan, State};

/// A benchmark that could not be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A checkpoint could not be saved, restored or removed.
    #[error(transparent)]
    Checkpoint(#[from] forebay_checkpoint::Error),
    /// The state cannot be laid out.
    #[error(transparent)]
    Format(#[from] forebay_checkpoint::format::Error),
    /// The network whose state is wanted cannot be built.
    #[error(transparent)]
    Train(#[from] forebay_train::Error),
    /// A place cannot be used, or its ceiling not be measured.
    #[error(transparent)]
    Place(#[from] forebay_measure::Error),
    /// There is less room than the benchmark needs.
    #[error(
        "{}: the benchmark needs {needed} and {free} are free; give a smaller --size, or another folder",
        path.escaped()
    )]
    TooLittleSpace {
        /// Where.
        path: PathBuf,
        /// What it needs.
        needed: Bytes,
        /// What there is.
        free: Bytes,
    },
    /// There is less memory than the benchmark needs.
    #[error("the benchmark needs {needed} of memory and {available} are available; give a smaller --size")]
    TooLittleMemory {
        /// What it needs.
        needed: Bytes,
        /// What there is.
        available: Bytes,
    },
    /// What was restored is not what was saved.
    #[error("what was restored of save {step} is not what was saved")]
    Differs {
        /// Which save.
        step: u64,
    },
    /// Anything else the system reported.
    #[error("{what} {}", path.escaped())]
    Io {
        /// What was attempted.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// What an observer is told.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Something before the first save, in words.
    Preparing {
        /// What.
        what: String,
    },
    /// A mode and a format begin.
    Started {
        /// In words: "burst, safetensors".
        what: String,
        /// Saves it will have, the one that is not kept included.
        n_saves: u64,
    },
    /// A save was made and restored.
    Saved {
        /// Which, from 1.
        save: u64,
        /// How long the caller stood still.
        stall_s: f64,
    },
}

/// Runs the plan in folders of its own below the places, which it removes. When `cancel` is set it gives up the save at
/// work and yields what it has.
///
/// # Errors
/// When a place cannot be used, or a save or restore fails.
pub fn run(
    plan: &Plan,
    environment: Environment,
    command_line: Vec<String>,
    observe: &mut dyn FnMut(Event),
    cancel: &AtomicBool,
) -> Result<Record<CheckpointCell>, Error> {
    let dirs = ScratchDirs::open(&plan.places)?;
    if let State::Bytes(bytes) = plan.state {
        dirs.check(bytes)?;
    }
    let what = match &plan.state {
        State::Bytes(bytes) => format!("making {} of state", Bytes(*bytes)),
        State::Model(name) => format!("making the state of {name}"),
    };
    observe(Event::Preparing { what });
    let values = Values::of(plan, cancel)?;
    let mut record = Record::new(command_line, environment);
    record.dataset.path = plan.places.slow.dir.escaped().into_owned();
    record.notes.extend(dirs.notes.iter().cloned());
    if let Some(values) = values {
        dirs.check(values.bytes().len() as u64)?;
        record.cells = dirs.heeding(cancel, || measure(plan, &dirs, &values, observe, cancel))?;
    }
    record.notes.extend(record.cells.iter().flat_map(scatter));
    if cancel.load(Ordering::Relaxed) {
        record.notes.push(match record.cells.as_slice() {
            [] => "interrupted before the first save that would be kept".to_owned(),
            _ => "interrupted: the saves finished before that are kept".to_owned(),
        });
    }
    Ok(record)
}

/// Each mode with each format, as far as it comes.
fn measure(
    plan: &Plan,
    dirs: &ScratchDirs,
    values: &Values,
    observe: &mut dyn FnMut(Event),
    cancel: &AtomicBool,
) -> Result<Vec<CheckpointCell>, Error> {
    let mut cells = Vec::new();
    if cancel.load(Ordering::Relaxed) {
        return Ok(cells);
    }
    let mut trial = Trial::new(plan, dirs, values, cancel)?;
    for mode in &plan.modes {
        for name in &plan.formats {
            if cancel.load(Ordering::Relaxed) {
                return Ok(cells);
            }
            let format = format::named(name).expect("a plan has only formats of the table");
            let what = format!("{}, {name}", mode_name(*mode));
            observe(Event::Started { what, n_saves: plan.saves as u64 + 1 });
            let measured = trial.run(*mode, format, observe, cancel)?;
            if !measured.samples.is_empty() {
                cells.push(cell(plan, dirs, values, *mode, name, measured));
            }
        }
    }
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use forebay_checkpoint::Mode;

    use super::super::device::tests::Fake;
    use super::*;
    use forebay_measure::{Place, Places};

    fn plan(dir: &std::path::Path) -> Plan {
        let place = |name: &str| {
            std::fs::create_dir_all(dir.join(name)).unwrap();
            Place::new(dir.join(name))
        };
        Plan {
            places: Places { slow: place("slow"), fast: Some(place("fast")), keep: 5 },
            state: State::Bytes(3_000_000),
            gpu: None,
            modes: vec![Mode::Direct, Mode::Burst, Mode::Async],
            formats: vec!["safetensors", "tensorflow"],
            saves: 2,
            drain_bytes_per_s: None,
            ceiling: true,
            seed: 1,
        }
    }

    #[test]
    fn every_mode_and_format_is_measured_beside_the_machine_and_nothing_stays() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let (mut saves, cancel) = (0, AtomicBool::new(false));
        let mut observe = |event| saves += u64::from(matches!(event, Event::Saved { .. }));
        let record = run(&plan(dir.path()), Environment::default(), Vec::new(), &mut observe, &cancel).unwrap();
        let found: Vec<_> = record.cells.iter().map(|cell| (cell.mode.as_str(), cell.format.as_str())).collect();
        let both = |mode| [(mode, "safetensors"), (mode, "tensorflow")];
        assert_eq!(found, [both("direct"), both("burst"), both("async")].concat());
        assert_eq!(saves, 18);
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
        let mut observe = |event| {
            if matches!(event, Event::Saved { save: 3, .. }) {
                cancel.store(true, Ordering::Relaxed);
            }
        };
        let record = run(&plan(dir.path()), Environment::default(), Vec::new(), &mut observe, &cancel).unwrap();
        assert_eq!(record.cells.len(), 1);
        assert_eq!(record.cells[0].samples.len(), 1, "the save at work is not kept: its surroundings were cut short");
        assert_eq!(record.notes, ["interrupted: the saves finished before that are kept"]);
        assert_eq!(std::fs::read_dir(dir.path().join("slow")).unwrap().count(), 0);
    }

    #[test]
    fn a_stop_gives_up_the_save_at_work_in_every_mode() {
        for mode in [Mode::Direct, Mode::Burst, Mode::Async] {
            let dir = tempfile::tempdir().unwrap();
            let mut plan = plan(dir.path());
            // A save takes a minute on this one.
            let slow = forebay_storage::Profile { write_bytes_per_s: 1_000_000, ..forebay_storage::Profile::hdd() };
            (plan.places.slow.shaped, plan.state) = (Some(slow.clone()), State::Bytes(60_000_000));
            if let Some(fast) = plan.places.fast.as_mut().filter(|_| mode == Mode::Async) {
                fast.shaped = Some(slow);
            }
            (plan.modes, plan.ceiling) = (vec![mode], false);
            let (cancel, start) = (AtomicBool::new(false), std::time::Instant::now());
            let record = std::thread::scope(|scope| {
                let mut observe = |event| {
                    if matches!(event, Event::Started { .. }) {
                        scope.spawn(|| {
                            std::thread::sleep(std::time::Duration::from_millis(300));
                            cancel.store(true, Ordering::Relaxed);
                        });
                    }
                };
                run(&plan, Environment::default(), Vec::new(), &mut observe, &cancel).unwrap()
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
        let cells = measure(&plan, &dirs, &values, &mut |_| {}, &AtomicBool::new(false)).unwrap();
        assert_eq!(cells.len(), 6);
        for cell in &cells {
            assert_eq!((cell.device.as_deref(), cell.bytes, cell.n_tensors), (Some("a fake"), 2_800_012, 2));
            assert!(cell.copy_s.is_some_and(|seconds| seconds > 0.0) && cell.restore_s.is_some(), "{cell:?}");
        }
    }
}
