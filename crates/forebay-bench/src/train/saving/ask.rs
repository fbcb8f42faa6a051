//! Requesting a save until it is made, despite earlier failures in the background.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use forebay_checkpoint::{Error as StoreError, Fate, Handle, Level};

use super::super::consumer::Consumer;
use super::super::drive::Reached;
use super::super::run::Error;
use super::{Saver, TELL};
use forebay_measure::Error as Shared;

/// The store reports one older error per call; this limits the number of retries.
const MOST_TOLD: usize = 100;

impl Saver {
    /// Whether the state after this step is durable on the first tier.
    pub(super) fn is_saved(&self, step: u64) -> bool {
        let last = self.last.as_ref().filter(|(saved, _)| *saved == step);
        last.is_some_and(|(_, handle)| matches!(handle.wait(Level::DurableFast), Ok(Fate::Reached)))
    }

    /// Retries if the store reports an older error instead; the first of those is kept.
    pub(super) fn ask(
        &self,
        at: Reached,
        consumer: &dyn Consumer,
        (before, torn): (&mut Option<Error>, &AtomicBool),
    ) -> Result<Arc<Handle>, Error> {
        let store = &self.store;
        for tries in 1..=MOST_TOLD {
            let saved = self.with_snapshot(at, consumer, |snapshot, layout| {
                Ok(store.save_until(at.step, None, snapshot, layout, torn)?)
            });
            match saved {
                Ok(handle) => return Ok(Arc::new(handle)),
                Err(error) if tries < MOST_TOLD && is_older(&error, tries) => {
                    before.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        unreachable!("the last try returns")
    }

    /// Watches for a cancellation during a save; the drain then hurries to free the space that the save waits for.
    pub(super) fn heeding<T>(&self, cancel: &AtomicBool, save: impl FnOnce() -> T) -> T {
        if self.ledger.n_open() == 0 {
            // No drain is in progress that a save could wait for.
            return save();
        }
        let look = || {
            let is_stopped = cancel.load(Ordering::Relaxed);
            if is_stopped {
                self.store.hurry();
            }
            is_stopped
        };
        forebay_checkpoint::heeding(TELL, look, save)
    }

    /// Drain failures that were not reported yet. They lose no save, because the drain retries.
    pub(super) fn new_troubles(&mut self) -> Vec<String> {
        let found = self.store.take_errors();
        let mut new = Vec::new();
        for text in found.iter().map(|error| forebay_units::chain(error)) {
            if !self.troubles.contains(&text) {
                self.troubles.push(text.clone());
                new.push(text);
            }
        }
        new
    }

    /// Retries until the save is made; a save skipped for lack of space is requested again when there may be some. A
    /// run that is being stopped does not wait for space.
    pub(super) fn insist(
        &self,
        at: Reached,
        consumer: &dyn Consumer,
        cancel: &AtomicBool,
        (before, torn): (&mut Option<Error>, &AtomicBool),
    ) -> Result<Arc<Handle>, Error> {
        if let Some((_, last)) = &self.last {
            // This save needs free memory. The store reports the error of the previous one.
            let _ = last.wait(Level::DurableFast);
        }
        loop {
            let handle = self.ask(at, consumer, (&mut *before, torn))?;
            let is_skipped = matches!(handle.wait(Level::DurableFast), Ok(Fate::Skipped));
            if !is_skipped || at.is_stopping || cancel.load(Ordering::Relaxed) {
                return Ok(handle);
            }
            self.ledger.wait(TELL);
        }
    }
}

/// Whether an error belongs to an earlier save. The store does not always say; an error of this save recurs.
fn is_older(error: &Error, tries: usize) -> bool {
    match error {
        Error::Shared(Shared::Checkpoint(StoreError::Background { .. })) => true,
        Error::Shared(Shared::Checkpoint(
            StoreError::NoRoom { .. } | StoreError::Full { .. } | StoreError::Pool { .. } | StoreError::Stopped,
        )) => false,
        Error::Shared(Shared::Checkpoint(_)) => tries == 1,
        _ => false,
    }
}
