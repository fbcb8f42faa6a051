//! What the quantities of a cell are called, and how they are written.

use crate::number::{given, percent, quantity, tick, times};

/// A quantity's words.
#[derive(Debug, Clone, Copy)]
struct Words {
    /// After a number: "images/s".
    unit: &'static str,
    /// In a table: "sequential read, MB/s".
    name: &'static str,
    /// Along an axis: "Images per second".
    axis: &'static str,
}

/// Every quantity with its unit, its name and its axis; see [`StudyCell::metric`](forebay_record::StudyCell::metric).
const METRICS: &[(&str, &str, &str, &str)] = &[
    ("images_per_s", "images/s", "images/s", "Images per second"),
    ("mb_per_s", "MB/s", "MB/s", "MB per second"),
    ("iops", "requests/s", "requests/s", "Requests per second"),
    ("cpu_s_per_1000", "CPU s per 1,000 images", "CPU s per 1,000 images", "CPU seconds per 1,000 images"),
    ("wait_s", "s", "wait, s", "Consumer's wait in seconds"),
    ("wall_s", "s", "wall clock, s", "Wall clock in seconds"),
    ("efficiency", "of ceiling", "of ceiling", "Share of the ceiling in %"),
    ("speed_up", "speed-up", "speed-up", "Speed-up"),
    ("read_mb_per_s", "MB/s", "sequential read, MB/s", "Sequential read in MB per second"),
    ("write_mb_per_s", "MB/s", "sequential write, MB/s", "Sequential write in MB per second"),
    ("random_mb_per_s", "MB/s", "random read, MB/s", "Random read in MB per second"),
    ("random_iops", "requests/s", "random reads/s", "Random reads per second"),
    ("files_per_s", "files/s", "files/s", "Files per second"),
    ("compute_s", "s", "compute, s", "Computing in seconds"),
    ("copy_s", "s", "copy, s", "Copying to the device in seconds"),
    ("wait_share", "waiting", "wait after the first batch", "Wait after the first batch in % of the time"),
    ("au_epoch", "AU", "AU, whole epoch", "Accelerator utilisation, whole epoch, in %"),
    ("au_steady", "AU", "AU, steady state", "Accelerator utilisation, steady state, in %"),
    ("au_dlio", "AU", "AU, as DLIO counts", "Accelerator utilisation as DLIO counts in %"),
    ("overlap", "overlapped", "overlap", "Share of the pipeline's work that was hidden in %"),
    ("io_cost_s", "s", "cost of I/O, s", "Cost of I/O in seconds"),
    ("checkpoint_s", "s", "checkpoints, s", "Standing still for checkpoints in seconds"),
    ("stall_s", "s", "stall of a checkpoint, s", "Standing still for a checkpoint in seconds"),
    ("drain_after_s", "s", "draining after the end, s", "Draining after the last step in seconds"),
    ("durable_fast_s", "s", "durable on the first tier, s", "Until durable on the first tier in seconds"),
    ("durable_slow_s", "s", "durable on the last tier, s", "Until durable on the last tier in seconds"),
    ("restore_s", "s", "restore, s", "Restoring in seconds"),
    ("save_mb_per_s", "MB/s", "durable save, MB/s", "MB per second until durable on the first tier"),
    ("restore_mb_per_s", "MB/s", "restore, MB/s", "MB per second of a restore"),
    ("restore_efficiency", "of read ceiling", "restore, of ceiling", "Restore in % of the ceiling"),
    ("samples_per_s", "samples/s", "samples/s", "Samples per second"),
    ("mb_per_s_moved", "MB/s", "MB/s moved", "MB per second moved"),
    ("mb_per_s_device", "MB/s", "MB/s from the device", "MB per second from the device"),
    ("first_batch_s", "s", "first batch of an epoch, s", "First batch of an epoch in seconds"),
    ("barrier_s", "s", "barriers, s", "Waiting at the steps' barriers in seconds"),
    ("dlio_mib_per_s", "MiB/s", "MiB/s, as DLIO counts", "MiB per second as DLIO counts"),
    ("dlio_samples_per_s", "samples/s", "samples/s, as DLIO counts", "Samples per second as DLIO counts"),
    ("checkpoint_max_s", "s", "checkpoint, slowest rank, s", "A checkpoint of the slowest rank in seconds"),
    (crate::stall::METRIC, "shorter stall", "stall, times shorter than direct", "Stall, times shorter than direct"),
    (
        crate::need::METRIC,
        "MB/s",
        "disk for 8 accelerators, MB/s",
        "Disk throughput for 8 accelerators in MB per second",
    ),
];

fn words(name: &str) -> Option<Words> {
    let (_, unit, name, axis) = METRICS.iter().find(|(known, ..)| *known == name)?;
    Some(Words { unit, name, axis })
}

/// What to call a quantity after a number, known or not.
pub(crate) fn unit(name: &str) -> &str {
    words(name).map_or(name, |words| words.unit)
}

/// What to call it along an axis.
pub(crate) fn axis(name: &str) -> &str {
    words(name).map_or(name, |words| words.axis)
}

/// What to call it in a table.
pub(crate) fn name(name: &str) -> &str {
    words(name).map_or(name, |words| words.name)
}

/// Whether it is a share of something, shown in percent.
pub(crate) fn is_share(name: &str) -> bool {
    matches!(name, "efficiency" | "restore_efficiency" | "wait_share" | "overlap") || name.starts_with("au_")
}

/// Its unit in a table for programs, and what a value of it is multiplied by there: shares are in percent, as a workload's record
/// and the page have them.
pub(crate) fn exported(name: &str) -> (&str, f64) {
    match name {
        _ if is_share(name) => ("%", 100.0),
        "n_samples" => ("samples", 1.0),
        _ if name.ends_with("_bytes") => ("bytes", 1.0),
        _ => (unit(name), 1.0),
    }
}

/// Whether less of it is better: times and costs.
pub(crate) fn is_cost(name: &str) -> bool {
    let is_time = name.ends_with("_s") && !name.ends_with("_per_s");
    is_time || matches!(name, "wait_share" | "cpu_s_per_1000")
}

/// A tick of its axis.
pub(crate) fn axis_tick(name: &str) -> fn(f64) -> String {
    if is_share(name) { |share| percent(share).replace(".0 %", " %") } else { tick }
}

/// A value of it, without its unit.
pub(crate) fn show(name: &str) -> fn(f64) -> String {
    match name {
        _ if is_share(name) => percent,
        "speed_up" | crate::stall::METRIC => times,
        _ => quantity,
    }
}

/// A published value of it, with the digits it was published with.
pub(crate) fn published(name: &str, value: f64) -> String {
    match name {
        _ if name.starts_with("au_") => format!("{} %", given((value * 1e4).round() / 1e2)),
        _ if is_share(name) => percent(value),
        "speed_up" | crate::stall::METRIC => format!("{}×", given(value)),
        _ => given(value),
    }
}

/// A value of it with its unit: "262 images/s", "83 %", "2.28×".
pub(crate) fn with_unit(name: &str, value: f64) -> String {
    let text = show(name)(value);
    match name {
        "speed_up" | crate::stall::METRIC => text,
        _ if is_share(name) => text,
        _ => format!("{text} {}", unit(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_costs_and_rates_are_not() {
        let costs =
            ["wall_s", "wait_share", "io_cost_s", "images_per_s", "mb_per_s", "au_epoch", "need_mb_per_s"].map(is_cost);
        assert_eq!(costs, [true, true, true, false, false, false, false]);
        assert_eq!(with_unit("au_epoch", 0.83), "83 %");
        assert_eq!(with_unit("wall_s", 48.2), "48.2 s");
    }
}
