//! The bits of coefficients that the scans read so far have sent.

use crate::Error;
use crate::frame::{Frame, Process};
use crate::marker::Scan;

/// Highest bit position at which the standard allows a scan to stop.
const MAX_SHIFT: u32 = 13;

/// Per component and coefficient, the position of the lowest bit received; `None` before the first scan.
pub(crate) struct Progress {
    received: Vec<[Option<u32>; 64]>,
}

impl Progress {
    pub(crate) fn new(frame: &Frame) -> Self {
        Progress { received: vec![[None; 64]; frame.components.len()] }
    }

    /// Checks that `scan` is allowed now, and records what it sends.
    pub(crate) fn record(&mut self, process: Process, scan: &Scan) -> Result<(), Error> {
        let (before, shift) = scan.bits;
        let (range, before, shift) = match process {
            // These fields have no meaning here, and not every encoder sets them.
            Process::Sequential => (0..=63, 0, 0),
            Process::Progressive => {
                check(scan)?;
                (scan.band.0..=scan.band.1, before, shift)
            }
        };
        for c in &scan.components {
            let received = &mut self.received[c.index];
            if *range.start() > 0 && received[0].is_none() {
                return Err(Error::corrupt(scan.offset, "a DC scan of the component", "an AC scan"));
            }
            let expected = (before > 0).then_some(before);
            if received[range.clone()].iter().any(|&r| r != expected) {
                return Err(Error::corrupt(scan.offset, "the next bits of its coefficients", "other bits"));
            }
            received[range.clone()].fill(Some(shift));
        }
        Ok(())
    }

    /// Whether every bit of every coefficient has been sent.
    pub(crate) fn is_complete(&self) -> bool {
        self.received.iter().flatten().all(|&r| r == Some(0))
    }
}

fn check(scan: &Scan) -> Result<(), Error> {
    let ((first, last), (before, shift)) = (scan.band, scan.bits);
    let is_band = if first == 0 { last == 0 } else { first <= last && last <= 63 && scan.components.len() == 1 };
    let is_next = before == 0 || before == shift + 1;
    if is_band && is_next && shift <= MAX_SHIFT {
        return Ok(());
    }
    let found = format!("coefficients {first} to {last}, bits {before} to {shift}");
    Err(Error::corrupt(scan.offset, "a progressive scan", found))
}
