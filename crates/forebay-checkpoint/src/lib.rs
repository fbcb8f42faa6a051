//! Makes state durable: formats, commit protocol, tiers, drain, retention, restore.
//!
//! A [`Snapshot`] is a program's state at one moment: named tensors and a few strings. A [`format`](mod@format) lays it
//! out in files. A [`Store`] saves it to [`Tier`]s, nearest first, and drains it to the farther ones in the background.
//! [`restore`](restore()) finds the newest valid checkpoint. The crate does not train and does not interpret the state.
//!
//! # What survives what
//! - *Staged*: survives nothing. The caller may continue and change its state.
//! - *Durable on the fast tier*: survives a crash of the program or machine and a power cut, but not the loss of that
//!   device.
//! - *Durable on the slow tier*: also survives the loss of the fast tier. The copy is read back from the device before
//!   it counts as durable.
//! - After a failed sync the checkpoint is written again; if that fails too, the save returns an error and older
//!   checkpoints are untouched.
//! - Bit rot and truncated or zeroed files: detected by crc32c at every restore and drain; such checkpoints are
//!   skipped.
//!
//! # Invariants
//! - A folder with the name of a checkpoint is complete unless its device damaged it: the name is given last and taken
//!   away first.
//! - Only verified data is returned.
//! - A checkpoint is removed in favour of another only if this store wrote or read back the other.
//! - Only files that this library wrote are removed, and links are never followed.
//! - Checkpoints are ordered by step, never by a clock.
//!
//! # Limits
//! Linux only. One process at a time writes to a folder; any number may read. The newest checkpoint is the one with the
//! greatest step: a run that permanently returns to an older step must first remove the newer ones.
//!
//! ```
//! use std::sync::Arc;
//! use forebay_checkpoint::format::{Format, Safetensors};
//! use forebay_checkpoint::{Dtype, Header, ModelFs, Options, Snapshot, Store, Tensor, Tier};
//!
//! let header = Header { name: "w".to_owned(), dtype: Dtype::F32, shape: vec![2] };
//! let bytes = [1.0_f32, 2.0].map(f32::to_le_bytes).concat();
//! let snapshot = Snapshot { tensors: vec![Tensor::new(&header, &bytes)], ..Snapshot::default() };
//! let layout = Safetensors.plan("model", &snapshot)?;
//!
//! let fs = Arc::new(ModelFs::with_dirs(&["checkpoints"]));
//! let store = Store::open(vec![Tier::new(fs, "/checkpoints")], Options::default())?;
//! store.save(100, None, &snapshot, &layout)?;
//! let restored = store.restore()?;
//! assert_eq!(restored.name.step, 100);
//! let files = restored.by_name();
//! assert_eq!(Safetensors.open("model", &files)?.read(&files, "w")?, bytes);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod checkpoint;
mod commit;
mod damage;
mod error;
pub mod format;
mod fs;
mod heed;
mod keep;
mod look;
mod manifest;
mod parallel;
mod plan;
mod region;
mod restore;
mod source;
mod store;
mod stream;
mod tensor;
mod tier;
mod values;
mod verify;

pub use checkpoint::Checkpoint;
pub use commit::Durability;
pub use damage::{Damage, PassedOver};
pub use error::{Error, Operation, Result};
pub use fs::{
    CountedFs, Counters, Crash, Cut, FaultyFs, File, Fs, Guard, Kind, LocalFs, ModelFs, ObjectFs, Reading, ShapedFs,
    StoppingFs, SyncPoint, lock_holder, lower_io_priority,
};
pub use heed::heeding;
pub use keep::{Better, Keep};
pub use look::{left_over, look};
pub use manifest::{FileSum, Manifest};
pub use parallel::Progress;
pub use plan::{FilePlan, Piece};
pub use region::{Memory, Pages, Region};
pub use restore::{Loaded, Restored, Wanted, list, restore, restore_with};
pub use store::{Closed, Counts, Fate, Handle, Level, Mode, Options, Store, Undrained, WhenBehind};
pub use tensor::{Dtype, Header, Snapshot, Tensor};
pub use tier::{Name, Tier};
pub use values::{Elsewhere, Fetch, Values};
pub use verify::{read_manifest, verify, verify_until};
