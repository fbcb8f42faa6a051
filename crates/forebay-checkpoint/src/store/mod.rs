//! Checkpoints on several tiers, nearest first: save, drain, keep, remove.
//!
//! A save writes to one tier by the commit protocol; everything else happens in the background. A save that fails in
//! the background is reported once, by the next save. An error of the drain fails no save; [`Store::take_errors`], the
//! next [`Store::drain`] or [`Store::close`] reports it.

mod drain;
mod handle;
mod room;
mod saving;
mod staging;
mod state;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;

pub use handle::{Fate, Handle, Level};
pub use state::{Counts, Undrained};

use crate::commit::{self, Durability, Writing};
use crate::fs::{Guard, PAGE};
use crate::manifest::Manifest;
use crate::parallel::Pace;
use crate::source::Source;
use crate::tier::Tier;
use crate::{Error, Memory, Name, Progress, Restored, Result, Wanted};
use room::Damaged;
use state::{Stage, State};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// When the checkpoint is durable on the last tier.
    #[default]
    Direct,
    /// When it is durable on the first tier; it is drained to the others in the background.
    Burst,
    /// When the state is copied; it is written to the first tier and drained in the background.
    Async,
}

/// What happens to a save that finds no space because earlier saves are not finished: no memory in the pool, or no
/// space on the first tier until the drain frees some.
///
/// With enough space, the policies behave the same. Under each policy, a checkpoint that waits to be drained is dropped
/// when the farther tier's [`Keep`](crate::Keep) would remove it on arrival in favour of newer ones. To get every
/// checkpoint onto the slow tier, keep every checkpoint there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WhenBehind {
    #[default]
    Wait,
    Skip,
    /// Replaces an older checkpoint: in memory, the oldest that is not being written yet; on the first tier, the oldest
    /// that is not being drained and for which a newer good one exists. Waits if there is none: a pool of one state has
    /// none, and the newest durable checkpoint stays until the next one is durable.
    Coalesce,
}

#[derive(Debug, Clone)]
pub struct Options {
    pub mode: Mode,
    /// What a save does when it finds no space.
    pub when_behind: WhenBehind,
    /// Bytes per chunk: one write and one checksum each. A multiple of the page size.
    pub chunk_bytes: usize,
    /// Bytes of memory for copies of the state in [`Mode::Async`]; `None` for the size of one state. With one state a
    /// save waits, or is skipped, until the previous one is written; there is nothing to replace.
    pub pool_bytes: Option<u64>,
    /// The limit on draining, in bytes per second; reading back obeys the same limit.
    pub drain_bytes_per_s: Option<u64>,
    pub durability: Durability,
    /// Whether draining and pruning run in the background, or only when [`Store::drain`] is called.
    pub drains_behind: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            when_behind: WhenBehind::default(),
            chunk_bytes: 4 << 20,
            pool_bytes: None,
            drain_bytes_per_s: None,
            durability: Durability::default(),
            drains_behind: true,
        }
    }
}

pub(crate) struct Shared {
    tiers: Vec<Tier>,
    options: Options,
    state: Mutex<State>,
    change: Condvar,
    stop_saving: AtomicBool,
    stop_draining: AtomicBool,
    /// Ignore the drain's rate limit.
    hurry: AtomicBool,
    draining: Mutex<()>,
    /// Held from the decision to remove a checkpoint until it is removed.
    removing: Mutex<()>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics")
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.change.wait(state).expect("no holder of this lock panics")
    }

    /// Waits for any change or a timeout, unless the work is to stop.
    fn wait_unless_stopped<'a>(&self, state: MutexGuard<'a, State>, pace: &Pace<'_>) -> Result<MutexGuard<'a, State>> {
        pace.before(0)?;
        let Some(nap) = pace.nap() else { return Ok(self.wait(state)) };
        Ok(self.change.wait_timeout(state, nap).expect("no holder of this lock panics").0)
    }

    /// Waits until something changed since `seen`, unless the work is to stop.
    fn wait_for_change(&self, seen: u64, pace: &Pace<'_>) -> Result<()> {
        let mut state = self.lock();
        while state.n_changes == seen {
            state = self.wait_unless_stopped(state, pace)?;
        }
        Ok(())
    }

    fn changed(&self) {
        self.lock().n_changes += 1;
        self.change.notify_all();
    }

    /// Writes a checkpoint to a tier that should have space for it.
    fn write_with_room(&self, tier: usize, name: Name, metric: Option<f64>, source: &dyn Source) -> Result<Manifest> {
        let writing = Writing { chunk_bytes: self.options.chunk_bytes, durability: self.options.durability };
        let is_last = tier + 1 == self.tiers.len();
        loop {
            match commit::commit(&self.tiers[tier], name, metric, source, writing) {
                // Another program took the space. Checkpoints that the next tier also has may be removed for it. Those
                // that may go only once this one exists must stay, because this save may still fail.
                Err(Error::Full { .. }) if !is_last && self.remove_for_room(tier) => {}
                other => return other,
            }
        }
    }
}

/// What remained when a store was closed.
#[derive(Debug)]
#[must_use]
pub struct Closed {
    pub counts: Counts,
    /// Checkpoints that a farther tier still needs or that were not read back there; drained when a store is next
    /// opened.
    pub n_undrained: usize,
    /// Errors of background work that were not reported yet.
    pub errors: Vec<Error>,
}

/// Checkpoints on several tiers. Only one process at a time may have a store on a folder.
#[derive(Debug)]
pub struct Store {
    shared: Arc<Shared>,
    threads: Vec<(Thread, JoinHandle<()>)>,
    saving: Mutex<()>,
    _locks: Vec<Box<dyn Guard>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Thread {
    Save,
    Drain,
}

impl Store {
    /// Opens the tiers, nearest first: locks them, syncs what is found there, removes unfinished checkpoints, and
    /// starts to drain what an earlier run left.
    ///
    /// # Errors
    /// [`Error::Locked`] with the holder when another process has one of them; an I/O error when a tier cannot be read
    /// or written.
    ///
    /// # Panics
    /// When there is no tier, or the chunk size is not a multiple of the page size.
    pub fn open(tiers: Vec<Tier>, options: Options) -> Result<Self> {
        assert!(!tiers.is_empty(), "a store has at least one tier");
        let is_whole_pages = options.chunk_bytes > 0 && options.chunk_bytes.is_multiple_of(PAGE);
        assert!(is_whole_pages, "a chunk is whole pages");
        let mut locks = Vec::new();
        for tier in &tiers {
            tier.make()?;
            locks.push(lock(tier)?);
            tier.settle()?;
        }
        let state = State { drain_wanted: true, ..State::survey(&tiers)? };
        let shared = Arc::new(Shared {
            tiers,
            options,
            state: Mutex::new(state),
            change: Condvar::new(),
            stop_saving: AtomicBool::new(false),
            stop_draining: AtomicBool::new(false),
            hurry: AtomicBool::new(false),
            draining: Mutex::new(()),
            removing: Mutex::new(()),
        });
        let mut store = Self { shared, threads: Vec::new(), saving: Mutex::new(()), _locks: locks };
        store.start()?;
        Ok(store)
    }

    fn start(&mut self) -> Result<()> {
        if self.shared.options.mode == Mode::Async {
            let shared = Arc::clone(&self.shared);
            self.threads.push((Thread::Save, spawn("forebay:save", move || shared.write_behind())?));
        }
        if self.shared.options.drains_behind {
            let shared = Arc::clone(&self.shared);
            self.threads.push((Thread::Drain, spawn("forebay:drain", move || shared.drain_behind())?));
        }
        Ok(())
    }

    /// Drains in the calling thread until farther tiers need nothing more, and removes what the rules do not keep,
    /// except damaged checkpoints. Returns the number of copies made. One failure does not hold up the other
    /// checkpoints.
    ///
    /// # Errors
    /// The first error; [`take_errors`](Self::take_errors) has the others.
    pub fn drain(&self) -> Result<usize> {
        self.shared.drain_all(None)
    }

    /// The same, with a progress callback: each chunk is reported once when copied and once when read back. A chunk
    /// that the farther tier already has is only read.
    ///
    /// # Errors
    /// The first error; the rest remains to be drained.
    pub fn drain_with(&self, progress: &Progress<'_>) -> Result<usize> {
        self.shared.drain_all(Some(progress))
    }

    /// What farther tiers need, or have unverified.
    pub fn undrained(&self) -> Undrained {
        self.shared.lock().undrained(&self.shared.tiers)
    }

    /// Unreported errors of a background drain or removal. They fail no save. Errors of checkpoints that were drained
    /// at a later attempt are not included.
    pub fn take_errors(&self) -> Vec<Error> {
        std::mem::take(&mut self.shared.lock().troubles).into_values().collect()
    }

    /// From now on the drain ignores its rate limit: a save waits for the space that it frees.
    pub fn hurry(&self) {
        self.shared.hurry.store(true, Ordering::Relaxed);
    }

    /// Makes a drain or prune in progress end with [`Error::Stopped`] at its next chunk, on any thread, and prevents
    /// new ones.
    pub fn stop_draining(&self) {
        self.shared.stop_draining.store(true, Ordering::Relaxed);
        self.shared.changed();
    }

    /// Removes from each tier the checkpoints that its rules do not keep.
    ///
    /// # Errors
    /// The first error, or [`Error::Stopped`] after [`stop_draining`](Self::stop_draining). Checkpoints that were not
    /// removed are intact.
    pub fn prune(&self) -> Result<()> {
        let is_to_stop = || self.shared.stop_draining.load(Ordering::Relaxed);
        let mut troubles = Vec::new();
        let tiers = 0..self.shared.tiers.len();
        let stopped = tiers
            .map(|tier| self.shared.prune_unless(tier, Damaged::Go, &mut troubles, is_to_stop))
            .find(Result::is_err);
        let mut troubles = troubles.into_iter();
        let first = troubles.next();
        self.shared.lock().troubles.extend(troubles);
        first.map_or(Ok(()), |(_, error)| Err(error)).and(stopped.unwrap_or(Ok(())))
    }

    /// Reads the newest valid checkpoint from the nearest tier that has it.
    ///
    /// # Errors
    /// [`Error::NothingGood`] with every checkpoint that was skipped, and why.
    pub fn restore(&self) -> Result<Restored> {
        crate::restore(&self.shared.tiers)
    }

    /// Reads the requested checkpoint, reusing memory of an earlier restore where it fits.
    ///
    /// # Errors
    /// [`Error::NothingGood`] with every checkpoint that was skipped, and why.
    pub fn restore_with(&self, wanted: Wanted<'_>, memory: &mut Memory) -> Result<Restored> {
        crate::restore_with(&self.shared.tiers, wanted, memory)
    }

    pub fn counts(&self) -> Counts {
        self.shared.lock().counts
    }

    pub fn tiers(&self) -> &[Tier] {
        &self.shared.tiers
    }

    /// Finishes the saves in progress on the first tier and stops. Undrained checkpoints are drained when a store is
    /// next opened.
    pub fn close(mut self) -> Closed {
        self.stop();
        let mut state = self.shared.lock();
        let n_undrained = state.undrained(&self.shared.tiers).n_copies;
        let mut errors: Vec<Error> = state.errors.drain(..).collect();
        errors.extend(std::mem::take(&mut state.troubles).into_values());
        Closed { counts: state.counts, n_undrained, errors }
    }

    fn stop(&mut self) {
        if self.shared.lock().is_closed {
            return;
        }
        // The drain continues until everything is written, because a save may need the space that it frees. When
        // nothing is being written, it keeps its rate limit: otherwise it would finish copies that were reported as
        // left for the next start.
        if self.shared.lock().stages.values().any(|stage| matches!(stage, Stage::Begun | Stage::Staged)) {
            self.hurry();
        }
        for (thread, stop) in [(Thread::Save, &self.shared.stop_saving), (Thread::Drain, &self.shared.stop_draining)] {
            stop.store(true, Ordering::Relaxed);
            self.shared.changed();
            for (_, handle) in self.threads.extract_if(.., |(which, _)| *which == thread) {
                handle.join().expect("no thread of the store panics");
            }
        }
        if self.shared.options.drains_behind {
            // The last save may have come after the drain thread's last pass.
            let mut troubles = Vec::new();
            (0..self.shared.tiers.len()).for_each(|tier| self.shared.prune(tier, Damaged::Stay, &mut troubles));
            self.shared.lock().troubles.extend(troubles);
        }
        self.shared.lock().is_closed = true;
        self.shared.changed();
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.stop();
    }
}

fn spawn(name: &'static str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(work);
    spawned.map_err(|source| Error::Thread { name, source: Arc::new(source) })
}

/// Bytes that files of these lengths and their manifest take on disk.
fn bytes_on_disk(lens: impl Iterator<Item = u64>, chunk_bytes: u64) -> u64 {
    const LINES: u64 = 4096;
    let (page, crc) = (PAGE as u64, 9);
    lens.map(|len| len.next_multiple_of(page) + (len.div_ceil(chunk_bytes) * crc)).sum::<u64>().next_multiple_of(page)
        + LINES
}

fn lock(tier: &Tier) -> Result<Box<dyn Guard>> {
    tier.fs.lock(&tier.lock_path(), &holder()).map_err(|error| match error {
        Error::Locked { holder, .. } => Error::Locked { path: tier.dir.clone(), holder },
        other => other,
    })
}

/// Identifies this process in the error of another that finds the tier locked.
fn holder() -> String {
    let mut name = [0_u8; 256];
    // SAFETY: the buffer is valid for its length less one, so that a NUL stays at its end.
    let rc = unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    let len = name.iter().position(|byte| *byte == 0).unwrap_or(0);
    let host = if rc == 0 { String::from_utf8_lossy(&name[..len]).into_owned() } else { "an unknown host".to_owned() };
    format!("process {} on {host}", std::process::id())
}
