//! Where the workers' time went: a bar of 100 % a cell, storage in blue, processor in orange, waiting in grey.

use std::collections::BTreeMap;

use forebay_record::{IngestCell, StudyCell, TrainCell, WorkloadCell};

use crate::number::percent;
use crate::palette::ACTIVITIES;

use super::stack::{self, Axis, Part, Row, Stack};
use super::{Context, Drawn};

const WORKERS: Stack = Stack {
    axis: Axis::Share,
    title: "Share of the workers' time",
    unit: "% of all workers' seconds",
    order: ACTIVITIES,
    parts,
    caption,
    reading: |_| {
        "Blue is storage, orange is the processor, grey is waiting; each bar is all workers' time in the repeat nearest to \
         the median."
    },
    nothing: "No cell of this figure recorded its workers' time.",
};

pub(super) fn make(context: &Context<'_>) -> Drawn {
    stack::make(context, &WORKERS)
}

fn parts(cell: &StudyCell) -> Vec<Part<'_>> {
    let of_ingest = cell.measured_one::<IngestCell>().map(|cell| &cell.worker_time);
    let of_train = cell.measured_one::<TrainCell>().map(|cell| &cell.totals.worker_time);
    let of_workload = cell.measured_one::<WorkloadCell>().map(|cell| &cell.worker_time);
    let times: Option<&BTreeMap<String, f64>> = of_ingest.or(of_train).or(of_workload);
    let sound = |seconds: &f64| seconds.is_finite() && *seconds > 0.0;
    let times: Vec<(&str, f64)> =
        times.into_iter().flatten().filter(|(_, s)| sound(s)).map(|(key, s)| (key.as_str(), *s)).collect();
    // Without decoding, the workers' work on the bytes is to check and count them.
    let reads_only = cell.measured_one::<IngestCell>().is_some_and(|cell| cell.read_only);
    let mut parts = Vec::new();
    for (activity, word, class) in ACTIVITIES {
        let found = times.iter().find(|(key, _)| key == activity);
        let (word, class) =
            if reads_only && *activity == "decoding" { ("other work", "a-other") } else { (*word, *class) };
        parts.extend(found.map(|(key, seconds)| Part { key, word, class, seconds: *seconds }));
    }
    for (key, seconds) in times {
        if !ACTIVITIES.iter().any(|(known, _, _)| *known == key) {
            parts.push(Part { key, word: key, class: "a-other", seconds });
        }
    }
    parts
}

/// What took most of the time in most of the bars.
fn caption(rows: &[&Row<'_>]) -> String {
    let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
    for row in rows {
        for part in &row.parts {
            *sums.entry(part.word).or_default() += part.seconds / row.total / rows.len() as f64;
        }
    }
    let most = sums.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
    most.map_or(String::new(), |(word, share)| {
        format!("On average {} of the workers' time went into “{word}”.", percent(share))
    })
}
