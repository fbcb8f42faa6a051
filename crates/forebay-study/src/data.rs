//! Generates or packs the data that a study's cells read.

use std::sync::atomic::AtomicBool;

use forebay_dataset::{Control, Fault, Progress, pack};

use super::dataset::pack_plan;
use super::error::{Error, Result};
use super::places::{Making, ToMake};

/// Generates or packs the missing part of a dataset and returns the inputs that could not be packed.
///
/// # Errors
/// [`Error::Data`]; after a cancellation its source is [`forebay_dataset::Error::Cancelled`].
pub fn make(wanted: &ToMake<'_>, progress: &(dyn Fn(Progress) + Sync), cancel: &AtomicBool) -> Result<Vec<Fault>> {
    let control = Control { threads: 0, cancel, progress };
    let made = match &wanted.making {
        Making::Records(workload) => {
            forebay_dataset::make_records(workload, &wanted.dir, 0, 1, &control).map(|_| Vec::new())
        }
        Making::Make(plan) => forebay_dataset::make(plan, &wanted.dir, &control).map(|_| Vec::new()),
        // Generated images never differ, so shards stay valid after their images are deleted.
        Making::Pack { made: Some(_), .. } if wanted.is_there() => Ok(Vec::new()),
        Making::Pack { packing, from, .. } => {
            pack_plan(from, *packing).and_then(|plan| pack(&plan, &wanted.dir, &control)).map(|packed| packed.skipped)
        }
    };
    made.map_err(|source| Error::Data { name: wanted.name.to_owned(), source })
}
