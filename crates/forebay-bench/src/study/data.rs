//! Making the data that a study's cells read.

use std::sync::atomic::AtomicBool;

use forebay_dataset::{Control, Progress};

use super::error::{Error, Result};
use super::places::ToMake;

/// Makes a dataset, or what is missing of it.
///
/// # Errors
/// [`Error::Data`]; after a stop its source is [`forebay_dataset::Error::Cancelled`].
pub fn make(wanted: &ToMake<'_>, progress: &(dyn Fn(Progress) + Sync), cancel: &AtomicBool) -> Result<()> {
    let control = Control { threads: 0, cancel, progress };
    let made = forebay_dataset::make(wanted.plan, &wanted.dir, &control);
    made.map(drop).map_err(|source| Error::Data { name: wanted.name.to_owned(), source })
}
