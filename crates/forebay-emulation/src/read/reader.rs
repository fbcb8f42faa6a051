//! What a format has to provide: a [`Layout`] that all threads share, and of it a [`Reader`] for each thread.
//!
//! A reader opens, reads and decodes for itself, through [`Tools`], which keep the account of what it does and of the
//! bytes it moved. It is given neighbouring samples of one file and puts the first bytes of each into the batch.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex};

use forebay_pipeline::{Activity, SampleError, Stopwatch};
use forebay_storage::{Buffer, Object};

use super::files::Files;
use super::gate::{Gates, Room};

/// How samples lie in the files of one format: shared by all threads.
pub(crate) trait Layout: Send + Sync {
    /// A reader for one thread.
    fn reader(&self) -> Box<dyn Reader>;

    /// What is cheapest to read together.
    fn unit(&self) -> Unit {
        Unit::Sample
    }

    /// Bytes of a sample in a batch where the workload says nothing else, if that is not its record's length.
    fn sample_bytes(&self) -> Option<u64> {
        None
    }

    /// Whether there is more to do than to read and to verify, so that threads that compute may be kept apart.
    fn decodes(&self) -> bool {
        false
    }
}

/// What is cheapest to read together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// A sample can be had alone, at the price of its own bytes.
    Sample,
    /// So many samples from a multiple of that on lie in one piece, such as a row group; one of them costs as much as all.
    Group(u64),
    /// A file can only be read as a whole.
    File,
}

/// One thread's way to the samples.
pub(crate) trait Reader: Send {
    /// Reads the samples `samples` of file `file` and puts the first bytes of each into `out`, side by side: as many for each as
    /// `out` has room for; what a sample lacks is filled with zeros (see [`Sink`]).
    ///
    /// # Errors
    /// Anything that makes one of them unusable.
    fn read(
        &mut self,
        file: u32,
        samples: Range<u32>,
        out: &mut [u8],
        tools: &mut Tools<'_>,
    ) -> Result<(), SampleError>;
}

/// Bytes that readers asked for, and those that were moved for them: more where only whole pages can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Traffic {
    pub(crate) asked: u64,
    pub(crate) moved: u64,
}

impl Traffic {
    /// What has come since.
    pub(crate) fn since(self, before: Self) -> Self {
        Self { asked: self.asked - before.asked, moved: self.moved - before.moved }
    }
}

/// What a reader reads with.
pub(crate) struct Tools<'a> {
    watch: &'a mut Stopwatch,
    room: Room<'a>,
    traffic: &'a mut Traffic,
}

impl<'a> Tools<'a> {
    pub(crate) fn new(watch: &'a mut Stopwatch, gates: Option<&'a Arc<Gates>>, traffic: &'a mut Traffic) -> Self {
        Self { watch, room: Room::new(gates.map(Arc::as_ref)), traffic }
    }

    /// Opens a file. From now on this thread is opening.
    pub(crate) fn open(&mut self, files: &Files, file: u32) -> Result<Box<dyn Object>, SampleError> {
        self.enter(Activity::Opening);
        Ok(files.storage.open(&files.path_of(file))?)
    }

    /// Reads exactly so many bytes. From now on this thread is reading.
    pub(crate) fn read(
        &mut self,
        object: &dyn Object,
        offset: u64,
        len: usize,
        into: &mut Buffer,
    ) -> Result<(), SampleError> {
        self.enter(Activity::Reading);
        object.read_at(offset, len, into)?;
        self.note(object, offset, len as u64);
        Ok(())
    }

    /// Reads a whole file.
    pub(crate) fn read_all(&mut self, object: &dyn Object, into: &mut Buffer) -> Result<(), SampleError> {
        self.enter(Activity::Reading);
        object.read_all(into)?;
        self.note(object, 0, into.len() as u64);
        Ok(())
    }

    /// Reads a range in pieces and hands each to `digest`, which is accounted as decoding. Who looks at every byte may be lent them
    /// where they lie; for who does not, they are moved into the buffer, so that what is counted was moved.
    pub(crate) fn stream(
        &mut self,
        object: &dyn Object,
        range: Range<u64>,
        (piece, looks_at_all): (usize, bool),
        buffer: &mut Buffer,
        mut digest: impl FnMut(&[u8]) -> Result<(), SampleError>,
    ) -> Result<(), SampleError> {
        let mut at = range.start;
        while at < range.end {
            let len = (range.end - at).min(piece.max(1) as u64) as usize;
            let bytes = self.look(object, at, len, looks_at_all, buffer)?;
            self.enter(Activity::Decoding);
            digest(bytes)?;
            at += len as u64;
        }
        Ok(())
    }

    /// One such piece.
    pub(crate) fn look<'b>(
        &mut self,
        object: &'b dyn Object,
        offset: u64,
        len: usize,
        looks_at_all: bool,
        buffer: &'b mut Buffer,
    ) -> Result<&'b [u8], SampleError> {
        if !looks_at_all {
            self.read(object, offset, len, buffer)?;
            return Ok(buffer.as_slice());
        }
        self.enter(Activity::Reading);
        let bytes = object.lend(offset, len, buffer)?;
        self.note(object, offset, len as u64);
        Ok(bytes)
    }

    /// From now on this thread is doing something else: [`Activity::Reading`] where a reader moves bytes by means of its own,
    /// [`Activity::Decoding`] where it works on them.
    pub(crate) fn enter(&mut self, activity: Activity) {
        self.room.enter(activity, self.watch);
        self.watch.enter(activity);
    }

    fn note(&mut self, object: &dyn Object, offset: u64, len: u64) {
        self.traffic.asked += len;
        self.traffic.moved += object.moved_for(offset, len);
    }

    /// Bytes asked for and moved so far by this thread.
    pub(crate) fn traffic(&self) -> Traffic {
        *self.traffic
    }

    /// Bytes that were moved from storage by other means than these.
    pub(crate) fn count(&mut self, bytes: u64) {
        self.traffic.asked += bytes;
        self.traffic.moved += bytes;
    }
}

/// The place of one sample in a batch, filled from the front.
pub(crate) struct Sink<'a> {
    left: &'a mut [u8],
}

impl<'a> Sink<'a> {
    pub(crate) fn new(out: &'a mut [u8]) -> Self {
        Self { left: out }
    }

    /// Takes as much of the bytes as there is room for.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        let n = bytes.len().min(self.left.len());
        let (now, later) = std::mem::take(&mut self.left).split_at_mut(n);
        now.copy_from_slice(&bytes[..n]);
        self.left = later;
    }

    /// Fills what is left with zeros.
    pub(crate) fn finish(self) {
        self.left.fill(0);
    }

    /// Puts a whole sample.
    pub(crate) fn put(out: &'a mut [u8], bytes: &[u8]) {
        let mut sink = Self::new(out);
        sink.take(bytes);
        sink.finish();
    }
}

/// What is known of files that were opened, for all threads: of the last `most` of them.
pub(crate) struct Known<T> {
    kept: Mutex<InOrder<T>>,
    most: usize,
}

/// By file, with the files in the order in which they came.
type InOrder<T> = (HashMap<u32, Arc<T>>, VecDeque<u32>);

impl<T> Known<T> {
    pub(crate) fn new(most: usize) -> Self {
        Self { kept: Mutex::default(), most }
    }

    /// What is known of a file, found out by `find` if nothing is. Two threads may find out the same at a time.
    pub(crate) fn get(&self, file: u32, find: impl FnOnce() -> Result<T, SampleError>) -> Result<Arc<T>, SampleError> {
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
pub(crate) struct OpenFiles<T> {
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
    pub(crate) fn get(
        &mut self,
        file: u32,
        open: impl FnOnce() -> Result<T, SampleError>,
    ) -> Result<&mut T, SampleError> {
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
