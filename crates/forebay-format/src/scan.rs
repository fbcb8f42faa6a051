//! Finding the samples of a shard that is too big to hold.
//!
//! The scanner knows the format, its caller knows where the bytes are. They alternate: [`Scanner::want`] names a small
//! piece of the file, the caller reads it in whatever way it likes, [`Scanner::feed`] digests it and now and then
//! yields the place of a complete sample. The payloads in between are never read.

use crate::Error;

/// A piece of the file the scanner needs next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Want {
    pub offset: u64,
    /// How many bytes; never more than a mebibyte.
    pub len: usize,
}

/// The place of one sample in a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub offset: u64,
    /// How many bytes it takes, framing and padding included.
    pub len: u64,
}

/// Walks a shard from its first sample to its last.
///
/// Spans come in file order, do not overlap and lie within the length given at construction. After an error, or once
/// `want` has answered `None`, the scan is over and `want` keeps answering `None`.
pub trait Scanner {
    /// The piece needed next, or `None` at the end of the shard.
    fn want(&self) -> Option<Want>;

    /// Takes the bytes that `want` asked for and yields the sample they complete, if any.
    ///
    /// # Errors
    /// When the bytes are fewer than were asked for, are not in the format, or describe something that reaches past the
    /// end of the shard.
    fn feed(&mut self, bytes: &[u8]) -> Result<Option<Span>, Error>;
}
