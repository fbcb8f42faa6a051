//! Writing an archive: the same bytes on every machine.

use super::BLOCK;
use super::header::checksum;
use super::path::as_text;
use crate::Error;

/// The largest size that eleven octal digits hold.
const MAX_SIZE: u64 = (1 << 33) - 1;

/// Appends a file: mode 0644, owner root, modified at the epoch.
///
/// A path that does not fit a ustar header (too long, or of letters beyond ASCII) is written as a pax record as well. One
/// that is not UTF-8 stands in the header as it is, where it fits, as GNU tar does it; its pax record is marked as binary.
///
/// # Errors
/// When the path is empty or contains a NUL, or the data have 8 GiB or more. Nothing has been appended then.
pub fn append_file(out: &mut Vec<u8>, path: impl AsRef<[u8]>, data: &[u8]) -> Result<(), Error> {
    let path = path.as_ref();
    if path.is_empty() || path.contains(&0) {
        let found = format!("\"{}\"", path.escape_ascii());
        return Err(Error::invalid("tar path", out.len() as u64, "a name without NUL", found));
    }
    if data.len() as u64 > MAX_SIZE {
        return Err(Error::TooLarge {
            what: format!("tar entry {}", as_text(path)),
            limit: MAX_SIZE,
            found: data.len() as u64,
        });
    }
    out.reserve(data.len() + 2 * BLOCK);
    match split(path) {
        Some((prefix, name)) => append_entry(out, b'0', prefix, name, data),
        None => {
            let is_text = std::str::from_utf8(path).is_ok();
            let charset = if is_text { Vec::new() } else { pax_record("hdrcharset", b"BINARY") };
            append_entry(out, b'x', b"", b"././@PaxHeader", &[charset, pax_record("path", path)].concat());
            append_entry(out, b'0', b"", &path[..path.len().min(100)], data);
        }
    }
    Ok(())
}

/// Ends an archive with two blocks of zeros.
pub fn finish(out: &mut Vec<u8>) {
    out.resize(out.len() + 2 * BLOCK, 0);
}

/// The path as a ustar prefix of at most 155 bytes and a name of at most 100, parted at a slash.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    if !bytes.is_ascii() && std::str::from_utf8(bytes).is_ok() {
        return None;
    }
    if bytes.len() <= 100 {
        return Some((b"", bytes));
    }
    let at = (0..bytes.len().min(156)).rev().find(|&at| bytes[at] == b'/')?;
    let (prefix, name) = (&bytes[..at], &bytes[at + 1..]);
    ((1..=100).contains(&name.len()) && !prefix.is_empty()).then_some((prefix, name))
}

/// `length key=value\n`, where the length counts its own digits too.
fn pax_record(key: &str, value: &[u8]) -> Vec<u8> {
    let rest = key.len() + value.len() + 3;
    let mut len = rest;
    while len != rest + len.to_string().len() {
        len = rest + len.to_string().len();
    }
    [format!("{len} {key}=").as_bytes(), value, b"\n"].concat()
}

fn append_entry(out: &mut Vec<u8>, kind: u8, prefix: &[u8], name: &[u8], data: &[u8]) {
    let mut header = [0_u8; BLOCK];
    let mut put = |at: usize, field: &[u8]| header[at..at + field.len()].copy_from_slice(field);
    put(0, name);
    put(100, b"0000644\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{:011o}\0", data.len()).as_bytes());
    put(136, b"00000000000\0");
    put(156, &[kind]);
    put(257, b"ustar\x0000");
    put(345, prefix);
    let sum = checksum(&header);
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    out.extend_from_slice(&header);
    out.extend_from_slice(data);
    out.resize(out.len() + data.len().next_multiple_of(BLOCK) - data.len(), 0);
}
