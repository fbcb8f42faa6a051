//! One 512-byte header.

use super::BLOCK;
use crate::Error;

const CHECKSUM: std::ops::Range<usize> = 148..156;

/// What a header says of the entry that follows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: Kind,
    pub(super) size: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Pax,
    /// GNU: the next entry's path.
    LongName,
    /// Something about the next entry that is of no use here: GNU's long link target, pax records for the whole archive.
    Note,
    /// A link, hard or symbolic: another entry has its contents.
    Link(&'static str),
    /// GNU: a file with holes. `more` says that a block with more of its map follows.
    Sparse {
        more: bool,
    },
    SparseMap,
    Other,
}

/// Whether the block is one of those that end an archive.
pub(super) fn is_zero(block: &[u8]) -> bool {
    block.iter().all(|&byte| byte == 0)
}

pub(super) fn parse(block: &[u8; BLOCK], offset: u64) -> Result<Header, Error> {
    verify_checksum(block, offset)?;
    let size = number(&block[124..136])
        .ok_or_else(|| Error::invalid("tar header: size", offset, "a number", block[124..136].escape_ascii()))?;
    let kind = match block[156] {
        // Before ustar, a directory was a file whose name ended with a slash.
        0 if until_nul(&block[..100]).ends_with(b"/") => Kind::Other,
        b'0' | 0 | b'7' => Kind::File,
        b'x' => Kind::Pax,
        b'L' => Kind::LongName,
        b'K' | b'g' => Kind::Note,
        b'1' => Kind::Link("a hard link"),
        b'2' => Kind::Link("a symbolic link"),
        b'S' => Kind::Sparse { more: block[482] != 0 },
        _ => Kind::Other,
    };
    // Links and directories may state a size, but no data follow them.
    let has_data = !matches!(block[156], b'1'..=b'6');
    Ok(Header { kind, size: if has_data { size } else { 0 } })
}

/// The path in the header itself: prefix, slash, name.
pub(super) fn path(block: &[u8; BLOCK]) -> Vec<u8> {
    let name = until_nul(&block[..100]);
    // GNU's own format has "ustar  " there and uses the place of the prefix for other things.
    let prefix = if &block[257..263] == b"ustar\0" { until_nul(&block[345..500]) } else { b"" };
    if prefix.is_empty() { name.to_owned() } else { [prefix, name].join(&b'/') }
}

pub(super) fn until_nul(field: &[u8]) -> &[u8] {
    field.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// The sum of all bytes, with the checksum's own counted as spaces.
pub(super) fn checksum(block: &[u8; BLOCK]) -> u32 {
    let total: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
    let own: u32 = block[CHECKSUM].iter().map(|&byte| u32::from(byte)).sum();
    total - own + 8 * u32::from(b' ')
}

fn verify_checksum(block: &[u8; BLOCK], offset: u64) -> Result<(), Error> {
    let found = checksum(block);
    let expected = number(&block[CHECKSUM]).and_then(|sum| u32::try_from(sum).ok());
    match expected {
        Some(expected) if expected == found => Ok(()),
        Some(expected) => {
            Err(Error::Checksum { what: "tar entry".to_owned(), offset, part: "header", expected, found })
        }
        None => Err(Error::NotRecognised {
            expected: "a tar header",
            found: format!("\"{}\" at offset {offset}", block[..16].escape_ascii()),
        }),
    }
}

/// An octal number between spaces and NULs, or, where the first bit is set, a big-endian one.
fn number(field: &[u8]) -> Option<u64> {
    let (&first, rest) = field.split_first()?;
    if first & 0x80 != 0 {
        // A negative number keeps its sign bits here and is too large below.
        let value = rest.iter().fold(u128::from(first & 0x7f), |value, &byte| value << 8 | u128::from(byte));
        return u64::try_from(value).ok();
    }
    let digits = until_nul(field).trim_ascii();
    digits.iter().try_fold(0_u64, |value, &digit| match digit {
        b'0'..=b'7' => Some(value << 3 | u64::from(digit - b'0')),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_octal_or_base_256() {
        assert_eq!(number(b"00000001750\0"), Some(1000));
        assert_eq!(number(b"   1750 \0\0\0\0"), Some(1000));
        assert_eq!(number(b"\x80\0\0\0\0\0\0\x02\0\0\0\0"), Some(1 << 33));
        assert_eq!(number(b"\0\0\0\0\0\0\0\0"), Some(0));
        assert_eq!(number(b"0000000 175\0"), None);
        assert_eq!(number(b"\x80\0\0\0\0\0\0\x07"), Some(7));
        assert_eq!(number(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), None);
    }
}
