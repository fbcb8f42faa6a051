//! One file per source: the parser of its text, a pure function, and the columns derived from two readings.
//!
//! A quantity that the kernel does not report is `None`. A counter that decreased, such as one of a device that was
//! removed and added again, gives no rate.

pub mod cpu;
pub mod disk;
pub mod memory;
pub mod network;
pub mod paging;
pub mod pressure;
pub mod process;

/// Increase of a counter; `None` if it decreased.
pub(crate) fn growth(before: u64, after: u64) -> Option<f64> {
    after.checked_sub(before).map(|grown| grown as f64)
}

/// A quotient; `None` if the divisor is zero or unknown.
pub(crate) fn ratio(amount: Option<f64>, by: Option<f64>) -> Option<f64> {
    let by = by.filter(|by| *by > 0.0)?;
    amount.map(|amount| amount / by)
}

/// The value of a line "name value" or "name: value kB".
pub(crate) fn field(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix([':', ' ', '\t']))?;
    rest.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_begins_like_another_is_not_it() {
        let text = "pgpginx 1\npgpgin 2\nMemFree:  3 kB\nEmpty:\n";
        assert_eq!(field(text, "pgpgin"), Some(2));
        assert_eq!(field(text, "MemFree"), Some(3));
        assert_eq!((field(text, "Mem"), field(text, "Empty"), field(text, "none")), (None, None, None));
    }

    #[test]
    fn nothing_is_divided_by_nothing() {
        assert_eq!(ratio(Some(3.0), Some(2.0)), Some(1.5));
        assert_eq!((ratio(Some(3.0), Some(0.0)), ratio(None, Some(1.0)), ratio(Some(1.0), None)), (None, None, None));
        assert_eq!((growth(3, 5), growth(5, 3)), (Some(2.0), None));
    }
}
