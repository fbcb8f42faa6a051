//! Reads the shared ring of a process while that process writes it. Opens nothing: it is given the mapped bytes.
//!
//! The writer is another program that may be damaged or malicious: every number in the ring is checked against the size of the
//! mapping before it is used, and no wait depends on it.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use forebay_interpose::layout;

use crate::event::{Entry, Event, FileType, MarkKind, Op, duration_ns};

const MAX_SEGMENTS: usize = 4_096;
const SEGMENTS_AT: usize = 40;

/// Mapped memory of a ring. It may change at any time, so it is only read through atomics and copies.
#[derive(Debug, Clone, Copy)]
pub struct Memory {
    at: *const u8,
    len: usize,
}

// SAFETY: the memory is shared with another process anyway; all accesses are atomic or copies of single words.
unsafe impl Send for Memory {}

impl Memory {
    /// # Safety
    /// The `len` bytes must be mapped, readable and writable, aligned to a page, and stay so for as long as this is used.
    pub unsafe fn new(at: *const u8, len: usize) -> Self {
        Self { at, len }
    }

    fn word(&self, at: usize) -> Option<&AtomicU64> {
        (at.is_multiple_of(8) && at.checked_add(8)? <= self.len).then(|| {
            // SAFETY: within the mapping and aligned, as just checked; an atomic may be shared with other writers.
            unsafe { &*self.at.add(at).cast::<AtomicU64>() }
        })
    }

    fn half(&self, at: usize) -> Option<&AtomicU32> {
        (at.is_multiple_of(4) && at.checked_add(4)? <= self.len).then(|| {
            // SAFETY: as above.
            unsafe { &*self.at.add(at).cast::<AtomicU32>() }
        })
    }

    fn load(&self, at: usize) -> u64 {
        self.word(at).map_or(0, |word| word.load(Ordering::Acquire))
    }

    fn load_half(&self, at: usize) -> u32 {
        self.half(at).map_or(0, |half| half.load(Ordering::Acquire))
    }

    /// Bytes from a place that need not be aligned.
    fn bytes(&self, at: usize, n: usize) -> Vec<u8> {
        let first = at / 8 * 8;
        let words = (first..at + n).step_by(8).flat_map(|at| self.load(at).to_ne_bytes());
        words.skip(at - first).take(n).collect()
    }
}

/// What a ring says of its process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Origin {
    /// Number of the process, in its own namespace.
    pub pid: u32,
    /// Its parent when the ring was made.
    pub parent: u32,
    /// Nanoseconds of the monotonic clock.
    pub start_ns: u64,
    /// Inode of its namespace of process numbers; 0 where unknown.
    pub pid_namespace: u64,
    /// Path of the program.
    pub exe: Vec<u8>,
    /// Words of the command line, each ended by a zero byte; long ones are cut.
    pub command: Vec<u8>,
}

/// What a ring counts beside its events.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counts {
    /// Events for which there was no room.
    pub n_dropped: u64,
    /// Of these, calls and bytes by operation.
    pub dropped: Vec<(Op, u64, u64)>,
    /// Calls and bytes read from what is no file: pipes, sockets, terminals.
    pub other_reads: (u64, u64),
    /// Calls and bytes written to what is no file.
    pub other_writes: (u64, u64),
}

/// A ring with the place up to which it was read.
#[derive(Debug)]
pub struct Ring {
    memory: Memory,
    order: u64,
    at: usize,
    segment: Option<usize>,
    /// Slots that a living process reserved and did not complete: their thread ended in the middle.
    pub n_torn: u64,
}

impl Ring {
    /// `None` while the ring is being made, or if it is none of this version.
    pub fn open(memory: Memory) -> Option<Self> {
        let is_ring = memory.load(0) == layout::MAGIC && memory.load_half(8) == layout::VERSION;
        is_ring.then_some(Self { memory, order: 1, at: 0, segment: None, n_torn: 0 })
    }

    /// Which process writes it.
    pub fn origin(&self) -> Origin {
        let text = |at: usize, room: usize| {
            let n = self.memory.bytes(at, 2).try_into().map_or(0, u16::from_ne_bytes);
            self.memory.bytes(at + 2, usize::from(n).min(room))
        };
        Origin {
            pid: self.memory.load_half(16),
            parent: self.memory.load_half(20),
            start_ns: self.memory.load(24),
            pid_namespace: self.memory.load(32),
            exe: text(layout::EXE_AT, layout::EXE_BYTES),
            command: text(layout::COMMAND_AT, layout::COMMAND_BYTES),
        }
    }

    /// What it counts beside events, as of now.
    pub fn counts(&self) -> Counts {
        let pair = |at: usize| (self.memory.load(at), self.memory.load(at + 8));
        let dropped = (0..layout::OPS).filter_map(|op| {
            let (calls, bytes) = pair(layout::DROPPED_AT + op * 16);
            (calls > 0).then_some((Op(op as u8), calls, bytes))
        });
        Counts {
            n_dropped: self.memory.load(48),
            dropped: dropped.collect(),
            other_reads: pair(56),
            other_writes: pair(72),
        }
    }

    /// Passes on all entries that are complete, in their order, and frees their memory. With `is_over`, the process is gone: what is
    /// incomplete will stay so and is skipped. Returns the number of entries.
    pub fn drain(&mut self, is_over: bool, mut each: impl FnMut(Entry)) -> u64 {
        let mut n = 0;
        while let Some(segment) = self.segment_in_turn() {
            let tail = usize::try_from(self.memory.load(segment + 8)).unwrap_or(usize::MAX).min(layout::SLOTS);
            while self.at < tail {
                let slot = segment + layout::SEGMENT_HEAD_BYTES + self.at * layout::SLOT_BYTES;
                if self.memory.load_half(slot) != self.order as u32 {
                    if !is_over {
                        return n;
                    }
                    // A process that was killed in the middle of an event: its program never saw that call return.
                    self.at += 1;
                    continue;
                }
                let (entry, n_slots) = self.entry(slot, layout::SLOTS - self.at);
                self.at += n_slots;
                if let Some(entry) = entry {
                    n += 1;
                    each(entry);
                }
            }
            if self.at < layout::SLOTS {
                return n;
            }
            self.free(segment);
        }
        n
    }

    /// Skips a slot that does not get complete although later ones are: its thread was ended in the middle of it.
    pub fn skip_torn(&mut self) -> bool {
        let Some(segment) = self.segment_in_turn() else { return false };
        let tail = usize::try_from(self.memory.load(segment + 8)).unwrap_or(usize::MAX).min(layout::SLOTS);
        let is_stuck = self.at < tail;
        if is_stuck {
            self.n_torn += 1;
            self.at += 1;
        }
        is_stuck
    }

    /// Where the next entry is expected, to see whether reading goes on.
    pub fn place(&self) -> (u64, usize) {
        (self.order, self.at)
    }

    /// Whether something waits to be read.
    pub fn has_more(&mut self) -> bool {
        self.segment_in_turn().is_some_and(|segment| self.memory.load(segment + 8) > self.at as u64)
    }

    fn segment_in_turn(&mut self) -> Option<usize> {
        let at = |index: usize| layout::HEADER_BYTES + index * layout::SEGMENT_BYTES;
        if self.segment.is_none() {
            let n = (self.memory.load_half(SEGMENTS_AT) as usize).min(MAX_SEGMENTS);
            let mut all = (0..n).map(at).take_while(|at| at + layout::SEGMENT_BYTES <= self.memory.len);
            self.segment = all.find(|at| self.memory.load(*at) == self.order);
        }
        self.segment
    }

    fn free(&mut self, segment: usize) {
        if let Some(order) = self.memory.word(segment) {
            order.store(0, Ordering::Release);
        }
        self.order += 1;
        self.at = 0;
        self.segment = None;
    }

    fn entry(&self, slot: usize, n_left: usize) -> (Option<Entry>, usize) {
        let words: [u64; 6] = std::array::from_fn(|i| self.memory.load(slot + i * 8));
        let head = words[0].to_ne_bytes();
        let (low, high) = (|word: u64| word as u32, |word: u64| (word >> 32) as u32);
        let event = Event {
            op: Op(head[4]),
            file_type: FileType(head[5]),
            mark: MarkKind(u16::from_ne_bytes([head[6], head[7]])),
            start_ns: words[1],
            duration_ns: duration_ns(low(words[2])),
            thread: high(words[2]),
            file: low(words[3]),
            extra: high(words[3]),
            result: words[4] as i64,
            arg: words[5],
        };
        match event.op {
            Op::MORE => (None, 1),
            Op::TEXT => {
                let n = (event.extra as usize).min(layout::MAX_TEXT);
                let n_more = n.div_ceil(layout::TEXT_BYTES).min(n_left - 1);
                let parts =
                    (1..=n_more).flat_map(|i| self.memory.bytes(slot + i * layout::SLOT_BYTES + 8, layout::TEXT_BYTES));
                (Some(Entry::Text { file: event.file, text: parts.take(n).collect() }), 1 + n_more)
            }
            op if op.class().is_none() => (None, 1),
            _ => (Some(Entry::Event(event)), 1),
        }
    }
}
