//! Sums over a trace, entry by entry: what each process, each kind of call and each file took.
//!
//! Used while a job runs, when every event is seen whether it is stored or not, and again on a trace file whose tracer was killed.
//! Memory is bounded: beyond [`MAX_FILES`] files, new ones are only counted in their class.

use std::collections::HashMap;

use forebay_interpose::layout::Class;
use forebay_record::TraceSave;
use forebay_units::Histogram;

use crate::classes::FileClass;
use crate::event::{Entry, Event, FileType, MarkKind, Op};
use crate::fetches::Thread;
use crate::file::ProcessNote;
use crate::inside::Overlap;
use crate::phases::Phases;
use crate::ring::Counts;
use crate::saves::{Transfer, Transfers};

pub(crate) const MAX_FILES: usize = 500_000;

/// Calls and bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    pub(crate) opens: u64,
    pub(crate) reads: u64,
    pub(crate) bytes_read: u64,
    pub(crate) writes: u64,
    pub(crate) bytes_written: u64,
    pub(crate) ns: u64,
    pub(crate) sequential_reads: u64,
}

impl Sums {
    fn add(&mut self, event: &Event, class: Class) {
        self.ns += event.duration_ns;
        match class {
            Class::Read => {
                self.reads += 1;
                self.bytes_read += event.bytes();
            }
            Class::Write => {
                self.writes += 1;
                self.bytes_written += event.bytes();
            }
            Class::Open => self.opens += u64::from(event.result >= 0),
            _ => {}
        }
    }

    pub(crate) fn plus(&mut self, other: &Self) {
        self.opens += other.opens;
        self.reads += other.reads;
        self.bytes_read += other.bytes_read;
        self.writes += other.writes;
        self.bytes_written += other.bytes_written;
        self.ns += other.ns;
        self.sequential_reads += other.sequential_reads;
    }
}

/// All calls of a kind.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    pub(crate) n: u64,
    pub(crate) errors: u64,
    pub(crate) bytes: u64,
    pub(crate) ns: u64,
    pub(crate) durations: Histogram,
}

#[derive(Debug)]
pub(crate) struct File {
    pub(crate) path: Vec<u8>,
    pub(crate) class: FileClass,
    pub(crate) size: u64,
    pub(crate) is_written: bool,
    pub(crate) sums: Sums,
}

/// A file that a process has open.
#[derive(Debug, Clone, Copy)]
struct OpenFile {
    /// Index of the file; `None` beyond the limit.
    file: Option<u32>,
    class: FileClass,
    position: u64,
}

/// What a process did.
#[derive(Debug, Default)]
pub(crate) struct Process {
    pub(crate) note: ProcessNote,
    pub(crate) sums: Sums,
    pub(crate) counts: Counts,
    pub(crate) threads: HashMap<u32, Thread>,
    pub(crate) marks: Marks,
    pub(crate) phases: Phases,
    pub(crate) overlap: Overlap,
    transfers: Transfers,
    texts: HashMap<u32, Vec<u8>>,
    open: HashMap<u32, OpenFile>,
}

/// The training loop of a process.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Marks {
    pub(crate) waits: u64,
    pub(crate) wait_ns: u64,
    pub(crate) steps: u64,
    pub(crate) epochs: u64,
    /// From the start of the first wait or step to the end of the last.
    pub(crate) span: Option<(u64, u64)>,
    pub(crate) longest_wait_ns: u64,
    /// Wait and end of each epoch, in order.
    pub(crate) by_epoch: Vec<(u64, u64)>,
    /// Start of each epoch.
    pub(crate) epoch_starts: Vec<u64>,
    /// Worker processes of the loaders that it made; `None` where none was seen.
    pub(crate) workers: Option<u64>,
}

/// A program that was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    /// The process that it became.
    pub pid: u32,
    /// As it was asked for.
    pub path: Vec<u8>,
    /// When.
    pub at_ns: u64,
}

/// The sums.
#[derive(Debug, Default)]
pub struct Tally {
    pub(crate) processes: Vec<Process>,
    pub(crate) calls: HashMap<Op, Calls>,
    pub(crate) files: Vec<File>,
    by_path: HashMap<Vec<u8>, u32>,
    pub(crate) beyond: HashMap<FileClass, Sums>,
    pub(crate) sizes: Histogram,
    pub(crate) size_bytes: HashMap<u32, u64>,
    pub(crate) saves: Vec<TraceSave>,
    pub(crate) started: Vec<Started>,
    pub(crate) n_events: u64,
    pub(crate) n_torn: u64,
    pub(crate) bytes_mapped: u64,
    pub(crate) by_second: Vec<Second>,
    pub(crate) started_ns: u64,
}

/// A second of the job.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Second {
    /// Bytes read from files.
    pub bytes_read: u64,
    /// Bytes written to files.
    pub bytes_written: u64,
    /// Calls that read.
    pub reads: u64,
    /// Opens and calls on names and attributes.
    pub meta_calls: u64,
    /// Time that training loops waited for batches, in nanoseconds.
    pub wait_ns: u64,
    /// Training steps that ended.
    pub steps: u64,
}

/// A job of days has coarse seconds at its end rather than an endless table.
const MAX_SECONDS: usize = 1_000_000;

impl Tally {
    /// `started_ns` is the moment on the monotonic clock at which seconds begin.
    pub fn new(started_ns: u64) -> Self {
        Self { started_ns, ..Self::default() }
    }

    /// Adds a process; its index is the number of processes before it.
    pub fn process(&mut self, note: ProcessNote) -> u32 {
        self.processes.push(Process { note, ..Process::default() });
        self.processes.len() as u32 - 1
    }

    /// What the ring of a process counts beside its events; the last call counts.
    pub fn counts(&mut self, process: u32, counts: Counts, n_torn: u64) {
        self.processes[process as usize].counts = counts;
        self.n_torn += n_torn;
    }

    /// Events so far.
    pub fn n_events(&self) -> u64 {
        self.n_events
    }

    /// What happened in each second of the job.
    pub fn seconds(&self) -> &[Second] {
        &self.by_second
    }

    /// Programs that were started and for which no ring appeared.
    pub fn without_ring(&self) -> Vec<&Started> {
        let has_ring = |started: &&Started| {
            let rings = self.processes.iter().filter(|process| process.note.pid == started.pid);
            rings.into_iter().any(|process| process.note.start_ns >= started.at_ns)
        };
        self.started.iter().filter(|started| !has_ring(started)).collect()
    }

    /// Adds an entry of a process.
    pub fn add(&mut self, process: u32, entry: Entry) {
        match entry {
            Entry::Text { file, text } => drop(self.processes[process as usize].texts.insert(file, text)),
            Entry::Event(event) => self.event(process, &event),
        }
    }

    fn event(&mut self, process: u32, event: &Event) {
        self.n_events += 1;
        self.processes[process as usize].phases.seen(event.end_ns());
        match (event.op, event.op.class()) {
            (Op::MARK, _) => self.mark(process, event),
            (Op::EXEC, _) => {
                let path = self.processes[process as usize].texts.remove(&event.file).unwrap_or_default();
                self.started.push(Started { pid: event.extra, path, at_ns: event.start_ns });
            }
            (Op::EXEC_FAILED, _) => {
                let last = self.started.iter().rposition(|started| started.pid == event.extra);
                last.map(|at| self.started.remove(at));
            }
            (Op::FOUND, _) => self.opened(process, event, u64::try_from(event.result).unwrap_or(0)),
            (_, Some(class)) => self.call(process, event, class),
            (_, None) => {}
        }
    }

    fn call(&mut self, process: u32, event: &Event, class: Class) {
        let calls = self.calls.entry(event.op).or_default();
        calls.n += 1;
        calls.errors += u64::from(event.result < 0);
        calls.ns += event.duration_ns;
        calls.durations.record(event.duration_ns);
        if matches!(class, Class::Read | Class::Write | Class::Map) {
            calls.bytes += event.bytes();
        }
        if class == Class::Map {
            self.bytes_mapped += event.bytes();
        }
        let second = self.second(event.start_ns);
        match class {
            Class::Read => {
                second.reads += 1;
                second.bytes_read += event.bytes();
            }
            Class::Write => second.bytes_written += event.bytes(),
            Class::Open | Class::Meta => second.meta_calls += 1,
            _ => {}
        }
        if class == Class::Open && event.file != 0 && !self.processes[process as usize].open.contains_key(&event.file) {
            self.opened(process, event, 0);
        }
        let of = &mut self.processes[process as usize];
        of.sums.add(event, class);
        of.threads.entry(event.thread).or_default().call(event, class);
        if event.file != 0 {
            self.on_file(process, event, class);
        } else if class == Class::Meta {
            of.overlap.call(event, true);
        }
    }

    /// The file behind a number becomes known.
    fn opened(&mut self, process: u32, event: &Event, position: u64) {
        let of = &mut self.processes[process as usize];
        let path = of.texts.remove(&event.file).unwrap_or_default();
        let class = FileClass::of(&path);
        let is_new = !self.by_path.contains_key(&path);
        let file = if is_new && self.files.len() >= MAX_FILES {
            None
        } else {
            let next = self.files.len() as u32;
            let index = *self.by_path.entry(path.clone()).or_insert(next);
            if index == next {
                self.files.push(File { path, class, size: 0, is_written: false, sums: Sums::default() });
            }
            let known = &mut self.files[index as usize];
            known.size = known.size.max(if event.file_type == FileType::REGULAR { event.arg } else { 0 });
            Some(index)
        };
        // A failed open has no descriptor to act on.
        if event.result >= 0 || event.op == Op::FOUND {
            of.open.insert(event.file, OpenFile { file, class, position });
        } else if let Some(index) = file {
            self.files[index as usize].sums.ns += event.duration_ns;
        }
    }

    fn on_file(&mut self, process: u32, event: &Event, class: Class) {
        let of = &mut self.processes[process as usize];
        let Some(open) = of.open.get_mut(&event.file) else { return };
        let mut is_sequential = false;
        match (class, event.op) {
            (Class::Read | Class::Write, op) => {
                let at = if op.has_offset() { event.arg } else { open.position };
                is_sequential = class == Class::Read && at == open.position;
                open.position = at + event.bytes();
            }
            (_, Op::LSEEK) => open.position = u64::try_from(event.result).unwrap_or(open.position),
            _ => {}
        }
        let OpenFile { file, class: file_class, .. } = *open;
        if file_class == FileClass::Data && matches!(class, Class::Read | Class::Open | Class::Meta) {
            of.overlap.call(event, class != Class::Read);
        }
        if event.op == Op::CLOSE || event.op == Op::FCLOSE {
            of.open.remove(&event.file);
        }
        if matches!(class, Class::Read | Class::Write) {
            let (is_read, is_weights) = (class == Class::Read, file_class == FileClass::Checkpoint);
            let (start_ns, bytes, thread) = (event.start_ns, event.bytes(), event.thread);
            of.transfers.push(Transfer { start_ns, bytes, thread, is_read, is_weights });
        }
        let sums = match file {
            Some(index) => {
                let known = &mut self.files[index as usize];
                known.is_written |= class == Class::Write;
                &mut known.sums
            }
            None => self.beyond.entry(file_class).or_default(),
        };
        sums.add(event, class);
        sums.sequential_reads += u64::from(is_sequential);
        if class == Class::Read && file_class == FileClass::Data && event.result > 0 {
            self.sizes.record(event.bytes());
            *self.size_bytes.entry(event.bytes().ilog2()).or_default() += event.bytes();
        }
    }

    fn mark(&mut self, process: u32, event: &Event) {
        let started_ns = self.started_ns;
        let of = &mut self.processes[process as usize];
        let marks = &mut of.marks;
        let end_ns = event.end_ns();
        match event.mark {
            MarkKind::WAIT => {
                of.phases.waited(event.duration_ns);
                of.overlap.wait(event);
                // The last wait of an epoch brings no batch, but it is a wait.
                marks.waits += u64::from(event.result >= 0);
                marks.wait_ns += event.duration_ns;
                marks.longest_wait_ns = marks.longest_wait_ns.max(event.duration_ns);
                if let Some((wait_ns, end)) = marks.by_epoch.last_mut() {
                    *wait_ns += event.duration_ns;
                    *end = end_ns;
                }
                self.waited(event.start_ns, end_ns);
            }
            MarkKind::PHASE => {
                let name = of.texts.remove(&event.file).unwrap_or_default();
                of.phases.begin(name, event.start_ns);
            }
            MarkKind::STEP => {
                of.phases.stepped();
                marks.steps += 1;
                self.second(end_ns).steps += 1;
            }
            MarkKind::EPOCH => {
                of.overlap.epoch();
                marks.epochs += 1;
                marks.by_epoch.push((0, end_ns));
                marks.epoch_starts.push(event.start_ns);
            }
            MarkKind::LOADER => marks.workers = Some(marks.workers.unwrap_or(0).max(event.bytes())),
            MarkKind::FETCH => of.threads.entry(event.thread).or_default().fetch(event),
            MarkKind::SAVE | MarkKind::LOAD => {
                let is_restore = event.mark == MarkKind::LOAD;
                let bytes = of.transfers.since(event.start_ns, is_restore, event.thread);
                let at_s = event.start_ns.saturating_sub(started_ns) as f64 / 1e9;
                self.saves.push(TraceSave { at_s, seconds: event.duration_ns as f64 / 1e9, bytes, is_restore });
            }
            _ => {}
        }
        if matches!(event.mark, MarkKind::WAIT | MarkKind::STEP) {
            let marks = &mut self.processes[process as usize].marks;
            let (first, last) = marks.span.unwrap_or((event.start_ns, end_ns));
            marks.span = Some((first.min(event.start_ns), last.max(end_ns)));
        }
    }

    /// A long wait is part of each second that it lasts.
    fn waited(&mut self, from_ns: u64, to_ns: u64) {
        const SECOND: u64 = 1_000_000_000;
        let mut at_ns = from_ns;
        while at_ns < to_ns {
            let since_ns = at_ns.saturating_sub(self.started_ns);
            let next_ns = if since_ns / SECOND + 1 < MAX_SECONDS as u64 {
                (at_ns + SECOND - since_ns % SECOND).min(to_ns)
            } else {
                to_ns
            };
            self.second(at_ns).wait_ns += next_ns - at_ns;
            at_ns = next_ns;
        }
    }

    fn second(&mut self, at_ns: u64) -> &mut Second {
        let index = (at_ns.saturating_sub(self.started_ns) / 1_000_000_000) as usize;
        let index = index.min(MAX_SECONDS - 1);
        if self.by_second.len() <= index {
            self.by_second.resize(index + 1, Second::default());
        }
        &mut self.by_second[index]
    }
}
