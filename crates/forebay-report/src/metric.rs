//! What the quantities of a cell are called, and how they are written.

use crate::number::{percent, quantity};

/// A quantity's words.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Words {
    /// In a table's head and after a number: "images/s".
    pub(crate) unit: &'static str,
    /// Along an axis: "Images per second".
    pub(crate) axis: &'static str,
    /// How a value is written.
    pub(crate) show: fn(f64) -> String,
}

/// Every quantity with its words; see [`StudyCell::metric`](forebay_record::StudyCell::metric).
const METRICS: &[(&str, &str, &str)] = &[
    ("images_per_s", "images/s", "Images per second"),
    ("mb_per_s", "MB/s", "MB per second"),
    ("iops", "requests/s", "Requests per second"),
    ("cpu_s_per_1000", "CPU s per 1,000 images", "CPU seconds per 1,000 images"),
    ("wait_s", "s of waiting", "Consumer's wait in seconds"),
    ("wall_s", "s", "Wall clock in seconds"),
    ("efficiency", "of ceiling", "Share of the ceiling in %"),
    ("speed_up", "speed-up", "Speed-up"),
    ("read_mb_per_s", "MB/s sequential read", "Sequential read in MB per second"),
    ("write_mb_per_s", "MB/s sequential write", "Sequential write in MB per second"),
    ("random_mb_per_s", "MB/s random read", "Random read in MB per second"),
    ("random_iops", "random reads/s", "Random reads per second"),
    ("files_per_s", "files/s", "Files per second"),
];

/// The words of a quantity; `None` for one that this version does not know.
pub(crate) fn words(name: &str) -> Option<Words> {
    let (_, unit, axis) = METRICS.iter().find(|(known, _, _)| *known == name)?;
    let show = match name {
        "efficiency" => percent,
        "speed_up" => crate::number::times,
        _ => quantity,
    };
    Some(Words { unit, axis, show })
}

/// What to call a quantity after a number, known or not.
pub(crate) fn unit(name: &str) -> &str {
    words(name).map_or(name, |words| words.unit)
}

/// What to call it along an axis.
pub(crate) fn axis(name: &str) -> &str {
    words(name).map_or(name, |words| words.axis)
}

/// A value of it, without its unit.
pub(crate) fn show(name: &str) -> fn(f64) -> String {
    words(name).map_or(quantity as fn(f64) -> String, |words| words.show)
}

/// A value of it with its unit: "262 images/s", "83 %", "2.28×".
pub(crate) fn with_unit(name: &str, value: f64) -> String {
    let text = show(name)(value);
    match name {
        "efficiency" | "speed_up" => text,
        _ => format!("{text} {}", unit(name)),
    }
}
