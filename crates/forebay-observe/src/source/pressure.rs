//! `/proc/pressure/*`: how long tasks were stalled for lack of a resource.

use crate::sheet::Sheet;
use crate::source::{growth, ratio};

/// Stall time since boot, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pressure {
    pub some_us: Option<u64>,
    /// All non-idle tasks were stalled at once. Reported for the CPU since Linux 5.13.
    pub full_us: Option<u64>,
}

/// Reads one of the files; `None` if both lines are missing.
pub fn parse(text: &str) -> Option<Pressure> {
    let total = |kind: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(kind))?;
        line.split_ascii_whitespace().find_map(|word| word.strip_prefix("total="))?.parse().ok()
    };
    let pressure = Pressure { some_us: total("some "), full_us: total("full ") };
    (pressure != Pressure::default()).then_some(pressure)
}

pub(crate) fn put(sheet: &mut Sheet, subject: &str, before: &Pressure, after: &Pressure, span_s: f64) {
    let share =
        |before: Option<u64>, after: Option<u64>| ratio(growth(before?, after?).map(|us| us * 1e-4), Some(span_s));
    sheet.put(subject, "some_percent", share(before.some_us, after.some_us));
    sheet.put(subject, "full_percent", share(before.full_us, after.full_us));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_that_of_the_interval_and_not_an_average_of_the_kernel() {
        let before =
            parse("some avg10=9.00 avg60=1.00 avg300=1.25 total=1000000\nfull avg10=0.00 total=500\n").unwrap();
        let after = parse("some avg10=0.00 avg60=0.00 avg300=0.00 total=1250000\nfull avg10=0.00 total=500\n").unwrap();
        let mut sheet = Sheet::default();
        put(&mut sheet, "psi.io", &before, &after, 0.5);
        assert_eq!(sheet.values(), [Some(50.0), Some(0.0)]);
        assert_eq!(sheet.names(), ["psi.io.some_percent", "psi.io.full_percent"]);
    }

    #[test]
    fn processors_had_no_full_line_once() {
        let cpu = parse("some avg10=0.00 avg60=0.00 avg300=0.00 total=7\n").unwrap();
        assert_eq!(cpu, Pressure { some_us: Some(7), full_us: None });
        assert_eq!(parse(""), None);
    }
}
