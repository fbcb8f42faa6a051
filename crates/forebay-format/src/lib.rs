//! Sample formats: encoding and decoding, in memory that the caller provides.
//!
//! Images ([`image`]), TFRecord shards ([`tfrecord`]) of `tf.train.Example` messages ([`example`]), tar shards in
//! WebDataset's convention ([`tar`]), shards of images that are already decoded and resized ([`tensor`]), and the
//! formats of workload data: npy, npz, HDF5, Parquet, CSV and indexed binary.
//!
//! It is not an I/O library: nothing here opens, reads or writes a file, starts a thread or prints. A shard too big to
//! hold is walked by a [`Scanner`], which asks its caller for small pieces.
//!
//! Limits: samples of more than [`MAX_SAMPLE_SIZE`] bytes are not read unless the caller allows it; images of more than
//! [`image::MAX_PIXELS`] pixels are refused; compressed shards are expanded up to the caller's limit; links and sparse
//! files in tar archives are left out.
//!
//! ```
//! use forebay_format::{example::ImageExample, image::ImageKind, tfrecord};
//!
//! let sample = ImageExample { encoded: b"...", format: Some(ImageKind::Jpeg), label: Some(7), ..Default::default() };
//! let mut shard = Vec::new();
//! tfrecord::append(&mut shard, &sample.to_bytes());
//!
//! let record = tfrecord::Records::new(&shard).next().expect("one record was written")?;
//! assert_eq!(ImageExample::parse(record.payload)?.label, Some(7));
//! # Ok::<(), forebay_format::Error>(())
//! ```

pub mod csv;
mod error;
pub mod example;
#[cfg(feature = "hdf5")]
pub mod hdf5;
pub mod image;
pub mod indexed;
mod kind;
mod left_out;
pub mod list;
mod little_endian;
pub mod npy;
pub mod npz;
pub mod parquet;
mod scan;
pub mod split;
pub mod tar;
pub mod tensor;
pub mod tfrecord;

pub use error::Error;
pub use forebay_units::Element;
pub use kind::{Kind, is_passed_over};
pub use left_out::LeftOut;
pub use scan::{Scanner, Span, Want};

/// Default size limit of a sample: a whole file, a record, or all parts of a tar sample.
pub const MAX_SAMPLE_SIZE: u64 = 256 << 20;
