//! Where the time of a thread that fetches batches goes: calls between the beginning and the end of a fetch.

use forebay_interpose::layout::Class;

use crate::event::Event;

/// Sums of nanoseconds, calls and bytes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spent {
    pub(crate) open_ns: u64,
    pub(crate) read_ns: u64,
    pub(crate) meta_ns: u64,
    pub(crate) meta_calls: u64,
}

/// A thread of a job.
#[derive(Debug, Default)]
pub(crate) struct Thread {
    /// Since the fetch began; `None` outside fetches.
    current: Option<Spent>,
    pub(crate) n_fetches: u64,
    pub(crate) n_samples: Option<u64>,
    pub(crate) fetch_ns: u64,
    pub(crate) cpu_ns: u64,
    pub(crate) spent: Spent,
}

impl Thread {
    pub(crate) fn call(&mut self, event: &Event, class: Class) {
        let Some(spent) = &mut self.current else { return };
        match class {
            Class::Read => spent.read_ns += event.duration_ns,
            Class::Open => {
                spent.open_ns += event.duration_ns;
                spent.meta_calls += 1;
            }
            Class::Meta => {
                spent.meta_ns += event.duration_ns;
                spent.meta_calls += 1;
            }
            _ => {}
        }
    }

    /// A mark with a negative value begins a fetch; the other one ends it, with the samples as its value and the processor time as its
    /// index.
    pub(crate) fn fetch(&mut self, event: &Event) {
        if event.result < 0 {
            self.current = Some(Spent::default());
            return;
        }
        let Some(spent) = self.current.take() else { return };
        self.n_fetches += 1;
        if event.result > 0 {
            self.n_samples = Some(self.n_samples.unwrap_or(0) + event.bytes());
        }
        self.fetch_ns += event.duration_ns;
        self.cpu_ns += event.arg;
        self.spent.open_ns += spent.open_ns;
        self.spent.read_ns += spent.read_ns;
        self.spent.meta_ns += spent.meta_ns;
        self.spent.meta_calls += spent.meta_calls;
    }
}
