//! Consecutive epochs, `n` or endless; earlier stages receive the epoch's number.

use super::{Chain, Sequence, Stage};

#[derive(Debug)]
pub(crate) struct Repeat {
    /// Number of epochs; `None` for endless.
    pub(crate) n: Option<u64>,
}

impl Stage for Repeat {
    fn open(&self, before: &Chain, epoch: u64) -> Box<dyn Sequence> {
        // A nested repeat continues the epoch numbers, so no order occurs twice.
        let first = epoch.wrapping_mul(self.n.unwrap_or(0));
        let last = self.n.map(|n| first.saturating_add(n));
        let current = (self.n != Some(0)).then(|| before.open(first));
        Box::new(Repeating { before: before.clone(), current, epoch: first, last })
    }

    fn len(&self, before: Option<u64>) -> Option<u64> {
        before.and_then(|each| self.n.map(|n| n.saturating_mul(each)))
    }

    fn repeats(&self) -> bool {
        true
    }

    fn refuse(&self, before: &Chain) -> Option<String> {
        before.len().is_none().then(|| "the stages before it are endless".to_owned())
    }
}

struct Repeating {
    before: Chain,
    current: Option<Box<dyn Sequence>>,
    epoch: u64,
    last: Option<u64>,
}

impl Repeating {
    fn open_next(&mut self, ahead: u64) {
        self.epoch += ahead;
        let over = self.last.is_some_and(|last| self.epoch >= last);
        self.current = (!over).then(|| self.before.open(self.epoch));
    }
}

impl Sequence for Repeating {
    fn next(&mut self) -> Option<u32> {
        let each = self.before.len().unwrap_or(0);
        while let Some(current) = &mut self.current {
            if let Some(item) = current.next() {
                return Some(item);
            }
            if each == 0 {
                return None; // Every epoch is empty.
            }
            self.open_next(1);
        }
        None
    }

    fn skip(&mut self, n: u64) -> u64 {
        let each = self.before.len().unwrap_or(0);
        let mut skipped = 0;
        while let Some(current) = &mut self.current {
            skipped += current.skip(n - skipped);
            if skipped == n || each == 0 {
                break;
            }
            // The current epoch is exhausted; whole epochs after it need not be opened.
            let left = self.last.map_or(u64::MAX, |last| last - self.epoch - 1);
            let whole = ((n - skipped) / each).min(left);
            skipped += whole * each;
            self.open_next(1 + whole);
        }
        skipped
    }
}
