//! What a storage reached over a network did on behalf of its reads and writes.

/// Counts of HTTP requests, since the program started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Requests {
    /// All requests sent, repeated ones included.
    pub sent: u64,
    /// Answered with "slow down" (429 or 503), and repeated after a pause.
    pub throttled: u64,
    /// Answered with another server error, or not at all, and repeated.
    pub failed: u64,
    /// Sent again for the rest of an object whose transfer broke off.
    pub resumed: u64,
    /// Sent a second time because the answer was slow to come; the first answer counts.
    pub hedged: u64,
    /// What a near cache did; all 0 without one.
    pub cache: CacheCounts,
}

/// Counts of a cache of objects on a near disk, since the program started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheCounts {
    /// Reads that it served.
    pub read: u64,
    pub read_bytes: u64,
    /// Objects, or parts of them, that were written to it.
    pub kept: u64,
    pub kept_bytes: u64,
    /// Removed for others that are needed earlier.
    pub evicted: u64,
    /// Damaged ones, which were removed and read from the store.
    pub damaged: u64,
    /// Those that could not be written.
    pub unwritten: u64,
}

impl Requests {
    /// The requests since an earlier count.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            sent: self.sent - before.sent,
            throttled: self.throttled - before.throttled,
            failed: self.failed - before.failed,
            resumed: self.resumed - before.resumed,
            hedged: self.hedged - before.hedged,
            cache: self.cache.since(&before.cache),
        }
    }
}

impl CacheCounts {
    fn since(&self, before: &Self) -> Self {
        Self {
            read: self.read - before.read,
            read_bytes: self.read_bytes - before.read_bytes,
            kept: self.kept - before.kept,
            kept_bytes: self.kept_bytes - before.kept_bytes,
            evicted: self.evicted - before.evicted,
            damaged: self.damaged - before.damaged,
            unwritten: self.unwritten - before.unwritten,
        }
    }
}
