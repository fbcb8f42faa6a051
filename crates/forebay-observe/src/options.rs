//! Options of an observation: what is observed, and how often.

use std::time::Duration;

use crate::sink::Sink;

/// The processes whose sums have columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Processes {
    None,
    /// This process and its descendants, excluding the sampler's own I/O.
    #[default]
    This,
    Children,
}

pub struct Options {
    /// Time between rows. Below 100 ms, the kernel's clock ticks make CPU times coarse; the series then has a note.
    pub interval: Duration,
    pub processes: Processes,
    pub gpu: bool,
    /// Maximum number of rows of a series before pairs of rows are merged; a row takes about a kilobyte.
    pub max_rows: usize,
    /// Receives each row as it is taken, for a live display or a file; the series keeps them too.
    pub sink: Option<Box<dyn Sink>>,
    /// Called at most once, with the number of descendants, if descendants of a followed command do not end soon after
    /// it.
    pub on_wait: Option<Box<dyn FnOnce(u64) + Send>>,
}

impl Default for Options {
    /// One row per second, this process and its descendants, and two hours before rows are merged.
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
