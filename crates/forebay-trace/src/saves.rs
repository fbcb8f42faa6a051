//! Recent transfers of a process, to know the bytes of a checkpoint when its mark comes.

/// A checkpoint of more calls than this is cut at its beginning.
const MAX_RECENT: usize = 100_000;

/// A call that moved bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Transfer {
    pub(crate) start_ns: u64,
    pub(crate) bytes: u64,
    pub(crate) thread: u32,
    pub(crate) is_read: bool,
    /// Whether the file is a checkpoint by its name.
    pub(crate) is_weights: bool,
}

/// Transfers of all threads, the last ones.
#[derive(Debug, Default)]
pub(crate) struct Transfers(Vec<Transfer>);

impl Transfers {
    pub(crate) fn push(&mut self, transfer: Transfer) {
        if self.0.len() >= MAX_RECENT {
            self.0.drain(..MAX_RECENT / 2);
        }
        self.0.push(transfer);
    }

    /// Bytes that a checkpoint moved since it began. Savers of TensorFlow write in other threads than the one that waits for them, so all
    /// writes count, and all reads of checkpoints; other reads only of the thread itself, because loaders read in threads.
    pub(crate) fn since(&mut self, start_ns: u64, is_read: bool, thread: u32) -> u64 {
        let counts = |of: &&Transfer| {
            of.start_ns >= start_ns && of.is_read == is_read && (!is_read || of.is_weights || of.thread == thread)
        };
        let bytes = self.0.iter().filter(counts).map(|of| of.bytes).sum();
        self.0.clear();
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_save_has_the_writes_of_all_threads_and_a_restore_no_reads_of_a_loader() {
        let mut transfers = Transfers::default();
        let mut add = |start_ns, bytes, thread, is_read, is_weights| {
            transfers.push(Transfer { start_ns, bytes, thread, is_read, is_weights });
        };
        add(1, 1, 7, false, true);
        add(5, 10, 7, false, false);
        add(6, 100, 8, false, true);
        assert_eq!((transfers.since(4, false, 7), transfers.since(4, false, 7)), (110, 0));
        let mut add = |start_ns, bytes, thread, is_read, is_weights| {
            transfers.push(Transfer { start_ns, bytes, thread, is_read, is_weights });
        };
        add(5, 10, 7, true, false);
        add(6, 100, 8, true, true);
        add(7, 1_000, 8, true, false);
        assert_eq!(transfers.since(4, true, 7), 110);
    }
}
