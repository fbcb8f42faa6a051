//! The tools of a format's [`Reader`].
//!
//! A reader opens, reads and decodes through [`Tools`], which account for its activity and its bytes. It gets
//! neighbouring samples of one file and copies the first bytes of each into the batch.

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
    /// The bytes cannot be decoded.
    #[error(transparent)]
    Format(#[from] forebay_format::Error),
    /// The files do not match the workload.
    #[error("{0}")]
    Refused(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Opening,
    Reading,
    Decoding,
}

/// The smallest unit that can be read without reading more; the order of samples respects it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A single sample.
    Sample,
    /// A block of this many samples, such as a row group; one of them costs as much as all.
    Group(u64),
    /// A whole file.
    File,
}

pub trait Reader: Send {
    /// Reads the samples `samples` of file `file` and copies the first bytes of each into `out`, side by side, each into an
    /// equal share of `out`; a shorter sample is padded with zeros (see `Sink`).
    ///
    /// # Errors
    /// When one of them is unusable.
    fn read(&mut self, file: u32, samples: Range<u32>, out: &mut [u8], tools: &mut Tools<'_>) -> Result<(), ReadError>;
}

/// Bytes that readers requested, and bytes moved for them: more if only whole pages can be read.
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

/// Accounts for a reader's activity and the bytes it moves.
pub struct Tools<'a> {
    on_step: &'a mut dyn FnMut(Step),
    traffic: &'a mut Traffic,
}

impl<'a> Tools<'a> {
    /// `on_step` is called when the reader's activity changes; bytes are added to `traffic`.
    pub fn new(on_step: &'a mut dyn FnMut(Step), traffic: &'a mut Traffic) -> Self {
        Self { on_step, traffic }
    }

    /// Opens a file. Sets this thread's activity to opening.
    pub(super) fn open(&mut self, files: &Files, file: u32) -> Result<Box<dyn Object>, ReadError> {
        self.enter(Step::Opening);
        Ok(files.storage.open(&files.path_of(file))?)
    }

    /// Reads exactly `len` bytes. Sets this thread's activity to reading.
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

    /// Reads a range in pieces and passes each to `digest`, which counts as decoding. A caller that looks at every byte may
    /// get them lent without a copy; for others they are moved into the buffer, because counted bytes must have been moved.
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

    /// Sets this thread's activity: [`Step::Reading`] if a reader moves bytes by its own means.
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

    /// Adds bytes that the reader moved by its own means.
    pub(super) fn count(&mut self, bytes: u64) {
        self.traffic.asked += bytes;
        self.traffic.moved += bytes;
    }
}

/// The slot of one sample in a batch, filled from the front.
pub(super) struct Sink<'a> {
    left: &'a mut [u8],
}

impl<'a> Sink<'a> {
    pub(super) fn new(out: &'a mut [u8]) -> Self {
        Self { left: out }
    }

    /// Takes as many of the bytes as fit.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        let n = bytes.len().min(self.left.len());
        let (now, later) = std::mem::take(&mut self.left).split_at_mut(n);
        now.copy_from_slice(&bytes[..n]);
        self.left = later;
    }

    /// Fills the rest with zeros: a sample may be shorter than its slot.
    pub(super) fn finish(self) {
        self.left.fill(0);
    }

    pub(super) fn put(out: &'a mut [u8], bytes: &[u8]) {
        let mut sink = Self::new(out);
        sink.take(bytes);
        sink.finish();
    }
}

/// Cached data of the last `most` opened files, shared by all threads.
pub(super) struct Known<T> {
    kept: Mutex<InOrder<T>>,
    most: usize,
}

/// By file, and the files in order of arrival.
type InOrder<T> = (HashMap<u32, Arc<T>>, VecDeque<u32>);

impl<T> Known<T> {
    pub(super) fn new(most: usize) -> Self {
        Self { kept: Mutex::default(), most }
    }

    /// The cached data of a file, computed by `find` if missing. Two threads may compute the same at a time.
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

/// Open files of a thread: the few most recently used.
pub(super) struct OpenFiles<T> {
    kept: Vec<(u32, T)>,
}

/// More than any thread uses at a time, far fewer than a process may open.
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
