//! Bytes, rates, durations, clocks, statistics and value types; random numbers; paths and error chains as text.
//!
//! Types and names say what a number counts. The classic mistakes in this field are dividing a count of files by a
//! count of samples, confusing MB with MiB, and printing a mean as a median.
//!
//! This is not a general units library: it covers what forebay measures, and does no I/O.
//!
//! ```
//! use forebay_units::{Bytes, Summary};
//!
//! let size: Bytes = "112 KB".parse()?;
//! assert_eq!(size, Bytes(112_000));
//! let rates = Summary::of(&[98.0, 100.0, 103.0]).expect("three values");
//! assert_eq!(rates.median, 100.0);
//! # Ok::<(), forebay_units::ParseError>(())
//! ```

mod bytes;
mod chain;
mod clock;
mod date;
mod draws;
mod duration;
mod element;
mod fnv;
mod histogram;
mod interval;
pub mod markdown;
mod nearest;
mod path;
pub mod random;
mod stats;
mod text;
pub mod varint;

pub use bytes::Bytes;
pub use chain::{causes, chain};
pub use clock::{Clock, ManualClock, SystemClock};
pub use date::{format_utc, parse_utc};
pub use duration::{format_seconds, parse_duration};
pub use element::Element;
pub use fnv::Fnv;
pub use histogram::Histogram;
pub use interval::{RatioInterval, holm, ratio_interval, relative_interval};
pub use nearest::{did_you_mean, nearest, suggest};
pub use path::{PathText, escaped_words, serde_path, shell_word, unescape};
pub use stats::{Summary, median, quantile};
pub use text::{ParseError, count, group_digits};
