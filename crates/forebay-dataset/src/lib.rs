//! Datasets of images: made, inspected, packed and verified.
//!
//! The four verbs of `forebay data`: [`make()`] writes seeded synthetic photographs in class folders, [`inspect()`]
//! says what a folder, a list or a set of shards holds, [`pack()`] turns files into TFRecord, tar or tensor shards and
//! [`unpack()`] back, [`verify()`] checks every checksum and decodes every image. All of them run on any number of
//! threads with the same result, tell a callback how far they are, stop when a flag is set, and go on later where they
//! stopped.
//!
//! It is not a loader: nothing here shuffles epochs or makes batches. It prints nothing.
//!
//! Limits: local files. A shard is the unit of parallel work when inspecting or verifying. A tensor shard, and a
//! compressed one, is built in memory, so packing takes up to a shard's length of it per thread.
//!
//! ```
//! use forebay_dataset::{Control, InspectOptions, MakePlan, MakeSpec, Profile, inspect, make};
//! use forebay_units::Bytes;
//!
//! let dir = tempfile::tempdir()?;
//! let spec = MakeSpec { count: Some(12), median_size: Some(Bytes(4_000)), ..MakeSpec::new(Profile::Imagenet) };
//! make(&MakePlan::new(&spec)?, dir.path(), &Control::default())?;
//! let found = inspect(dir.path(), &InspectOptions::default(), &Control::default())?;
//! assert_eq!((found.n_samples, found.n_bad), (12, 0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod control;
mod error;
mod exact;
mod features;
mod home;
mod inspect;
mod make;
mod manifest;
mod pack;
mod reason;
mod records;
mod rng;
mod shard;
mod sizes;
mod source;
pub mod synth;
mod verify;
mod write;

pub use control::{Control, Progress};
pub use error::{Error, Result};
pub use forebay_record::{Bucket, Class, Fault, Form, Inspection, Verification};
pub use inspect::{InspectOptions, inspect};
pub use make::{LIST, MARKER, Made, MakePlan, MakeSpec, Parameters, Picture, Profile, make};
pub use manifest::{MANIFEST, Manifest, ShardEntry, packed_classes};
pub use pack::{PackOptions, PackPlan, Packed, Packing, UnpackOptions, Unpacked, pack, unpack};
pub use records::{
    Files, MadeRecords, NO_HDF5, RECORDS_MARKER, ReadError, Reader, Step, Tools, Traffic, Unit, foresee_records,
    is_built_in, made_otherwise, make_records, records_beside, records_room,
};
pub use verify::{VerifyOptions, verify};
