//! What went to and from the tiers over time: their counts, looked at ten times a second.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Instant;

use forebay_checkpoint::Counters;
use forebay_record::TierTraffic;

use super::super::reads::{EVERY, gather};

/// What passes a tier.
#[derive(Clone)]
pub(super) struct TierCount {
    pub(super) name: String,
    pub(super) counters: Counters,
}

/// Bytes written and read so far.
type Seen = Vec<[u64; 2]>;

/// A thread that looks at counts.
pub(super) struct Traffic {
    names: Vec<String>,
    stop: Sender<()>,
    thread: JoinHandle<Vec<Seen>>,
}

impl Traffic {
    pub(super) fn start(counts: &[TierCount]) -> std::io::Result<Self> {
        let names = counts.iter().map(|count| count.name.clone()).collect();
        let counts = counts.to_vec();
        let (stop, stopped) = mpsc::channel();
        let look = move || -> Seen {
            counts.iter().map(|tier| [tier.counters.written_bytes(), tier.counters.read_bytes()]).collect()
        };
        let (start, first) = (Instant::now(), look());
        let thread = std::thread::Builder::new().name("forebay:traffic".to_owned()).spawn(move || {
            let mut seen = vec![first];
            loop {
                // Deadlines are absolute: a late look does not move those that follow.
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

    /// Ends the thread: megabytes by time, for each tier.
    pub(super) fn finish(self) -> Vec<TierTraffic> {
        // A thread that has ended cannot be told to; its count is then what it has.
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
