//! MPI operations in progress, each with the buffers it reads and writes.
//!
//! They are polled: MPI's own wait occupies a whole core, which readers need.

use std::ffi::c_int;

use mpi::ffi;

/// Maximum size of a message; MPI counts in 32 bits.
pub(super) const PIECE: usize = 1 << 30;

/// Message tag of gathered data.
const TAG_DATA: c_int = 16;

/// An operation whose buffers live until it has ended; they are leaked if it is abandoned.
pub(super) struct Pending<B> {
    request: ffi::MPI_Request,
    buffers: Option<B>,
}

impl<B> Pending<B> {
    /// The buffers' contents must be on the heap, to stay in place when `B` is moved.
    fn start(mut buffers: B, start: impl FnOnce(&mut B, &mut ffi::MPI_Request)) -> Self {
        // SAFETY: a constant of the MPI library, read only.
        let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
        start(&mut buffers, &mut request);
        Self { request, buffers: Some(buffers) }
    }

    /// Also drives MPI's progress.
    pub(super) fn is_done(&mut self) -> bool {
        let mut flag = 0;
        // SAFETY: the request was made by `start`; MPI sets it to null when it has ended, and null may be tested again.
        unsafe { ffi::MPI_Test(&mut self.request, &mut flag, ffi::RSMPI_STATUS_IGNORE) };
        flag != 0
    }

    pub(super) fn take(mut self) -> B {
        self.buffers.take().expect("taken once, since it takes the operation itself")
    }
}

impl<B> Drop for Pending<B> {
    fn drop(&mut self) {
        // MPI may still write there.
        std::mem::forget(self.buffers.take());
    }
}

/// Element-wise minimum over the ranks; the second buffer is the result.
pub(super) fn least(mine: Vec<i64>) -> Pending<(Vec<i64>, Vec<i64>)> {
    let result = vec![0; mine.len()];
    Pending::start((mine, result), |(mine, result), request| {
        let n = c_int::try_from(mine.len()).expect("a few values");
        let (from, to) = (mine.as_ptr().cast(), result.as_mut_ptr().cast());
        // SAFETY: both buffers hold n values of 64 bits and outlive the request.
        unsafe { ffi::MPI_Iallreduce(from, to, n, ffi::RSMPI_INT64_T, ffi::RSMPI_MIN, ffi::RSMPI_COMM_WORLD, request) };
    })
}

/// Values of a sum at a time: few enough to stay in a cache, and many beside the latency of a message.
pub(super) const SUMMED: usize = 1 << 20;

/// Element-wise sum over the ranks of at most [`SUMMED`] values; the second buffer, of the same length, is the result.
pub(super) fn sum(mine: Vec<f32>, result: Vec<f32>) -> Pending<(Vec<f32>, Vec<f32>)> {
    assert_eq!(mine.len(), result.len(), "as many sums as values");
    Pending::start((mine, result), |(mine, result), request| {
        let n = c_int::try_from(mine.len()).expect("sums are cut into pieces");
        let (from, to) = (mine.as_ptr().cast(), result.as_mut_ptr().cast());
        // SAFETY: both buffers hold n floats and outlive the request.
        unsafe { ffi::MPI_Iallreduce(from, to, n, ffi::RSMPI_FLOAT, ffi::RSMPI_SUM, ffi::RSMPI_COMM_WORLD, request) };
    })
}

/// All ranks must pass the same length.
pub(super) fn broadcast(bytes: Vec<u8>, root: u64) -> Pending<Vec<u8>> {
    Pending::start(bytes, |bytes, request| {
        let (n, root) = (length(bytes), number(root));
        let at = bytes.as_mut_ptr().cast();
        // SAFETY: the buffer holds n bytes and outlives the request.
        unsafe { ffi::MPI_Ibcast(at, n, ffi::RSMPI_UINT8_T, root, ffi::RSMPI_COMM_WORLD, request) };
    })
}

pub(super) fn send(bytes: Vec<u8>, to: u64) -> Pending<Vec<u8>> {
    Pending::start(bytes, |bytes, request| {
        let (n, to) = (length(bytes), number(to));
        let at = bytes.as_ptr().cast();
        // SAFETY: the buffer holds n bytes and outlives the request.
        unsafe { ffi::MPI_Isend(at, n, ffi::RSMPI_UINT8_T, to, TAG_DATA, ffi::RSMPI_COMM_WORLD, request) };
    })
}

pub(super) fn receive(n_bytes: usize, from: u64) -> Pending<Vec<u8>> {
    Pending::start(vec![0; n_bytes], |bytes, request| {
        let (n, from) = (length(bytes), number(from));
        let at = bytes.as_mut_ptr().cast();
        // SAFETY: the buffer holds n bytes and outlives the request.
        unsafe { ffi::MPI_Irecv(at, n, ffi::RSMPI_UINT8_T, from, TAG_DATA, ffi::RSMPI_COMM_WORLD, request) };
    })
}

fn length(bytes: &[u8]) -> c_int {
    c_int::try_from(bytes.len()).expect("messages are cut into pieces")
}

fn number(rank: u64) -> c_int {
    c_int::try_from(rank).expect("ranks come from MPI, which counts them in 32 bits")
}
