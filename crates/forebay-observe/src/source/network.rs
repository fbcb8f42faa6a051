//! `/proc/net/dev`: traffic of each network interface.

use crate::sheet::Sheet;
use crate::source::{growth, ratio};

/// Bytes through one interface since its creation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Interface {
    pub name: String,
    pub rx_bytes: u64,
    pub tx_bytes: u64,
}

/// Reads `/proc/net/dev`; `None` if the text has another format.
pub fn parse(text: &str) -> Option<Vec<Interface>> {
    // There are two header lines, the second with "face |bytes"; a column may touch the colon.
    text.lines().nth(1).filter(|line| line.contains("|bytes"))?;
    Some(text.lines().skip(2).filter_map(interface).collect())
}

fn interface(line: &str) -> Option<Interface> {
    // An alias such as eth0:1 contains a colon itself.
    let (name, counts) = line.rsplit_once(':')?;
    let mut counts = counts.split_ascii_whitespace().map(|word| word.parse().ok());
    Some(Interface { name: name.trim().to_owned(), rx_bytes: counts.next()??, tx_bytes: counts.nth(7)?? })
}

pub(crate) fn put(sheet: &mut Sheet, subject: &str, before: &Interface, after: &Interface, span_s: f64) {
    let rate = |before, after| ratio(growth(before, after), Some(span_s));
    sheet.put(subject, "rx_bytes_per_s", rate(before.rx_bytes, after.rx_bytes));
    sheet.put(subject, "tx_bytes_per_s", rate(before.tx_bytes, after.tx_bytes));
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "Inter-|   Receive                            |  Transmit\n face |bytes    packets errs drop fifo frame \
        compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n";

    #[test]
    fn bytes_are_the_first_and_the_ninth_column() {
        let text = format!(
            "{HEAD}    lo:   18650 270 0 0 0 0 0 0 18651 270 0 0 0 0 0 0\neth0.7:1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"
        );
        let expected = [("lo", 18_650, 18_651), ("eth0.7", 1, 9)].map(|(name, rx_bytes, tx_bytes)| Interface {
            name: name.to_owned(),
            rx_bytes,
            tx_bytes,
        });
        assert_eq!(parse(&text).unwrap(), expected);
    }

    #[test]
    fn half_a_line_and_another_text_are_left_out() {
        assert_eq!(parse(&format!("{HEAD}eth0: 1 2 3\n")).unwrap(), []);
        assert_eq!(parse(""), None);
        assert_eq!(parse("a\nb\nlo: 1 2 3 4 5 6 7 8 9\n"), None);
    }

    #[test]
    fn an_interface_that_was_made_anew_has_no_rate() {
        let interface = |rx_bytes, tx_bytes| Interface { name: "lo".to_owned(), rx_bytes, tx_bytes };
        let mut sheet = Sheet::default();
        put(&mut sheet, "net.lo", &interface(100, 10), &interface(90, 30), 2.0);
        assert_eq!(sheet.values(), [None, Some(10.0)]);
    }
}
