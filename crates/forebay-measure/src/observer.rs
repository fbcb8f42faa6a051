//! Events of a run in progress, and cancelling it.

use std::sync::atomic::{AtomicBool, Ordering};

use forebay_record::Validation;

/// For progress displays and the marks of a series.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A part other than a repeat begins ("building alexnet") or progresses.
    Phase { what: String, percent: Option<u64> },
    /// Upper bound of the amounts that all repeats will move; an experiment counts either images or bytes.
    Planned { images: u64, bytes: u64 },
    /// A repeat begins; `what` reads "4 threads, repeat 2 of 5".
    Repeat { what: String },
    /// Training steps begin, after `first` steps of an earlier run: those of the whole run, or of epoch `.0` of `.1`.
    Steps { epoch: Option<(u64, u64)>, first: u64, n_steps: u64 },
    /// Images delivered and bytes moved since the last such event.
    Moved { images: u64, bytes: u64 },
    /// A step ended. `images` and `bytes` count since the last event; `wait_share` covers the run so far.
    Step { step: u64, images: u64, bytes: u64, loss: Option<f32>, wait_share: f64 },
    /// A save or restore ended as far as the run waits for it; `step` is its step or its number.
    Saved { step: u64, bytes: u64, seconds: f64 },
    /// The last step is done; `n_left` checkpoints are still being copied to the last tier.
    Draining { n_left: usize },
    /// Epochs count from 1.
    Validated { epoch: u64, validation: Validation },
    /// Shown to the user at once, not only in the record.
    Remark { text: String },
}

impl Event {
    /// A phase of unknown length.
    pub fn phase(what: impl Into<String>) -> Self {
        Self::Phase { what: what.into(), percent: None }
    }
}

/// Receives the events, on any thread of the run, and may stop it.
#[derive(Clone, Copy)]
pub struct Observer<'a> {
    pub hear: &'a (dyn Fn(Event) + Sync),
    /// Set by the caller to stop the run at the next opportunity.
    pub cancel: &'a AtomicBool,
    /// Number of repeats per cell that may be run again because other processes disturbed them; `None` disables the
    /// check.
    pub extra_repeats: Option<usize>,
}

/// With the default of five repeats, a run on a machine that is never quiet takes at most two more per cell.
pub const EXTRA_REPEATS: usize = 2;

impl<'a> Observer<'a> {
    /// An observer without the check for disturbance.
    pub fn new(hear: &'a (dyn Fn(Event) + Sync), cancel: &'a AtomicBool) -> Self {
        Self { hear, cancel, extra_repeats: None }
    }

    pub fn deaf(cancel: &'a AtomicBool) -> Self {
        Self::new(&|_| {}, cancel)
    }

    pub fn tell(&self, event: Event) {
        (self.hear)(event);
    }

    pub fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }
}
