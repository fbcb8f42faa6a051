//! A JPEG decoder for training pipelines, bit-exact with libjpeg-turbo's default decode.
//!
//! Decoding is most of the CPU time of an image pipeline, and entropy decoding is most of that. This decoder is
//! built around a fast entropy decoder and keeps everything but its input and output in the nearest caches. Its pixels are
//! those of libjpeg-turbo with the accurate integer transform and fancy upsampling, which is what training frameworks
//! decode with, so that switching to it does not change a data set.
//!
//! It decodes sequential and progressive Huffman-coded files of 8 bits per sample with one, three or four components and
//! integral sampling factors, to RGB, at full size or at 1/2, 1/4 or 1/8. CMYK and YCCK become RGB the way TensorFlow
//! converts them, without colour management. It does not apply the EXIF orientation, and it refuses arithmetic
//! coding, lossless and hierarchical files and 12-bit samples by name.
//!
//! Data are taken at their word: where libjpeg would warn and invent pixels (missing data, codes that do not exist, wrong
//! restart markers), this decoder returns an [`Error`] with the offset. It ignores what no pixel depends on: stray
//! bytes between segments, data after the last MCU, a missing end marker.
//!
//! A file can make the decoder allocate at most in proportion to its own length, and within [`Limits`].
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
