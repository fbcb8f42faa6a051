//! One mode with one format: several saves, each made durable and restored.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use forebay_checkpoint::format::{Catalog, Format};
use forebay_checkpoint::{Fate, Header, Level, Memory, Mode, Options, Region, Store, Wanted};
use forebay_measure::cold::Before;
use forebay_measure::usage::{peak_resident_bytes, status_bytes};
use forebay_measure::{Done, Event, Observer};
use forebay_record::CheckpointSample;

use super::device::prepare;
use super::plan::mode_name;
use super::scratch_dirs::ScratchDirs;
use super::values::Values;
use super::{Error, Plan, bare};

const STEM: &str = "model";

/// Memory shared by all modes and formats, touched in advance.
pub(super) struct Memories {
    /// Target of the plain copy; locked for the state's device.
    copy: Region,
    restored: Memory,
}

impl Memories {
    pub(super) fn new(values: &Values, cancel: &AtomicBool) -> Result<Self, Error> {
        let copy = values.memory_for_copies(cancel)?;
        // A file has the values and an index of them.
        let mut restored = Memory::default();
        restored.reserve_until(values.bytes().len() + (1 << 20), cancel)?;
        Ok(Self { copy, restored })
    }
}

/// Rates of bare storage and memory, measured right before a save.
pub(super) type Machine = (Option<bare::Rates>, Option<f64>);

pub(super) struct Trial<'a> {
    plan: &'a Plan,
    dirs: &'a ScratchDirs,
    values: &'a Values,
    memories: &'a mut Memories,
    mode: Mode,
    format: &'static dyn Format,
    store: Store,
    /// Includes repeated saves: no two may have the same step.
    n_saves: u64,
    /// Memory of this process before the store was opened, and the peak of saves beyond it.
    resident: Option<u64>,
    memory_bytes: Option<u64>,
}

impl forebay_measure::Trial for Trial<'_> {
    type Repeat = (CheckpointSample, Machine);
    type Error = Error;

    fn name(&self) -> String {
        format!("{}, {}", mode_name(self.mode), self.format.name())
    }

    fn repeat(&mut self, _: u64, _: &Before, observer: Observer<'_>) -> Result<Done<Self::Repeat>, Error> {
        let save = self.n_saves;
        self.n_saves += 1;
        let machine = self.machine(save, observer.cancel)?;
        if observer.is_cancelled() {
            return Ok(Done::Cut(None));
        }
        let highest = reset_peak();
        let (sample, peak) = match self.save_and_restore(save, highest) {
            // The save was cancelled, so the storage did not fail.
            Err(_) if observer.is_cancelled() => return Ok(Done::Cut(None)),
            done => done?,
        };
        let bytes = self.values.bytes().len() as u64;
        observer.tell(Event::Moved { images: 0, bytes });
        observer.tell(Event::Saved { step: save + 1, bytes, seconds: sample.stall_s });
        let taken = peak.zip(self.resident).and_then(|(peak, before)| peak.checked_sub(before));
        self.memory_bytes = self.memory_bytes.max(taken.filter(|_| !observer.is_cancelled()));
        Ok(Done::Whole((sample, machine)))
    }
}

impl<'a> Trial<'a> {
    pub(super) fn open(
        plan: &'a Plan,
        dirs: &'a ScratchDirs,
        values: &'a Values,
        memories: &'a mut Memories,
        (mode, format): (Mode, &'static dyn Format),
    ) -> Result<Self, Error> {
        let resident = status_bytes("VmRSS:");
        let options =
            Options { mode, drain_bytes_per_s: plan.settings.drain_rate.map(|rate| rate.0), ..Options::default() };
        let store = Store::open(dirs.tiers(), options)?;
        if mode == Mode::Async {
            values.with_snapshot(|snapshot| Ok(prepare(&store, &format.plan(STEM, snapshot)?, snapshot)?))?;
        }
        Ok(Self { plan, dirs, values, memories, mode, format, store, n_saves: 0, resident, memory_bytes: None })
    }

    /// Removes everything for the next mode or format; returns the peak memory of saves.
    pub(super) fn close(self, observer: Observer<'_>) -> Result<Option<u64>, Error> {
        let closed = self.store.close();
        self.dirs.clear()?;
        let failed = closed.errors.into_iter().next().filter(|_| !observer.is_cancelled());
        failed.map_or(Ok(self.memory_bytes), |error| Err(error.into()))
    }

    /// One save, made durable and restored. Returns the peak memory too, if `highest` says that it was counted.
    fn save_and_restore(&mut self, save: u64, highest: Option<()>) -> Result<(CheckpointSample, Option<u64>), Error> {
        let sample = self.save(save)?;
        // Remove outdated checkpoints before the next clock starts.
        self.store.drain()?;
        let peak = highest.and_then(|()| peak_resident_bytes());
        Ok((CheckpointSample { restore_s: Some(self.restore(save)?), ..sample }, peak))
    }

    fn machine(&mut self, save: u64, cancel: &AtomicBool) -> Result<Machine, Error> {
        if self.plan.settings.no_ceiling {
            return Ok((None, None));
        }
        // Restores come from the place that this mode writes first.
        let tier = if self.mode == Mode::Direct { self.dirs.tiers().len() - 1 } else { 0 };
        let place = self.dirs.places().nearest_first().nth(tier).expect("a tier is a place");
        let n_bytes = self.values.bytes().len() as u64;
        let rates = bare::rates(place, self.dirs.scratch(tier), n_bytes, save, cancel)?;
        Ok((Some(rates), Some(self.values.copy_s(&mut self.memories.copy)?)))
    }

    /// Waits until everything is drained, to leave no unfinished work for the next save.
    fn save(&self, step: u64) -> Result<CheckpointSample, Error> {
        let start = Instant::now();
        let handle = self.values.with_snapshot(|snapshot| {
            let layout = self.format.plan(STEM, snapshot)?;
            Ok(self.store.save(step, None, snapshot, &layout)?)
        })?;
        let stall_s = start.elapsed().as_secs_f64();
        let reached = |level| -> Result<Option<f64>, Error> {
            let fate = handle.wait(level)?;
            Ok((fate == Fate::Reached).then(|| start.elapsed().as_secs_f64()))
        };
        let durable_fast_s = reached(Level::DurableFast)?;
        let durable_slow_s = reached(Level::DurableSlow)?;
        Ok(CheckpointSample { stall_s, durable_fast_s, durable_slow_s, restore_s: None })
    }

    /// Restores the newest checkpoint, which must be the one just saved, and compares every tensor. Returns the seconds
    /// of the restore.
    fn restore(&mut self, step: u64) -> Result<f64, Error> {
        let start = Instant::now();
        let restored = self.store.restore_with(Wanted::default(), &mut self.memories.restored)?;
        let files = restored.by_name();
        let catalog = self.format.open(STEM, &files)?;
        let seconds = start.elapsed().as_secs_f64();
        let is_same = restored.name.step == step && restored.passed_over.is_empty() && self.is_same(&catalog, &files);
        restored.give_back(&mut self.memories.restored);
        if is_same { Ok(seconds) } else { Err(Error::Differs { step }) }
    }

    /// Compares in place, because extra memory would be counted as the save's.
    fn is_same(&self, catalog: &Catalog, files: &BTreeMap<String, &[u8]>) -> bool {
        let restored = |header: &Header| {
            let entry = catalog.tensors.iter().find(|entry| entry.header == *header)?;
            let file = files.get(&catalog.files[entry.file])?;
            file.get(entry.offset as usize..(entry.offset + entry.n_bytes) as usize)
        };
        let is_same = self.values.tensors().all(|(header, bytes)| restored(header) == Some(bytes));
        is_same && catalog.tensors.len() as u64 == self.values.n_tensors()
    }
}

/// Resets the kernel's peak-memory counter; `None` if that is impossible.
fn reset_peak() -> Option<()> {
    std::fs::write("/proc/self/clear_refs", "5").ok()
}
