//! Settings shared by several experiments.

use std::fmt;
use std::str::FromStr;

use forebay_storage::Mode;

/// Threads that read and decode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadCount {
    Fixed(usize),
    /// Add threads until more no longer help.
    Auto,
}

/// The order of the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shuffle {
    /// Random over the whole epoch; of shards, single records are read in random order.
    Full,
    /// Shards in random order and interleaved, their samples shuffled among this many.
    Window(usize),
    /// Shards in random order, the samples of each in its own order.
    Shards,
    /// As stored.
    None,
}

/// More samples than any dataset has.
const MOST_SAMPLES: usize = 1_000_000_000;

impl FromStr for Shuffle {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.strip_prefix("window:").map(str::parse)) {
            ("full", _) => Ok(Self::Full),
            ("shards", _) => Ok(Self::Shards),
            ("none", _) => Ok(Self::None),
            (_, Some(Ok(n @ 1..=MOST_SAMPLES))) => Ok(Self::Window(n)),
            _ => Err("give full, shards, none or window:N with N samples from 1 to 1,000,000,000".to_owned()),
        }
    }
}

impl fmt::Display for Shuffle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("full"),
            Self::Window(n) => write!(f, "window:{n}"),
            Self::Shards => f.write_str("shards"),
            Self::None => f.write_str("none"),
        }
    }
}

/// How many shards are read at a time, and how many samples of each in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interleave {
    pub cycle: usize,
    pub block: usize,
}

impl FromStr for Interleave {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (cycle, block) = text.split_once(':').unwrap_or((text, "16"));
        let number = |text: &str| text.parse().ok().filter(|n| (1..=1_000_000).contains(n));
        let found = number(cycle).zip(number(block)).map(|(cycle, block)| Self { cycle, block });
        found.ok_or_else(|| "give CYCLE or CYCLE:BLOCK, numbers from 1 to 1,000,000 such as 4:16".to_owned())
    }
}

impl fmt::Display for Interleave {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.cycle, self.block)
    }
}

/// Page cache at the start of a repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cache {
    /// Holds the data's files as the warm-up leaves them.
    Warm,
    /// Holds none of the data's files: they are evicted before each repeat, and this is verified.
    Cold,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Io {
    Fixed(Mode),
    /// The mode that a short measurement on this disk finds fastest.
    Auto,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_written_as_they_are_read_and_others_are_refused() {
        for text in ["full", "window:256", "shards", "none"] {
            assert_eq!(text.parse::<Shuffle>().unwrap().to_string(), text);
        }
        for wrong in ["window", "window:0", "window:-1", "window:2000000000", "Full", ""] {
            assert!(wrong.parse::<Shuffle>().unwrap_err().starts_with("give full, shards, none"), "{wrong}");
        }
        assert_eq!("8".parse::<Interleave>().unwrap().to_string(), "8:16");
        assert_eq!("8:1".parse(), Ok(Interleave { cycle: 8, block: 1 }));
        for wrong in ["0", "4:0", "4:", ":4", "a", "4:4:4"] {
            assert!(wrong.parse::<Interleave>().unwrap_err().starts_with("give CYCLE"), "{wrong}");
        }
    }
}
