//! Finding the samples of a shard that is too big for memory.
//!
//! The scanner knows the format, its caller knows where the bytes are. They alternate: [`Scanner::want`] names a small
//! piece of the file, the caller reads it in any way, and [`Scanner::feed`] takes it and sometimes yields the place of
//! a complete sample. The payloads in between are never read.

use crate::Error;

/// A piece of the file the scanner needs next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Want {
    pub offset: u64,
    /// At most 1 MiB.
    pub len: usize,
}

/// The place of one sample in a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub offset: u64,
    /// Its length in bytes, including framing and padding.
    pub len: u64,
}

/// Walks a shard from its first sample to its last.
///
/// Spans come in file order, do not overlap and lie within the length given at construction. After an error, or once
/// `want` has returned `None`, the scan is over and `want` keeps returning `None`.
pub trait Scanner {
    /// The piece needed next, or `None` at the end of the shard.
    fn want(&self) -> Option<Want>;

    /// Takes the bytes that `want` asked for and yields the sample they complete, if any.
    ///
    /// # Errors
    /// When there are fewer bytes than requested, or they are not in the format or describe something that reaches past
    /// the end of the shard.
    fn feed(&mut self, bytes: &[u8]) -> Result<Option<Span>, Error>;
}
