//! Which change would help a workload most, with an upper bound of its effect.
//!
//! It acts on the largest cause, its runner-up on the next. Waits for the first batch of an epoch count too: nothing can hide
//! them, but making batches faster shortens them. What prefetch would hide is known; for the other causes it is a bound.

use forebay_record::{Change, Level, Lever, WorkloadTotals};
use forebay_workload::Workload;

use forebay_measure::stall::Causes;

/// Below this fraction of the time there is no lever.
const WORTH: f64 = 0.01;

/// Times are those of the mean accelerator.
pub(super) fn lever(workload: &Workload, totals: &WorkloadTotals, stalls: &Causes, n_cores: u64) -> Lever {
    let n = totals.accelerators.max(1) as f64;
    let wall_s = totals.accelerator_s / n;
    let mut candidates = candidates(workload, totals, stalls, n_cores).to_vec();
    candidates.retain(|candidate| candidate.1 / n >= WORTH * wall_s && candidate.1 > 0.0);
    candidates.sort_by(|a, b| a.1.total_cmp(&b.1));
    let none = Lever {
        name: "none".to_owned(),
        advice: "the accelerators are the bottleneck".to_owned(),
        wall_s,
        ..Lever::default()
    };
    let chain = |next: Option<Lever>, (name, seconds, Remedy { advice, setting }, is_bound): Candidate| {
        let saves_s = (seconds / n).min(wall_s);
        let (name, wall_s) = (name.to_owned(), wall_s - saves_s);
        Some(Lever { name, advice, setting, saves_s, wall_s, error_s: None, is_bound, runner_up: next.map(Box::new) })
    };
    candidates.into_iter().fold(None, chain).unwrap_or(none)
}

/// Name of the cause, seconds, what to do, whether the seconds are a bound.
type Candidate = (&'static str, f64, Remedy, bool);

#[derive(Debug, Clone)]
struct Remedy {
    advice: String,
    setting: Option<Change>,
}

/// A key of the workload file with its new value.
fn key(key: &str, value: u64, why: &str) -> Remedy {
    let setting = Change { setting: key.to_owned(), value: Level::Integer(value as i64) };
    Remedy { advice: format!("{key}={value}: {why}"), setting: Some(setting) }
}

fn beyond_keys(advice: impl Into<String>) -> Remedy {
    Remedy { advice: advice.into(), setting: None }
}

fn candidates(workload: &Workload, totals: &WorkloadTotals, stalls: &Causes, n_cores: u64) -> [Candidate; 10] {
    let reader = &workload.reader;
    let format = workload.dataset.format.name();
    [
        (
            "prefetch",
            stalls.prefetch,
            key("reader.prefetch_size", 1, "make the next batch while this one is computed"),
            false,
        ),
        (
            "threads",
            stalls.threads,
            key("reader.read_threads", n_cores.max(reader.read_threads + 1), "use all cores"),
            true,
        ),
        (
            "order",
            stalls.order,
            key(
                "reader.prefetch_size",
                2 * reader.prefetch_size.max(1),
                "more batches ahead, so a slow sample delays fewer others",
            ),
            true,
        ),
        ("storage", stalls.storage, beyond_keys("faster storage, or larger files read in larger pieces"), true),
        (
            "decode",
            stalls.decode,
            beyond_keys(format!(
                "more or faster cores, fewer accelerators on this host, or a format that costs less than {format}"
            )),
            true,
        ),
        (
            "cores",
            stalls.cores,
            beyond_keys(
                "readers waited for a core: use more cores, fewer accelerators on this host, or no other programs",
            ),
            true,
        ),
        (
            "preprocess",
            stalls.preprocess,
            beyond_keys("reader.preprocess_time: the workload's own work on a sample; more read_threads share it"),
            true,
        ),
        (
            "checkpoint",
            totals.checkpoint_s,
            beyond_keys("fewer checkpoints, or faster storage for them: all accelerators stand still meanwhile"),
            true,
        ),
        (
            "barrier",
            totals.barrier_s,
            beyond_keys(
                "accelerators wait for the slowest of them at every step: look for the rank that waits longest for data",
            ),
            true,
        ),
        (
            "start",
            stalls.other,
            beyond_keys(
                "no reader had started yet: use longer epochs, or fewer accelerators and read_threads per process",
            ),
            true,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(accelerator_s: f64) -> WorkloadTotals {
        WorkloadTotals { accelerator_s, accelerators: 2, barrier_s: 4.0, ..WorkloadTotals::default() }
    }

    #[test]
    fn the_largest_cause_is_acted_on_and_counted_for_one_accelerator() {
        let stalls = Causes { storage: 20.0, decode: 6.0, ..Causes::default() };
        let lever = lever(&Workload::default(), &totals(100.0), &stalls, 2);
        assert_eq!((lever.name.as_str(), lever.saves_s, lever.wall_s, lever.is_bound), ("storage", 10.0, 40.0, true));
        let names = std::iter::successors(Some(&lever), |lever| lever.runner_up.as_deref()).map(|lever| &lever.name);
        assert_eq!(names.collect::<Vec<_>>(), ["storage", "decode", "barrier"], "the largest cause first");
        assert_eq!(lever.setting, None);
        let stalls = Causes { order: 6.0, ..Causes::default() };
        let queue = super::lever(&Workload::default(), &totals(100.0), &stalls, 2);
        assert!(queue.advice.starts_with("reader.prefetch_size=4:"));
        let change = queue.setting.unwrap();
        assert_eq!((change.setting.as_str(), change.value), ("reader.prefetch_size", Level::Integer(4)));
        let stalls = Causes { other: 90.0, ..Causes::default() };
        assert_eq!(super::lever(&Workload::default(), &totals(100.0), &stalls, 2).name, "start");
    }

    #[test]
    fn where_nothing_waits_the_accelerators_are_the_limit() {
        let lever = lever(&Workload::default(), &totals(1_000.0), &Causes::default(), 2);
        assert_eq!((lever.name.as_str(), lever.saves_s, lever.wall_s), ("none", 0.0, 500.0));
    }
}
