//! Sets of coefficients of a block, by zigzag place.
//!
//! The first place is the highest bit, so a single instruction can distribute bits from the stream, which come first
//! bit on top, to the places of a set.

use crate::simd::Level;

/// The set of one place, which must be below 64.
#[inline(always)]
pub(crate) fn at(k: u32) -> u64 {
    1 << (63 - (k & 63))
}

/// The set of all places from `k` on.
#[inline(always)]
pub(crate) fn from(k: u32) -> u64 {
    if k > 63 { 0 } else { u64::MAX >> k }
}

/// The place with `n` others of the set before it; 64 if there is none.
#[inline(always)]
pub(crate) fn nth(level: Level, mut set: u64, n: u32) -> u32 {
    match level {
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => {
            let n_places = set.count_ones();
            if n >= n_places { 64 } else { deposit(level, 1 << (n_places - 1 - n), set).leading_zeros() }
        }
        Level::Portable => {
            for _ in 0..n {
                set &= !(1 << 63 >> (set.leading_zeros() & 63));
            }
            set.leading_zeros()
        }
    }
}

/// The places of `set` whose bit in `bits` is 1; the last place corresponds to the lowest bit.
#[inline(always)]
pub(crate) fn deposit(level: Level, bits: u64, set: u64) -> u64 {
    match level {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: this level guarantees that the CPU has BMI2.
        Level::Avx2 => unsafe { std::arch::x86_64::_pdep_u64(bits, set) },
        Level::Portable => deposit_portably(bits, set),
    }
}

fn deposit_portably(mut bits: u64, mut set: u64) -> u64 {
    let mut result = 0;
    while set != 0 && bits != 0 {
        if bits & 1 == 1 {
            result |= set & set.wrapping_neg();
        }
        set &= set - 1;
        bits >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::{at, deposit, from, nth};
    use crate::simd::Level;
    use proptest::prelude::*;

    #[test]
    fn places_count_from_the_top() {
        assert_eq!((at(0), at(63), from(0), from(63), from(64)), (1 << 63, 1, u64::MAX, 1, 0));
        let set = at(3) | at(10) | at(40);
        let places = [0, 1, 2, 3].map(|n| nth(Level::Portable, set, n));
        assert_eq!(places, [3, 10, 40, 64]);
        assert_eq!(deposit(Level::Portable, 0b101, set), at(3) | at(40));
    }

    proptest! {
        #[test]
        fn every_level_deposits_and_selects_alike(bits: u64, set: u64, n in 0u32..64) {
            prop_assert_eq!(nth(Level::Portable, set, n), nth(Level::detect(), set, n));
            prop_assert_eq!(deposit(Level::Portable, bits, set), deposit(Level::detect(), bits, set));
        }
    }
}
