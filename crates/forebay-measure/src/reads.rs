//! Bytes read over time: a counter, sampled ten times per second.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use forebay_record::Reads;

pub const EVERY: Duration = Duration::from_millis(100);
/// Above this many samples, ten are merged into one. It allows a minute at full resolution.
const MOST: usize = 600;

pub struct Watcher {
    stop: Sender<()>,
    thread: JoinHandle<Vec<u64>>,
}

impl Watcher {
    /// # Errors
    /// If the system cannot start the thread.
    pub fn start(bytes_read: impl Fn() -> u64 + Send + 'static) -> std::io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let start = Instant::now();
        let thread = std::thread::Builder::new().name("forebay:reads".to_owned()).spawn(move || {
            let mut seen = Vec::new();
            loop {
                // Deadlines are absolute: a late sample does not delay later ones.
                let due = EVERY * (seen.len() as u32 + 1);
                match stopped.recv_timeout(due.saturating_sub(start.elapsed())) {
                    Err(RecvTimeoutError::Timeout) => seen.push(bytes_read()),
                    _ => {
                        seen.push(bytes_read());
                        return seen;
                    }
                }
            }
        })?;
        Ok(Self { stop, thread })
    }

    pub fn finish(self) -> Reads {
        // A thread that has ended does not receive this; its samples are complete.
        let _ = self.stop.send(());
        gather(&self.thread.join().unwrap_or_default())
    }
}

/// Converts running totals to megabytes per interval.
pub fn gather(counts: &[u64]) -> Reads {
    let before = std::iter::once(0).chain(counts.iter().copied());
    let mut mb: Vec<f64> = counts.iter().zip(before).map(|(now, before)| (now - before) as f64 / 1e6).collect();
    let mut every_s = EVERY.as_secs_f64();
    while mb.len() > MOST {
        mb = mb.chunks(10).map(|ten| ten.iter().sum()).collect();
        every_s *= 10.0;
    }
    Reads { every_s, mb }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_become_rates_and_long_ones_are_put_together() {
        let reads = gather(&[2_000_000, 2_000_000, 5_000_000]);
        assert_eq!((reads.every_s, reads.mb), (0.1, vec![2.0, 0.0, 3.0]));
        let long: Vec<u64> = (1..=7_000).map(|n| n * 1_000_000).collect();
        let reads = gather(&long);
        assert_eq!((reads.every_s, reads.mb.len(), reads.mb[5]), (10.0, 70, 100.0));
        assert_eq!(gather(&[]).mb, Vec::<f64>::new());
    }
}
