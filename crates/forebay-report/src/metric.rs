//! What the quantities of a cell are called, and how they are written.

use crate::number::{given, percent, quantity, times};

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

/// A value of it, without its unit.
pub(crate) fn show(name: &str) -> fn(f64) -> String {
    match name {
        "efficiency" => percent,
        "speed_up" => times,
        _ => quantity,
    }
}

/// A published value of it, with the digits it was published with.
pub(crate) fn published(name: &str, value: f64) -> String {
    match name {
        "efficiency" => percent(value),
        "speed_up" => format!("{}×", given(value)),
        _ => given(value),
    }
}

/// A value of it with its unit: "262 images/s", "83 %", "2.28×".
pub(crate) fn with_unit(name: &str, value: f64) -> String {
    let text = show(name)(value);
    match name {
        "efficiency" | "speed_up" => text,
        _ => format!("{text} {}", unit(name)),
    }
}
