//! Checks that summaries match their raw values.
//!
//! Medians, spreads, rates and totals are written beside the repeats, steps and epochs they come from, for readers without this library. If
//! one was edited, reports would show a number that the other contradicts. So every summary that can be derived again is, and one that
//! differs by more than rounding is reported with both numbers.
//!
//! Unknown values (`None`) are not wrong: an older version may not have written them.

pub(crate) mod checkpoint;
pub(crate) mod ingest;
pub(crate) mod probe;
pub(crate) mod trace;
pub(crate) mod train;
pub(crate) mod workload;

use forebay_units::Summary;

use crate::{AnyRecord, CacheEvidence, CacheState, Cell, Error, Medium, Record};

/// Relative difference that text conversion and another order of summation may cause.
const ROUNDING: f64 = 1e-6;
/// Absolute difference, in seconds, that counts as zero: a few nanoseconds.
const NOTHING: f64 = 1e-8;

/// A summary that contradicts its raw values.
#[derive(Debug, Clone, PartialEq)]
pub struct Wrong {
    pub(crate) field: String,
    pub(crate) written: String,
    pub(crate) derived: String,
    /// With a verb: "repeats give".
    pub(crate) from: &'static str,
}

/// The first summary that contradicts its raw values, if any.
pub type Checked = Result<(), Wrong>;

impl AnyRecord {
    /// Derives every summary again if its raw values are there, and compares.
    ///
    /// # Errors
    /// [`Error::Disagrees`] for the first that differs by more than rounding.
    pub fn check(&self) -> Result<(), Error> {
        match self {
            Self::Ingest(record) => cells(record),
            Self::Probe(record) => cells(record),
            Self::Train(record) => cells(record),
            Self::Checkpoint(record) => cells(record),
            Self::Workload(record) => cells(record),
            Self::Trace(record) => cells(record),
            Self::Study(run) => run.cells.iter().try_for_each(|study_cell| {
                let measured = study_cell.measured.iter().flat_map(|measured| measured.cells());
                measured.into_iter().try_for_each(|cell| cell.check()).map_err(in_cell(&study_cell.id))
            }),
        }
    }
}

fn cells<C: Cell>(record: &Record<C>) -> Result<(), Error> {
    let n = record.cells.len();
    let mut all = record.cells.iter().enumerate();
    all.try_for_each(|(i, cell)| cell.check().map_err(in_cell(&format!("{} of {n}", i + 1))))
}

fn in_cell(cell: &str) -> impl Fn(Wrong) -> Error {
    move |wrong| {
        let Wrong { field, written, derived, from } = wrong;
        let (field, written, derived) = (field.into(), written.into(), derived.into());
        Error::Disagrees { cell: cell.into(), field, written, derived, from }
    }
}

fn is_close(a: f64, b: f64) -> bool {
    is_within(a, b, a.abs().max(b.abs()))
}

/// For a difference of numbers of this size, which has their rounding error.
fn is_within(a: f64, b: f64, size: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= ROUNDING * size + NOTHING
}

pub(crate) fn same(field: &str, written: f64, derived: f64, from: &'static str) -> Checked {
    if is_close(written, derived) { Ok(()) } else { Err(wrong(field, written, derived, from)) }
}

/// For optional values. An unknown raw value leaves the summary unchecked.
fn same_known(field: &str, written: Option<f64>, derived: Option<f64>, from: &'static str) -> Checked {
    match (written, derived) {
        (Some(written), Some(derived)) => same(field, written, derived, from),
        _ => Ok(()),
    }
}

/// A single value has none; older versions wrote 0.
fn same_spread(written: Option<f64>, values: &[f64]) -> Checked {
    let derived = Summary::of(values).filter(|of| of.n > 1).and_then(|of| of.relative_spread());
    match (written, values.len()) {
        (Some(spread), 1) => same("spread", spread, 0.0, "repeats give"),
        _ => same_known("spread", written, derived, "repeats give"),
    }
}

/// Mixed if the repeats' evidence differs.
fn same_cache(medium: &Medium) -> Checked {
    let derived = CacheState::of_all(medium.evidence.iter().map(CacheEvidence::state));
    match (medium.cache, derived) {
        (Some(written), Some(derived)) if written != derived => {
            let (written, derived) = (written.name().to_owned(), derived.name().to_owned());
            Err(Wrong { field: "cache".to_owned(), written, derived, from: "the evidence gives" })
        }
        _ => Ok(()),
    }
}

/// A rate without any repeat behind it.
fn no_repeats(field: &str, written: f64) -> Checked {
    if written == 0.0 {
        return Ok(());
    }
    let (field, written) = (field.to_owned(), written.to_string());
    Err(Wrong { field, written, derived: "nothing: there are none".to_owned(), from: "repeats give" })
}

fn wrong(field: &str, written: f64, derived: f64, from: &'static str) -> Wrong {
    // Digits beyond the sixth are noise, unless they are the difference.
    let short = format!("{:.*}", decimals(derived), derived);
    let derived = if short.parse() == Ok(written) { derived.to_string() } else { short };
    Wrong { field: field.to_owned(), written: written.to_string(), derived, from }
}

/// Decimals that leave six digits.
fn decimals(value: f64) -> usize {
    let whole = value.abs().max(1e-9).log10().floor();
    if value.fract() == 0.0 { 0 } else { (5.0 - whole).clamp(0.0, 12.0) as usize }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_no_difference_and_a_thousandth_is_one() {
        assert!(is_close(0.1 + 0.2, 0.3) && is_close(0.0, 1e-9) && is_close(f64::NAN, f64::NAN));
        assert!(!is_close(1.0, 1.001) && !is_close(0.0, 1e-3) && !is_close(1.0, f64::NAN));
        assert!(is_within(0.0, 1e-4, 1e3) && !is_within(0.0, 1e-2, 1e3), "differences of large numbers");
    }

    #[test]
    fn both_numbers_are_shown_with_the_digits_that_differ() {
        let said = wrong("images_per_s", 9999.0, 2_178.394_123, "repeats give");
        assert_eq!((said.written.as_str(), said.derived.as_str()), ("9999", "2178.39"));
        let close = wrong("wall_s", 2.0, 2.000_003, "repeats give");
        assert_eq!((close.written.as_str(), close.derived.as_str()), ("2", "2.000003"));
        assert_eq!(wrong("n", 3.0, 0.0, "repeats give").derived, "0");
    }
}
