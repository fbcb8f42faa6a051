//! A JPEG decoder for training pipelines, bit-exact with libjpeg-turbo's default decode.
//!
//! Decoding takes most of the CPU time of an image pipeline, and entropy decoding takes most of that. This decoder is
//! built around a fast entropy decoder and keeps everything but its input and output in the fastest caches. Its pixels
//! are those of libjpeg-turbo with the accurate integer transform and fancy upsampling, which training frameworks use,
//! so switching to it does not change a dataset.
//!
//! It decodes sequential and progressive Huffman-coded files of 8 bits per sample with one, three or four components
//! and integral sampling factors to RGB, at full size or at 1/2, 1/4 or 1/8. CMYK and YCCK are converted to RGB as in
//! TensorFlow, without colour management. It does not apply the EXIF orientation. It refuses arithmetic coding,
//! lossless and hierarchical files and 12-bit samples, each by name. Of an image of which only a [`Region`] is wanted, only
//! that is transformed and converted to RGB.
//!
//! It is strict: where libjpeg would warn and invent pixels (missing data, invalid codes, wrong restart markers), this
//! decoder returns an [`Error`] with the offset. It ignores everything that no pixel depends on: stray bytes between
//! segments, data after the last MCU, a missing end marker.
//!
//! The memory that a file can make the decoder allocate is proportional to the file's length, and within [`Limits`].
//!
//! ```
//! use forebay_jpeg::{Decoder, Error, Scale};
//!
//! let mut decoder = Decoder::new();
//! let mut pixels = Vec::new();
//! assert_eq!(decoder.decode_rgb(b"GIF89a", Scale::Full, &mut pixels), Err(Error::NotJpeg));
//! ```

mod baseline;
mod bits;
mod buffered;
mod coefficients;
mod color;
mod decoder;
pub mod device;
mod entropy;
mod error;
mod exif;
mod frame;
mod huffman;
mod idct;
mod info;
mod marker;
mod output;
mod pairs;
mod place_set;
mod planes;
mod progress;
mod progressive;
mod region;
mod scale;
mod sequential;
mod simd;
mod standard;
mod tables;
mod upsample;
mod zigzag;

pub use decoder::Decoder;
pub use error::Error;
pub use info::{ColorModel, Info, Limits, Scale};
pub use region::Region;
