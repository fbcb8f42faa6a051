//! Random numbers that are the same on every machine and for any number of threads.

use forebay_units::random::{GOLDEN, Random, stream_seed};

/// The key of stream `stream` of `seed`.
pub(crate) fn key(seed: u64, stream: u64) -> u64 {
    stream_seed(seed ^ 0x7472_6169_6E21_0001, stream)
}

/// The key of the stream that begins after the first `n` values of `key`'s.
pub(crate) fn after(key: u64, n: u64) -> u64 {
    key.wrapping_add(GOLDEN.wrapping_mul(n))
}

/// Stream `stream` of `seed`, read from its beginning.
pub(crate) fn random(seed: u64, stream: u64) -> Random {
    Random::new(key(seed, stream))
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_units::random::at;

    #[test]
    fn a_stream_that_begins_later_has_the_same_values() {
        let key = key(7, 3);
        assert_eq!(
            (0..5).map(|i| at(after(key, 9), i)).collect::<Vec<_>>(),
            (9..14).map(|i| at(key, i)).collect::<Vec<_>>()
        );
    }
}
