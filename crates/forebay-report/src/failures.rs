//! Samples that failed: how many, and the first of them with their reasons.

use forebay_record::{Failure, IngestCell, TrainCell, WorkloadCell};
use forebay_units::{count, group_digits};

use crate::number::was;
use crate::run::Run;

const NAMED: usize = 5;

fn most<'a>(run: &'a Run<'a>) -> Option<(u64, &'a [Failure])> {
    let ingest = run.cells_of::<IngestCell>().map(|(_, cell)| (cell.failed_samples, cell.failures.as_slice()));
    let train = run.cells_of::<TrainCell>().map(|(_, cell)| (cell.totals.failed, cell.failures.as_slice()));
    let workload =
        run.cells_of::<WorkloadCell>().map(|(_, cell)| (cell.failures.len() as u64, cell.failures.as_slice()));
    ingest.chain(train).chain(workload).max_by_key(|(n, _)| *n).filter(|(n, _)| *n > 0)
}

/// The samples that failed in the order in which they first did, and how often each did.
fn by_sample(failures: &[Failure]) -> Vec<(&Failure, u64)> {
    let mut samples: Vec<(&Failure, u64)> = Vec::new();
    for failure in failures {
        match samples.iter_mut().find(|(known, _)| known.name == failure.name) {
            Some((_, n)) => *n += 1,
            None => samples.push((failure, 1)),
        }
    }
    samples
}

/// How many failed; `None` when none did. One that failed in several passes counts once.
pub(crate) fn counted(run: &Run<'_>) -> Option<String> {
    let (n_failed, failures) = most(run)?;
    let n_samples = by_sample(failures).len() as u64;
    let times = count(n_failed, "time");
    Some(match (n_samples == failures.len() as u64, (failures.len() as u64) < n_failed) {
        (true, _) => {
            format!("{} failed and {} left out.", count(n_failed, "sample"), was(n_failed))
        }
        (_, true) => format!("Samples failed {times} and were left out."),
        _ if n_samples == 1 => format!("1 sample failed {times} and was left out."),
        _ => format!("{} failed, {times} in all, and were left out.", count(n_samples, "sample")),
    })
}

pub(crate) fn named(run: &Run<'_>) -> Vec<String> {
    let Some((n_failed, failures)) = most(run) else { return Vec::new() };
    let samples = by_sample(failures);
    let one = |(failure, n): &(&Failure, u64)| {
        let often = if *n > 1 { format!(" ({n} times)") } else { String::new() };
        format!("failed{often}: {}: {}", failure.name, failure.reason)
    };
    let mut lines: Vec<String> = samples.iter().take(NAMED).map(one).collect();
    // Those that the record does not name may be the same samples again.
    let unnamed = n_failed.saturating_sub(failures.len() as u64);
    let more = samples.len().saturating_sub(NAMED) as u64 + unnamed;
    lines.extend((more > 0).then(|| format!("failed: {} more; the record names up to 100", group_digits(more))));
    lines
}
