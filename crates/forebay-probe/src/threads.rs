//! The engines `sync` and `direct`, and every emulated device: ordinary system calls, one thread per request in flight.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

use forebay_measure::{random, stamp};
use forebay_record::Engine;
use forebay_storage::{Buffer, Object, Storage, Writer};

use super::error::{Context, Error};
use super::requests::{GRAIN, Request, Requests};
use super::workers::{Tally, Worker};

/// Opens the file for direct I/O, or for the page cache with advice on the access pattern, as fio does.
pub(super) fn open(path: &Path, engine: Engine, write: bool, requests: &Requests) -> Result<File, Error> {
    let flags = if engine == Engine::Sync { 0 } else { libc::O_DIRECT };
    let file = OpenOptions::new().read(!write).write(write).custom_flags(flags).open(path).context("opening", path)?;
    if engine == Engine::Sync {
        let advice = match requests {
            Requests::Sequential { .. } => libc::POSIX_FADV_SEQUENTIAL,
            // Otherwise every request triggers readahead, and unused bytes count as traffic.
            Requests::Random { .. } => libc::POSIX_FADV_RANDOM,
        };
        // SAFETY: a valid descriptor and plain integers. Advice has no effect if it is not taken.
        unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, advice) };
    }
    Ok(file)
}

/// A buffer whose pages are touched before the clock starts and whose content does not compress.
pub(super) fn buffer(len: u64, number: usize) -> Buffer {
    let mut buffer = Buffer::default();
    buffer.resize(len as usize);
    random(0, number as u64).fill(buffer.as_mut_slice());
    buffer
}

/// Buffer of a worker. Direct I/O needs whole pages. Buffered I/O begins 16 bytes into a page, where `malloc` puts a
/// large block, to match fio and most programs: copies to such an address take up to twice as long.
struct Block {
    memory: Buffer,
    start: usize,
}

impl Block {
    fn new(engine: Engine, len: u64, number: usize) -> Self {
        let start = if engine == Engine::Sync { 16 } else { 0 };
        Self { memory: buffer(len + start as u64, number), start }
    }

    fn of(&mut self, request: Request) -> &mut [u8] {
        &mut self.memory.as_mut_slice()[self.start..][..request.len as usize]
    }
}

fn serve(
    requests: impl Iterator<Item = Request>,
    tally: &mut Tally<'_>,
    mut act: impl FnMut(Request) -> Result<(), Error>,
) -> Result<(), Error> {
    for request in requests {
        if tally.is_over() {
            break;
        }
        let start = Instant::now();
        act(request)?;
        tally.count(start, request.len);
    }
    Ok(())
}

pub(super) fn readers<'a>(
    path: &'a Path,
    engine: Engine,
    depth: usize,
    largest: u64,
    requests: &'a Requests,
) -> Result<Vec<Worker<'a>>, Error> {
    let worker = |number: usize| -> Result<Worker<'a>, Error> {
        let (file, mut block) = (open(path, engine, false, requests)?, Block::new(engine, largest, number));
        Ok(Box::new(move |tally| {
            serve(requests.of_worker(number, depth), tally, |request| {
                file.read_exact_at(block.of(request), request.offset).context("reading", path)
            })
        }))
    };
    (0..depth).map(worker).collect()
}

pub(super) fn writers<'a>(
    path: &'a Path,
    engine: Engine,
    depth: usize,
    largest: u64,
    requests: &'a Requests,
    run: u64,
) -> Result<Vec<Worker<'a>>, Error> {
    let worker = |number: usize| -> Result<Worker<'a>, Error> {
        let (file, mut block) = (open(path, engine, true, requests)?, Block::new(engine, largest, number));
        Ok(Box::new(move |tally| {
            serve(requests.of_worker(number, depth), tally, |request| {
                let bytes = block.of(request);
                stamp(bytes, request.offset, run);
                file.write_all_at(bytes, request.offset).context("writing", path)
            })
        }))
    };
    (0..depth).map(worker).collect()
}

pub(super) fn object_readers<'a>(
    storage: &dyn Storage,
    path: &Path,
    depth: usize,
    requests: &'a Requests,
) -> Result<Vec<Worker<'a>>, Error> {
    let worker = |number: usize| -> Result<Worker<'a>, Error> {
        let (object, mut buffer): (Box<dyn Object>, _) = (storage.open(path)?, Buffer::default());
        Ok(Box::new(move |tally| {
            serve(requests.of_worker(number, depth), tally, |request| {
                Ok(object.read_at(request.offset, request.len as usize, &mut buffer)?)
            })
        }))
    };
    (0..depth).map(worker).collect()
}

/// The emulated device takes one writer at a time; the commit is timed too.
pub(super) fn object_writer<'a>(
    mut object: Box<dyn Writer>,
    largest: u64,
    requests: &'a Requests,
    run: u64,
) -> Worker<'a> {
    let mut buffer = buffer(largest, 0);
    Box::new(move |tally| {
        serve(requests.of_worker(0, 1), tally, |request| {
            let block = &mut buffer.as_mut_slice()[..request.len as usize];
            stamp(block, request.offset, run);
            Ok(object.write(block)?)
        })?;
        Ok(object.commit()?)
    })
}

/// In reading order.
pub(super) struct Leaf {
    pub(super) path: PathBuf,
    pub(super) len: u64,
}

pub(super) fn file_readers<'a>(
    leaves: &'a [Leaf],
    engine: Engine,
    depth: usize,
    largest: u64,
    requests: &'a Requests,
) -> Vec<Worker<'a>> {
    let flags = if engine == Engine::Sync { 0 } else { libc::O_DIRECT };
    let worker = |number: usize| -> Worker<'a> {
        // One byte more than the longest file: a short read proves that the end was reached.
        let mut buffer = buffer((largest + 1).next_multiple_of(GRAIN), number);
        Box::new(move |tally| {
            serve(requests.of_worker(number, depth), tally, |request| {
                let leaf = &leaves[request.offset as usize];
                let opened = OpenOptions::new().read(true).custom_flags(flags).open(&leaf.path);
                let file = opened.context("opening", &leaf.path)?;
                let n = file.read_at(buffer.whole_mut(), 0).context("reading", &leaf.path)?;
                check_len(leaf, n as u64)
            })
        })
    };
    (0..depth).map(worker).collect()
}

pub(super) fn file_object_readers<'a>(
    storage: &'a dyn Storage,
    leaves: &'a [Leaf],
    depth: usize,
    requests: &'a Requests,
) -> Vec<Worker<'a>> {
    let worker = |number: usize| -> Worker<'a> {
        let mut buffer = Buffer::default();
        Box::new(move |tally| {
            serve(requests.of_worker(number, depth), tally, |request| {
                let leaf = &leaves[request.offset as usize];
                storage.open(&leaf.path)?.read_all(&mut buffer)?;
                check_len(leaf, buffer.len() as u64)
            })
        })
    };
    (0..depth).map(worker).collect()
}

/// Checks that the whole file was read: a short file is an error, because only moved bytes count.
pub(super) fn check_len(leaf: &Leaf, found: u64) -> Result<(), Error> {
    if found == leaf.len {
        return Ok(());
    }
    let (path, wanted) = (leaf.path.clone(), leaf.len);
    Err(forebay_storage::Error::Truncated { path, offset: 0, wanted, found }.into())
}
