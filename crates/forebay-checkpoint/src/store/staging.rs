//! Background saves: the state is copied into a memory pool and written from there.
//!
//! The pool is bounded and reused, so a save costs the caller one copy into memory that already exists. When the pool
//! is full, the policy decides: wait, skip this save, or replace one that is not being written yet.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::handle::Handle;
use super::room::{Damaged, Room};
use super::state::{Entry, Health, Stage};
use super::{Shared, WhenBehind};
use crate::format::Layout;
use crate::parallel::Pace;
use crate::region::Region;
use crate::source::{Source, Staged};
use crate::{Error, Name, Result, Snapshot};

#[derive(Debug, Clone, Copy)]
pub(super) enum Put {
    Skipped,
    Written { bytes: u64, bytes_on_disk: u64 },
}

/// A state in memory, waiting to be written.
pub(super) struct Waiting {
    pub(super) name: Name,
    pub(super) metric: Option<f64>,
    pub(super) staged: Staged,
}

impl Shared {
    /// Copies the state; applies the policy if the pool has no memory for it.
    pub(super) fn stage(
        self: &Arc<Self>,
        handle: &Handle,
        metric: Option<f64>,
        snapshot: &Snapshot<'_>,
        layout: &Layout,
        pace: &Pace<'_>,
    ) -> Result<()> {
        let bytes = Staged::n_bytes(&layout.files);
        let Some(mut memory) = self.take_memory(bytes, pace)? else {
            let mut state = self.lock();
            state.counts.skipped += 1;
            state.set_stage(handle.name(), Stage::Skipped);
            return Ok(());
        };
        let n_bytes = memory.len() as u64;
        let staged = match snapshot.device().map_or(Ok(()), |device| memory.lock_for(device)) {
            Ok(()) => Staged::copy(layout, snapshot, memory, self.options.chunk_bytes, pace),
            Err(error) => Err(error),
        };
        // The memory is lost with its content; the next save allocates new memory.
        let staged = staged.inspect_err(|_| self.forget_memory(n_bytes))?;
        let mut state = self.lock();
        state.set_stage(handle.name(), Stage::Staged);
        state.queue.push_back(Waiting { name: handle.name(), metric, staged });
        drop(state);
        self.changed();
        Ok(())
    }

    /// Memory for a state; `None` when this save is to be skipped.
    pub(super) fn take_memory(&self, bytes: u64, pace: &Pace<'_>) -> Result<Option<Region>> {
        let pool = self.options.pool_bytes.unwrap_or(bytes);
        if bytes > pool {
            return Err(Error::Pool { wanted: bytes, pool });
        }
        let mut has_waited = false;
        let mut state = self.lock();
        loop {
            if let Some(fits) = state.pool.iter().position(|region| region.len() as u64 >= bytes) {
                return Ok(Some(state.pool.swap_remove(fits)));
            }
            // Buffers that are too small only block larger ones.
            state.pool_bytes -= state.pool.drain(..).map(|region| region.len() as u64).sum::<u64>();
            if state.pool_bytes + bytes <= pool {
                state.pool_bytes += bytes;
                drop(state);
                return self.make_memory(bytes).map(Some);
            }
            match self.options.when_behind {
                WhenBehind::Skip => return Ok(None),
                WhenBehind::Coalesce if !state.queue.is_empty() => {
                    let older = state.queue.pop_front().expect("it is not empty");
                    state.supersede(older.name);
                    state.counts.superseded += 1;
                    state.pool.push(older.staged.into_memory());
                    continue;
                }
                WhenBehind::Coalesce | WhenBehind::Wait => {}
            }
            if let Some(error) = state.errors.pop_front() {
                return Err(error);
            }
            state.counts.waited += u64::from(!std::mem::replace(&mut has_waited, true));
            state = self.wait_unless_stopped(state, pace)?;
        }
    }

    /// Records that memory of the pool is gone.
    fn forget_memory(&self, bytes: u64) {
        self.lock().pool_bytes -= bytes;
        self.changed();
    }

    fn make_memory(&self, bytes: u64) -> Result<Region> {
        let made = Region::new(bytes as usize);
        match made {
            Ok(mut region) => {
                region.fault_in();
                Ok(region)
            }
            Err(error) => {
                self.forget_memory(bytes);
                Err(error)
            }
        }
    }

    /// Body of the saving thread: writes staged states; after a stop, those still staged.
    pub(super) fn write_behind(&self) {
        loop {
            let mut state = self.lock();
            let waiting = loop {
                if let Some(waiting) = state.queue.pop_front() {
                    break waiting;
                }
                if self.stop_saving.load(Ordering::Relaxed) {
                    return;
                }
                state = self.wait(state);
            };
            drop(state);
            self.write_staged(waiting);
        }
    }

    fn write_staged(&self, waiting: Waiting) {
        let Waiting { name, metric, staged } = waiting;
        let outcome = self.put(0, name, metric, &staged, &Pace::free());
        let memory = staged.into_memory();
        match outcome {
            Ok(put) => self.conclude(0, name, metric, put, Some(memory)),
            Err(error) => {
                let mut state = self.lock();
                state.pool.push(memory);
                state.set_stage(name, Stage::Failed(error.clone()));
                state.errors.push_back(Error::Background { step: name.step, what: "written", source: Box::new(error) });
                drop(state);
                self.changed();
            }
        }
    }

    /// Writes a checkpoint to a tier, or skips it according to the policy.
    pub(super) fn put(
        &self,
        tier: usize,
        name: Name,
        metric: Option<f64>,
        source: &dyn Source,
        pace: &Pace<'_>,
    ) -> Result<Put> {
        let last = source.layout().map_or_else(Vec::new, Layout::last_files);
        let lens = source.files().into_iter().map(|(_, len)| len).chain(last.iter().map(|plan| plan.len));
        let bytes_on_disk = super::bytes_on_disk(lens, self.options.chunk_bytes as u64);
        if self.make_room(tier, bytes_on_disk, pace)? == Room::Skip {
            return Ok(Put::Skipped);
        }
        let manifest = self.write_with_room(tier, name, metric, source)?;
        Ok(Put::Written { bytes: manifest.n_bytes(), bytes_on_disk })
    }

    /// Records the result of a save and takes its memory back in one step: a caller that learns of the end finds the
    /// memory free.
    pub(super) fn conclude(&self, tier: usize, name: Name, metric: Option<f64>, put: Put, memory: Option<Region>) {
        let is_last = tier + 1 == self.tiers.len();
        let mut state = self.lock();
        state.pool.extend(memory);
        match put {
            Put::Skipped => {
                state.counts.skipped += 1;
                state.set_stage(name, Stage::Skipped);
            }
            Put::Written { bytes, bytes_on_disk } => {
                state.tiers[tier].insert(name, Entry { bytes, metric, health: Health::Good });
                state.counts.saved += 1;
                state.last_bytes = bytes_on_disk;
                state.set_stage(name, if is_last { Stage::DurableSlow } else { Stage::DurableFast });
                state.drain_wanted = true;
            }
        }
        drop(state);
        self.changed();
        // The drain also prunes. The checkpoint is durable, so errors of others do not affect it.
        if matches!(put, Put::Written { .. }) && is_last && !self.is_background() {
            let mut troubles = Vec::new();
            self.prune(tier, Damaged::Stay, &mut troubles);
            self.lock().troubles.extend(troubles);
        }
    }
}
