//! The caller's handle of a save that continues in the background.

use std::sync::Arc;

use super::Shared;
use super::state::Stage;
use crate::{Error, Name, Result};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Copied: the caller may change its state. Survives nothing.
    Staged,
    /// Survives a power cut, on the tier it was first written to.
    DurableFast,
    /// Survives a power cut, on the last tier, and was read back there.
    DurableSlow,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The requested stage is reached.
    Reached,
    /// Not saved, because earlier saves were not finished.
    Skipped,
    /// A newer save replaced it.
    Superseded,
}

#[derive(Debug)]
pub struct Handle {
    shared: Arc<Shared>,
    name: Name,
}

impl Handle {
    pub(super) fn new(shared: &Arc<Shared>, name: Name) -> Self {
        shared.lock().stages.insert(name, Stage::Begun);
        Self { shared: Arc::clone(shared), name }
    }

    pub fn name(&self) -> Name {
        self.name
    }

    /// Blocks until the checkpoint reaches this stage or never will. Without a background drain
    /// ([`Options::drains_behind`](super::Options)), a farther tier is reached only when another thread drains.
    ///
    /// # Errors
    /// The error of this save; [`Error::Stopped`] when the store was closed first.
    pub fn wait(&self, level: Level) -> Result<Fate> {
        let mut state = self.shared.lock();
        loop {
            match state.stages.get(&self.name) {
                Some(Stage::DurableSlow) => return Ok(Fate::Reached),
                Some(Stage::DurableFast) if level <= Level::DurableFast => return Ok(Fate::Reached),
                Some(Stage::Staged) if level <= Level::Staged => return Ok(Fate::Reached),
                Some(Stage::Skipped) => return Ok(Fate::Skipped),
                Some(Stage::Superseded { was_durable: true }) if level <= Level::DurableFast => {
                    return Ok(Fate::Reached);
                }
                Some(Stage::Superseded { .. }) => return Ok(Fate::Superseded),
                Some(Stage::Failed(error)) => return Err(error.clone()),
                _ if state.is_closed => return Err(Error::Stopped),
                _ => {}
            }
            let is_idle = level == Level::DurableSlow && !state.drain_wanted && !state.is_draining;
            let mut own = (0..state.tiers.len()).filter_map(|tier| state.troubles.get(&Some((tier, self.name))));
            match own.next().or(state.drain_error.as_ref()) {
                // A waiter gets the drain's error; the drain is retried after the next save.
                Some(error) if is_idle && state.drain_error.is_some() => return Err(error.clone()),
                _ => state = self.shared.wait(state),
            }
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.lock().stages.remove(&self.name);
    }
}
