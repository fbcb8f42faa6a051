//! When to ask a second time for what is slow to come.
//!
//! Of many requests, a few take far longer than the others, and an epoch waits for the slowest of each batch. A request
//! that has no answer after the time within which nearly all others had theirs is therefore sent once more, and the
//! first answer counts. At most one of twenty is: a store that is slow for all requests is not sent twice as many.

use std::sync::Mutex;
use std::time::Duration;

/// Recent times, from which the quantile is taken.
const RECENT: usize = 512;
/// As many times must be known before a request is called slow.
const LEAST: usize = 64;
/// The quantile is taken anew after so many more.
const REFRESH: usize = 32;
const QUANTILE: f64 = 0.95;
/// Beyond the quantile, by this factor: where all requests take about as long, none is slow.
const FACTOR: u32 = 2;
/// Below this, sending again costs more than waiting.
const SHORTEST: Duration = Duration::from_millis(5);
/// One of so many requests is sent twice.
const SHARE: u64 = 20;

#[derive(Debug, Default)]
pub(super) struct Hedge(Mutex<Times>);

#[derive(Debug, Default)]
struct Times {
    recent: Vec<Duration>,
    next: usize,
    n_since: usize,
    delay: Option<Duration>,
    n_asked: u64,
    n_hedged: u64,
}

impl Hedge {
    /// After this long without an answer, a request may be sent again; `None` if it may not.
    pub(super) fn delay(&self) -> Option<Duration> {
        let mut times = self.0.lock().expect("no holder of this lock panics");
        times.n_asked += 1;
        times.delay
    }

    /// Whether one more may be sent again now.
    pub(super) fn may_hedge(&self) -> bool {
        let mut times = self.0.lock().expect("no holder of this lock panics");
        let may = (times.n_hedged + 1) * SHARE <= times.n_asked;
        times.n_hedged += u64::from(may);
        may
    }

    /// An answer began after this long.
    pub(super) fn answered(&self, after: Duration) {
        let mut times = self.0.lock().expect("no holder of this lock panics");
        let at = times.next;
        match times.recent.get_mut(at) {
            Some(oldest) => *oldest = after,
            None => times.recent.push(after),
        }
        times.next = (at + 1) % RECENT;
        times.n_since += 1;
        if times.recent.len() >= LEAST && (times.delay.is_none() || times.n_since >= REFRESH) {
            times.n_since = 0;
            let mut sorted = times.recent.clone();
            let rank = ((sorted.len() - 1) as f64 * QUANTILE) as usize;
            let (_, quantile, _) = sorted.select_nth_unstable(rank);
            times.delay = Some((*quantile * FACTOR).max(SHORTEST));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn nothing_is_slow_before_enough_is_known() {
        let hedge = Hedge::default();
        (0..LEAST - 1).for_each(|_| hedge.answered(MS(10)));
        assert_eq!(hedge.delay(), None);
        hedge.answered(MS(10));
        assert_eq!(hedge.delay(), Some(MS(20)));
    }

    #[test]
    fn the_delay_follows_the_quantile_and_not_the_slowest() {
        let hedge = Hedge::default();
        (0..600).for_each(|n| hedge.answered(if n % 50 == 0 { MS(1_000) } else { MS(30) }));
        assert_eq!(hedge.delay(), Some(MS(60)));
        (0..600).for_each(|_| hedge.answered(MS(100)));
        assert_eq!(hedge.delay(), Some(MS(200)), "what was before is forgotten");
    }

    #[test]
    fn at_most_one_of_twenty_is_sent_twice() {
        let hedge = Hedge::default();
        let n = (0..1_000).filter(|_| hedge.delay().is_none() && hedge.may_hedge()).count();
        assert_eq!(n, 50);
    }
}
