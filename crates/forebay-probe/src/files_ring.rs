//! The engine `uring` for many files: the kernel links open, read and close of each file.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Instant;

use forebay_storage::Buffer;
use io_uring::{IoUring, opcode, squeue, types};

use super::error::{Context, Error};
use super::requests::{GRAIN, Requests};
use super::ring::{make_ring, wait_for_one};
use super::threads::{Leaf, buffer, check_len};
use super::workers::{Tally, Worker};

const OPEN: u64 = 0;
const READ: u64 = 1;
const CLOSE: u64 = 2;

/// A file in flight.
struct Slot {
    memory: Buffer,
    name: CString,
    leaf: usize,
    start: Instant,
    /// The first error of its three operations, or the length read.
    outcome: i32,
}

pub(super) fn worker<'a>(leaves: &'a [Leaf], depth: usize, largest: u64, requests: &'a Requests) -> Worker<'a> {
    let slot = |number: usize| Slot {
        memory: buffer((largest + 1).next_multiple_of(GRAIN), number),
        name: CString::default(),
        leaf: 0,
        start: Instant::now(),
        outcome: 0,
    };
    let mut slots: Vec<Slot> = (0..depth).map(slot).collect();
    Box::new(move |tally| {
        let here = Path::new("many files");
        let mut ring = make_ring(depth * 3).context("making an io_uring for", here)?;
        ring.submitter().register_files_sparse(depth as u32).context("making an io_uring for", here)?;
        keep_full(&mut ring, leaves, &mut slots, requests, tally)
    })
}

fn keep_full(
    ring: &mut IoUring,
    leaves: &[Leaf],
    slots: &mut [Slot],
    requests: &Requests,
    tally: &mut Tally<'_>,
) -> Result<(), Error> {
    let mut requests = requests.of_worker(0, 1);
    let mut free: Vec<usize> = (0..slots.len()).rev().collect();
    let (mut in_flight, mut outcome) = (0, Ok(()));
    loop {
        while let Some(number) = free.pop() {
            let wanted = outcome.is_ok() && !tally.is_over();
            let Some(request) = wanted.then(|| requests.next()).flatten() else { break };
            push_chain(ring, &mut slots[number], number, request.offset as usize, leaves);
            in_flight += 1;
        }
        if in_flight == 0 {
            return outcome;
        }
        wait_for_one(ring).context("waiting for", Path::new("io_uring"))?;
        for completion in ring.completion() {
            let (number, step) = ((completion.user_data() >> 2) as usize, completion.user_data() & 3);
            let slot = &mut slots[number];
            match step {
                CLOSE => {
                    in_flight -= 1;
                    free.push(number);
                    match finish(slot, leaves) {
                        Ok(()) => tally.count(slot.start, leaves[slot.leaf].len),
                        failed => outcome = outcome.and(failed),
                    }
                }
                // A read cancelled because its open failed reports an error too; the first error is the cause.
                _ if slot.outcome >= 0 => slot.outcome = completion.result(),
                _ => {}
            }
        }
    }
}

fn push_chain(ring: &mut IoUring, slot: &mut Slot, number: usize, leaf: usize, leaves: &[Leaf]) {
    slot.name = CString::new(leaves[leaf].path.as_os_str().as_bytes()).expect("an opened path contains no zero byte");
    (slot.leaf, slot.outcome) = (leaf, 0);
    let target = types::DestinationSlot::try_from_slot_target(number as u32).expect("a slot below the ring's depth");
    let memory = slot.memory.whole_mut();
    let open = opcode::OpenAt::new(types::Fd(libc::AT_FDCWD), slot.name.as_ptr());
    let open = open.flags(libc::O_RDONLY | libc::O_DIRECT).file_index(Some(target));
    let read = opcode::Read::new(types::Fixed(number as u32), memory.as_mut_ptr(), memory.len() as u32);
    let close = opcode::Close::new(types::Fixed(number as u32));
    let tag = (number as u64) << 2;
    let entries = [
        open.build().flags(squeue::Flags::IO_LINK).user_data(tag | OPEN),
        // A hard link: the file is closed even if its read fails.
        read.build().flags(squeue::Flags::IO_HARDLINK).user_data(tag | READ),
        close.build().user_data(tag | CLOSE),
    ];
    slot.start = Instant::now();
    // SAFETY: name and buffer belong to the slot until its close completes; `keep_full` returns only after the last
    // close.
    unsafe { ring.submission().push_multiple(&entries) }.expect("the ring holds three entries per slot");
}

fn finish(slot: &Slot, leaves: &[Leaf]) -> Result<(), Error> {
    let leaf = &leaves[slot.leaf];
    match slot.outcome {
        error if error < 0 => Err(io::Error::from_raw_os_error(-error)).context("reading", &leaf.path),
        n => check_len(leaf, n as u64),
    }
}
