//! Bringing the page cache into the state that was asked for.

use forebay_measure::{Cache, cold};
use forebay_pipeline::Source;

pub(super) use forebay_measure::cold::conclude;

/// Evicts the files where a cold start is asked for, and takes stock.
pub(super) fn prepare(wanted: Cache, source: &Source) -> forebay_storage::Result<cold::Before> {
    cold::prepare(source.files(), wanted == Cache::Cold)
}
