//! What a caller asks of a store when it saves.

use std::sync::atomic::AtomicBool;

use super::handle::Handle;
use super::{Mode, Store};
use crate::format::Layout;
use crate::parallel::Pace;
use crate::source::{Planned, Staged};
use crate::{Elsewhere, Region, Result, Snapshot, commit};

impl Store {
    /// Saves a state as a format laid it out. `metric` is what [`Keep::best`](crate::Keep) goes by.
    ///
    /// # Errors
    /// What went wrong with this save, or with an earlier one that was taken for made: this save is then not made, and
    /// can be asked for again. What goes wrong with the drain refuses no save, unless the save needs the room:
    /// [`take_errors`](Self::take_errors) tells it.
    pub fn save(&self, step: u64, metric: Option<f64>, snapshot: &Snapshot<'_>, layout: &Layout) -> Result<Handle> {
        self.save_paced(step, metric, snapshot, layout, Pace::free())
    }

    /// The same, unless `stop` is set before its end: while it waits for room, or between two chunks that it writes, or
    /// copies in [`Mode::Async`]. There is nothing of it then. What is written in the background is not stopped;
    /// nor is what the system does by itself, such as a sync of what a file system without direct writes holds in memory.
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

    /// Gets the memory for a state laid out like this now, so that the first save does not have to.
    ///
    /// # Errors
    /// When there is not that much.
    pub fn prepare(&self, layout: &Layout) -> Result<()> {
        self.prepare_with(layout, |_| Ok(()))
    }

    /// The same for a state on a device, which gets the memory to lock it.
    ///
    /// # Errors
    /// When there is not that much, or the device refuses it.
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
