//! The entropy-coded data of a scan: segments, and the restart markers between them.

use crate::Error;
use crate::baseline::Fault;
use crate::bits::{Bits, source_offset, unstuff};
use crate::simd::Level;

/// Position in the entropy-coded data of a scan.
#[derive(Debug)]
pub(crate) struct Entropy<'a> {
    data: &'a [u8],
    pub(crate) segment: Vec<u8>,
    pub(crate) bits: Bits,
    level: Level,
    /// Offset in the file of the current segment.
    start: usize,
    /// Offset in the file of the marker that ends the segment.
    end: usize,
    /// MCUs between restart markers; `usize::MAX` for none.
    interval: usize,
    /// MCUs left until the next restart marker.
    left: usize,
    next_restart: u8,
}

impl<'a> Entropy<'a> {
    /// Reads the data that begins at `start`; `segment` is memory to reuse.
    pub(crate) fn new(level: Level, data: &'a [u8], start: usize, restart_interval: usize, segment: Vec<u8>) -> Self {
        let interval = if restart_interval == 0 { usize::MAX } else { restart_interval };
        let mut entropy = Entropy {
            data,
            segment,
            bits: Bits::default(),
            level,
            start,
            end: start,
            interval,
            left: interval,
            next_restart: 0,
        };
        entropy.load(start);
        entropy
    }

    /// Call it after the last MCU of a scan that others may follow. Returns the offset of the next marker.
    ///
    /// Remaining data means that the scan was misread, unless the image ends here: some cameras and web servers leave
    /// bytes before the end marker, and libjpeg skips them too.
    pub(crate) fn finish(&self) -> Result<usize, Error> {
        let is_last = matches!(self.data.get(self.end..), None | Some([] | [_] | [_, 0xD9, ..]));
        if self.bits.has_bytes_left(&self.segment) && !is_last {
            let offset = self.start + source_offset(&self.data[self.start..], self.bits.byte_pos());
            return Err(Error::corrupt(offset, "the end of the scan", "more entropy-coded data"));
        }
        Ok(self.end)
    }

    /// Call it before each MCU; `true` means that predictions restart.
    #[inline(always)]
    pub(crate) fn begin_mcu(&mut self) -> Result<bool, Error> {
        if self.left == 0 {
            self.restart()?;
            self.left = self.interval - 1;
            return Ok(true);
        }
        self.left -= 1;
        Ok(false)
    }

    #[cold]
    #[inline(never)]
    fn restart(&mut self) -> Result<(), Error> {
        let marker = 0xD0 + self.next_restart;
        if self.bits.has_bytes_left(&self.segment) {
            let offset = self.start + source_offset(&self.data[self.start..], self.bits.byte_pos());
            return Err(Error::corrupt(offset, "a restart marker", "more entropy-coded data"));
        }
        match self.data.get(self.end + 1) {
            Some(&found) if found == marker => {}
            Some(found) => {
                return Err(Error::corrupt(self.end, "the next restart marker", format!("marker ff {found:02x}")));
            }
            None => return Err(Error::Truncated { offset: self.data.len() }),
        }
        self.next_restart = (self.next_restart + 1) % 8;
        self.load(self.end + 2);
        Ok(())
    }

    fn load(&mut self, start: usize) {
        let source = &self.data[start.min(self.data.len())..];
        self.start = start;
        self.end = start + unstuff(self.level, source, &mut self.segment);
        self.bits = Bits::default();
    }

    /// The error for `fault` at the current position.
    #[cold]
    #[inline(never)]
    pub(crate) fn error(&self, fault: Fault) -> Error {
        let offset = self.start + source_offset(&self.data[self.start..], self.bits.byte_pos());
        match fault {
            Fault::Exhausted if self.end >= self.data.len() => Error::Truncated { offset: self.data.len() },
            Fault::Exhausted => {
                let found = format!("marker ff {:02x}", self.data.get(self.end + 1).copied().unwrap_or(0));
                Error::corrupt(self.end, "more entropy-coded data", found)
            }
            Fault::NoCode => Error::corrupt(offset, "a Huffman code of the table", "an unassigned code"),
            Fault::Overflow => Error::corrupt(offset, "at most 64 coefficients in a block", "more"),
            Fault::BadRefinement => Error::corrupt(offset, "a refinement of one bit", "a larger value"),
        }
    }
}
