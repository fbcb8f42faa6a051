//! How state becomes durable: formats, commit protocol, tiers, drain, retention, restore.
//!
//! A [`Snapshot`] is a program's state at one moment: named tensors and a few strings. A [`FilePlan`] says how it lies
//! in files.

mod commit;
mod damage;
mod error;
mod fs;
mod keep;
mod manifest;
mod parallel;
mod plan;
mod region;
mod restore;
mod source;
mod store;
mod tensor;
mod tier;
mod verify;

pub use commit::Durability;
pub use damage::{Damage, PassedOver};
pub use error::{Error, Operation, Result};
pub use fs::{Crash, Cut, FaultyFs, File, Fs, Guard, LocalFs, ModelFs, Reading, ShapedFs, Site, lower_io_priority};
pub use keep::{Better, Keep};
pub use manifest::{FileSum, Manifest};
pub use plan::{FilePlan, Piece};
pub use region::Region;
pub use restore::{Loaded, Restored, list, restore};
pub use store::{Closed, Counts, Fate, Handle, Level, Mode, Options, Store, WhenBehind};
pub use tensor::{Dtype, Header, Snapshot, Tensor};
pub use tier::{Name, Tier};
pub use verify::verify;
