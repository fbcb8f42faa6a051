//! Making, inspecting, packing and verifying datasets, and generating the data of workloads.
//!
//! The commands of `forebay data`: [`make()`] writes seeded synthetic photographs into class folders, [`inspect()`]
//! describes a folder, a list or a set of shards, [`pack()`] turns files into TFRecord, tar or tensor shards,
//! [`unpack()`] turns them back, and [`verify()`] checks every checksum and decodes every image. All give the same
//! result on any number of threads, report progress to a callback, and stop when a flag is set; a stopped `make`, `pack`
//! or `unpack` resumes in the next run.
//!
//! This is not a loader: nothing here shuffles epochs or makes batches. It prints nothing.
//!
//! Limits: local files only. A shard is the unit of parallel work when inspecting or verifying. Tensor shards and
//! compressed shards are built in memory, so packing them needs up to one shard of memory per thread.
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
pub use make::{LIST, MARKER, Made, MakePlan, MakeSpec, Parameters, Picture, Profile, SizeMix, make};
pub use manifest::{MANIFEST, Manifest, ShardEntry, packed_classes};
pub use pack::{PackOptions, PackPlan, Packed, Packing, UnpackOptions, Unpacked, pack, unpack};
pub use records::{
    Files, MadeRecords, NO_HDF5, RECORDS_MARKER, ReadError, Reader, Step, Tools, Traffic, Unit, foresee_records,
    is_built_in, made_otherwise, make_records, records_beside, records_room,
};
pub use verify::{VerifyOptions, verify};
