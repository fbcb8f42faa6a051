//! What is observed, and how often.

use std::time::Duration;

use crate::sink::Sink;

/// Which processes have columns of their own, summed up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Processes {
    None,
    /// This one and its descendants; the sampler's own reading is left out.
    #[default]
    This,
    Children,
}

pub struct Options {
    /// Time between rows. Below 100 ms the kernel's clock ticks make processor times coarse, which the series notes.
    pub interval: Duration,
    pub processes: Processes,
    pub gpu: bool,
    /// How many rows a series may have before its rows are put together two by two; a row is about a kilobyte.
    pub max_rows: usize,
    /// Gets each row as it is taken, for a live display or a file; the series keeps them too.
    pub sink: Option<Box<dyn Sink>>,
    /// Called when a command that is followed has ended and some of its descendants have not: with their number, once, and
    /// when they did not end soon after it.
    pub on_wait: Option<Box<dyn FnOnce(u64) + Send>>,
}

impl Default for Options {
    /// Every second, this process and its descendants, and two hours before rows are put together.
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(1),
            processes: Processes::default(),
            gpu: true,
            max_rows: 7_200,
            sink: None,
            on_wait: None,
        }
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("interval", &self.interval)
            .field("processes", &self.processes)
            .finish_non_exhaustive()
    }
}
