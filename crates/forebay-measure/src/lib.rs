//! Shared by all experiments: timing, attribution of stalls, cold starts and rounds of repeats.
//!
//! [`laps`] divides wall-clock time into parts, [`stall`] attributes waits to causes, [`cold`] empties the page cache
//! and verifies it, [`reads`] samples bytes over time, [`usage`] reports this process's resources. [`Scratch`] is a
//! hidden folder for an experiment's files. [`Rounds`] runs the [`Trial`]s of an experiment and notifies an
//! [`Observer`]. This crate contains no experiment and prints nothing.

pub mod cold;
mod disturbance;
mod environment;
mod error;
mod file_system;
pub mod laps;
mod memory;
mod observer;
mod places;
mod random;
pub mod reads;
mod runner;
mod scratch;
mod setting;
mod settings;
pub mod stall;
pub mod usage;
pub mod value;

pub use disturbance::{Disturbance, Watch};
pub use environment::{describe_environment, file_system_of, memory, utc_now};
pub use error::{Context, Error};
pub use file_system::FileSystem;
pub use memory::Memory;
pub use observer::{EXTRA_REPEATS, Event, Observer};
pub use places::{Kept, Place, Places};
pub use random::{random, stamp};
pub use runner::{Done, MAX_LEAST, Ran, Rounds, Trial, Until};
pub use scratch::{Scratch, is_at_work, remove_left_overs, remove_objects};
pub use setting::{Refused, Setting, Settings, Takes, spelled};
pub use settings::{Cache, Interleave, Io, Shuffle, ThreadCount};

// Used by the expansion of `share_errors!`.
#[doc(hidden)]
pub use forebay_checkpoint::{Error as CheckpointError, format::Error as FormatError};
#[doc(hidden)]
pub use forebay_pipeline::Error as PipelineError;
#[doc(hidden)]
pub use forebay_record::{Level, Step};
#[doc(hidden)]
pub use forebay_storage::Error as StorageError;
