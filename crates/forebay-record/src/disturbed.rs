//! Repeats that other processes disturbed, kept in the cell so that reports can mark it.

use serde::{Deserialize, Serialize};

/// What other processes took while something was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Taken {
    /// CPU time of other processes.
    Processors,
    /// CPU time that the host of a virtual machine took.
    Steal,
    /// Reads of other processes from the device of the data.
    Reads,
    /// Time in which other processes waited for I/O.
    IoWait,
}

/// Repeats of a cell that other processes disturbed. They were kept because the repeats in their place were disturbed too, or because
/// none could be run. Reports mark the cell and draw no conclusion from it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Disturbed {
    /// Kept repeats that were disturbed.
    pub repeats: u64,
    /// What others took of the machine in the repeat that was disturbed most.
    pub taken: Taken,
    /// How much of it they took in that repeat, as a share of 1.
    pub share: f64,
}

impl Disturbed {
    /// For display: "other processes used 25 % of the processors".
    pub fn cause(&self) -> String {
        let percent = self.share * 100.0;
        match self.taken {
            Taken::Processors => format!("other processes used {percent:.0} % of the processors"),
            Taken::Steal => format!("the host took {percent:.0} % of the processors"),
            Taken::Reads => format!("other processes did {percent:.0} % of the reads of the device"),
            Taken::IoWait => format!("other processes waited for I/O for {percent:.0} % of the time"),
        }
    }

    /// Sums the repeats; the greatest disturbance is the cause.
    pub fn together(all: impl IntoIterator<Item = Self>) -> Option<Self> {
        all.into_iter().reduce(|a, b| Self { repeats: a.repeats + b.repeats, ..if b.share > a.share { b } else { a } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_add_up_and_the_worst_is_named() {
        let one = |taken, share| Disturbed { repeats: 1, taken, share };
        let all = [one(Taken::Processors, 0.2), one(Taken::Reads, 0.5), one(Taken::Processors, 0.3)];
        let found = Disturbed::together(all).unwrap();
        assert_eq!((found.repeats, found.cause().as_str()), (3, "other processes did 50 % of the reads of the device"));
        assert_eq!(Disturbed::together([]), None);
    }
}
