//! Sizes in bytes, with decimal (KB, MB) and binary (KiB, MiB) units kept apart.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::text::{ParseError, split};

/// A number of bytes.
///
/// Parses "112 KB" (decimal), "128MiB" (binary), "4096" (bytes); prints in decimal units, the base disks are sold by.
/// In files it is a number of bytes, or a text with a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub u64);

const UNITS: &[(&str, u64)] = &[
    ("", 1),
    ("b", 1),
    ("k", 1_000),
    ("kb", 1_000),
    ("m", 1_000_000),
    ("mb", 1_000_000),
    ("g", 1_000_000_000),
    ("gb", 1_000_000_000),
    ("t", 1_000_000_000_000),
    ("tb", 1_000_000_000_000),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
];

impl Bytes {
    /// Megabytes (10^6 bytes), the base every rate of forebay is printed in.
    pub fn megabytes(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

impl FromStr for Bytes {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (number, unit) = split(text, "size")?;
        let lower = unit.to_ascii_lowercase();
        let Some((_, factor)) = UNITS.iter().find(|(name, _)| *name == lower) else {
            return Err(ParseError {
                text: text.to_owned(),
                kind: "size",
                reason: format!("unknown unit \"{unit}\"; use B, KB, MB, GB, KiB, MiB or GiB"),
            });
        };
        let bytes = number * *factor as f64;
        if bytes >= u64::MAX as f64 {
            return Err(ParseError { text: text.to_owned(), kind: "size", reason: "too large".to_owned() });
        }
        Ok(Self(bytes.round() as u64))
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0 as f64;
        match self.0 {
            0..1_000 => write!(f, "{} B", self.0),
            1_000..1_000_000 => write!(f, "{:.1} KB", bytes / 1e3),
            1_000_000..1_000_000_000 => write!(f, "{:.1} MB", bytes / 1e6),
            1_000_000_000..1_000_000_000_000 => write!(f, "{:.2} GB", bytes / 1e9),
            _ => write!(f, "{:.2} TB", bytes / 1e12),
        }
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Raw {
            Number(u64),
            Text(String),
        }
        match Raw::deserialize(deserializer)? {
            Raw::Number(bytes) => Ok(Self(bytes)),
            Raw::Text(text) => text.parse().map_err(serde::de::Error::custom),
        }
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Sub for Bytes {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self(0), Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_and_binary_units_differ() {
        assert_eq!("112 KB".parse(), Ok(Bytes(112_000)));
        assert_eq!("112KiB".parse(), Ok(Bytes(114_688)));
        assert_eq!("1.5 MiB".parse(), Ok(Bytes(1_572_864)));
        assert_eq!("4096".parse(), Ok(Bytes(4_096)));
        assert_eq!("2g".parse(), Ok(Bytes(2_000_000_000)));
    }

    #[test]
    fn nonsense_is_refused_with_the_text_and_a_reason() {
        let error = "12 furlongs".parse::<Bytes>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "\"12 furlongs\" is not a size: unknown unit \"furlongs\"; use B, KB, MB, GB, KiB, MiB or GiB"
        );
        assert!("".parse::<Bytes>().is_err());
        assert!("-4 KB".parse::<Bytes>().is_err());
        assert!("99999999999 TB".parse::<Bytes>().is_err());
    }

    #[test]
    fn prints_in_decimal_units() {
        assert_eq!(Bytes(999).to_string(), "999 B");
        assert_eq!(Bytes(112_400).to_string(), "112.4 KB");
        assert_eq!(Bytes(1_835_000_000).to_string(), "1.83 GB");
    }
}
