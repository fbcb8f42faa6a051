//! What a format's [`Reader`] reads with.
//!
//! A reader opens, reads and decodes for itself, through [`Tools`], which keep the account of what it does and of the
//! bytes it moved. It is given neighbouring samples of one file and puts the first bytes of each into the batch.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex};

use forebay_storage::{Buffer, Object};

use super::files::Files;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    #[error(transparent)]
    Storage(#[from] forebay_storage::Error),
    /// Their bytes are not what they should be.
    #[error(transparent)]
    Format(#[from] forebay_format::Error),
    /// The files are not what the workload says.
    #[error("{0}")]
    Refused(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Opening,
    Reading,
    Decoding,
}

/// The least that can be read at the price of its own bytes; orders of samples follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A sample can be read alone, at the price of its own bytes.
    Sample,
    /// So many samples from a multiple of that on lie in one piece, such as a row group; one of them costs as much as all.
    Group(u64),
    /// A file can only be read as a whole.
    File,
}

pub trait Reader: Send {
    /// Reads the samples `samples` of file `file` and puts the first bytes of each into `out`, side by side: as many for each as
    /// `out` has room for; what a sample lacks is filled with zeros (see `Sink`).
    ///
    /// # Errors
    /// Anything that makes one of them unusable.
    fn read(&mut self, file: u32, samples: Range<u32>, out: &mut [u8], tools: &mut Tools<'_>) -> Result<(), ReadError>;
}

/// Bytes that readers asked for, and those that were moved for them: more where only whole pages can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    pub asked: u64,
    pub moved: u64,
}

impl Traffic {
    pub fn since(self, before: Self) -> Self {
        Self { asked: self.asked - before.asked, moved: self.moved - before.moved }
    }
}

/// What a reader reports to: the activity it is in, and the bytes it moves.
pub struct Tools<'a> {
    on_step: &'a mut dyn FnMut(Step),
    traffic: &'a mut Traffic,
}

impl<'a> Tools<'a> {
    /// `on_step` is called when the reader begins something else; `traffic` is added to.
    pub fn new(on_step: &'a mut dyn FnMut(Step), traffic: &'a mut Traffic) -> Self {
        Self { on_step, traffic }
    }

    /// Opens a file. From now on this thread is opening.
    pub(super) fn open(&mut self, files: &Files, file: u32) -> Result<Box<dyn Object>, ReadError> {
        self.enter(Step::Opening);
        Ok(files.storage.open(&files.path_of(file))?)
    }

    /// Reads exactly so many bytes. From now on this thread is reading.
    pub(super) fn read(
        &mut self,
        object: &dyn Object,
        offset: u64,
        len: usize,
        into: &mut Buffer,
    ) -> Result<(), ReadError> {
        self.enter(Step::Reading);
        object.read_at(offset, len, into)?;
        self.note(object, offset, len as u64);
        Ok(())
    }

    pub(super) fn read_all(&mut self, object: &dyn Object, into: &mut Buffer) -> Result<(), ReadError> {
        self.enter(Step::Reading);
        object.read_all(into)?;
        self.note(object, 0, into.len() as u64);
        Ok(())
    }

    /// Reads a range in pieces and hands each to `digest`, which is accounted as decoding. A caller that looks at every byte
    /// may be lent them where they lie; for one that does not, they are moved into the buffer: bytes that count were moved.
    pub(super) fn stream(
        &mut self,
        object: &dyn Object,
        range: Range<u64>,
        (piece, looks_at_all): (usize, bool),
        buffer: &mut Buffer,
        mut digest: impl FnMut(&[u8]) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        let mut at = range.start;
        while at < range.end {
            let len = (range.end - at).min(piece.max(1) as u64) as usize;
            let bytes = self.look(object, at, len, looks_at_all, buffer)?;
            self.enter(Step::Decoding);
            digest(bytes)?;
            at += len as u64;
        }
        Ok(())
    }

    pub(super) fn look<'b>(
        &mut self,
        object: &'b dyn Object,
        offset: u64,
        len: usize,
        looks_at_all: bool,
        buffer: &'b mut Buffer,
    ) -> Result<&'b [u8], ReadError> {
        if !looks_at_all {
            self.read(object, offset, len, buffer)?;
            return Ok(buffer.as_slice());
        }
        self.enter(Step::Reading);
        let bytes = object.lend(offset, len, buffer)?;
        self.note(object, offset, len as u64);
        Ok(bytes)
    }

    /// From now on this thread is doing something else: [`Step::Reading`] where a reader moves bytes by means of its own.
    pub(super) fn enter(&mut self, step: Step) {
        (self.on_step)(step);
    }

    fn note(&mut self, object: &dyn Object, offset: u64, len: u64) {
        self.traffic.asked += len;
        self.traffic.moved += object.moved_for(offset, len);
    }

    /// Bytes asked for and moved so far by this thread.
    pub fn traffic(&self) -> Traffic {
        *self.traffic
    }

    /// Bytes that were moved from storage by other means than these.
    pub(super) fn count(&mut self, bytes: u64) {
        self.traffic.asked += bytes;
        self.traffic.moved += bytes;
    }
}

/// The place of one sample in a batch, filled from the front.
pub(super) struct Sink<'a> {
    left: &'a mut [u8],
}

impl<'a> Sink<'a> {
    pub(super) fn new(out: &'a mut [u8]) -> Self {
        Self { left: out }
    }

    /// Takes as much of the bytes as there is room for.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        let n = bytes.len().min(self.left.len());
        let (now, later) = std::mem::take(&mut self.left).split_at_mut(n);
        now.copy_from_slice(&bytes[..n]);
        self.left = later;
    }

    /// Fills the room that is left with zeros: a sample may be shorter than its slot.
    pub(super) fn finish(self) {
        self.left.fill(0);
    }

    pub(super) fn put(out: &'a mut [u8], bytes: &[u8]) {
        let mut sink = Self::new(out);
        sink.take(bytes);
        sink.finish();
    }
}

/// What is known of files that were opened, for all threads: of the last `most` of them.
pub(super) struct Known<T> {
    kept: Mutex<InOrder<T>>,
    most: usize,
}

/// By file, with the files in the order in which they came.
type InOrder<T> = (HashMap<u32, Arc<T>>, VecDeque<u32>);

impl<T> Known<T> {
    pub(super) fn new(most: usize) -> Self {
        Self { kept: Mutex::default(), most }
    }

    /// What is known of a file, found out by `find` if nothing is. Two threads may find out the same at a time.
    pub(super) fn get(&self, file: u32, find: impl FnOnce() -> Result<T, ReadError>) -> Result<Arc<T>, ReadError> {
        let lock = || self.kept.lock().expect("no holder of this lock panics");
        if let Some(known) = lock().0.get(&file) {
            return Ok(Arc::clone(known));
        }
        let found = Arc::new(find()?);
        let (kept, order) = &mut *lock();
        if kept.insert(file, Arc::clone(&found)).is_none() {
            order.push_back(file);
        }
        if order.len() > self.most
            && let Some(oldest) = order.pop_front()
        {
            kept.remove(&oldest);
        }
        Ok(found)
    }
}

/// Files that a thread keeps open: a few, the most recently used ones.
pub(super) struct OpenFiles<T> {
    kept: Vec<(u32, T)>,
}

/// More than any thread has at work at a time, far fewer than a process may open.
const MOST_OPEN: usize = 4;

impl<T> Default for OpenFiles<T> {
    fn default() -> Self {
        Self { kept: Vec::new() }
    }
}

impl<T> OpenFiles<T> {
    /// The file, opened by `open` if it is not open.
    pub(super) fn get(&mut self, file: u32, open: impl FnOnce() -> Result<T, ReadError>) -> Result<&mut T, ReadError> {
        let at = match self.kept.iter().position(|(known, _)| *known == file) {
            Some(at) => at,
            None => {
                let opened = open()?;
                if self.kept.len() == MOST_OPEN {
                    self.kept.remove(0);
                }
                self.kept.push((file, opened));
                self.kept.len() - 1
            }
        };
        Ok(&mut self.kept[at].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_shorter_than_its_place_is_filled_with_zeros_and_a_longer_one_is_cut() {
        let mut out = [9_u8; 5];
        let mut sink = Sink::new(&mut out);
        sink.take(b"ab");
        sink.take(b"c");
        sink.finish();
        assert_eq!(out, *b"abc\0\0");
        Sink::put(&mut out, b"abcdefgh");
        assert_eq!(out, *b"abcde");
    }

    #[test]
    fn what_is_known_of_a_file_is_found_out_once_until_there_are_too_many() {
        let known = Known::new(3);
        for file in [0, 1, 2, 0, 1, 2] {
            let n = Arc::strong_count(&known.get(file, || Ok(file)).unwrap());
            assert_eq!(n, 2, "kept and held");
        }
        assert!(known.get(0, || panic!("it is known")).is_ok());
        known.get(3, || Ok(3)).unwrap();
        assert_eq!(*known.get(0, || Ok(10)).unwrap(), 10, "the oldest made room");
    }

    #[test]
    fn the_file_that_was_opened_first_is_closed_first() {
        let mut open = OpenFiles::default();
        for file in 0..5 {
            open.get(file, || Ok(file)).unwrap();
        }
        open.get(1, || panic!("it is open")).unwrap();
        assert_eq!(*open.get(0, || Ok(10)).unwrap(), 10);
    }
}
