//! Combines the levels of an experiment's factors.

use forebay_record::{Design, Level, Levels};

/// At five minutes per cell, a study of this size takes a year.
pub(super) const MAX_CELLS: usize = 100_000;

/// With at least one level.
pub(super) type Factor = (String, Vec<Level>);

/// `None` if the number overflows.
pub(super) fn size(design: Design, factors: &[Factor]) -> Option<usize> {
    let mut levels = factors.iter().map(|(_, levels)| levels.len());
    match design {
        Design::Factorial => levels.try_fold(1, |product: usize, n| product.checked_mul(n)),
        Design::OneAtATime => levels.try_fold(1, |sum: usize, n| sum.checked_add(n.saturating_sub(1))),
    }
}

/// Factorial: all combinations, the last factor changing fastest. One at a time: the baseline of first levels, then every
/// other level with the rest of the baseline.
pub(super) fn combinations(design: Design, factors: &[Factor]) -> Vec<Levels> {
    match design {
        Design::Factorial => factors.iter().fold(vec![Levels::new()], |combinations, factor| {
            combinations.iter().flat_map(|levels| each_level(levels, factor)).collect()
        }),
        Design::OneAtATime => {
            let baseline: Levels = factors.iter().map(|(name, levels)| (name.clone(), levels[0].clone())).collect();
            let others = factors.iter().flat_map(|factor| each_level(&baseline, factor).into_iter().skip(1));
            std::iter::once(baseline.clone()).chain(others).collect()
        }
    }
}

fn each_level(of: &Levels, (name, levels): &Factor) -> Vec<Levels> {
    let with = |level: &Level| {
        let mut combination = of.clone();
        combination.insert(name.clone(), level.clone());
        combination
    };
    levels.iter().map(with).collect()
}

/// The id of a cell: the experiment and its levels, sorted by factor.
pub(super) fn id(experiment: &str, levels: &Levels) -> String {
    let mut id = experiment.to_owned();
    for (name, level) in levels {
        id.push_str(&format!("/{name}={level}"));
    }
    id
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Factors `a`, `b`, … with these numbers of levels.
    fn factors(counts: &[usize]) -> Vec<Factor> {
        let name = |i: usize| char::from(b'a' + i as u8).to_string();
        let levels = |n: usize| (0..n as i64).map(Level::Integer).collect();
        counts.iter().enumerate().map(|(i, n)| (name(i), levels(*n))).collect()
    }

    fn ids(design: Design, factors: &[Factor]) -> Vec<String> {
        combinations(design, factors).iter().map(|levels| id("e", levels)).collect()
    }

    #[test]
    fn the_last_factor_changes_fastest() {
        assert_eq!(ids(Design::Factorial, &factors(&[2, 2])), ["e/a=0/b=0", "e/a=0/b=1", "e/a=1/b=0", "e/a=1/b=1"]);
    }

    #[test]
    fn one_at_a_time_varies_the_baseline() {
        let got = ids(Design::OneAtATime, &factors(&[3, 2]));
        assert_eq!(got, ["e/a=0/b=0", "e/a=1/b=0", "e/a=2/b=0", "e/a=0/b=1"]);
    }

    #[test]
    fn without_factors_there_is_one_cell() {
        for design in [Design::Factorial, Design::OneAtATime] {
            assert_eq!(ids(design, &[]), ["e"]);
        }
    }

    #[test]
    fn a_product_that_overflows_is_none() {
        assert_eq!(size(Design::Factorial, &factors(&[100_000; 8])), None);
        assert_eq!(size(Design::OneAtATime, &factors(&[100_000; 8])), Some(799_993));
    }

    proptest! {
        #[test]
        fn a_design_has_the_cells_it_promises_and_no_two_alike(counts in prop::collection::vec(1usize..6, 0..5)) {
            let factors = factors(&counts);
            for (design, promised) in [
                (Design::Factorial, counts.iter().product::<usize>()),
                (Design::OneAtATime, 1 + counts.iter().map(|n| n - 1).sum::<usize>()),
            ] {
                let ids = ids(design, &factors);
                prop_assert_eq!(ids.len(), promised);
                prop_assert_eq!(size(design, &factors), Some(promised));
                prop_assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), promised);
            }
        }
    }
}
