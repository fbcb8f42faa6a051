//! The marks of a trace: the loop's waits, its passes over the data, the fetches of each thread, checkpoints.

use std::collections::HashMap;

use crate::event::{Entry, Event, MarkKind, Op};
use crate::file::{Chunk, ProcessNote, Reader};

/// PyTorch's own, for traces that do not say.
const PREFETCH: u64 = 2;

/// From one moment to another, on the monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
}

impl Span {
    fn of(event: &Event) -> Self {
        Self { start_ns: event.start_ns, end_ns: event.end_ns() }
    }

    pub(super) fn ns(self) -> u64 {
        self.end_ns - self.start_ns
    }

    pub(super) fn has(self, at_ns: u64) -> bool {
        (self.start_ns..self.end_ns).contains(&at_ns)
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Wait {
    pub(super) span: Span,
    /// Whether it brought a batch.
    pub(super) brought: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Fetch {
    pub(super) span: Span,
    pub(super) samples: u64,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Save {
    pub(super) span: Span,
    pub(super) is_restore: bool,
}

/// How a loader was set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Setup {
    pub(super) workers: u64,
    pub(super) batch: u64,
    pub(super) prefetch: u64,
}

/// A thread by the index of its process.
pub(super) type Thread = (u32, u32);

#[derive(Debug, Default)]
pub(super) struct Marks {
    pub(super) processes: HashMap<u32, ProcessNote>,
    pub(super) command: Vec<String>,
    pub(super) every: u32,
    /// In the order of their starts.
    pub(super) fetches: HashMap<Thread, Vec<Fetch>>,
    pub(super) loops: HashMap<u32, Loop>,
    /// Whether a loader did not say how far it prefetches.
    pub(super) is_prefetch_unknown: bool,
}

/// The training loop of a process.
#[derive(Debug, Default)]
pub(super) struct Loop {
    pub(super) waits: Vec<Wait>,
    pub(super) passes: Vec<(u64, Setup)>,
    pub(super) steps: Vec<u64>,
    pub(super) saves: Vec<Save>,
}

impl Marks {
    pub(super) fn read(reader: Reader<'_>) -> Self {
        let mut marks = Self { every: 1, ..Self::default() };
        for chunk in reader {
            match chunk {
                Chunk::Head(head) => marks.command = head.command_line,
                Chunk::Process(index, note) => drop(marks.processes.insert(index, note)),
                Chunk::Events { process, every, entries } => {
                    marks.every = marks.every.max(every);
                    for entry in entries {
                        match entry {
                            Entry::Event(event) if event.op == Op::MARK => marks.mark(process, &event),
                            _ => {}
                        }
                    }
                }
            }
        }
        marks.fetches.values_mut().for_each(|all| all.sort_by_key(|fetch| fetch.span.start_ns));
        for of in marks.loops.values_mut() {
            of.waits.sort_by_key(|wait| (wait.span.start_ns, wait.span.end_ns));
        }
        marks.loops.retain(|_, of| of.waits.iter().any(|wait| wait.brought));
        marks
    }

    fn mark(&mut self, process: u32, event: &Event) {
        let span = Span::of(event);
        if event.mark == MarkKind::FETCH {
            if event.result >= 0 {
                let fetch = Fetch { span, samples: event.bytes() };
                self.fetches.entry((process, event.thread)).or_default().push(fetch);
            }
            return;
        }
        let of = self.loops.entry(process).or_default();
        match event.mark {
            MarkKind::WAIT => of.waits.push(Wait { span, brought: event.result >= 0 }),
            MarkKind::STEP => of.steps.push(span.end_ns),
            MarkKind::EPOCH => of.passes.push((span.start_ns, Setup::default())),
            MarkKind::LOADER => {
                let (workers, batch, prefetch) = (event.bytes(), event.arg & u64::from(u32::MAX), event.arg >> 32);
                self.is_prefetch_unknown |= workers > 0 && prefetch == 0;
                let prefetch = if workers > 0 && prefetch == 0 { PREFETCH } else { prefetch };
                if let Some((_, setup)) = of.passes.last_mut() {
                    *setup = Setup { workers, batch, prefetch };
                }
            }
            MarkKind::SAVE | MarkKind::LOAD => of.saves.push(Save { span, is_restore: event.mark == MarkKind::LOAD }),
            _ => {}
        }
    }

    /// The fetch that a thread was in at a moment.
    pub(super) fn fetch_at(&self, thread: Thread, at_ns: u64) -> Option<(usize, &Fetch)> {
        let all = self.fetches.get(&thread)?;
        let index = all.partition_point(|fetch| fetch.span.start_ns <= at_ns).checked_sub(1)?;
        Some((index, &all[index])).filter(|(_, fetch)| fetch.span.has(at_ns))
    }
}

impl Loop {
    /// From the first wait to the last mark.
    pub(super) fn span(&self) -> Span {
        let start_ns = self.waits.iter().map(|wait| wait.span.start_ns).min().unwrap_or(0);
        let ends = self.waits.iter().map(|wait| wait.span.end_ns).chain(self.steps.iter().copied());
        Span { start_ns, end_ns: ends.max().unwrap_or(start_ns) }
    }

    /// Time of checkpoints between two moments.
    pub(super) fn saved_ns(&self, from_ns: u64, to_ns: u64) -> u64 {
        let within =
            self.saves.iter().map(|save| save.span.end_ns.min(to_ns).saturating_sub(save.span.start_ns.max(from_ns)));
        within.sum()
    }
}
