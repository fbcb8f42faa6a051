//! The source's own order.

use super::Sequence;

pub(crate) struct Range {
    next: u32,
    end: u32,
}

impl Range {
    pub(crate) fn new(end: u32) -> Self {
        Self { next: 0, end }
    }
}

impl Sequence for Range {
    fn next(&mut self) -> Option<u32> {
        (self.next < self.end).then(|| {
            self.next += 1;
            self.next - 1
        })
    }

    fn skip(&mut self, n: u64) -> u64 {
        let skipped = n.min(u64::from(self.end - self.next));
        self.next += skipped as u32;
        skipped
    }
}
