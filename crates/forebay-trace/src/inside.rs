//! What a process does on data while its training loop waits, and while it computes: for loaders that work in threads of the process,
//! such as those of tf.data, DALI and Grain, whose fetches nobody marks.
//!
//! Entries of a process come in the order of their ends, so a wait comes after almost every call that it contains. What comes later
//! is added to the wait before.

use crate::event::Event;

/// Short calls that begin within this time of each other are kept as one.
const GRAIN_NS: u64 = 1 << 17;
/// A wait with more than this is cut at its beginning.
const MAX_RECENT: usize = 1 << 18;

/// Calls on data, and the processor time of the process outside the kernel, during waits; summed over threads.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(crate) struct Inside {
    pub(crate) wait_ns: u64,
    pub(crate) calls_ns: f64,
    /// Of the calls' time, opens and metadata.
    pub(crate) meta_ns: f64,
    pub(crate) cpu_ns: u64,
}

/// The same after the first wait of each epoch, when there was something to overlap.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(crate) struct Steady {
    pub(crate) n_calls: u64,
    pub(crate) wait_ns: u64,
    pub(crate) span_ns: u64,
    /// Time of calls during waits and during computation.
    pub(crate) waiting_ns: f64,
    pub(crate) computing_ns: f64,
}

impl Inside {
    pub(crate) fn plus(&mut self, other: &Self) {
        self.wait_ns += other.wait_ns;
        self.calls_ns += other.calls_ns;
        self.meta_ns += other.meta_ns;
        self.cpu_ns += other.cpu_ns;
    }
}

impl Steady {
    pub(crate) fn plus(&mut self, other: &Self) {
        self.n_calls += other.n_calls;
        self.wait_ns += other.wait_ns;
        self.span_ns += other.span_ns;
        self.waiting_ns += other.waiting_ns;
        self.computing_ns += other.computing_ns;
    }
}

/// Calls that lie together, which may overlap.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Calls {
    start_ns: u64,
    end_ns: u64,
    n: u64,
    sum_ns: u64,
    meta_ns: u64,
}

impl Calls {
    /// The share of them that lies in a time.
    fn share_in(&self, (from, to): (u64, u64)) -> f64 {
        let common = self.end_ns.min(to).saturating_sub(self.start_ns.max(from));
        common as f64 / self.end_ns.saturating_sub(self.start_ns).max(1) as f64
    }
}

/// The account of a process.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Overlap {
    /// Since the last wait ended.
    recent: Vec<Calls>,
    /// The last wait, and whether it was the first of an epoch.
    last: Option<((u64, u64), bool)>,
    has_begun: bool,
    /// Whether there is a loop: other processes need no account.
    is_loop: bool,
    pub(crate) inside: Inside,
    pub(crate) steady: Steady,
}

impl Overlap {
    pub(crate) fn call(&mut self, event: &Event, is_meta: bool) {
        if !self.is_loop {
            return;
        }
        let sum_ns = event.duration_ns;
        let meta_ns = if is_meta { sum_ns } else { 0 };
        let new = Calls { start_ns: event.start_ns, end_ns: event.end_ns(), n: 1, sum_ns, meta_ns };
        if let Some((wait, is_first)) = self.last.filter(|((_, end), _)| new.start_ns < *end) {
            self.add(&new, new.share_in(wait), is_first);
        }
        let is_short = sum_ns < GRAIN_NS;
        if let Some(last) = self.recent.last_mut()
            && is_short
            && new.start_ns >= last.start_ns
            && new.end_ns < last.start_ns + GRAIN_NS
        {
            last.end_ns = last.end_ns.max(new.end_ns);
            last.n += 1;
            last.sum_ns += sum_ns;
            last.meta_ns += meta_ns;
            return;
        }
        if self.recent.len() >= MAX_RECENT {
            self.recent.drain(..MAX_RECENT / 2);
        }
        self.recent.push(new);
    }

    fn add(&mut self, calls: &Calls, share: f64, is_first: bool) {
        self.inside.calls_ns += calls.sum_ns as f64 * share;
        self.inside.meta_ns += calls.meta_ns as f64 * share;
        if !is_first {
            self.steady.waiting_ns += calls.sum_ns as f64 * share;
        }
    }

    pub(crate) fn epoch(&mut self) {
        self.has_begun = false;
        self.is_loop = true;
    }

    /// A wait that ended, with the processor time that the whole process used outside the kernel meanwhile.
    pub(crate) fn wait(&mut self, event: &Event) {
        self.is_loop = true;
        let wait = (event.start_ns, event.end_ns());
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        self.inside.wait_ns += event.duration_ns;
        self.inside.cpu_ns += event.arg;
        for calls in std::mem::take(&mut self.recent) {
            let share = calls.share_in(wait);
            self.add(&calls, share, is_first);
            if !is_first {
                // What was already charged to the wait before is neither in this one nor in the computation between them.
                let earlier = self.last.map_or(0.0, |(last, _)| calls.share_in(last));
                self.steady.computing_ns += calls.sum_ns as f64 * (1.0 - share - earlier).max(0.0);
                self.steady.n_calls += calls.n;
            }
        }
        if let Some(((_, before), _)) = self.last.filter(|_| !is_first) {
            self.steady.wait_ns += event.duration_ns;
            self.steady.span_ns += wait.1.saturating_sub(before);
        }
        self.last = Some((wait, is_first));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn event(start: u64, end: u64, arg: u64) -> Event {
        Event { start_ns: start * MS, duration_ns: (end - start) * MS, arg, ..Event::default() }
    }

    #[test]
    fn calls_are_charged_to_the_waits_they_lie_in() {
        let mut overlap = Overlap::default();
        overlap.epoch();
        overlap.call(&event(0, 30, 0), false);
        overlap.wait(&event(10, 40, 7));
        assert_eq!(
            (overlap.inside.calls_ns, overlap.inside.cpu_ns),
            (20.0 * MS as f64, 7),
            "cut at the beginning of the wait"
        );
        assert_eq!(overlap.steady, Steady::default(), "nothing could overlap with the first wait");
        // One while it computes, one that is half in the next wait, and metadata in it.
        overlap.call(&event(50, 60, 0), false);
        overlap.call(&event(60, 80, 0), false);
        overlap.call(&event(80, 85, 0), true);
        overlap.wait(&event(70, 90, 0));
        assert_eq!(overlap.inside.calls_ns, 35.0 * MS as f64);
        assert_eq!(overlap.inside.meta_ns, 5.0 * MS as f64);
        let steady = overlap.steady;
        assert_eq!((steady.n_calls, steady.wait_ns, steady.span_ns), (3, 20 * MS, 50 * MS));
        assert_eq!((steady.waiting_ns, steady.computing_ns), (15.0 * MS as f64, 20.0 * MS as f64));
        // A call that ends after the wait it began in.
        overlap.call(&event(85, 100, 0), false);
        assert_eq!(overlap.steady.waiting_ns, 20.0 * MS as f64);
        overlap.wait(&event(110, 120, 0));
        assert_eq!(
            (overlap.steady.waiting_ns, overlap.steady.computing_ns.round()),
            (20.0 * MS as f64, 30.0 * MS as f64)
        );
    }

    #[test]
    fn short_calls_are_kept_together_and_lose_no_time() {
        let mut overlap = Overlap::default();
        overlap.epoch();
        for i in 0..10_000 {
            overlap.call(&Event { start_ns: i * 1_000, duration_ns: 500, ..Event::default() }, false);
        }
        assert!(overlap.recent.len() < 100, "{}", overlap.recent.len());
        overlap.wait(&event(0, 20, 0));
        assert!((overlap.inside.calls_ns - 5.0 * MS as f64).abs() < 1.0, "{}", overlap.inside.calls_ns);
    }
}
