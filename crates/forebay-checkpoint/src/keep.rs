//! Which checkpoints stay on a tier.

use std::collections::{BTreeMap, BTreeSet};

use crate::Name;

/// Which direction of the metric is better: lower for a loss, higher for an accuracy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    Lower,
    Higher,
}

/// Retention rules: a checkpoint stays if any rule keeps it.
///
/// Damaged checkpoints count for no rule. A checkpoint that waits to be drained counts for the farther tier: if newer
/// ones would cause its removal on arrival, it is not drained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keep {
    /// Keep this many of the newest; at least one is always kept.
    pub last: usize,
    /// Keep those whose step is a multiple of this.
    pub every: Option<u64>,
    /// Keep this many of the best by the metric they were saved with.
    pub best: Option<(usize, Better)>,
}

impl Default for Keep {
    fn default() -> Self {
        Self { last: 5, every: None, best: None }
    }
}

impl Keep {
    /// Keeps this many of the newest and no others.
    pub fn last(last: usize) -> Self {
        Self { last, ..Self::default() }
    }

    /// The checkpoints that stay, from a list with their metrics.
    pub fn kept(&self, all: &BTreeMap<Name, Option<f64>>) -> BTreeSet<Name> {
        let mut kept: BTreeSet<Name> = all.keys().rev().take(self.last.max(1)).copied().collect();
        if let Some(every) = self.every.filter(|every| *every > 0) {
            kept.extend(all.keys().filter(|name| name.step % every == 0));
        }
        if let Some((n, better)) = self.best {
            let measured = all.iter().filter_map(|(name, metric)| Some((metric.filter(|m| !m.is_nan())?, *name)));
            let mut measured: Vec<(f64, Name)> = measured.collect();
            // Of equally good ones, the newer stays.
            measured.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
            match better {
                Better::Lower => kept.extend(measured.iter().take(n).map(|(_, name)| *name)),
                Better::Higher => kept.extend(measured.iter().rev().take(n).map(|(_, name)| *name)),
            }
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(metrics: &[(u64, Option<f64>)]) -> BTreeMap<Name, Option<f64>> {
        metrics.iter().map(|(step, metric)| (Name { step: *step, take: 0 }, *metric)).collect()
    }

    fn steps(kept: &BTreeSet<Name>) -> Vec<u64> {
        kept.iter().map(|name| name.step).collect()
    }

    #[test]
    fn each_rule_keeps_its_own() {
        let all = all(&[(10, Some(0.5)), (20, Some(0.1)), (30, None), (40, Some(f64::NAN)), (50, Some(0.9))]);
        assert_eq!(steps(&Keep::last(2).kept(&all)), [40, 50]);
        assert_eq!(steps(&Keep { last: 1, every: Some(20), best: None }.kept(&all)), [20, 40, 50]);
        assert_eq!(steps(&Keep { last: 1, every: None, best: Some((2, Better::Lower)) }.kept(&all)), [10, 20, 50]);
        assert_eq!(steps(&Keep { last: 1, every: None, best: Some((2, Better::Higher)) }.kept(&all)), [10, 50]);
    }

    #[test]
    fn the_newest_always_stays() {
        assert_eq!(steps(&Keep::last(0).kept(&all(&[(1, None), (2, None)]))), [2]);
    }
}
