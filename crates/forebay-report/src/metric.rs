//! How the values of a quantity are written, by what its experiment declares of it.

use forebay_record::{Better, MetricInfo, Unit, metric_info};

use crate::number::{brief_seconds, bytes, given, microseconds, percent, quantity, seconds, tick, times};

fn unit_of(name: &str) -> Option<Unit> {
    metric_info(name).map(|info| info.unit)
}

/// What to call a quantity after a number, known or not.
pub(crate) fn unit(name: &str) -> String {
    unit_of(name).map_or(name.to_owned(), Unit::symbol)
}

pub(crate) fn axis(name: &str) -> String {
    metric_info(name).map_or(name.to_owned(), MetricInfo::axis)
}

pub(crate) fn name(name: &str) -> String {
    metric_info(name).map_or(name.to_owned(), MetricInfo::heading)
}

/// Whether it is a share of something, shown in percent.
pub(crate) fn is_share(name: &str) -> bool {
    unit_of(name) == Some(Unit::Share)
}

/// Whether less of it is better: times and costs.
pub(crate) fn is_cost(name: &str) -> bool {
    metric_info(name).is_some_and(|info| info.better == Better::Lower)
}

pub(crate) fn axis_tick(name: &str) -> fn(f64) -> String {
    if is_share(name) { |share| percent(share).replace(".0 %", " %") } else { tick }
}

pub(crate) fn show(name: &str) -> fn(f64) -> String {
    match unit_of(name) {
        Some(Unit::Share) => percent,
        Some(Unit::Times) => times,
        _ => quantity,
    }
}

/// Its heading in a table of many quantities, where times and sizes have their units.
pub(crate) fn table_heading(info: &MetricInfo) -> String {
    match info.unit {
        Unit::Seconds | Unit::Microseconds => info.label.to_owned(),
        _ => info.heading(),
    }
}

/// A value of it in a table of many quantities, where times and sizes have their units.
pub(crate) fn show_in_table(info: &MetricInfo) -> fn(f64) -> String {
    match info.unit {
        Unit::Seconds if info.is_signed => cost,
        Unit::Seconds => |value| if value < 120.0 { brief_seconds(value) } else { seconds(value) },
        Unit::Microseconds => microseconds,
        // With a decimal, so that the parts of a whole line up.
        Unit::Share => |share| format!("{:.1} %", share * 100.0),
        Unit::Times => times,
        Unit::Bytes => |value| bytes(value.round() as u64),
        Unit::Count(_) => |value| forebay_units::group_digits(value as u64),
        Unit::Named(_) => |value| format!("{value:.3}"),
        Unit::Rate(_) => quantity,
    }
}

/// A value with its unit and what it is of: "115 images/s", "wall clock 4.2 s", "12 samples".
pub(crate) fn named(info: &MetricInfo, value: f64) -> String {
    let (text, unit) = (show_in_table(info)(value), info.unit.symbol());
    match info.unit {
        Unit::Rate(_) | Unit::Named(_) if unit == info.label => format!("{text} {unit}"),
        Unit::Rate(_) | Unit::Named(_) => format!("{} {text} {unit}", info.label),
        Unit::Count(_) if info.label == unit => format!("{text} {unit}"),
        _ => format!("{} {text}", info.label),
    }
}

/// A difference of two times: below a millisecond it is nothing.
fn cost(seconds: f64) -> String {
    match seconds.abs() {
        ..0.0005 => "0.000 s".to_owned(),
        size @ ..0.9995 => format!("{}{size:.3} s", if seconds < 0.0 { "−" } else { "" }),
        _ => format!("{} s", quantity(seconds)),
    }
}

/// A published value of it, with the digits it was published with.
pub(crate) fn published(name: &str, value: f64) -> String {
    match unit_of(name) {
        Some(Unit::Share) => format!("{} %", given((value * 1e4).round() / 1e2)),
        Some(Unit::Times) => format!("{}×", given(value)),
        _ => given(value),
    }
}

/// A value of it with its unit: "262 images/s", "83 %", "2.28×".
pub(crate) fn with_unit(name: &str, value: f64) -> String {
    let text = show(name)(value);
    match unit_of(name) {
        Some(Unit::Share | Unit::Times) => text,
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
