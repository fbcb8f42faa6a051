//! Reading many small files with one io_uring: open, read and close of each are linked in the kernel.
//!
//! Every reading thread has its own ring, so nothing is shared and nothing is locked. A file longer than its buffer is
//! finished with plain reads, which is rare and not worth a second chain.

use std::cell::RefCell;
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use io_uring::{IoUring, Probe, opcode, squeue, types};

use super::file::{FIRST_READ, LocalObject};
use crate::{Buffer, Error, Mode, Object, Operation, Result};

/// Files in flight per ring. Measured on a virtio disk with 2 cores: 32 to 64 perform equally, 16 is 10 % slower.
pub(super) const DEPTH: usize = 32;

const OPEN: u64 = 0;
const READ: u64 = 1;
const CLOSE: u64 = 2;

thread_local! {
    static RING: RefCell<Option<IoUring>> = const { RefCell::new(None) };
}

/// Whether a ring can be created and supports the three operations.
pub(super) fn probe() -> io::Result<()> {
    let ring = IoUring::new(4)?;
    let mut probe = Probe::new();
    ring.submitter().register_probe(&mut probe)?;
    let known = [opcode::OpenAt::CODE, opcode::Read::CODE, opcode::Close::CODE];
    if !known.into_iter().all(|code| probe.is_supported(code)) {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "this kernel's io_uring cannot open and read files"));
    }
    ring.submitter().register_files_sparse(1)
}

fn make_ring() -> io::Result<IoUring> {
    let ring = IoUring::builder()
        .setup_single_issuer()
        .setup_coop_taskrun()
        .setup_defer_taskrun()
        .build((DEPTH * 3).next_power_of_two() as u32)
        .or_else(|_| IoUring::new((DEPTH * 3).next_power_of_two() as u32))?;
    ring.submitter().register_files_sparse(DEPTH as u32)?;
    Ok(ring)
}

/// Reads each file of at most `limit` bytes whole into the buffer of the same index.
pub(super) fn read_files(paths: &[&Path], limit: u64, into: &mut [Buffer], mode: Mode) -> Vec<Result<()>> {
    RING.with_borrow_mut(|slot| {
        if slot.is_none() {
            match make_ring() {
                Ok(ring) => *slot = Some(ring),
                Err(source) => return paths.iter().map(|path| Err(no_ring(path, &source))).collect(),
            }
        }
        let ring = slot.as_mut().expect("made just above");
        let mut outcomes = Vec::with_capacity(paths.len());
        for (paths, buffers) in paths.chunks(DEPTH).zip(into.chunks_mut(DEPTH)) {
            match read_chunk(ring, paths, buffers, mode) {
                Ok(chains) => {
                    for ((path, buffer), chain) in paths.iter().zip(buffers).zip(chains) {
                        outcomes.push(finish(path, limit, buffer, chain, mode));
                    }
                }
                Err(source) => outcomes.extend(paths.iter().map(|path| Err(no_ring(path, &source)))),
            }
        }
        outcomes
    })
}

fn no_ring(path: &Path, source: &io::Error) -> Error {
    let what = format!("io_uring cannot be used here ({source}); use --io buffered");
    Error::Unsupported { operation: Operation::Read, path: path.to_owned(), what }
}

/// Turns the ring's result for one file into its outcome.
fn finish(path: &Path, limit: u64, buffer: &mut Buffer, chain: Chain, mode: Mode) -> Result<()> {
    if chain.open < 0 {
        return Err(Error::from_io(Operation::Open, path, io::Error::from_raw_os_error(-chain.open)));
    }
    if chain.read < 0 {
        return Err(Error::from_io(Operation::Read, path, io::Error::from_raw_os_error(-chain.read)));
    }
    // A full buffer may be only the first part, and an empty one may not be a regular file: a plain read decides.
    if chain.read as usize == buffer.capacity() || chain.read == 0 {
        return LocalObject::open(path, mode)?.read_within(limit, buffer);
    }
    Error::check_size(path, chain.read as u64, limit)?;
    buffer.resize(chain.read as usize);
    Ok(())
}

/// The kernel's results for one file's chain.
#[derive(Clone, Copy, Default)]
struct Chain {
    open: i32,
    read: i32,
}

fn read_chunk(ring: &mut IoUring, paths: &[&Path], into: &mut [Buffer], mode: Mode) -> io::Result<Vec<Chain>> {
    let names: Vec<CString> = paths
        .iter()
        .map(|path| CString::new(path.as_os_str().as_bytes()).map_err(|_| io::ErrorKind::InvalidInput.into()))
        .collect::<io::Result<_>>()?;
    for (slot, (name, buffer)) in names.iter().zip(into.iter_mut()).enumerate() {
        push_chain(ring, slot as u32, name, buffer, mode);
    }
    let mut chains = vec![Chain::default(); paths.len()];
    let mut left = paths.len() * 3;
    // The kernel writes into the buffers until each chain has completed, so an interrupted wait is waited again and
    // this function does not return before the last completion.
    while left > 0 {
        match ring.submit_and_wait(left) {
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
            other => drop(other?),
        }
        for completion in ring.completion() {
            let (slot, step) = ((completion.user_data() >> 2) as usize, completion.user_data() & 3);
            match step {
                OPEN => chains[slot].open = completion.result(),
                READ => chains[slot].read = completion.result(),
                _ => {}
            }
            left -= 1;
        }
    }
    Ok(chains)
}

fn push_chain(ring: &mut IoUring, slot: u32, name: &CString, buffer: &mut Buffer, mode: Mode) {
    buffer.reserve(FIRST_READ);
    let flags = libc::O_RDONLY | libc::O_NONBLOCK | if mode.is_direct() { libc::O_DIRECT } else { 0 };
    let target = types::DestinationSlot::try_from_slot_target(slot).expect("a slot below the ring's depth");
    let memory = buffer.whole_mut();
    let tag = u64::from(slot) << 2;
    let open = opcode::OpenAt::new(types::Fd(libc::AT_FDCWD), name.as_ptr()).flags(flags).file_index(Some(target));
    let read = opcode::Read::new(types::Fixed(slot), memory.as_mut_ptr(), memory.len() as u32);
    let close = opcode::Close::new(types::Fixed(slot));
    let entries = [
        open.build().flags(squeue::Flags::IO_LINK).user_data(tag | OPEN),
        // A hard link: the file is closed even if its read fails.
        read.build().flags(squeue::Flags::IO_HARDLINK).user_data(tag | READ),
        close.build().user_data(tag | CLOSE),
    ];
    // SAFETY: the names and the buffers outlive the chain, because `read_chunk` returns only after its last completion.
    unsafe { ring.submission().push_multiple(&entries) }.expect("the ring holds three entries per slot");
}
