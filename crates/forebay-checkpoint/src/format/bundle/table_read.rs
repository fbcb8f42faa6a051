//! Reads a LevelDB table block by block.
//!
//! Every byte of the file is checked: blocks must follow one another without gaps up to the footer, and each has a
//! checksum. Keys may reuse a prefix of the previous key. All writers set a restart point at least every 16 keys, so
//! keys take at most 16 times the size of the file; longer keys are refused.

use forebay_units::varint;

use super::{FOOTER_LEN, MAGIC, masked_crc32c};
use crate::format::catalog::{len_of, read};
use crate::format::{Error, Place, Source};

/// Each block is followed by one byte for the compression and four for the checksum.
const TRAILER_LEN: u64 = 5;
const KEY_BYTES_PER_FILE_BYTE: u64 = 16;

/// A key, its value, and the offset of its block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) key: Vec<u8>,
    pub(super) value: Vec<u8>,
    pub(super) offset: u64,
}

#[derive(Debug, Clone, Copy)]
struct Handle {
    offset: u64,
    len: u64,
}

impl Handle {
    fn end(self) -> u64 {
        self.offset.saturating_add(self.len).saturating_add(TRAILER_LEN)
    }
}

/// All records, in the order of their keys.
pub(super) fn records(place: Place<'_>, source: &dyn Source) -> Result<Vec<Record>, Error> {
    let n_file = len_of(place, source)?;
    let (meta_index, index) = footer(place, source, n_file)?;
    let mut budget = n_file.saturating_mul(KEY_BYTES_PER_FILE_BYTE);
    let mut found: Vec<Record> = Vec::new();
    let mut next = 0;
    for pointer in block_records(place, source, index, &mut budget)? {
        let what = "handle of a block";
        let handle = take_handle(&mut &pointer.value[..]).ok_or_else(|| {
            place.invalid(what, pointer.offset, "an offset and a length", format!("{} bytes", pointer.value.len()))
        })?;
        follows(place, handle, &mut next, meta_index.offset)?;
        for record in block_records(place, source, handle, &mut budget)? {
            if found.last().is_some_and(|last| last.key >= record.key) {
                return Err(place.invalid("key", record.offset, "keys in ascending order", text(&record.key)));
            }
            found.push(record);
        }
    }
    follows(place, meta_index, &mut next, index.offset)?;
    follows(place, index, &mut next, n_file - FOOTER_LEN as u64)?;
    if next != n_file - FOOTER_LEN as u64 {
        return Err(place.invalid("blocks", next, "the footer", "something else"));
    }
    match block_records(place, source, meta_index, &mut budget)?.first() {
        Some(record) => Err(place.unsupported(format!("a table with meta block {}", text(&record.key)))),
        None => Ok(found),
    }
}

/// Checks that a block starts where the previous one ended and ends at or before `limit`.
fn follows(place: Place<'_>, handle: Handle, next: &mut u64, limit: u64) -> Result<(), Error> {
    if handle.offset != *next || handle.end() > limit {
        let found = format!("{} to {}", handle.offset, handle.end());
        return Err(place.invalid("handle of a block", *next, format!("{next} to at most {limit}"), found));
    }
    *next = handle.end();
    Ok(())
}

/// The locations of the meta index and the index.
fn footer(place: Place<'_>, source: &dyn Source, n_file: u64) -> Result<(Handle, Handle), Error> {
    let Some(offset) = n_file.checked_sub(FOOTER_LEN as u64) else {
        return Err(place.truncated("footer", 0, FOOTER_LEN as u64, n_file));
    };
    let bytes = read(place, source, offset, FOOTER_LEN as u64)?;
    let (handles, magic) = bytes.split_at(FOOTER_LEN - 8);
    if magic != MAGIC.to_le_bytes() {
        return Err(place.invalid("footer", offset, "the mark of a table", format!("{magic:02x?}")));
    }
    let mut rest = handles;
    let found = take_handle(&mut rest).zip(take_handle(&mut rest));
    let (meta_index, index) = found
        .filter(|&found| encode_handles(found) == handles)
        .ok_or_else(|| place.invalid("footer", offset, "two handles and zeros", format!("{handles:02x?}")))?;
    if index.end() > offset {
        return Err(place.invalid("footer", offset, format!("an index before {offset}"), index.end()));
    }
    Ok((meta_index, index))
}

/// Accepts only the shortest encoding. The footer has no checksum, and a flipped bit can produce a longer encoding of
/// the same number.
fn encode_handles((meta_index, index): (Handle, Handle)) -> Vec<u8> {
    let mut out = Vec::new();
    for n in [meta_index.offset, meta_index.len, index.offset, index.len] {
        varint::put(&mut out, n);
    }
    out.resize(out.len().max(FOOTER_LEN - 8), 0);
    out
}

fn take_handle(bytes: &mut &[u8]) -> Option<Handle> {
    Some(Handle { offset: varint::take(bytes).ok()?, len: varint::take(bytes).ok()? })
}

/// The records of one block, after verifying its checksum.
fn block_records(
    place: Place<'_>,
    source: &dyn Source,
    handle: Handle,
    budget: &mut u64,
) -> Result<Vec<Record>, Error> {
    let mut bytes = read(place, source, handle.offset, handle.len.saturating_add(TRAILER_LEN))?;
    let expected = bytes.split_off(bytes.len() - 4);
    let expected = u32::from_le_bytes(expected.try_into().expect("four bytes were split off"));
    let found = masked_crc32c(&bytes);
    if found != expected {
        return Err(place.checksum("block", handle.offset, expected, found));
    }
    match bytes.pop() {
        Some(0) => {}
        kind => return Err(place.unsupported(format!("a table compressed by method {}", kind.unwrap_or(0)))),
    }
    let entries = without_restarts(&bytes)
        .ok_or_else(|| place.invalid("block", handle.offset, "restart points at its end", bytes.len()))?;
    let mut rest = entries;
    let mut records = Vec::new();
    let mut last = Vec::new();
    while !rest.is_empty() {
        let at = entries.len() - rest.len();
        let (key, value) = take_record(&mut rest, &last)
            .ok_or_else(|| place.invalid("block", handle.offset, "an entry", format!("damage at byte {at}")))?;
        *budget = budget.checked_sub(key.len() as u64).ok_or_else(|| {
            place.invalid("block", handle.offset, "a restart point every 16 keys", "keys far longer than the file")
        })?;
        last.clone_from(&key);
        records.push(Record { key, value: value.to_vec(), offset: handle.offset });
    }
    Ok(records)
}

/// The entries of a block; `None` when the restart array at its end is invalid.
fn without_restarts(block: &[u8]) -> Option<&[u8]> {
    let (rest, count) = block.split_last_chunk::<4>()?;
    let restarts = (u32::from_le_bytes(*count) as usize).checked_mul(4)?;
    rest.len().checked_sub(restarts).map(|len| &rest[..len])
}

fn take_record<'a>(rest: &mut &'a [u8], last: &[u8]) -> Option<(Vec<u8>, &'a [u8])> {
    let mut length = || usize::try_from(varint::take(rest).ok()?).ok();
    let (shared, own, n_value) = (length()?, length()?, length()?);
    let shared = last.get(..shared)?;
    let own = rest.split_off(..own)?;
    let value = rest.split_off(..n_value)?;
    Some(([shared, own].concat(), value))
}

/// The key as text, lossily decoded.
pub(super) fn text(key: &[u8]) -> String {
    format!("{:?}", String::from_utf8_lossy(key))
}

#[cfg(test)]
mod tests {
    use super::super::table_write::TableWriter;
    use super::*;
    use crate::format::Files;

    fn read_back(table: Vec<u8>) -> Result<Vec<Record>, Error> {
        records(Place { file: "t" }, &Files::from([("t".to_owned(), table)]))
    }

    type Pair = (Vec<u8>, Vec<u8>);

    fn table(n: usize, n_value: usize) -> (Vec<Pair>, Vec<u8>) {
        let pairs: Vec<_> = (0..n).map(|i| (format!("layer/{i:06}/w").into_bytes(), vec![i as u8; n_value])).collect();
        let mut writer = TableWriter::new();
        pairs.iter().for_each(|(key, value)| writer.add(key, value));
        (pairs, writer.finish())
    }

    #[test]
    fn a_table_of_any_number_of_blocks_is_read_back() {
        for (n, n_value) in [(0, 0), (1, 0), (16, 3), (17, 3), (5000, 10), (40, 100_000)] {
            let (pairs, table) = table(n, n_value);
            let read = read_back(table).expect("was just written");
            let n_blocks = read.iter().map(|record| record.offset).collect::<std::collections::BTreeSet<_>>().len();
            assert_eq!(n_blocks > 1, n * n_value > 300_000, "{n} of {n_value}");
            assert_eq!(read.into_iter().map(|record| (record.key, record.value)).collect::<Vec<_>>(), pairs);
        }
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed() {
        let (_, good) = table(40, 3);
        for at in 0..good.len() {
            for bit in 0..8 {
                let mut bad = good.clone();
                bad[at] ^= 1 << bit;
                read_back(bad).expect_err("a bit was flipped");
            }
            read_back(good[..at].to_vec()).expect_err("it was cut");
        }
    }

    #[test]
    fn a_compressed_block_is_refused() {
        let (pairs, mut table) = table(1, 3);
        // Three lengths, key, value, one restart point and their count.
        let n_block = 3 + pairs[0].0.len() + 3 + 8;
        table[n_block] = 1;
        let sum = masked_crc32c(&table[..=n_block]).to_le_bytes();
        table[n_block + 1..n_block + 5].copy_from_slice(&sum);
        let said = read_back(table).expect_err("is compressed").to_string();
        assert_eq!(said, "t: not supported: a table compressed by method 1");
    }

    fn sealed(mut block: Vec<u8>) -> Vec<u8> {
        block.extend([0, 0, 0, 0, 1, 0, 0, 0, 0]);
        let sum = masked_crc32c(&block).to_le_bytes();
        [&block[..], &sum].concat()
    }

    #[test]
    fn keys_that_grow_without_restart_points_are_refused() {
        // One long key, then a thousand that share all of the one before: a block as no writer makes it.
        let mut block = [&[0, 0xd0, 0x0f, 0][..], &[b'a'; 2000]].concat();
        for n_shared in 2000_u32..3000 {
            block.extend([n_shared as u8 & 0x7f | 0x80, (n_shared >> 7) as u8, 1, 0, b'a']);
        }
        let block = sealed(block);
        let meta_index = sealed(Vec::new());
        let whole = |block: &[u8], offset| Handle { offset, len: block.len() as u64 - TRAILER_LEN };
        let mut handle = Vec::new();
        varint::put(&mut handle, 0);
        varint::put(&mut handle, whole(&block, 0).len);
        let index = sealed([&[0, 1, handle.len() as u8, b'b'], &handle[..]].concat());
        let at_meta = whole(&meta_index, block.len() as u64);
        let footer = encode_handles((at_meta, whole(&index, at_meta.end())));
        let said = read_back([&block[..], &meta_index, &index, &footer, &MAGIC.to_le_bytes()].concat());
        assert_eq!(
            said.expect_err("keys of three megabytes in seven kilobytes").to_string(),
            "t: block at offset 0: expected a restart point every 16 keys, found keys far longer than the file"
        );
    }
}
