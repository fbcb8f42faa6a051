//! Which bytes to request next, and which are here: the book-keeping of a session, without requests.
//!
//! Announced reads become blocks: a whole object, or a part of one. Parts that touch one another become one block as long
//! as it is not yet requested, also if reads of other objects lie between them. All planned bytes together stay within
//! the budget, which readers free by taking them. The size of a whole object is known only when it is here; until
//! then the mean of those before it counts.

use std::collections::{HashMap, VecDeque};
use std::iter::Peekable;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::get::Answer;
use super::near::{Keep, Key, Pass};
use crate::{Buffer, Error, NextRead, Reads, Result};

/// Parts are joined up to this size: with more, a block would come later than its first reader needs it.
const BLOCK: u64 = 4 << 20;
/// Assumed size of an object before the first is here.
const FIRST_GUESS: u64 = 256 << 10;
/// Bytes of buffers kept for later requests, beside the budget.
const SPARE: usize = 32 << 20;

enum State {
    /// In the near cache; no request is needed.
    Near,
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
    /// The version that came.
    etag: Option<String>,
    /// The announced reads that are joined here, if there is a near cache.
    pieces: Vec<Piece>,
}

/// An announced read, by which the near cache knows its bytes.
#[derive(Clone)]
pub(super) struct Piece {
    pub(super) key: Key,
    pub(super) range: Option<Range<u64>>,
}

impl Piece {
    fn touches(&self, other: &Range<u64>) -> bool {
        self.range.as_ref().is_none_or(|range| range.start < other.end && other.start < range.end)
    }
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
    Now(Result<Taken>),
}

/// What a reader still does, without holding up others.
#[derive(Default)]
pub(super) struct Taken {
    /// Bytes to read from the near cache.
    pub(super) near: Vec<Piece>,
    /// Bytes to keep there.
    pub(super) keep: Vec<Keep>,
}

pub(super) struct Plan {
    reads: Peekable<Reads>,
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
    near: Option<Pass>,
}

impl Plan {
    pub(super) fn new(reads: Reads, budget: u64, spread: u64) -> Self {
        Self {
            reads: reads.peekable(),
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
            near: None,
        }
    }

    /// Takes from a near cache what is there, and keeps what should be.
    pub(super) fn with_near(mut self, near: Option<Pass>) -> Self {
        self.near = near;
        self
    }

    /// Bytes that the near cache was thought to have.
    pub(super) fn forget(&mut self, key: &Key) {
        if let Some(near) = &mut self.near {
            near.forget(key);
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
        self.near = None;
    }

    /// Plans as many reads as the budget allows, and returns the blocks to request while at most `limit` are in flight.
    pub(super) fn go_on(&mut self, limit: usize) -> Vec<Request> {
        self.drop_passed();
        while self.reserved < self.budget && !self.is_over && !self.is_next_on_its_way() {
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

    /// Whether the next read is of bytes that another reader will take from the store and may keep near: requested
    /// now, they would be fetched twice.
    fn is_next_on_its_way(&mut self) -> bool {
        let (Some(_), Some(NextRead { path, range })) = (&self.near, self.reads.peek()) else { return false };
        self.of_path.get(path).into_iter().flatten().filter_map(|id| self.blocks.get(id)).any(|block| {
            !matches!(block.state, State::Near)
                && match (&block.range, range) {
                    (Some(block), Some(next)) => block.start < next.end && next.start < block.end,
                    _ => true,
                }
        })
    }

    fn plan_next(&mut self) {
        let Some(read) = self.reads.next() else {
            self.is_over = true;
            return;
        };
        let position = self.planned;
        self.planned += 1;
        let len = read.range.as_ref().map(|range| range.end.saturating_sub(range.start));
        let found = self.near.as_mut().map(|near| near.plan(&read));
        let NextRead { path, range } = read;
        if len == Some(0) {
            return;
        }
        let in_cache = found.as_ref().and_then(|(_, bytes)| *bytes);
        let bytes = len.or(in_cache).unwrap_or_else(|| self.guess());
        let piece = found.map(|(key, _)| Piece { key, range: range.clone() });
        self.reserved += bytes;
        if let Some(range) = &range
            && let Some(block) = self.last_of(&path)
            && matches!((&block.state, in_cache), (State::Near, Some(_)) | (State::Planned, None))
            && let Some(whole) = &mut block.range
            && whole.end == range.start
            && range.end - whole.start <= BLOCK
        {
            whole.end = range.end;
            (block.left, block.reserved, block.last) = (block.left + bytes, block.reserved + bytes, position);
            block.pieces.extend(piece);
            return;
        }
        let id = self.next_id;
        self.next_id += 1;
        let left = len.unwrap_or(1);
        let state = if in_cache.is_some() { State::Near } else { State::Planned };
        let pieces = piece.into_iter().collect();
        self.of_path.entry(path.clone()).or_default().push_back(id);
        self.blocks.insert(id, Block { path, range, left, last: position, reserved: bytes, state, etag: None, pieces });
        if in_cache.is_none() {
            self.queue.push_back(id);
        }
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
        let outcome = outcome.and_then(|answer| {
            block.etag = answer.etag;
            match (&block.range, &block.etag) {
                (Some(_), Some(etag)) if self.etags.entry(block.path.clone()).or_insert(etag.clone()) != etag => {
                    Err(super::failure::of(crate::Operation::Read, &block.path, super::failure::Cause::Changed))
                }
                _ => Ok(answer.buffer),
            }
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
        let Some(block) = self.remove(id) else { return Found::Nothing };
        Found::Now(match block.state {
            State::Near => Ok(Taken { near: block.pieces, ..Taken::default() }),
            State::Here(mut buffer) => {
                std::mem::swap(into, &mut buffer);
                self.keep(buffer);
                let admit = |piece: &Piece| {
                    let near = self.near.as_mut()?;
                    near.admit(path, piece.key, 0..into.len(), block.etag.as_deref())
                };
                Ok(Taken { keep: block.pieces.iter().filter_map(admit).collect(), ..Taken::default() })
            }
            State::Failed(error) => Err(error),
            State::Planned | State::Requested => return Found::Nothing,
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
        let mut taken = Taken::default();
        let mut outcome = Ok(());
        for id in ids {
            let copied = self.copy(id, &range, into, &mut taken);
            outcome = outcome.and(copied);
        }
        Found::Now(outcome.map(|()| taken))
    }

    fn copy(&mut self, id: u64, range: &Range<u64>, into: &mut Buffer, taken: &mut Taken) -> Result<()> {
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
                // Pieces that are read in several steps are not kept.
                let near = &mut self.near;
                let admit = |piece: &Piece| {
                    let of = piece.range.as_ref().filter(|of| start <= of.start && of.end <= end)?;
                    let span = (of.start - range.start) as usize..(of.end - range.start) as usize;
                    near.as_mut()?.admit(&block.path, piece.key, span, block.etag.as_deref())
                };
                taken.keep.extend(block.pieces.iter().filter_map(admit));
                Ok(())
            }
            State::Near => {
                taken.near.extend(block.pieces.iter().filter(|piece| piece.touches(&(start..end))).cloned());
                Ok(())
            }
            State::Failed(error) => Err(error.again()),
            State::Planned | State::Requested => Ok(()),
        };
        self.taken = self.taken.max(block.last);
        if is_used_up && let Some(Block { state: State::Here(buffer), .. }) = self.remove(id) {
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
        self.blocks.get(&id).is_some_and(|block| matches!(block.state, State::Near | State::Here(_) | State::Failed(_)))
    }

    fn remove(&mut self, id: u64) -> Option<Block> {
        let block = self.blocks.remove(&id)?;
        self.taken = self.taken.max(block.last);
        self.reserved -= block.reserved;
        if let Some(ids) = self.of_path.get_mut(&block.path) {
            ids.retain(|known| *known != id);
            if ids.is_empty() {
                self.of_path.remove(&block.path);
            }
        }
        if let (State::Near, Some(near)) = (&block.state, &mut self.near) {
            block.pieces.iter().for_each(|piece| near.done(&piece.key));
        }
        Some(block)
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
mod tests;
