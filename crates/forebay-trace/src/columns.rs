//! Events of one process as columns of small numbers, which compress to a few bytes per event.
//!
//! Each field of an event is predicted from the events before it (a time from the last time, an offset from the end of the last
//! transfer), and only the difference is stored, as a variable number of bytes. All fields of a kind lie side by side.

use forebay_units::varint::{self, put};

use crate::event::{Entry, Event, FileType, MarkKind, Op};

const N_COLUMNS: usize = 11;
/// An op that stands for a text; no operation has it in a file.
const TEXT: u8 = 1;

/// What the next event is predicted from.
#[derive(Debug)]
struct Before {
    end_ns: u64,
    thread: u32,
    file: u32,
    of_op: Box<[Last; 256]>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Last {
    result: i64,
    arg: u64,
    extra: u32,
    duration_ns: u64,
}

impl Default for Before {
    fn default() -> Self {
        Self { end_ns: 0, thread: 0, file: 0, of_op: Box::new([Last::default(); 256]) }
    }
}

impl Before {
    /// The offset at which a sequential transfer goes on; for others, the argument of the last call of its kind.
    fn arg(&self, op: Op) -> u64 {
        let last = &self.of_op[usize::from(op.0)];
        if op.has_offset() { last.arg.wrapping_add(last.result as u64) } else { last.arg }
    }

    fn advance(&mut self, event: &Event) {
        self.end_ns = event.end_ns();
        (self.thread, self.file) = (event.thread, event.file);
        self.of_op[usize::from(event.op.0)] =
            Last { result: event.result, arg: event.arg, extra: event.extra, duration_ns: event.duration_ns };
    }
}

/// Writes columns.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    columns: [Vec<u8>; N_COLUMNS],
    before: Before,
    n: u32,
}

impl Columns {
    pub(crate) fn len(&self) -> u32 {
        self.n
    }

    /// Bytes so far, before compression.
    pub(crate) fn bytes(&self) -> usize {
        self.columns.iter().map(Vec::len).sum()
    }

    pub(crate) fn push(&mut self, entry: &Entry) {
        self.n += 1;
        match entry {
            Entry::Text { file, text } => {
                self.columns[0].push(TEXT);
                put(&mut self.columns[1], u64::from(*file));
                put(&mut self.columns[1], text.len() as u64);
                self.columns[2].extend_from_slice(text);
            }
            Entry::Event(event) => self.push_event(event),
        }
    }

    fn push_event(&mut self, event: &Event) {
        let last = self.before.of_op[usize::from(event.op.0)];
        let [ops, _, _, kinds, starts, durations, threads, files, extras, results, args] = &mut self.columns;
        ops.push(event.op.0);
        if matches!(event.op, Op::MARK) || event.op.has_type() {
            kinds.push(event.file_type.0);
            put(kinds, u64::from(event.mark.0));
        }
        put_signed(starts, event.start_ns.wrapping_sub(self.before.end_ns) as i64);
        put_signed(durations, event.duration_ns.wrapping_sub(last.duration_ns) as i64);
        put_signed(threads, i64::from(event.thread) - i64::from(self.before.thread));
        put_signed(files, i64::from(event.file) - i64::from(self.before.file));
        put_signed(extras, i64::from(event.extra) - i64::from(last.extra));
        put_signed(results, event.result.wrapping_sub(last.result));
        put_signed(args, event.arg.wrapping_sub(self.before.arg(event.op)) as i64);
        self.before.advance(event);
    }

    /// The columns behind their lengths; starts anew.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.bytes() + N_COLUMNS * 4);
        self.columns.iter().for_each(|column| put(&mut all, column.len() as u64));
        self.columns.iter().for_each(|column| all.extend_from_slice(column));
        *self = Self::default();
        all
    }
}

impl Op {
    fn has_type(self) -> bool {
        matches!(self, Self::OPEN | Self::OPENDIR | Self::FOPEN | Self::FOUND)
    }
}

/// Reads what [`Columns`] wrote; `None` at anything that it does not write.
pub(crate) fn read(bytes: &[u8], n: u32, mut each: impl FnMut(Entry)) -> Option<()> {
    let mut rest = bytes;
    let mut lengths = [0; N_COLUMNS];
    for length in &mut lengths {
        *length = usize::try_from(take(&mut rest)?).ok()?;
    }
    let mut columns = [&[][..]; N_COLUMNS];
    for (column, length) in columns.iter_mut().zip(lengths) {
        (*column, rest) = rest.split_at_checked(length)?;
    }
    let [ops, numbers, texts, kinds, starts, durations, threads, files, extras, results, args] = &mut columns;
    let mut before = Before::default();
    for _ in 0..n {
        let op = Op(one(ops)?);
        if op.0 == TEXT {
            let file = u32::try_from(take(numbers)?).ok()?;
            let length = usize::try_from(take(numbers)?).ok()?;
            let (text, after) = texts.split_at_checked(length)?;
            *texts = after;
            each(Entry::Text { file, text: text.to_vec() });
            continue;
        }
        let last = before.of_op[usize::from(op.0)];
        let (mut file_type, mut mark) = (FileType(0), MarkKind(0));
        if op == Op::MARK || op.has_type() {
            file_type = FileType(one(kinds)?);
            mark = MarkKind(u16::try_from(take(kinds)?).ok()?);
        }
        let sum = |of: u32, column: &mut &[u8]| u32::try_from(i64::from(of).checked_add(take_signed(column)?)?).ok();
        let event = Event {
            op,
            file_type,
            mark,
            start_ns: before.end_ns.wrapping_add(take_signed(starts)? as u64),
            duration_ns: last.duration_ns.wrapping_add(take_signed(durations)? as u64),
            thread: sum(before.thread, threads)?,
            file: sum(before.file, files)?,
            extra: sum(last.extra, extras)?,
            result: last.result.wrapping_add(take_signed(results)?),
            arg: before.arg(op).wrapping_add(take_signed(args)? as u64),
        };
        before.advance(&event);
        each(Entry::Event(event));
    }
    Some(())
}

/// Small numbers of both signs take few bytes.
fn put_signed(to: &mut Vec<u8>, value: i64) {
    put(to, ((value << 1) ^ (value >> 63)) as u64);
}

fn one(from: &mut &[u8]) -> Option<u8> {
    let (first, rest) = from.split_first()?;
    *from = rest;
    Some(*first)
}

fn take(from: &mut &[u8]) -> Option<u64> {
    varint::take(from).ok()
}

fn take_signed(from: &mut &[u8]) -> Option<i64> {
    let value = take(from)?;
    Some((value >> 1) as i64 ^ -((value & 1) as i64))
}
