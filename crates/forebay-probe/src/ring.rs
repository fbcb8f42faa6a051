//! The engine `uring`: one io_uring with direct I/O and `depth` requests in flight.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::Instant;

use forebay_measure::stamp;
use forebay_storage::Buffer;
use io_uring::{IoUring, opcode, squeue, types};

use super::error::Context;
use super::requests::{GRAIN, Request, Requests};
use super::threads::buffer;
use super::workers::{Tally, Worker};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Read,
    /// The number of the run, which is stamped into the data.
    Write(u64),
}

/// For use by a single thread.
pub(super) fn make_ring(entries: usize) -> io::Result<IoUring> {
    let entries = entries.next_power_of_two() as u32;
    let lean = IoUring::builder().setup_single_issuer().setup_coop_taskrun().setup_defer_taskrun().build(entries);
    // Kernels before 6.1 do not know these flags.
    lean.or_else(|_| IoUring::new(entries))
}

struct Slots {
    memory: Buffer,
    stride: usize,
    starts: Vec<(Instant, Request)>,
}

impl Slots {
    fn new(depth: usize, largest: u64) -> Self {
        let stride = largest.next_multiple_of(GRAIN) as usize;
        let nothing = (Instant::now(), Request { offset: 0, len: 0 });
        Self { memory: buffer((stride * depth) as u64, 0), stride, starts: vec![nothing; depth] }
    }

    fn of(&mut self, slot: usize, len: u64) -> &mut [u8] {
        &mut self.memory.as_mut_slice()[slot * self.stride..][..len as usize]
    }
}

pub(super) fn worker<'a>(
    path: &'a Path,
    file: File,
    depth: usize,
    largest: u64,
    requests: &'a Requests,
    direction: Direction,
) -> Worker<'a> {
    let mut slots = Slots::new(depth, largest);
    Box::new(move |tally| {
        let mut ring = make_ring(depth).context("making an io_uring for", path)?;
        let what = if direction == Direction::Read { "reading" } else { "writing" };
        keep_full(&mut ring, &file, &mut slots, requests, direction, tally).context(what, path)
    })
}

fn keep_full(
    ring: &mut IoUring,
    file: &File,
    slots: &mut Slots,
    requests: &Requests,
    direction: Direction,
    tally: &mut Tally<'_>,
) -> io::Result<()> {
    let mut requests = requests.of_worker(0, 1);
    let mut free: Vec<usize> = (0..slots.starts.len()).rev().collect();
    let (mut in_flight, mut outcome) = (0, Ok(()));
    loop {
        while let Some(slot) = free.pop() {
            let wanted = outcome.is_ok() && !tally.is_over();
            let Some(request) = wanted.then(|| requests.next()).flatten() else { break };
            let entry = entry(file, slots, slot, request, direction);
            // SAFETY: the slot's memory is not used elsewhere until its completion; this function returns only after
            // the last one.
            unsafe { ring.submission().push(&entry) }.expect("the ring has an entry per slot");
            in_flight += 1;
            // Submit at once, as fio does: a request that waits to be submitted with others is not in flight.
            hand_over(ring)?;
        }
        if in_flight == 0 {
            return outcome;
        }
        wait_for_one(ring)?;
        for completion in ring.completion() {
            let slot = completion.user_data() as usize;
            let (start, request) = slots.starts[slot];
            in_flight -= 1;
            free.push(slot);
            match whole(completion.result(), request) {
                Ok(()) => tally.count(start, request.len),
                failed => outcome = outcome.and(failed),
            }
        }
    }
}

fn entry(file: &File, slots: &mut Slots, slot: usize, request: Request, direction: Direction) -> squeue::Entry {
    let fd = types::Fd(file.as_raw_fd());
    let memory = slots.of(slot, request.len);
    let len = memory.len() as u32;
    let entry = match direction {
        Direction::Read => opcode::Read::new(fd, memory.as_mut_ptr(), len).offset(request.offset).build(),
        Direction::Write(run) => {
            stamp(memory, request.offset, run);
            opcode::Write::new(fd, memory.as_ptr(), len).offset(request.offset).build()
        }
    };
    slots.starts[slot] = (Instant::now(), request);
    entry.user_data(slot as u64)
}

fn hand_over(ring: &IoUring) -> io::Result<()> {
    match ring.submit() {
        // The following wait submits the rest.
        Err(error) if [libc::EINTR, libc::EBUSY, libc::EAGAIN].contains(&error.raw_os_error().unwrap_or(0)) => Ok(()),
        other => other.map(drop),
    }
}

/// Submits the pushed entries and waits for a completion. Not interrupted by a signal: the kernel still writes into the
/// buffers.
pub(super) fn wait_for_one(ring: &IoUring) -> io::Result<()> {
    loop {
        match ring.submit_and_wait(1) {
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
            // The kernel wants completions to be consumed first, so there are some.
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => return Ok(()),
            other => return other.map(drop),
        }
    }
}

/// Direct I/O of aligned blocks on a regular file is never short.
fn whole(result: i32, request: Request) -> io::Result<()> {
    match result {
        _ if result < 0 => Err(io::Error::from_raw_os_error(-result)),
        n if n as u64 == request.len => Ok(()),
        n => Err(io::Error::other(format!("{n} of {} bytes at offset {}", request.len, request.offset))),
    }
}
