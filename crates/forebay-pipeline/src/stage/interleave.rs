//! Alternating between the samples of several groups (shards or class folders), as tf.data's interleave does.

use std::collections::VecDeque;

use super::shuffle::endless;
use super::{Chain, Listed, Sequence, Stage, collect};

/// Keeps `cycle` groups open and takes `block` samples from each in turn. The next unopened group replaces an exhausted
/// one.
#[derive(Debug)]
pub(crate) struct Interleave {
    pub(crate) cycle: usize,
    pub(crate) block: usize,
}

impl Stage for Interleave {
    fn open(&self, before: &Chain, epoch: u64) -> Box<dyn Sequence> {
        let groups = before.index.grouped(collect(before.open(epoch)));
        Box::new(Listed::new(interleave(groups, self.cycle, self.block)))
    }

    fn len(&self, before: Option<u64>) -> Option<u64> {
        before
    }

    fn refuse(&self, before: &Chain) -> Option<String> {
        if self.cycle == 0 || self.block == 0 {
            return Some("cycle and block must be at least 1".to_owned());
        }
        endless(before)
    }
}

fn interleave(groups: Vec<Vec<u32>>, cycle: usize, block: usize) -> Vec<u32> {
    let mut out = Vec::with_capacity(groups.iter().map(Vec::len).sum());
    let mut unopened: VecDeque<std::vec::IntoIter<u32>> = groups.into_iter().map(Vec::into_iter).collect();
    let cycle = cycle.min(unopened.len());
    let mut open: Vec<Option<std::vec::IntoIter<u32>>> = (0..cycle).map(|_| unopened.pop_front()).collect();
    while open.iter().any(Option::is_some) {
        for place in &mut open {
            let Some(group) = place else { continue };
            out.extend(group.by_ref().take(block));
            if group.len() == 0 {
                *place = unopened.pop_front();
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_take_turns_and_make_room() {
        let groups = vec![vec![0, 1, 2], vec![10], vec![20, 21], vec![30]];
        assert_eq!(interleave(groups.clone(), 2, 1), [0, 10, 1, 20, 2, 21, 30]);
        assert_eq!(interleave(groups.clone(), 2, 2), [0, 1, 10, 2, 20, 21, 30]);
        assert_eq!(interleave(groups, 1, 1), [0, 1, 2, 10, 20, 21, 30]);
    }
}
