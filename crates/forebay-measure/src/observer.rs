//! What a run tells while it goes on, and how it is stopped.

use std::sync::atomic::{AtomicBool, Ordering};

use forebay_record::Validation;

/// What happens in a run, for a display and for the marks of a series.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A part of the run that is no repeat begins ("building alexnet"), or has come so far.
    Phase { what: String, percent: Option<u64> },
    /// What all repeats will move at the most; an experiment counts one of the two.
    Planned { images: u64, bytes: u64 },
    /// A repeat begins: "4 threads, repeat 2 of 5".
    Repeat { what: String },
    /// Steps begin, after `first` of an earlier run: those of the whole run, or of epoch `.0` of `.1`.
    Steps { epoch: Option<(u64, u64)>, first: u64, n_steps: u64 },
    /// Delivered, and read or written, since the last time.
    Moved { images: u64, bytes: u64 },
    /// A step was made; `images` and `bytes` are those since the last time, `wait_share` is of the run so far.
    Step { step: u64, images: u64, bytes: u64, loss: Option<f32>, wait_share: f64 },
    /// A checkpoint was saved or restored as far as the run waits for it; `step` is its step or its number.
    Saved { step: u64, bytes: u64, seconds: f64 },
    /// The last step is made, and so many checkpoints are on their way to the last tier.
    Draining { n_left: usize },
    /// An epoch, counted from 1, was validated.
    Validated { epoch: u64, validation: Validation },
    /// What a user wants to know at once.
    Remark { text: String },
}

impl Event {
    /// A phase whose end is not known.
    pub fn phase(what: impl Into<String>) -> Self {
        Self::Phase { what: what.into(), percent: None }
    }
}

/// Who follows a run, on any of its threads, and who may stop it.
#[derive(Clone, Copy)]
pub struct Observer<'a> {
    /// Hears of every event.
    pub hear: &'a (dyn Fn(Event) + Sync),
    /// Set to stop the run.
    pub cancel: &'a AtomicBool,
    /// Repeats per cell that may be run again because others used the machine; `None`: nobody looks whether they did.
    pub extra_repeats: Option<usize>,
}

/// Of the default of five repeats, a run on a machine that is never quiet takes at most two more.
pub const EXTRA_REPEATS: usize = 2;

impl<'a> Observer<'a> {
    /// One that hears of every event and lets the machine be.
    pub fn new(hear: &'a (dyn Fn(Event) + Sync), cancel: &'a AtomicBool) -> Self {
        Self { hear, cancel, extra_repeats: None }
    }

    /// One that hears nothing.
    pub fn deaf(cancel: &'a AtomicBool) -> Self {
        Self::new(&|_| {}, cancel)
    }

    /// Passes on an event.
    pub fn tell(&self, event: Event) {
        (self.hear)(event);
    }

    /// Whether the run is to stop.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }
}
