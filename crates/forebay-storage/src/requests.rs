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
        }
    }
}
