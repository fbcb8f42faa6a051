//! Which change would help a workload most, with an upper bound of its effect.
//!
//! It acts on the largest cause. Waits for the first batch of an epoch count too: nothing can hide them, but making batches faster shortens
//! them. What prefetch would hide is known; for the other causes it is a bound.

use forebay_record::{Lever, WorkloadTotals};
use forebay_workload::Workload;

use forebay_measure::stall::Causes;

/// Below this fraction of the time there is no lever.
const WORTH: f64 = 0.01;

/// Times are those of the mean accelerator.
pub(super) fn lever(workload: &Workload, totals: &WorkloadTotals, stalls: &Causes, n_cores: u64) -> Lever {
    let n = totals.accelerators.max(1) as f64;
    let wall_s = totals.accelerator_s / n;
    let candidates = candidates(workload, totals, stalls, n_cores);
    let largest = candidates.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
    match largest {
        Some((name, seconds, advice, is_bound)) if seconds / n >= WORTH * wall_s && seconds > 0.0 => {
            let saves_s = (seconds / n).min(wall_s);
            Lever { name: name.to_owned(), advice, saves_s, wall_s: wall_s - saves_s, is_bound, ..Lever::default() }
        }
        _ => Lever {
            name: "none".to_owned(),
            advice: "the accelerators are the bottleneck".to_owned(),
            wall_s,
            ..Lever::default()
        },
    }
}

type Candidate = (&'static str, f64, String, bool);

fn candidates(workload: &Workload, totals: &WorkloadTotals, stalls: &Causes, n_cores: u64) -> [Candidate; 10] {
    let reader = &workload.reader;
    let format = workload.dataset.format.name();
    [
        (
            "prefetch",
            stalls.prefetch,
            "reader.prefetch_size=1: make the next batch while this one is computed".to_owned(),
            false,
        ),
        (
            "threads",
            stalls.threads,
            format!("reader.read_threads={}: use all cores", n_cores.max(reader.read_threads + 1)),
            true,
        ),
        (
            "order",
            stalls.order,
            format!(
                "reader.prefetch_size={}: more batches ahead, so a slow sample delays fewer others",
                2 * reader.prefetch_size.max(1)
            ),
            true,
        ),
        ("storage", stalls.storage, "faster storage, or larger files read in larger pieces".to_owned(), true),
        (
            "decode",
            stalls.decode,
            format!("more or faster cores, fewer accelerators on this host, or a format that costs less than {format}"),
            true,
        ),
        (
            "cores",
            stalls.cores,
            "readers waited for a core: use more cores, fewer accelerators on this host, or no other programs"
                .to_owned(),
            true,
        ),
        (
            "preprocess",
            stalls.preprocess,
            "reader.preprocess_time: the workload's own work on a sample; more read_threads share it".to_owned(),
            true,
        ),
        (
            "checkpoint",
            totals.checkpoint_s,
            "fewer checkpoints, or faster storage for them: all accelerators stand still meanwhile".to_owned(),
            true,
        ),
        (
            "barrier",
            totals.barrier_s,
            "accelerators wait for the slowest of them at every step: look for the rank that waits longest for data"
                .to_owned(),
            true,
        ),
        (
            "start",
            stalls.other,
            "no reader had started yet: use longer epochs, or fewer accelerators and read_threads per process"
                .to_owned(),
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
        let stalls = Causes { order: 6.0, ..Causes::default() };
        let queue = super::lever(&Workload::default(), &totals(100.0), &stalls, 2);
        assert!(queue.advice.starts_with("reader.prefetch_size=4:"), "{queue:?}");
        let stalls = Causes { other: 90.0, ..Causes::default() };
        assert_eq!(super::lever(&Workload::default(), &totals(100.0), &stalls, 2).name, "start");
    }

    #[test]
    fn where_nothing_waits_the_accelerators_are_the_limit() {
        let lever = lever(&Workload::default(), &totals(1_000.0), &Causes::default(), 2);
        assert_eq!((lever.name.as_str(), lever.saves_s, lever.wall_s), ("none", 0.0, 500.0));
    }
}
