//! Files in a dataset's folder that are not samples: how many, of which kind, and the names of a few.

use std::collections::BTreeMap;
use std::fmt;

use crate::Kind;

/// A note names at most this many of the other files.
const NAMED: usize = 3;

/// The files left out of a folder. Its text is one line for a note: `16 files left out: 12 AVIF images (not supported),
/// 4 other files (archive.zip, …)`.
///
/// Hidden files, lists and the like ([`is_passed_over`](crate::is_passed_over)) and other text files do not count.
///
/// ```
/// use forebay_format::{Kind, LeftOut};
///
/// let mut left_out = LeftOut::default();
/// left_out.add(Kind::ForeignImage("AVIF"), "a/1.avif");
/// assert_eq!(left_out.to_string(), "1 file left out: 1 AVIF image (not supported)");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Images that cannot be decoded, by format.
    images: BTreeMap<&'static str, u64>,
    n_others: u64,
    /// A subset of the others, counted separately because a folder that holds only archives gets a special hint.
    n_archives: u64,
    named: Vec<String>,
}

impl LeftOut {
    /// Adds a file that is not a sample, by its path relative to the folder, as single-line text.
    pub fn add(&mut self, kind: Kind, name: &str) {
        match kind {
            Kind::ForeignImage(format) => *self.images.entry(format).or_default() += 1,
            Kind::Text | Kind::Utf16 => {}
            _ => {
                self.n_others += 1;
                self.n_archives += u64::from(matches!(kind, Kind::Packed(_)));
                if self.named.len() < NAMED {
                    self.named.push(name.to_owned());
                }
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.n_files() == 0
    }

    /// Whether only archives were left out.
    pub fn is_archives_alone(&self) -> bool {
        self.n_archives > 0 && self.n_archives == self.n_files()
    }

    pub fn n_files(&self) -> u64 {
        self.images.values().sum::<u64>() + self.n_others
    }

    /// The line for a note; `None` if nothing was left out.
    pub fn note(&self) -> Option<String> {
        (!self.is_empty()).then(|| self.to_string())
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |n: u64| if n == 1 { "" } else { "s" };
        let mut parts: Vec<String> = Vec::new();
        for (format, n) in &self.images {
            parts.push(format!("{n} {format} image{} (not supported)", plural(*n)));
        }
        if self.n_others > 0 {
            let rest = if self.n_others > self.named.len() as u64 { ", …" } else { "" };
            let names = self.named.join(", ");
            parts.push(format!("{} other file{} ({names}{rest})", self.n_others, plural(self.n_others)));
        }
        write!(f, "{} file{} left out: {}", self.n_files(), plural(self.n_files()), parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_counted_by_kind_and_a_few_are_named() {
        let mut left_out = LeftOut::default();
        assert_eq!(left_out.note(), None);
        left_out.add(Kind::Text, "LICENSE");
        left_out.add(Kind::Utf16, "notes");
        assert!(left_out.is_empty(), "text is a note");
        assert!(!left_out.is_archives_alone());
        left_out.add(Kind::Packed("zip"), "b/archive.zip");
        assert!(left_out.is_archives_alone());
        assert_eq!(left_out.to_string(), "1 file left out: 1 other file (b/archive.zip)");
        (0..3).for_each(|_| left_out.add(Kind::Empty, "x"));
        assert!(!left_out.is_archives_alone());
        (0..12).for_each(|_| left_out.add(Kind::ForeignImage("AVIF"), "a.avif"));
        left_out.add(Kind::ForeignImage("JPEG XL"), "a.jxl");
        let expected = "17 files left out: 12 AVIF images (not supported), 1 JPEG XL image (not supported), \
                        4 other files (b/archive.zip, x, x, …)";
        assert_eq!(left_out.note().unwrap(), expected);
    }
}
