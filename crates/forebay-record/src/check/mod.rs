//! Whether what a record sums up is what its raw values give.
//!
//! Medians, spreads, rates and totals are written beside the repeats, steps and epochs they come from, so that a reader
//! without this library has them. Both can be edited, and only one would be shown. So every summary that can be derived
//! again is, when a record is checked, and one that differs by more than rounding is named with both numbers.
//!
//! What is unknown (`None`) is not wrong: an older version may not have written it.

mod checkpoint;
mod ingest;
mod probe;
mod train;
mod workload;

use forebay_units::Summary;

use crate::{AnyRecord, CacheEvidence, CacheState, Error, Inspection, Record, StudyCell};

/// Numbers that went through text and were summed in another order differ by less than this share.
const ROUNDING: f64 = 1e-6;
/// And by less than this where they are about nothing: nanoseconds, in seconds.
const NOTHING: f64 = 1e-8;

/// A summary that is not what its raw values give.
#[derive(Debug, Clone, PartialEq)]
struct Wrong {
    /// Its name in the record.
    field: String,
    written: String,
    derived: String,
    /// What it was derived from, with its verb: "repeats give".
    from: &'static str,
}

type Checked = Result<(), Wrong>;

impl AnyRecord {
    /// Derives every summary from the raw values beside it, where they are there, and compares.
    ///
    /// # Errors
    /// [`Error::Disagrees`] with the first that differs by more than rounding, its cell and both numbers.
    pub fn check(&self) -> Result<(), Error> {
        match self {
            Self::Ingest(record) => cells(record, ingest::check),
            Self::Probe(record) => cells(record, probe::check),
            Self::Train(record) => cells(record, train::check),
            Self::Checkpoint(record) => cells(record, checkpoint::check),
            Self::Workload(record) => cells(record, workload::check),
            Self::Study(run) => run.cells.iter().try_for_each(|cell| of_study(cell).map_err(in_cell(&cell.id))),
        }
    }
}

fn cells<C>(record: &Record<C>, check: fn(&C) -> Checked) -> Result<(), Error> {
    let n = record.cells.len();
    let mut all = record.cells.iter().enumerate();
    all.try_for_each(|(i, cell)| check(cell).map_err(in_cell(&format!("{} of {n}", i + 1))))
}

fn in_cell(cell: &str) -> impl Fn(Wrong) -> Error {
    move |wrong| {
        let Wrong { field, written, derived, from } = wrong;
        let (field, written, derived) = (field.into(), written.into(), derived.into());
        Error::Disagrees { cell: cell.into(), field, written, derived, from }
    }
}

fn of_study(cell: &StudyCell) -> Checked {
    cell.ingest.iter().try_for_each(ingest::check)?;
    cell.probe.iter().try_for_each(probe::check)?;
    cell.train.iter().try_for_each(|cell| train::check(cell))?;
    cell.checkpoint.iter().try_for_each(|cell| checkpoint::check(cell))?;
    cell.workload.iter().try_for_each(|cell| workload::check(cell))?;
    cell.inspection.iter().try_for_each(of_inspection)
}

fn of_inspection(found: &Inspection) -> Checked {
    let n = found.n_samples as f64;
    if let Some(sizes) = &found.sizes {
        same("sizes.n", sizes.n as f64, n, "n_samples gives")?;
    }
    let in_histogram: u64 = found.histogram.iter().map(|bucket| bucket.n_samples).sum();
    if found.histogram.is_empty() { Ok(()) } else { same("n_samples", n, in_histogram as f64, "the histogram gives") }
}

/// Whether two numbers are the same but for rounding.
fn is_close(a: f64, b: f64) -> bool {
    is_within(a, b, a.abs().max(b.abs()))
}

/// The same of a difference of numbers of this size, which has their rounding.
fn is_within(a: f64, b: f64, size: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= ROUNDING * size + NOTHING
}

fn same(field: &str, written: f64, derived: f64, from: &'static str) -> Checked {
    if is_close(written, derived) { Ok(()) } else { Err(wrong(field, written, derived, from)) }
}

/// The same of what need not be known. A raw value that is not known leaves the summary as it is.
fn same_known(field: &str, written: Option<f64>, derived: Option<f64>, from: &'static str) -> Checked {
    match (written, derived) {
        (Some(written), Some(derived)) => same(field, written, derived, from),
        _ => Ok(()),
    }
}

/// Half the range over the median. A single value has none; older versions wrote 0 there.
fn same_spread(written: Option<f64>, values: &[f64]) -> Checked {
    let derived = Summary::of(values).filter(|of| of.n > 1).and_then(|of| of.relative_spread());
    match (written, values.len()) {
        (Some(spread), 1) => same("spread", spread, 0.0, "repeats give"),
        _ => same_known("spread", written, derived, "repeats give"),
    }
}

/// Every repeat is in the state that its evidence shows, and the cell in that of all, or mixed where they differ.
fn same_caches<'a>(
    written: CacheState,
    repeats: impl Iterator<Item = (CacheState, &'a CacheEvidence)> + Clone,
) -> Checked {
    for (state, evidence) in repeats.clone() {
        same_state(state, evidence.state(), "its evidence gives")?;
    }
    let mut states = repeats.map(|(state, _)| state);
    let Some(first) = states.next() else { return Ok(()) };
    same_state(written, if states.all(|state| state == first) { first } else { CacheState::Mixed }, "repeats give")
}

fn same_state(written: CacheState, derived: CacheState, from: &'static str) -> Checked {
    let word = |state: CacheState| format!("{state:?}").to_lowercase();
    match written == derived {
        true => Ok(()),
        false => Err(Wrong { field: "cache".to_owned(), written: word(written), derived: word(derived), from }),
    }
}

/// A rate without a single repeat behind it.
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
