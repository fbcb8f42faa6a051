//! Batches of JPEG files decoded on a GPU, to the pixels of `forebay-jpeg`.
//!
//! A [`Gpu`] runs the kernels of [`forebay_jpeg::device`] on a CUDA device: compressed bytes go in, training samples come
//! out, on the device or on the host. It reads no files and falls back to nothing: it says which files the device found
//! damaged, and the caller gives those to the decoder for CPUs, which names the error.
//!
//! CUDA's driver and NVRTC are loaded when the first device is opened, so the same program runs without CUDA.
//!
//! # Limits
//! A batch needs about 130 bytes on the device per 8×8 block (0.6 MB for a photograph of 500×375 pixels); memory grows to
//! the largest batch and is kept. A `Gpu` works on one batch at a time; several on one device, each in a thread of its own,
//! overlap copies with kernels.
//!
//! ```
//! use forebay_decode::{Device, Error, Gpu};
//!
//! match Gpu::open(0) {
//!     Ok(gpu) => assert!(!gpu.describe().is_empty()),
//!     Err(Error::MissingLibrary(_) | Error::Device { .. }) => {} // No GPU: decode on the CPU.
//!     Err(_) => unreachable!(),
//! }
//! ```

mod device;
mod error;
mod gpu;
mod images;

pub use device::{Decoded, Device, Samples, Times};
pub use error::{Error, Result};
pub use gpu::Gpu;
pub use images::{GpuImages, Totals};
