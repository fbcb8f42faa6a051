//! Decoding on a device with many threads, such as a GPU: what the host prepares, and the kernels' source.
//!
//! This module computes nothing on a device and opens none. [`Prepared::read`] reads a file's headers, [`Batch`] lays out
//! the memory of a batch and names the kernels to run, and [`KERNELS`] is their source. Whoever has a device copies,
//! launches and copies back. Pixels are those of [`Decoder`](crate::Decoder), bit for bit. Every file that the decoder would
//! refuse is marked, and no other, except data of which more than 4,096 chunks do not fall into step; which error it is,
//! and whether there is one, the decoder says.

mod batch;
mod layout;
mod prepare;

pub use batch::{Batch, Division, Dtype, Launch, Target, View};
pub use layout::Arguments;
pub use prepare::{Prepared, Refusal};

/// The kernels, for CUDA 12 or later, to be compiled without fusing multiplications and additions. Each takes
/// [`Arguments`] and a round.
pub const KERNELS: &str = include_str!("kernels.cu");

/// The names of all kernels.
pub const KERNEL_NAMES: [&str; 9] = [
    "build_codes",
    "synchronise",
    "place_blocks",
    "write_coefficients",
    "sum_runs",
    "sum_segments",
    "add_sums",
    "reconstruct",
    "render",
];
