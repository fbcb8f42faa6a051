//! FNV-1a (Fowler, Noll and Vo) in 64 bits: simple, and the same on every machine and in every version.
//!
//! Saved states, cached stages and folder names hold its values, so a library's hash, which may change, cannot replace it.

/// An incremental hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fnv(pub u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xCBF2_9CE4_8422_2325)
    }
}

impl Fnv {
    /// The hash of these bytes.
    pub fn of(bytes: &[u8]) -> u64 {
        let mut hash = Self::default();
        hash.bytes(bytes);
        hash.0
    }

    /// Hashes bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.word(u64::from(*byte)));
    }

    /// Hashes a number in one step; the result differs from hashing its bytes.
    pub fn word(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x0100_0000_01B3);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_the_published_ones() {
        assert_eq!(
            [b"".as_slice(), b"a", b"foobar"].map(Fnv::of),
            [0xCBF2_9CE4_8422_2325, 0xAF63_DC4C_8601_EC8C, 0x8594_4171_F739_67E8]
        );
    }
}
