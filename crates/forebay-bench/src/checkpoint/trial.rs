//! One mode with one format: saved, made durable, restored, several times.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use forebay_checkpoint::format::{Catalog, Format};
use forebay_checkpoint::{Fate, Handle, Header, Level, Memory, Mode, Options, Region, Snapshot, Store, Wanted};
use forebay_measure::usage::{peak_resident_bytes, status_bytes};
use forebay_record::CheckpointSample;

use super::cell::Measured;
use super::device::prepare;
use super::run::Event;
use super::scratch_dirs::ScratchDirs;
use super::values::Values;
use super::{Error, Plan, bare};

/// The stem of the files.
const STEM: &str = "model";

/// What all modes and formats share.
pub(super) struct Trial<'a> {
    plan: &'a Plan,
    dirs: &'a ScratchDirs,
    values: &'a Values,
    /// Memory that the state is copied to, touched before and locked for its device.
    copy: Region,
    /// Memory that is restored into, touched before.
    memory: Memory,
}

impl<'a> Trial<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        dirs: &'a ScratchDirs,
        values: &'a Values,
        cancel: &AtomicBool,
    ) -> Result<Self, Error> {
        let copy = values.memory_for_copies(cancel)?;
        // A file is the values and a directory of them.
        let mut memory = Memory::default();
        memory.reserve_until(values.bytes().len() + (1 << 20), cancel)?;
        Ok(Self { plan, dirs, values, copy, memory })
    }

    /// Saves and restores once that is not kept, and then as often as the plan says, or until it is to stop.
    pub(super) fn run(
        &mut self,
        mode: Mode,
        format: &dyn Format,
        observe: &mut dyn FnMut(Event),
        cancel: &AtomicBool,
    ) -> Result<Measured, Error> {
        let before = resident_bytes();
        let store = Store::open(self.dirs.tiers(), self.options(mode))?;
        if mode == Mode::Async {
            self.values.with_snapshot(|snapshot| Ok(prepare(&store, &format.plan(STEM, snapshot)?, snapshot)?))?;
        }
        let mut measured = Measured::default();
        for save in 0..=self.plan.saves as u64 {
            let machine = self.machine(mode, save, cancel)?;
            if cancel.load(Ordering::Relaxed) {
                break;
            }
            let highest = reset_peak();
            let (sample, peak) = match self.save_and_restore(&store, format, save, highest) {
                // It was stopped in the middle, which is no failure of the storage.
                Err(_) if cancel.load(Ordering::Relaxed) => break,
                done => done?,
            };
            observe(Event::Saved { save: save + 1, stall_s: sample.stall_s });
            if cancel.load(Ordering::Relaxed) {
                break;
            }
            measured.memory_bytes =
                measured.memory_bytes.max(peak.zip(before).and_then(|(peak, before)| peak.checked_sub(before)));
            if save > 0 {
                measured.samples.push(sample);
                measured.rates.extend(machine.0);
                measured.copies_s.extend(machine.1);
            }
        }
        let closed = store.close();
        // The next mode or format begins with nothing.
        self.dirs.clear()?;
        let failed = closed.errors.into_iter().next().filter(|_| !cancel.load(Ordering::Relaxed));
        failed.map_or(Ok(measured), |error| Err(error.into()))
    }

    /// One save, made durable and restored; with the most memory there was, where `highest` says that it was counted.
    fn save_and_restore(
        &mut self,
        store: &Store,
        format: &dyn Format,
        save: u64,
        highest: Option<()>,
    ) -> Result<(CheckpointSample, Option<u64>), Error> {
        let sample = self.save(store, format, save)?;
        // What nobody keeps any more is removed before the next clock starts.
        store.drain()?;
        let peak = highest.and_then(peak_bytes);
        Ok((CheckpointSample { restore_s: Some(self.restore(store, format, save)?), ..sample }, peak))
    }

    fn options(&self, mode: Mode) -> Options {
        Options { mode, drain_bytes_per_s: self.plan.drain_bytes_per_s, ..Options::default() }
    }

    /// What storage and memory do without us, right before a save.
    fn machine(
        &mut self,
        mode: Mode,
        save: u64,
        cancel: &AtomicBool,
    ) -> Result<(Option<bare::Rates>, Option<f64>), Error> {
        if !self.plan.ceiling {
            return Ok((None, None));
        }
        // The place that this mode writes to first is the one it is restored from.
        let tier = if mode == Mode::Direct { self.dirs.tiers().len() - 1 } else { 0 };
        let place = self.dirs.places().nearest_first().nth(tier).expect("a tier is a place");
        let n_bytes = self.values.bytes().len() as u64;
        let rates = bare::rates(place, self.dirs.scratch(tier), n_bytes, save, cancel)?;
        Ok((Some(rates), Some(self.values.copy_s(&mut self.copy)?)))
    }

    /// Saves, and waits until all is drained: the next one finds nothing unfinished.
    fn save(&self, store: &Store, format: &dyn Format, step: u64) -> Result<CheckpointSample, Error> {
        let start = Instant::now();
        let handle = self.values.with_snapshot(|snapshot| save(store, step, snapshot, format))?;
        let stall_s = start.elapsed().as_secs_f64();
        let reached = |level| -> Result<Option<f64>, Error> {
            let fate = handle.wait(level)?;
            Ok((fate == Fate::Reached).then(|| start.elapsed().as_secs_f64()))
        };
        let durable_fast_s = reached(Level::DurableFast)?;
        let durable_slow_s = reached(Level::DurableSlow)?;
        Ok(CheckpointSample { stall_s, durable_fast_s, durable_slow_s, restore_s: None })
    }

    /// Restores the newest, which must be the one just saved, and compares every tensor with the state; seconds.
    fn restore(&mut self, store: &Store, format: &dyn Format, step: u64) -> Result<f64, Error> {
        let start = Instant::now();
        let restored = store.restore_with(Wanted::default(), &mut self.memory)?;
        let files = restored.by_name();
        let catalog = format.open(STEM, &files)?;
        let seconds = start.elapsed().as_secs_f64();
        let is_same = restored.name.step == step && restored.passed_over.is_empty() && self.is_same(&catalog, &files);
        restored.give_back(&mut self.memory);
        if is_same { Ok(seconds) } else { Err(Error::Differs { step }) }
    }

    /// Compares the files where they lie: memory taken for that would count as a save's.
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

/// The one place where a benchmark saves.
fn save(store: &Store, step: u64, snapshot: &Snapshot<'_>, format: &dyn Format) -> Result<Handle, Error> {
    let layout = format.plan(STEM, snapshot)?;
    Ok(store.save(step, None, snapshot, &layout)?)
}

fn resident_bytes() -> Option<u64> {
    status_bytes("VmRSS:")
}

/// Lets the kernel count the most memory anew; `None` where it does not.
fn reset_peak() -> Option<()> {
    std::fs::write("/proc/self/clear_refs", "5").ok()
}

fn peak_bytes((): ()) -> Option<u64> {
    peak_resident_bytes()
}
