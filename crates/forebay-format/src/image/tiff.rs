//! A check of a TIFF file's directory before decoding.
//!
//! The decoder prints to stderr if a text entry in place of a number is too long, which a library must not do. So a
//! directory with such an entry is refused first.

use crate::Error;

const TEXT: u64 = 2;

/// Whether the decoder reads a tag, and expects numbers in it. Some tags between these are texts.
fn is_number(tag: u64) -> bool {
    matches!(tag, 254..=268 | 273..=284 | 286..=304 | 317..=332 | 338..=347 | 529..=532 | 34675)
}

/// Refuses a first directory that has text where numbers belong. If the bytes end inside the directory, the decoder
/// reports it.
pub(super) fn check_directory(bytes: &[u8]) -> Result<(), Error> {
    let file = File { bytes, is_little: bytes.starts_with(b"II") };
    match file.entries().into_iter().flatten().find(|entry| file.is_misplaced_text(*entry)) {
        None => Ok(()),
        Some(entry) => Err(Error::invalid("tiff directory entry", entry as u64, "numbers", "text")),
    }
}

struct File<'a> {
    bytes: &'a [u8],
    is_little: bool,
}

impl File<'_> {
    /// Where the entries of the first directory begin. Files above 4 GiB have longer fields.
    fn entries(&self) -> Option<impl Iterator<Item = usize> + use<>> {
        let is_big = self.number::<2>(2)? == 43;
        let directory = if is_big { self.number::<8>(8)? } else { self.number::<4>(4)? };
        let directory = usize::try_from(directory).ok()?;
        let (n_entries, first, len) = match is_big {
            true => (self.number::<8>(directory)?, directory.checked_add(8)?, 20),
            false => (self.number::<2>(directory)?, directory.checked_add(2)?, 12),
        };
        let room = (self.bytes.len().saturating_sub(first) / len) as u64;
        Some((0..n_entries.min(room) as usize).map(move |n| first + n * len))
    }

    fn is_misplaced_text(&self, entry: usize) -> bool {
        self.number::<2>(entry + 2) == Some(TEXT) && self.number::<2>(entry).is_some_and(is_number)
    }

    fn number<const N: usize>(&self, at: usize) -> Option<u64> {
        let bytes = self.bytes.get(at..at.checked_add(N)?)?;
        let join = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        Some(if self.is_little { bytes.iter().rev().fold(0, join) } else { bytes.iter().fold(0, join) })
    }
}

#[cfg(test)]
mod tests {
    use super::check_directory;

    #[test]
    fn text_in_place_of_a_number_is_refused_and_other_text_is_not() {
        let little =
            |tag: u8, kind: u8| [b"II*\0\x08\0\0\0\x01\0", &[tag, 1, kind, 0, 1, 0, 0, 0, 0, 0, 0, 0][..]].concat();
        assert!(check_directory(&little(0x0e, 2)).is_ok(), "a description is text");
        assert!(check_directory(&little(0x00, 3)).is_ok(), "a width is a number");
        let error = check_directory(&little(0x00, 2)).unwrap_err().to_string();
        assert_eq!(error, "tiff directory entry at offset 10: expected numbers, found text");
        let big = [&b"MM\0+\0\x08\0\0\0\0\0\0\0\0\0\x10\0\0\0\0\0\0\0\x01"[..], &[1, 0, 0, 2], &[0; 16]].concat();
        assert!(check_directory(&big).is_err());
        for cut in 0..big.len() - 18 {
            assert!(check_directory(&big[..cut]).is_ok(), "nothing to see in {cut} bytes");
        }
    }
}
