//! The terminal: its width and its colours.

use console::Term;
use forebay_report::WIDTH;

/// Longer lines are hard to read.
const MOST: usize = 120;
/// On a narrower terminal, lines are left to wrap.
const LEAST: usize = 40;

/// A stream that people read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

impl Stream {
    pub(crate) fn term(self) -> Term {
        match self {
            Self::Stdout => Term::stdout(),
            Self::Stderr => Term::stderr(),
        }
    }

    /// Columns of a line: those of the terminal or of `COLUMNS`, 80 if neither is known.
    pub(crate) fn width(self) -> usize {
        let term = self.term();
        let reported = if term.is_term() { term.size_checked() } else { None };
        width(reported.map(|(_, columns)| columns), std::env::var("COLUMNS").ok().as_deref())
    }

    pub(crate) fn has_colours(self) -> bool {
        let is_unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        !is_unwanted && self.term().is_term() && std::env::var_os("TERM").is_some_and(|name| name != "dumb")
    }
}

fn width(reported: Option<u16>, told: Option<&str>) -> usize {
    let known = reported.map(usize::from).or_else(|| told?.parse().ok()).filter(|columns| *columns > 0);
    known.unwrap_or(WIDTH).clamp(LEAST, MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_terminal_counts_before_the_environment_and_80_columns_are_the_default() {
        assert_eq!(width(Some(100), Some("60")), 100);
        assert_eq!((width(None, Some("60")), width(None, Some("x")), width(None, None)), (60, 80, 80));
        assert_eq!((width(Some(9), None), width(Some(400), None), width(None, Some("0"))), (LEAST, MOST, 80));
    }
}
