//! The save methods of a store.

use std::sync::atomic::AtomicBool;

use super::handle::Handle;
use super::{Mode, Store};
use crate::format::Layout;
use crate::parallel::Pace;
use crate::source::{Planned, Staged};
use crate::{Elsewhere, Region, Result, Snapshot, commit};

impl Store {
    /// Saves a state in the given layout. [`Keep::best`](crate::Keep) uses `metric`.
    ///
    /// # Errors
    /// The error of this save, or of an earlier background save; in that case this save is not made and can be retried.
    /// An error of the drain fails no save unless the save needs the space; [`take_errors`](Self::take_errors) reports
    /// it.
    pub fn save(&self, step: u64, metric: Option<f64>, snapshot: &Snapshot<'_>, layout: &Layout) -> Result<Handle> {
        self.save_paced(step, metric, snapshot, layout, Pace::free())
    }

    /// The same, but returns early when `stop` is set: while it waits for space, or between two chunks that it writes
    /// (in [`Mode::Async`]: copies). Nothing of the checkpoint remains then. Background writes are not stopped, nor is
    /// work inside the kernel, such as a sync on a file system without direct writes.
    ///
    /// # Errors
    /// [`Error::Stopped`](crate::Error::Stopped), and as above.
    pub fn save_until(
        &self,
        step: u64,
        metric: Option<f64>,
        snapshot: &Snapshot<'_>,
        layout: &Layout,
        stop: &AtomicBool,
    ) -> Result<Handle> {
        self.save_paced(step, metric, snapshot, layout, Pace::free().until(stop))
    }

    fn save_paced(
        &self,
        step: u64,
        metric: Option<f64>,
        snapshot: &Snapshot<'_>,
        layout: &Layout,
        pace: Pace<'_>,
    ) -> Result<Handle> {
        commit::check(layout, snapshot)?;
        let _turn = self.saving.lock().expect("no holder of this lock panics");
        let shared = &self.shared;
        if let Some(error) = shared.lock().errors.pop_front() {
            return Err(error);
        }
        let name = shared.lock().take_name(step);
        let handle = Handle::new(shared, name);
        let tier = match shared.options.mode {
            Mode::Direct => shared.tiers.len() - 1,
            Mode::Burst => 0,
            Mode::Async => return shared.stage(&handle, metric, snapshot, layout, &pace).map(|()| handle),
        };
        let source = Planned { layout, snapshot, pace: &pace };
        let put = shared.put(tier, name, metric, &source, &pace)?;
        shared.conclude(tier, name, metric, put, None);
        Ok(handle)
    }

    /// Allocates the memory for a state with this layout now, so the first save does not have to.
    ///
    /// # Errors
    /// When the memory is not available.
    pub fn prepare(&self, layout: &Layout) -> Result<()> {
        self.prepare_with(layout, |_| Ok(()))
    }

    /// The same for a state on a device, which page-locks the memory.
    ///
    /// # Errors
    /// When the memory is not available or the device refuses it.
    pub fn prepare_for(&self, layout: &Layout, device: &dyn Elsewhere) -> Result<()> {
        self.prepare_with(layout, |memory| memory.lock_for(device))
    }

    fn prepare_with(&self, layout: &Layout, ready: impl FnOnce(&mut Region) -> Result<()>) -> Result<()> {
        let Some(mut memory) = self.shared.take_memory(Staged::n_bytes(&layout.files), &Pace::free())? else {
            return Ok(());
        };
        let outcome = ready(&mut memory);
        self.shared.lock().pool.push(memory);
        self.shared.changed();
        outcome
    }
}
