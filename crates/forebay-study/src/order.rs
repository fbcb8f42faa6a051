//! The order of cells: random, to keep drift of the machine from looking like an effect, and fixed per seed.

use forebay_units::random::Random;

pub(super) fn permutation(n: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    Random::new(seed).shuffle(&mut order);
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_order_of_a_seed_never_changes() {
        assert_eq!(permutation(8, 2018), EXPECTED);
    }

    const EXPECTED: [usize; 8] = [2, 3, 1, 4, 0, 6, 5, 7];

    proptest! {
        #[test]
        fn an_order_is_a_permutation_of_its_own_seed(n in 0usize..500, seed: u64) {
            let order = permutation(n, seed);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            prop_assert_eq!(sorted, (0..n).collect::<Vec<_>>());
            prop_assert_eq!(&order, &permutation(n, seed));
            // Two random orders of 100 cells are practically never equal.
            prop_assert!(n < 100 || order != permutation(n, seed ^ 1));
        }
    }
}
