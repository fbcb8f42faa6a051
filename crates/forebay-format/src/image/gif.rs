//! The blocks of a GIF file, without their pixels.
//!
//! The decoder stops after the first image. Walking the blocks to the trailer finds a file that was cut off behind it.

use crate::Error;

const TRAILER: u8 = 0x3b;
const EXTENSION: u8 = 0x21;
const IMAGE: u8 = 0x2c;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Screen {
    pub(super) width: u32,
    pub(super) height: u32,
    /// Bits of an index into the palette.
    pub(super) bits: u8,
    /// Whether the first image is interlaced; `None` if the bytes end before it.
    pub(super) interlaced: Option<bool>,
}

/// Reads the headers, as far as the bytes go.
pub(super) fn screen(bytes: &[u8]) -> Result<Screen, Error> {
    let head = bytes.get(..13).ok_or_else(|| Error::truncated("gif header", 0, 13, bytes.len() as u64))?;
    let number = |at: usize| u32::from(u16::from_le_bytes([head[at], head[at + 1]]));
    let (width, height) = (number(6), number(8));
    let mut first = None;
    // The bytes may end where the image data begin, so an error at the end of the walk is ignored.
    let _ = walk(bytes, |flags| {
        first.get_or_insert(flags);
    });
    let flags = first.filter(|flags| flags & 0x80 != 0).unwrap_or(head[10]);
    Ok(Screen { width, height, bits: (flags & 7) + 1, interlaced: first.map(|flags| flags & 0x40 != 0) })
}

/// Walks all blocks to the trailer.
pub(super) fn check_whole(bytes: &[u8]) -> Result<(), Error> {
    walk(bytes, |_| ())
}

/// Hands the flags of each image's descriptor to `visit`.
fn walk(bytes: &[u8], mut visit: impl FnMut(u8)) -> Result<(), Error> {
    let mut at = 13 + table_len(byte(bytes, 10)?);
    loop {
        match byte(bytes, at)? {
            TRAILER => return Ok(()),
            EXTENSION => at = skip_data(bytes, at + 2)?,
            IMAGE => {
                let flags = byte(bytes, at + 9)?;
                visit(flags);
                // Behind the descriptor and its table: a byte with the code size, then the data.
                at = skip_data(bytes, at + 10 + table_len(flags) + 1)?;
            }
            other => {
                return Err(Error::invalid("gif block", at as u64, "0x21, 0x2c or 0x3b", format!("{other:#04x}")));
            }
        }
    }
}

/// Bytes of the table that flags announce.
fn table_len(flags: u8) -> usize {
    if flags & 0x80 == 0 { 0 } else { 3 << ((flags & 7) + 1) }
}

/// Where the blocks of data from `at` on end: each begins with its length, the last one is empty.
fn skip_data(bytes: &[u8], mut at: usize) -> Result<usize, Error> {
    loop {
        let len = usize::from(byte(bytes, at)?);
        at += 1 + len;
        if len == 0 {
            return Ok(at);
        }
    }
}

fn byte(bytes: &[u8], at: usize) -> Result<u8, Error> {
    let missing = || Error::truncated("gif image", 0, at as u64 + 1, bytes.len() as u64);
    bytes.get(at).copied().ok_or_else(missing)
}
