//! Turns samples into batches: sources, stages, executor, resumable iterators.
//!
//! A [`Dataset`] is a lazy description; [`Batched::iter`] starts its threads; dropping the iterator joins them. Every
//! sample is written once, straight into its place in a recycled batch buffer. The order is a pure function of the
//! seeds, for any number of threads, so the saved [`State`] of an iterator is exact and takes only twenty bytes.
//!
//! It is not a benchmark and has no command line: it measures itself ([`Stats`]) and leaves the interpretation to
//! others.
//!
//! # Limits
//! At most 2^32 samples per source. The index takes 32 bytes per sample and a path per file; all other memory is
//! bounded by (prefetch + hold) batches and a few buffers per thread.
//!
//! # Order and errors
//! With [`ignore_errors`](Mapped::ignore_errors), a sample that fails is left out of the stream and batches stay full,
//! as if the sample did not exist. Otherwise the iterator yields the error in the sample's place.
//!
//! ```
//! use forebay_pipeline::{Dataset, Source, Threads};
//!
//! let samples = (0..10u8).map(|i| (vec![i; 4], i64::from(i % 2))).collect();
//! let pipeline = Dataset::new(Source::memory(samples))
//!     .shuffle(7)
//!     .map_fn(4, |sample, slot| Ok(slot.copy_from_slice(sample.bytes)))
//!     .threads(Threads::Fixed(2))
//!     .ignore_errors()
//!     .batch(4)
//!     .prefetch(1);
//! let mut n_samples = 0;
//! for batch in pipeline.iter()? {
//!     n_samples += batch?.len();
//! }
//! assert_eq!(n_samples, 10);
//! # Ok::<(), forebay_pipeline::Error>(())
//! ```

mod augment;
mod batch;
mod dataset;
mod error;
mod exec;
mod field;
mod iterator;
mod map;
mod records;
mod rng;
mod rows;
mod sharded;
mod source;
mod stage;
mod stage_cache;
mod state;
mod stats;

pub use augment::{Augment, AugmentImage, Crop, Jitter};
pub use batch::{Batch, BatchMemory};
pub use dataset::{Batched, Dataset, Mapped, Threads};
pub use error::{Error, FailedSample, SampleError};
pub use exec::activity::{Activity, Stopwatch, Times};
pub use exec::roster::Scheduled;
pub use exec::tuner::Tuning;
pub use field::Field;
pub use iterator::Batches;
pub use map::{DecodeImage, Job, Map, MapWorker, ReadOnly, Sample, TakePixels, Wants};
pub use records::{Parts, RecordField, Records};
pub use rows::{Rows, TokenFiles};
pub use source::{Damaged, NO_LABEL, PixelShape, Source};
pub use stage_cache::CacheAt;
pub use state::State;
pub use stats::{Meter, Stats};
