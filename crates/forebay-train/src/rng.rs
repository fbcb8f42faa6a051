//! Random numbers that are the same on every machine and for any number of threads.

use forebay_units::random::{Random, stream_seed};

/// The key of stream `stream` of `seed`.
pub(crate) fn key(seed: u64, stream: u64) -> u64 {
    stream_seed(seed ^ 0x7472_6169_6E21_0001, stream)
}

/// Stream `stream` of `seed`, read from its beginning.
pub(crate) fn random(seed: u64, stream: u64) -> Random {
    Random::new(key(seed, stream))
}
