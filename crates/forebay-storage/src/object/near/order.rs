//! What to keep in a full cache: what comes next, known from the order of the coming epochs (Belady's rule).
//!
//! The order of reads is drawn an epoch ahead of the current read, so the next use of all bytes is known. Those at hand
//! replace entries whose next use is later, farthest first, and are not kept if there are too few of these, so nothing
//! is written that would be removed unread. Without an epoch ahead, as in the last one, the cache stays as it is.

use std::collections::{BTreeSet, HashMap, VecDeque};

/// The names of keys in the order of their reads.
pub(super) type Names = Box<dyn Iterator<Item = u64> + Send>;

/// No further use is known.
const NEVER: u64 = u64::MAX;

#[derive(Debug, Clone, Copy)]
struct Held {
    bytes: u64,
    /// Reads that were planned and not made.
    pins: u32,
}

#[derive(Debug, Clone, Copy)]
struct Use {
    /// The next read after the current one.
    next: u64,
    /// The last read that is known.
    last: u64,
}

pub(super) struct Order {
    reads: Names,
    is_over: bool,
    /// The reads do not come in the order that was announced.
    is_lost: bool,
    /// The position of the next read.
    now: u64,
    /// Reads from `now` on, each with the position of the next read of the same bytes.
    window: VecDeque<(u64, u64)>,
    uses: HashMap<u64, Use>,
    held: HashMap<u64, Held>,
    /// Entries that may be removed, by their next use.
    by_use: BTreeSet<(u64, u64)>,
    /// Entries that this order does not name.
    strangers: Option<Vec<u64>>,
    /// Whether nobody else needs the strangers.
    is_alone: bool,
}

impl Order {
    /// `held` are the entries of the cache with their bytes on disk.
    pub(super) fn new(reads: Names, held: impl Iterator<Item = (u64, u64)>, is_alone: bool) -> Self {
        Self {
            reads,
            is_over: false,
            is_lost: false,
            now: 0,
            window: VecDeque::new(),
            uses: HashMap::new(),
            held: held.map(|(name, bytes)| (name, Held { bytes, pins: 0 })).collect(),
            by_use: BTreeSet::new(),
            strangers: None,
            is_alone,
        }
    }

    pub(super) fn is_held(&self, name: u64) -> bool {
        self.held.contains_key(&name)
    }

    /// Goes one read ahead, which is of this name.
    pub(super) fn pass(&mut self, name: u64) {
        if self.window.is_empty() {
            self.draw();
        }
        match self.window.pop_front() {
            Some((found, next)) if found == name => {
                self.now += 1;
                self.set_next(name, next);
            }
            _ => self.is_lost = true,
        }
    }

    /// Keeps an entry until it was read; returns its bytes on disk, if there is one.
    pub(super) fn pin(&mut self, name: u64) -> Option<u64> {
        let next = self.next_of(name);
        let held = self.held.get_mut(&name)?;
        held.pins += 1;
        self.by_use.remove(&(next, name));
        Some(held.bytes)
    }

    pub(super) fn unpin(&mut self, name: u64) {
        let next = self.next_of(name);
        if let Some(held) = self.held.get_mut(&name) {
            held.pins = held.pins.saturating_sub(1);
            if held.pins == 0 {
                self.by_use.insert((next, name));
            }
        }
    }

    /// An entry that another program made.
    pub(super) fn found(&mut self, name: u64, bytes: u64) {
        self.held.insert(name, Held { bytes, pins: 0 });
        self.by_use.insert((self.next_of(name), name));
    }

    /// An entry that is gone.
    pub(super) fn forget(&mut self, name: u64) {
        self.held.remove(&name);
        self.by_use.remove(&(self.next_of(name), name));
    }

    /// Whether to keep bytes of which `room` more fit, and which entries to remove for them.
    pub(super) fn admit(&mut self, name: u64, bytes: u64, room: u64) -> Option<Vec<u64>> {
        if self.is_held(name) {
            return None;
        }
        let victims = if bytes <= room { Vec::new() } else { self.victims(name, bytes - room)? };
        victims.iter().for_each(|victim| self.forget(*victim));
        self.found(name, bytes);
        Some(victims)
    }

    /// Entries of so many bytes that are needed later than this name; `None` if there are too few.
    fn victims(&mut self, name: u64, bytes: u64) -> Option<Vec<u64>> {
        // A permutation per epoch has every name again within twice its length.
        while self.window.len() <= 2 * self.uses.len() && self.draw() {}
        let next = self.next_of(name);
        if next == NEVER || self.is_lost {
            return None;
        }
        let mut victims = self.take_strangers(bytes);
        let mut freed = victims.iter().filter_map(|name| self.held.get(name)).map(|held| held.bytes).sum::<u64>();
        for (_, victim) in self.by_use.iter().rev().take_while(|(at, _)| *at > next) {
            if freed >= bytes {
                break;
            }
            victims.push(*victim);
            freed += self.held.get(victim).map_or(0, |held| held.bytes);
        }
        if freed >= bytes {
            return Some(victims);
        }
        let uses = &self.uses;
        self.strangers.iter_mut().for_each(|kept| kept.extend(victims.iter().filter(|name| !uses.contains_key(name))));
        None
    }

    /// Entries of so many bytes, or all of them, that this order does not name and nobody else needs.
    fn take_strangers(&mut self, bytes: u64) -> Vec<u64> {
        if !self.is_alone {
            return Vec::new();
        }
        let (held, uses) = (&self.held, &self.uses);
        let strangers = self
            .strangers
            .get_or_insert_with(|| held.keys().copied().filter(|name| !uses.contains_key(name)).collect());
        let (mut taken, mut freed) = (Vec::new(), 0);
        while freed < bytes
            && let Some(name) = strangers.pop()
        {
            if let Some(held) = held.get(&name).filter(|held| held.pins == 0 && !uses.contains_key(&name)) {
                freed += held.bytes;
                taken.push(name);
            }
        }
        taken
    }

    /// Draws one more read of the order; `false` at its end.
    fn draw(&mut self) -> bool {
        let Some(name) = self.reads.next().filter(|_| !self.is_over) else {
            self.is_over = true;
            return false;
        };
        let position = self.now + self.window.len() as u64;
        self.window.push_back((name, NEVER));
        match self.uses.get_mut(&name) {
            None => {
                self.uses.insert(name, Use { next: NEVER, last: position });
                self.set_next(name, position);
            }
            Some(of) => {
                let last = std::mem::replace(&mut of.last, position);
                match last.checked_sub(self.now) {
                    Some(at) => self.window[at as usize].1 = position,
                    None => self.set_next(name, position),
                }
            }
        }
        true
    }

    fn next_of(&self, name: u64) -> u64 {
        self.uses.get(&name).map_or(NEVER, |of| of.next)
    }

    fn set_next(&mut self, name: u64, next: u64) {
        let Some(of) = self.uses.get_mut(&name) else { return };
        let before = std::mem::replace(&mut of.next, next);
        if self.held.get(&name).is_some_and(|held| held.pins == 0) {
            self.by_use.remove(&(before, name));
            self.by_use.insert((next, name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const N: usize = 1_000;
    const EPOCHS: usize = 12;

    /// Random epochs, each a permutation.
    fn epochs() -> Vec<u64> {
        let mut state = 1_u64;
        let mut all = Vec::new();
        for _ in 0..EPOCHS {
            let mut epoch: Vec<u64> = (0..N as u64).collect();
            for at in (1..N).rev() {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                epoch.swap(at, (state >> 33) as usize % (at + 1));
            }
            all.extend(epoch);
        }
        all
    }

    /// Misses per epoch of a cache of this many entries.
    fn misses(reads: &[u64], capacity: u64) -> Vec<usize> {
        let names = reads.to_vec();
        let mut order = Order::new(Box::new(names.into_iter()), std::iter::empty(), true);
        let (mut stored, mut misses) = (HashSet::new(), vec![0; reads.len().div_ceil(N)]);
        for (at, name) in reads.iter().enumerate() {
            order.pass(*name);
            if order.pin(*name).is_some() {
                order.unpin(*name);
                assert!(stored.contains(name), "what is called held is there");
                continue;
            }
            misses[at / N] += 1;
            if let Some(victims) = order.admit(*name, 1, capacity - stored.len() as u64) {
                victims.iter().for_each(|victim| assert!(stored.remove(victim)));
                stored.insert(*name);
                assert!(stored.len() as u64 <= capacity);
            }
        }
        misses
    }

    fn misses_of_lru(reads: &[u64], capacity: usize) -> Vec<usize> {
        let (mut stored, mut misses) = (VecDeque::new(), vec![0; reads.len().div_ceil(N)]);
        for (at, name) in reads.iter().enumerate() {
            match stored.iter().position(|known| known == name) {
                Some(found) => drop(stored.remove(found)),
                None => misses[at / N] += 1,
            }
            stored.push_back(*name);
            if stored.len() > capacity {
                stored.pop_front();
            }
        }
        misses
    }

    #[test]
    fn half_the_data_in_the_cache_saves_half_the_reads_where_lru_saves_a_sixth() {
        let reads = epochs();
        let (ours, lru) = (misses(&reads, N as u64 / 2), misses_of_lru(&reads, N / 2));
        assert_eq!((ours[0], lru[0]), (N, N), "the first epoch reads everything");
        let share = |misses: &[usize]| misses[1..].iter().sum::<usize>() as f64 / ((EPOCHS - 1) * N) as f64;
        assert!(share(&ours) <= 0.55 && share(&lru) >= 0.75, "{} {}", share(&ours), share(&lru));
        assert!(ours[1..].iter().all(|misses| *misses <= N * 55 / 100), "{ours:?}");
    }

    #[test]
    fn no_policy_with_a_cache_of_this_size_reads_less() {
        // What the order says is what a look at the whole future says: the farthest next use goes first.
        let reads = epochs();
        let capacity = N / 4;
        let mut stored: HashSet<u64> = HashSet::new();
        let mut next = vec![usize::MAX; reads.len()];
        let mut seen = HashMap::new();
        for (at, name) in reads.iter().enumerate().rev() {
            next[at] = seen.insert(*name, at).unwrap_or(usize::MAX);
        }
        let (mut at_of, mut best) = (HashMap::new(), 0);
        for (at, name) in reads.iter().enumerate() {
            best += usize::from(!stored.contains(name));
            at_of.insert(*name, next[at]);
            stored.insert(*name);
            if stored.len() > capacity {
                let farthest = *stored.iter().max_by_key(|name| at_of[name]).unwrap();
                stored.remove(&farthest);
            }
        }
        assert_eq!(misses(&reads, capacity as u64).iter().sum::<usize>(), best);
    }

    #[test]
    fn one_epoch_alone_leaves_the_cache_as_it_is() {
        let epoch = &epochs()[..N];
        let held = (0..N as u64 / 2).map(|name| (name, 1));
        let names = epoch.to_vec();
        let mut order = Order::new(Box::new(names.into_iter()), held, true);
        for name in epoch {
            order.pass(*name);
            assert_eq!(order.admit(*name, 1, 0), None);
        }
        assert!((0..N as u64 / 2).all(|name| order.is_held(name)));
    }

    #[test]
    fn entries_of_other_data_go_first_unless_another_program_may_need_them() {
        for is_alone in [true, false] {
            let reads = [1, 2, 1, 2];
            let mut order = Order::new(Box::new(reads.into_iter()), [(77, 1)].into_iter(), is_alone);
            order.pass(1);
            assert_eq!(order.admit(1, 1, 0), is_alone.then(|| vec![77]));
        }
    }

    #[test]
    fn what_is_about_to_be_read_is_not_removed() {
        let reads = [1, 2, 3, 2, 1, 3];
        let mut order = Order::new(Box::new(reads.into_iter()), [(1, 1)].into_iter(), true);
        order.pass(1);
        assert_eq!(order.pin(1), Some(1));
        order.pass(2);
        assert_eq!(order.admit(2, 1, 0), None);
        order.unpin(1);
        assert_eq!(order.admit(2, 1, 0), Some(vec![1]));
    }

    #[test]
    fn reads_that_were_not_announced_end_the_removals_and_not_the_reads() {
        let mut order = Order::new(Box::new([1, 2, 1].into_iter()), [(9, 1)].into_iter(), true);
        order.pass(5);
        assert_eq!(order.admit(5, 1, 0), None);
        assert_eq!(order.admit(5, 1, 1), Some(vec![]));
    }
}
