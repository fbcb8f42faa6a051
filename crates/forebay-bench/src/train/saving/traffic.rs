//! Bytes to and from the tiers over time: counters, sampled ten times per second.

use std::ops::RangeInclusive;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use forebay_checkpoint::Counters;
use forebay_measure::reads::{EVERY, gather};
use forebay_record::TierTraffic;

use super::Saver;

#[derive(Clone)]
pub(super) struct TierCount {
    pub(super) name: String,
    pub(super) counters: Counters,
}

/// Maximum number of bytes that a drain has in flight, which a counter of completed bytes lacks.
const IN_FLIGHT: u64 = 32 << 20;

impl Saver {
    pub(super) fn read_bytes(&self) -> u64 {
        self.counts.iter().map(|tier| tier.counters.read_bytes()).sum()
    }

    /// Lower and upper bound of the bytes that the tiers have read from devices since the run started. Direct reads
    /// from a file system on a block device come from there; for other file systems it is unknown.
    pub(in super::super) fn read_from_devices(&self) -> RangeInclusive<u64> {
        let read = self.read_bytes() - self.read_before;
        let on_devices = self.places.nearest_first().all(|place| is_on_device(&place.dir));
        let under_way = if self.ledger.n_open() > 0 { IN_FLIGHT } else { 0 };
        if on_devices { read..=read + under_way } else { 0..=read + under_way }
    }
}

/// False for file systems in memory and on a network.
fn is_on_device(dir: &Path) -> bool {
    dir.metadata().is_ok_and(|found| libc::major(found.dev()) != 0)
}

/// Bytes written and read so far.
type Seen = Vec<[u64; 2]>;

pub(super) struct Traffic {
    names: Vec<String>,
    stop: Sender<()>,
    thread: JoinHandle<Vec<Seen>>,
}

impl Traffic {
    /// `gone`: time since the run's start, during which the tiers moved nothing.
    pub(super) fn start(counts: &[TierCount], gone: Duration) -> std::io::Result<Self> {
        let names = counts.iter().map(|count| count.name.clone()).collect();
        let counts = counts.to_vec();
        let (stop, stopped) = mpsc::channel();
        let look = move || -> Seen {
            counts.iter().map(|tier| [tier.counters.written_bytes(), tier.counters.read_bytes()]).collect()
        };
        let now = Instant::now();
        let (start, first) = (now.checked_sub(gone).unwrap_or(now), look());
        let thread = std::thread::Builder::new().name("forebay:traffic".to_owned()).spawn(move || {
            let mut seen = vec![first];
            loop {
                // Deadlines are absolute: a late sample does not delay later ones.
                let due = EVERY * seen.len() as u32;
                let is_over =
                    stopped.recv_timeout(due.saturating_sub(start.elapsed())) != Err(RecvTimeoutError::Timeout);
                seen.push(look());
                if is_over {
                    return seen;
                }
            }
        })?;
        Ok(Self { names, stop, thread })
    }

    /// Megabytes over time, per tier.
    pub(super) fn finish(self) -> Vec<TierTraffic> {
        // A thread that has ended does not receive this; its samples are complete.
        let _ = self.stop.send(());
        let seen = self.thread.join().unwrap_or_default();
        self.names.into_iter().enumerate().map(|(tier, name)| traffic(name, tier, &seen)).collect()
    }
}

fn traffic(tier: String, at: usize, seen: &[Seen]) -> TierTraffic {
    let since = |way: usize| {
        let before = seen.first().map_or(0, |counts| counts[at][way]);
        gather(&seen.iter().skip(1).map(|counts| counts[at][way] - before).collect::<Vec<u64>>())
    };
    let (written, read) = (since(0), since(1));
    TierTraffic { tier, every_s: written.every_s, written_mb: written.mb, read_mb: read.mb }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passed_before_the_run_is_not_counted() {
        let seen = [vec![[5_000_000, 1_000_000]], vec![[6_000_000, 1_000_000]], vec![[6_000_000, 4_000_000]]];
        let traffic = traffic("ssd".to_owned(), 0, &seen);
        assert_eq!((traffic.tier.as_str(), traffic.every_s), ("ssd", 0.1));
        assert_eq!((traffic.written_mb, traffic.read_mb), (vec![1.0, 0.0], vec![0.0, 3.0]));
    }
}
