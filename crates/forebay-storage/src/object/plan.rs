//! Which bytes to request next, and which are here: the book-keeping of a session, without requests.
//!
//! Announced reads become blocks: a whole object, or a part of one. Parts that touch one another become one block as long
//! as it is not yet requested, also if reads of other objects lie between them. All planned bytes together stay within
//! the budget, which readers free by taking them. The size of a whole object is known only when it is here; until
//! then the mean of those before it counts.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::get::Answer;
use crate::{Buffer, Error, NextRead, Result};

/// Parts are joined up to this size: with more, a block would come later than its first reader needs it.
const BLOCK: u64 = 4 << 20;
/// Assumed size of an object before the first is here.
const FIRST_GUESS: u64 = 256 << 10;
/// Bytes of buffers kept for later requests, beside the budget.
const SPARE: usize = 32 << 20;

pub(super) type Reads = Box<dyn Iterator<Item = NextRead> + Send>;

enum State {
    Planned,
    Requested,
    Here(Buffer),
    Failed(Error),
}

struct Block {
    path: PathBuf,
    /// `None` for a whole object.
    range: Option<Range<u64>>,
    /// Bytes not yet taken; of a whole object, 1.
    left: u64,
    /// The position of its last read among all announced ones.
    last: u64,
    /// Bytes of the budget.
    reserved: u64,
    state: State,
}

/// A block to request.
pub(super) struct Request {
    pub(super) id: u64,
    pub(super) path: PathBuf,
    pub(super) range: Option<Range<u64>>,
    pub(super) etag: Option<String>,
    pub(super) buffer: Buffer,
}

/// What a reader finds.
pub(super) enum Found {
    /// It was not announced, or too long ago or too far ahead: the reader reads by itself.
    Nothing,
    /// It will come.
    Later,
    Now(Result<()>),
}

pub(super) struct Plan {
    reads: Reads,
    budget: u64,
    /// How far out of order reads may come.
    spread: u64,
    planned: u64,
    taken: u64,
    is_over: bool,
    next_id: u64,
    blocks: HashMap<u64, Block>,
    /// The blocks of a path, in the order of their reads.
    of_path: HashMap<PathBuf, VecDeque<u64>>,
    /// Blocks that are not requested yet.
    queue: VecDeque<u64>,
    /// All blocks, oldest first; also some that are gone.
    by_age: VecDeque<u64>,
    reserved: u64,
    n_requested: usize,
    /// Sizes of whole objects.
    sizes: (u64, u64),
    /// The version of each object of which parts were read.
    etags: HashMap<PathBuf, String>,
    spare: Vec<Buffer>,
}

impl Plan {
    pub(super) fn new(reads: Reads, budget: u64, spread: u64) -> Self {
        Self {
            reads,
            budget,
            spread,
            planned: 0,
            taken: 0,
            is_over: false,
            next_id: 0,
            blocks: HashMap::new(),
            of_path: HashMap::new(),
            queue: VecDeque::new(),
            by_age: VecDeque::new(),
            reserved: 0,
            n_requested: 0,
            sizes: (0, 0),
            etags: HashMap::new(),
            spare: Vec::new(),
        }
    }

    pub(super) fn n_requested(&self) -> usize {
        self.n_requested
    }

    /// Forgets everything; nothing more is planned.
    pub(super) fn stop(&mut self) {
        self.is_over = true;
        self.blocks.clear();
        self.of_path.clear();
        self.queue.clear();
    }

    /// Plans as many reads as the budget allows, and returns the blocks to request while at most `limit` are in flight.
    pub(super) fn go_on(&mut self, limit: usize) -> Vec<Request> {
        self.drop_passed();
        while self.reserved < self.budget && !self.is_over {
            self.plan_next();
        }
        let mut requests = Vec::new();
        while self.n_requested < limit
            && let Some(id) = self.queue.pop_front()
        {
            let Some(block) = self.blocks.get_mut(&id) else { continue };
            block.state = State::Requested;
            self.n_requested += 1;
            let etag = block.range.as_ref().and_then(|_| self.etags.get(&block.path).cloned());
            let (path, range) = (block.path.clone(), block.range.clone());
            requests.push(Request { id, path, range, etag, buffer: self.spare.pop().unwrap_or_default() });
        }
        requests
    }

    fn plan_next(&mut self) {
        let Some(NextRead { path, range }) = self.reads.next() else {
            self.is_over = true;
            return;
        };
        let position = self.planned;
        self.planned += 1;
        let bytes = range.as_ref().map_or_else(|| self.guess(), |range| range.end.saturating_sub(range.start));
        if range.is_some() && bytes == 0 {
            return;
        }
        self.reserved += bytes;
        if let Some(range) = &range
            && let Some(block) = self.last_of(&path)
            && let State::Planned = block.state
            && let Some(whole) = &mut block.range
            && whole.end == range.start
            && range.end - whole.start <= BLOCK
        {
            whole.end = range.end;
            (block.left, block.reserved, block.last) = (block.left + bytes, block.reserved + bytes, position);
            return;
        }
        let id = self.next_id;
        self.next_id += 1;
        let left = if range.is_some() { bytes } else { 1 };
        self.of_path.entry(path.clone()).or_default().push_back(id);
        self.blocks.insert(id, Block { path, range, left, last: position, reserved: bytes, state: State::Planned });
        self.queue.push_back(id);
        self.by_age.push_back(id);
    }

    fn last_of(&mut self, path: &Path) -> Option<&mut Block> {
        let id = self.of_path.get(path)?.back()?;
        self.blocks.get_mut(id)
    }

    fn guess(&self) -> u64 {
        self.sizes.0.checked_div(self.sizes.1).unwrap_or(FIRST_GUESS).max(1)
    }

    /// Takes in the answer to a request.
    pub(super) fn arrived(&mut self, id: u64, outcome: Result<Answer>) {
        self.n_requested -= 1;
        let Some(block) = self.blocks.get_mut(&id) else { return };
        let outcome = outcome.and_then(|answer| match (&block.range, answer.etag) {
            (Some(_), Some(etag)) if *self.etags.entry(block.path.clone()).or_insert(etag.clone()) != etag => {
                Err(super::failure::of(crate::Operation::Read, &block.path, super::failure::Cause::Changed))
            }
            _ => Ok(answer.buffer),
        });
        let bytes = outcome.as_ref().map_or(0, |buffer| buffer.len() as u64);
        self.reserved = self.reserved - block.reserved + bytes;
        block.reserved = bytes;
        if block.range.is_none() && outcome.is_ok() {
            self.sizes = (self.sizes.0 + bytes, self.sizes.1 + 1);
        }
        block.state = outcome.map_or_else(State::Failed, State::Here);
    }

    /// The bytes of a whole object.
    pub(super) fn whole(&mut self, path: &Path, into: &mut Buffer) -> Found {
        let id = loop {
            let ids = self.of_path.get(path).into_iter().flatten();
            match ids.copied().find(|id| self.blocks.get(id).is_some_and(|block| block.range.is_none())) {
                Some(id) => break id,
                None if self.plan_soon() => {}
                None => return Found::Nothing,
            }
        };
        if !self.is_here(id) {
            return Found::Later;
        }
        Found::Now(match self.remove(id) {
            Some(State::Here(mut buffer)) => {
                std::mem::swap(into, &mut buffer);
                self.keep(buffer);
                Ok(())
            }
            Some(State::Failed(error)) => Err(error),
            _ => return Found::Nothing,
        })
    }

    /// Part of an object, which may lie in several blocks.
    pub(super) fn part(&mut self, path: &Path, range: Range<u64>, into: &mut Buffer) -> Found {
        let ids = loop {
            match self.blocks_of(path, &range) {
                Some(ids) => break ids,
                None if self.plan_soon() => {}
                None => return Found::Nothing,
            }
        };
        if !ids.iter().all(|id| self.is_here(*id)) {
            return Found::Later;
        }
        into.resize((range.end - range.start) as usize);
        let mut outcome = Ok(());
        for id in ids {
            let copied = self.copy(id, &range, into);
            outcome = outcome.and(copied);
        }
        Found::Now(outcome)
    }

    fn copy(&mut self, id: u64, range: &Range<u64>, into: &mut Buffer) -> Result<()> {
        let Some(block) = self.blocks.get_mut(&id) else { return Ok(()) };
        let Some(whole) = block.range.clone() else { return Ok(()) };
        let (start, end) = (range.start.max(whole.start), range.end.min(whole.end));
        block.left = block.left.saturating_sub(end - start);
        let is_used_up = block.left == 0;
        let outcome = match &block.state {
            State::Here(buffer) => {
                let (from, to) = ((start - whole.start) as usize, (start - range.start) as usize);
                let len = (end - start) as usize;
                into.as_mut_slice()[to..to + len].copy_from_slice(&buffer.as_slice()[from..from + len]);
                Ok(())
            }
            State::Failed(error) => Err(error.again()),
            State::Planned | State::Requested => Ok(()),
        };
        self.taken = self.taken.max(block.last);
        if is_used_up && let Some(State::Here(buffer)) = self.remove(id) {
            self.keep(buffer);
        }
        outcome
    }

    /// The blocks that together hold a part; `None` if one is not planned.
    fn blocks_of(&self, path: &Path, range: &Range<u64>) -> Option<Vec<u64>> {
        let (mut ids, mut at) = (Vec::new(), range.start);
        while at < range.end {
            let mut all = self.of_path.get(path)?.iter().copied();
            let (id, end) = all.find_map(|id| {
                let block = self.blocks.get(&id)?.range.as_ref()?;
                (block.contains(&at) && !ids.contains(&id)).then_some((id, block.end))
            })?;
            ids.push(id);
            at = end;
        }
        Some(ids)
    }

    /// Plans one more read for a reader that came before its turn, whatever the budget says; `false` if its read is not
    /// among those that come soon.
    fn plan_soon(&mut self) -> bool {
        if self.is_over || self.planned > self.taken + self.spread {
            return false;
        }
        self.plan_next();
        true
    }

    fn is_here(&self, id: u64) -> bool {
        self.blocks.get(&id).is_some_and(|block| matches!(block.state, State::Here(_) | State::Failed(_)))
    }

    fn remove(&mut self, id: u64) -> Option<State> {
        let block = self.blocks.remove(&id)?;
        self.taken = self.taken.max(block.last);
        self.reserved -= block.reserved;
        if let Some(ids) = self.of_path.get_mut(&block.path) {
            ids.retain(|known| *known != id);
            if ids.is_empty() {
                self.of_path.remove(&block.path);
            }
        }
        Some(block.state)
    }

    fn keep(&mut self, buffer: Buffer) {
        let kept: usize = self.spare.iter().map(Buffer::capacity).sum();
        if kept + buffer.capacity() <= SPARE {
            self.spare.push(buffer);
        }
    }

    /// Gives up blocks that no reader asked for when their turn came.
    fn drop_passed(&mut self) {
        while let Some(id) = self.by_age.front().copied() {
            match self.blocks.get(&id) {
                None => {}
                Some(block) if self.is_here(id) && block.last + self.spread < self.taken => drop(self.remove(id)),
                Some(_) => return,
            }
            self.by_age.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(reads: &[(&str, Range<u64>)]) -> Reads {
        let reads: Vec<_> =
            reads.iter().map(|(path, range)| NextRead { path: path.into(), range: Some(range.clone()) }).collect();
        Box::new(reads.into_iter())
    }

    fn wholes(n: usize) -> Reads {
        Box::new((0..n).map(|n| NextRead { path: n.to_string().into(), range: None }))
    }

    fn answer(len: usize, etag: &str) -> Result<Answer> {
        let mut buffer = Buffer::default();
        buffer.fill_from(&(0..len).map(|n| n as u8).collect::<Vec<_>>());
        Ok(Answer { buffer, etag: Some(etag.to_owned()) })
    }

    fn requested(plan: &mut Plan, limit: usize) -> Vec<(String, Option<Range<u64>>)> {
        let name = |request: Request| (request.path.to_str().unwrap().to_owned(), request.range);
        plan.go_on(limit).into_iter().map(name).collect()
    }

    #[test]
    fn parts_that_touch_are_requested_together_also_if_other_objects_lie_between() {
        let reads = [("a", 0..10), ("b", 0..10), ("a", 10..30), ("b", 10..20), ("a", 40..50)];
        let mut plan = Plan::new(parts(&reads), 1_000, 8);
        let found = requested(&mut plan, 8);
        let wanted = [("a", 0..30), ("b", 0..20), ("a", 40..50)];
        assert_eq!(found, wanted.map(|(path, range)| (path.to_owned(), Some(range))));
        plan.arrived(0, answer(30, "1"));
        plan.arrived(2, answer(10, "1"));
        let mut into = Buffer::default();
        assert!(matches!(plan.part(Path::new("a"), 5..20, &mut into), Found::Now(Ok(()))));
        assert_eq!(into.as_slice(), (5..20).collect::<Vec<u8>>());
        assert!(matches!(plan.part(Path::new("b"), 0..10, &mut into), Found::Later));
        assert!(matches!(plan.part(Path::new("a"), 40..50, &mut into), Found::Now(Ok(()))));
        assert_eq!(plan.reserved, 50, "what is left of a block counts until all of it is taken");
    }

    #[test]
    fn a_read_over_the_border_of_two_blocks_finds_both() {
        let at = BLOCK - 10;
        let mut plan = Plan::new(parts(&[("a", 0..at), ("a", at..at + 20), ("a", at + 20..at + 30)]), BLOCK * 2, 8);
        assert_eq!(requested(&mut plan, 8).len(), 2);
        plan.arrived(0, answer(at as usize, "1"));
        let mut into = Buffer::default();
        assert!(matches!(plan.part(Path::new("a"), at - 1..at + 5, &mut into), Found::Later));
        plan.arrived(1, answer(30, "1"));
        assert!(matches!(plan.part(Path::new("a"), at - 1..at + 2, &mut into), Found::Now(Ok(()))));
        assert_eq!(into.as_slice(), [(at - 1) as u8, 0, 1]);
    }

    #[test]
    fn the_budget_limits_what_is_planned_and_taking_frees_it() {
        let mut plan = Plan::new(wholes(1_000), 4 * FIRST_GUESS, 8);
        assert_eq!(requested(&mut plan, 1_000).len(), 4);
        plan.arrived(0, answer(1_000, "1"));
        assert_eq!(requested(&mut plan, 1_000).len(), 262, "objects of this size fill the budget");
        let mut into = Buffer::default();
        assert!(matches!(plan.whole(Path::new("0"), &mut into), Found::Now(Ok(()))));
        assert_eq!(into.len(), 1_000);
    }

    #[test]
    fn a_read_that_is_not_planned_yet_is_planned_and_one_that_was_never_announced_is_not() {
        let mut plan = Plan::new(wholes(100), 1, 3);
        assert_eq!(requested(&mut plan, 100), [("0".to_owned(), None)]);
        let mut into = Buffer::default();
        assert!(matches!(plan.whole(Path::new("1"), &mut into), Found::Later));
        assert_eq!(requested(&mut plan, 100), [("1".to_owned(), None)]);
        assert!(matches!(plan.whole(Path::new("never"), &mut into), Found::Nothing));
        assert_eq!(requested(&mut plan, 100).len(), 2, "as many as may come out of order are planned");
    }

    #[test]
    fn what_no_reader_takes_is_given_up() {
        let mut plan = Plan::new(wholes(100), 1_000, 10);
        let mut into = Buffer::default();
        let mut taken = 0;
        for n in 0..100 {
            for request in plan.go_on(8) {
                plan.arrived(request.id, answer(100, "1"));
            }
            if n % 2 == 0 && matches!(plan.whole(Path::new(&n.to_string()), &mut into), Found::Now(_)) {
                taken += 1;
            }
        }
        assert_eq!(taken, 50, "readers of every second object are not held up by the others");
    }

    #[test]
    fn an_object_of_two_versions_is_an_error() {
        let mut plan = Plan::new(parts(&[("a", 0..10), ("a", 20..30)]), 1_000, 8);
        assert_eq!(requested(&mut plan, 8).len(), 2);
        plan.arrived(0, answer(10, "1"));
        plan.arrived(1, answer(10, "2"));
        let mut into = Buffer::default();
        let Found::Now(Err(error)) = plan.part(Path::new("a"), 20..30, &mut into) else { panic!("an error") };
        assert_eq!(error.to_string(), "reading a: it changed since it was opened");
    }
}
