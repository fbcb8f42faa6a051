//! Limits the number of threads that read and the number that compute at a time, as the workload says.
//!
//! A thread processes a sample from start to end, because a file may be too big to hand over. It reads only while fewer
//! than `read_threads` others do, and computes only while fewer than `computation_threads` do.

use std::sync::{Condvar, Mutex};

use forebay_pipeline::{Activity, Stopwatch};

/// Per accelerator.
pub(crate) struct Gates {
    reading: Gate,
    computing: Gate,
}

impl Gates {
    pub(crate) fn new(reading: u64, computing: u64) -> Self {
        Self { reading: Gate::new(reading), computing: Gate::new(computing) }
    }
}

struct Gate {
    free: Mutex<u64>,
    is_free: Condvar,
}

impl Gate {
    fn new(n: u64) -> Self {
        Self { free: Mutex::new(n.max(1)), is_free: Condvar::new() }
    }

    fn enter(&self, waiting: Activity, watch: &mut Stopwatch) {
        let mut free = self.free.lock().expect("no holder of this lock panics");
        while *free == 0 {
            watch.enter(waiting);
            free = self.is_free.wait(free).expect("no holder of this lock panics");
        }
        *free -= 1;
    }

    fn leave(&self) {
        *self.free.lock().expect("no holder of this lock panics") += 1;
        self.is_free.notify_one();
    }
}

/// The permit of a thread; released on drop, also by a panic.
pub(crate) struct Room<'a> {
    gates: Option<&'a Gates>,
    inside: Option<&'a Gate>,
}

impl<'a> Room<'a> {
    pub(crate) fn new(gates: Option<&'a Gates>) -> Self {
        Self { gates, inside: None }
    }

    /// Waits for a permit of the other kind if the activity needs one.
    pub(crate) fn enter(&mut self, activity: Activity, watch: &mut Stopwatch) {
        let Some(gates) = self.gates else { return };
        let (gate, waiting) = match activity {
            Activity::Opening | Activity::Reading => (&gates.reading, Activity::WaitingForBytes),
            _ => (&gates.computing, Activity::WaitingForDecoder),
        };
        if self.inside.is_some_and(|inside| std::ptr::eq(inside, gate)) {
            return;
        }
        self.leave();
        gate.enter(waiting, watch);
        self.inside = Some(gate);
    }

    fn leave(&mut self) {
        if let Some(gate) = self.inside.take() {
            gate.leave();
        }
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}
