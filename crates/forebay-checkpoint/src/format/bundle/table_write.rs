//! Writes a LevelDB table: sorted keys in blocks, an index of the blocks, a footer.
//!
//! The output is byte-identical to TensorFlow's: blocks of 256 KiB, a restart point every 16 keys, and the shortest
//! separating keys in the index.

use forebay_units::varint;

use super::{FOOTER_LEN, MAGIC, masked_crc32c};

/// TensorFlow closes a block when it reaches this length.
const BLOCK_LEN: usize = 256 << 10;
const RESTART_INTERVAL: usize = 16;

/// Builds a table. Keys must come in ascending order.
#[derive(Debug)]
pub(super) struct TableWriter {
    out: Vec<u8>,
    block: Block,
    index: Block,
    /// The location of the last block, until the next key is known.
    pending: Option<Handle>,
}

#[derive(Debug, Clone, Copy)]
struct Handle {
    offset: u64,
    len: u64,
}

impl TableWriter {
    pub(super) fn new() -> Self {
        Self { out: Vec::new(), block: Block::new(RESTART_INTERVAL), index: Block::new(1), pending: None }
    }

    /// Adds a key that is greater than all previous keys.
    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) {
        if let Some(handle) = self.pending.take() {
            let between = shortest_separator(&self.block.last_key, key);
            self.index.add(&between, &handle.encode());
            self.block = Block::new(RESTART_INTERVAL);
        }
        self.block.add(key, value);
        if self.block.len() >= BLOCK_LEN {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if !self.block.bytes.is_empty() {
            let bytes = self.block.finish();
            self.pending = Some(self.append(bytes));
            self.block.bytes.clear();
        }
    }

    /// Appends an uncompressed block with its trailer: the compression byte and the checksum of both.
    fn append(&mut self, mut block: Vec<u8>) -> Handle {
        let handle = Handle { offset: self.out.len() as u64, len: block.len() as u64 };
        block.push(0);
        self.out.extend_from_slice(&block);
        self.out.extend_from_slice(&masked_crc32c(&block).to_le_bytes());
        handle
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.flush();
        let meta_index = self.append(Block::new(RESTART_INTERVAL).finish());
        if let Some(handle) = self.pending.take() {
            let after = short_successor(&self.block.last_key);
            self.index.add(&after, &handle.encode());
        }
        let index = self.index.finish();
        let index = self.append(index);
        let mut footer = [meta_index.encode(), index.encode()].concat();
        footer.resize(FOOTER_LEN - 8, 0);
        self.out.extend_from_slice(&footer);
        self.out.extend_from_slice(&MAGIC.to_le_bytes());
        self.out
    }
}

impl Handle {
    fn encode(self) -> Vec<u8> {
        let mut out = Vec::new();
        varint::put(&mut out, self.offset);
        varint::put(&mut out, self.len);
        out
    }
}

/// Entries that omit the prefix shared with the previous key, except at restart points.
#[derive(Debug)]
struct Block {
    bytes: Vec<u8>,
    restarts: Vec<u32>,
    last_key: Vec<u8>,
    interval: usize,
    since_restart: usize,
}

impl Block {
    fn new(interval: usize) -> Self {
        Self { bytes: Vec::new(), restarts: vec![0], last_key: Vec::new(), interval, since_restart: 0 }
    }

    fn add(&mut self, key: &[u8], value: &[u8]) {
        if self.since_restart == self.interval {
            self.restarts.push(self.bytes.len() as u32);
            self.since_restart = 0;
        }
        let shared = if self.since_restart == 0 { 0 } else { shared_len(&self.last_key, key) };
        for n in [shared, key.len() - shared, value.len()] {
            varint::put(&mut self.bytes, n as u64);
        }
        self.bytes.extend_from_slice(&key[shared..]);
        self.bytes.extend_from_slice(value);
        self.last_key = key.to_vec();
        self.since_restart += 1;
    }

    fn len(&self) -> usize {
        self.bytes.len() + 4 * self.restarts.len() + 4
    }

    fn finish(&self) -> Vec<u8> {
        let mut out = self.bytes.clone();
        let numbers = self.restarts.iter().copied().chain([self.restarts.len() as u32]);
        out.extend(numbers.flat_map(u32::to_le_bytes));
        out
    }
}

fn shared_len(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// A short key with `last` <= key < `next`.
fn shortest_separator(last: &[u8], next: &[u8]) -> Vec<u8> {
    let shared = shared_len(last, next);
    match (last.get(shared), next.get(shared)) {
        (Some(&a), Some(&b)) if a < 0xff && a + 1 < b => [&last[..shared], &[a + 1]].concat(),
        _ => last.to_vec(),
    }
}

/// A short key >= `last`.
fn short_successor(last: &[u8]) -> Vec<u8> {
    match last.iter().position(|&byte| byte != 0xff) {
        Some(n) => [&last[..n], &[last[n] + 1]].concat(),
        None => last.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_the_index_are_as_short_as_may_be() {
        assert_eq!(shortest_separator(b"abcd", b"abzz"), b"abd");
        assert_eq!(shortest_separator(b"abcd", b"abd"), b"abcd");
        assert_eq!(shortest_separator(b"ab", b"abc"), b"ab");
        assert_eq!(shortest_separator(b"a\xff\xff", b"b"), b"a\xff\xff");
        assert_eq!(short_successor(b"abc"), b"b");
        assert_eq!(short_successor(b"\xff\xffa"), b"\xff\xffb");
        assert_eq!(short_successor(b"\xff"), b"\xff");
        assert_eq!(short_successor(b""), b"");
    }

    #[test]
    fn an_empty_table_is_an_empty_block_and_a_footer() {
        let table = TableWriter::new().finish();
        // Meta index and index, each a restart point at 0, their count and a trailer; then the footer.
        assert_eq!(table.len(), 13 + 13 + FOOTER_LEN);
        assert_eq!(table[..8], [0, 0, 0, 0, 1, 0, 0, 0]);
        assert_eq!(table[26..30], [0, 8, 13, 8]);
    }
}
