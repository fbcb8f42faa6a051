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
    /// Recent transfers, for checkpoints: start, bytes, whether they read.
    recent: Vec<(u64, u64, bool)>,
}

/// A checkpoint of more calls than this is cut at its beginning.
const MAX_RECENT: usize = 100_000;

impl Thread {
    pub(crate) fn call(&mut self, event: &Event, class: Class) {
        if matches!(class, Class::Read | Class::Write) {
            if self.recent.len() >= MAX_RECENT {
                self.recent.drain(..MAX_RECENT / 2);
            }
            self.recent.push((event.start_ns, event.bytes(), class == Class::Read));
        }
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

    /// Bytes that this thread wrote, or read, since a moment.
    pub(crate) fn moved_since(&mut self, start_ns: u64, is_read: bool) -> u64 {
        let of = self.recent.iter().filter(|(at, _, read)| *at >= start_ns && *read == is_read);
        let bytes = of.map(|(_, bytes, _)| bytes).sum();
        self.recent.clear();
        bytes
    }
}
