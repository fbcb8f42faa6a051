//! Reading ahead within one object, for readers that go through it in small steps.
//!
//! A request takes about as long for a few bytes as for a megabyte. Reads that follow one another therefore become
//! blocks, which grow as long as the reader goes on; a reader that jumps gets what it asks for and nothing else.

use crate::Buffer;

/// A jump forward of at most this many bytes is going on.
const NEAR: u64 = 64 << 10;
const FIRST_BLOCK: usize = 256 << 10;
const LARGEST_BLOCK: usize = 4 << 20;

#[derive(Default)]
pub(super) struct Window {
    start: u64,
    buffer: Buffer,
    /// The end of the last read; `None` before the first.
    last_end: Option<u64>,
    block: usize,
}

impl Window {
    /// The bytes, if they are here.
    pub(super) fn get(&mut self, offset: u64, len: usize) -> Option<&[u8]> {
        let at = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        let bytes = self.buffer.as_slice().get(at..at.checked_add(len)?)?;
        self.last_end = Some(offset + len as u64);
        Some(bytes)
    }

    /// Bytes to request ahead from `offset`; `None` if the reader jumps.
    pub(super) fn next_block(&mut self, offset: u64, len: usize, size: u64) -> Option<usize> {
        let is_near = self.last_end.is_some_and(|end| offset >= end && offset - end <= NEAR);
        self.last_end = Some(offset + len as u64);
        if !is_near || len >= LARGEST_BLOCK {
            self.block = 0;
            return None;
        }
        self.block = (self.block * 2).clamp(FIRST_BLOCK, LARGEST_BLOCK);
        let left = usize::try_from(size - offset).unwrap_or(usize::MAX);
        Some(self.block.max(len).min(left))
    }

    /// The buffer, whose content will begin at `offset`.
    pub(super) fn buffer_at(&mut self, offset: u64) -> &mut Buffer {
        self.start = offset;
        // If the read fails, nothing old is taken for the bytes at the new offset.
        self.buffer.resize(0);
        &mut self.buffer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_that_follow_one_another_become_growing_blocks() {
        let mut window = Window::default();
        let size = 100 << 20;
        assert_eq!(window.next_block(0, 16, size), None, "the first read may be the only one");
        assert_eq!(window.next_block(16, 100, size), Some(FIRST_BLOCK));
        assert_eq!(window.next_block(FIRST_BLOCK as u64, 100, size), None, "the reader jumped");
        assert_eq!(window.next_block(FIRST_BLOCK as u64 + 100, 100, size), Some(FIRST_BLOCK));
        assert_eq!(window.next_block(FIRST_BLOCK as u64 + 200, 100, size), Some(2 * FIRST_BLOCK));
        assert_eq!(window.next_block(FIRST_BLOCK as u64 + 300, 100, FIRST_BLOCK as u64 + 400), Some(100), "the end");
    }

    #[test]
    fn a_block_serves_the_reads_within_it() {
        let mut window = Window::default();
        window.buffer_at(1_000).fill_from(&[1, 2, 3, 4]);
        assert_eq!(window.get(1_001, 2), Some(&[2, 3][..]));
        assert_eq!(window.get(999, 1), None);
        assert_eq!(window.get(1_003, 2), None);
    }
}
