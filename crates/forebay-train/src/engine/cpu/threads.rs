//! The engine's threads, with work cut so that their number never affects a result.
//!
//! Every operation is cut into tasks by its dimensions alone. The tasks' results are independent, or are summed in a
//! fixed order afterwards. Any thread may run any task.

use std::cell::RefCell;

use rayon::ThreadPool;
use rayon::prelude::*;

use super::memory::Memory;
use crate::error::{Error, Result};

/// Values per task of an elementwise operation.
pub(super) const CHUNK: usize = 1 << 14;

/// More threads than any machine has cores: assumed to be a typing error.
const MOST_THREADS: usize = 4096;

pub(super) struct Threads {
    pool: ThreadPool,
}

impl Threads {
    /// Starts `threads` threads; 0 means one per core.
    pub(super) fn new(threads: usize) -> Result<Self> {
        let threads = if threads == 0 { std::thread::available_parallelism().map_or(1, usize::from) } else { threads };
        if threads > MOST_THREADS {
            return Err(Error::Order("at most 4096 threads are supported"));
        }
        let builder =
            rayon::ThreadPoolBuilder::new().num_threads(threads).thread_name(|i| format!("forebay:train-{i}"));
        let pool = builder.build().map_err(|source| Error::Threads { threads, source })?;
        Ok(Self { pool })
    }

    pub(super) fn count(&self) -> usize {
        self.pool.current_num_threads()
    }

    /// Runs something that uses rayon's parallel iterators on these threads.
    pub(super) fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.pool.install(work)
    }

    /// Runs tasks 0 to `n_tasks`, in any order.
    pub(super) fn each(&self, n_tasks: usize, task: impl Fn(usize) + Sync + Send) {
        self.run(|| (0..n_tasks).into_par_iter().with_max_len(1).for_each(task));
    }

    /// Gives each task its own piece of `out`, `len` values long; the last may be shorter.
    pub(super) fn pieces(&self, out: &mut [f32], len: usize, task: impl Fn(usize, &mut [f32]) + Sync + Send) {
        self.run(|| out.par_chunks_mut(len).enumerate().with_max_len(1).for_each(|(i, piece)| task(i, piece)));
    }

    /// Maps tasks to values, in the tasks' order.
    pub(super) fn map<T: Send>(&self, n_tasks: usize, task: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
        self.run(|| (0..n_tasks).into_par_iter().with_max_len(1).map(task).collect())
    }
}

/// Lends the thread's scratch memory, with arbitrary content.
pub(super) fn with_scratch<T>(len: usize, work: impl FnOnce(&mut [f32]) -> T) -> T {
    thread_local!(static SCRATCH: RefCell<Memory> = const { RefCell::new(Memory::empty()) });
    SCRATCH.with_borrow_mut(|scratch| {
        // It is far smaller than the tensors already allocated.
        work(scratch.room(len).expect("there is memory for a thread's scratch"))
    })
}

/// An output whose tasks write interleaved positions.
#[derive(Clone, Copy)]
pub(super) struct Woven(*mut f32);

// SAFETY: it is only a pointer; whoever writes through it vouches that tasks keep to their own places.
unsafe impl Send for Woven {}
// SAFETY: as above.
unsafe impl Sync for Woven {}

impl Woven {
    pub(super) fn new(out: &mut [f32]) -> Self {
        Self(out.as_mut_ptr())
    }

    pub(super) fn at(self, at: usize) -> *mut f32 {
        self.0.wrapping_add(at)
    }
}

/// Cuts `len` into the fewest parts of at most `most`, as evenly as possible: (start, length) of each.
pub(super) fn even(len: usize, most: usize) -> impl Iterator<Item = (usize, usize)> + Clone {
    let parts = len.div_ceil(most).max(1);
    (0..parts).map(move |i| {
        let (start, end) = (i * len / parts, (i + 1) * len / parts);
        (start, end - start)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_parts_cover_everything_once() {
        assert_eq!(even(27, 14).collect::<Vec<_>>(), [(0, 13), (13, 14)]);
        assert_eq!(even(5, 8).collect::<Vec<_>>(), [(0, 5)]);
        let covered: usize =
            even(1000, 14).inspect(|(_, len)| assert!(*len == 13 || *len == 14)).map(|(_, len)| len).sum();
        assert_eq!(covered, 1000);
    }
}
