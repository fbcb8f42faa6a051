//! Reads announced before they are made.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use crate::Storage;

/// A read that will be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextRead {
    pub path: PathBuf,
    /// Part of the object; `None` for the whole.
    pub range: Option<Range<u64>>,
}

/// Reads in the order in which they will be made.
pub type Reads = Box<dyn Iterator<Item = NextRead> + Send>;

/// A storage that requests announced reads ahead of their readers.
pub struct Ahead {
    /// Reads through this storage find their bytes requested or already here; other reads work as usual.
    pub storage: Arc<dyn Storage>,
    /// Ends it: nothing more is requested, and waiting readers fail at once.
    pub stop: Box<dyn Fn() + Send + Sync>,
}
