//! The totals of a record, from the sums.

use std::collections::HashSet;

use forebay_interpose::layout::Class;
use forebay_record::TraceTotals;

use crate::event::Op;
use crate::tally::Tally;

impl Tally {
    /// The totals of a record, with dropped events.
    pub fn totals(&self) -> TraceTotals {
        let mut totals = TraceTotals { bytes_mapped: self.bytes_mapped, ..TraceTotals::default() };
        for (op, calls) in &self.calls {
            totals.add(*op, calls.n, calls.n - calls.errors, calls.bytes);
        }
        for process in &self.processes {
            totals.lost_events += process.counts.n_dropped;
            process.counts.dropped.iter().for_each(|(op, calls, bytes)| totals.add(*op, *calls, *calls, *bytes));
        }
        totals.lost_events += self.n_torn;
        let pids: HashSet<u32> = self.processes.iter().map(|process| process.note.pid).collect();
        totals.processes = pids.len() as u64;
        let marked = || self.processes.iter().map(|process| &process.marks);
        let (steps, waits): (u64, u64) = (marked().map(|m| m.steps).sum(), marked().map(|m| m.waits).sum());
        totals.steps = Some(if steps > 0 { steps } else { waits }).filter(|n| *n > 0);
        let loops: Vec<_> = marked().filter(|marks| marks.wait_ns > 0).collect();
        if !loops.is_empty() {
            let ns = |of: u64| of as f64 / 1e9;
            totals.wait_s = Some(loops.iter().map(|marks| ns(marks.wait_ns)).sum());
            totals.loop_s = Some(loops.iter().filter_map(|marks| marks.span).map(|(from, to)| ns(to - from)).sum());
        }
        totals
    }
}

/// Adds calls of a kind to the totals.
trait Add {
    fn add(&mut self, op: Op, calls: u64, successful: u64, bytes: u64);
}

impl Add for TraceTotals {
    fn add(&mut self, op: Op, calls: u64, successful: u64, bytes: u64) {
        match op.class() {
            Some(Class::Read) => {
                self.reads += calls;
                self.bytes_read += bytes;
            }
            Some(Class::Write) => {
                self.writes += calls;
                self.bytes_written += bytes;
            }
            Some(Class::Open) => self.opens += successful,
            Some(Class::Sync) => self.fsyncs += calls,
            Some(Class::Meta) => self.meta_calls += calls,
            _ => {}
        }
    }
}
