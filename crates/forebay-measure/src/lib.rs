//! How anything is measured: what all experiments share.
//!
//! [`laps`] cuts the wall clock into parts, [`stall`] charges waits to their causes, [`cold`] empties the page cache and proves it,
//! [`reads`] counts bytes by time, [`usage`] says what this process took. [`Scratch`] is a hidden folder for what an experiment writes.
//! It runs no experiment, renders nothing and prints nothing.

pub mod cold;
mod environment;
mod error;
mod file_system;
pub mod laps;
mod memory;
mod places;
mod random;
pub mod reads;
mod scratch;
mod settings;
pub mod stall;
pub mod usage;

pub use environment::{describe_environment, file_system_of, memory, utc_now};
pub use error::{Context, Error};
pub use file_system::FileSystem;
pub use memory::Memory;
pub use places::{Place, Places};
pub use random::{random, stamp};
pub use scratch::{Scratch, is_at_work, remove_left_overs};
pub use settings::{Cache, Io, ThreadCount};
