//! Bringing the page cache into the state that was asked for, and gathering the evidence.

use std::path::Path;

use forebay_pipeline::Source;
use forebay_record::CacheEvidence;
use forebay_storage::cache;

use super::plan::Cache;

/// The state before a repeat.
pub(super) struct Before {
    resident: Option<f64>,
    block_bytes: Option<u64>,
}

/// Evicts the files where a cold start is asked for, and takes stock.
pub(super) fn prepare(wanted: Cache, source: &Source) -> Result<Before, forebay_storage::Error> {
    let files = || source.files().iter().map(|path| path.as_path()).filter(|path| path.exists());
    if wanted == Cache::Cold {
        cache::evict(files())?;
        if resident_share(files()) > Some(0.05) {
            // Somebody else holds the pages; root may drop them all the same.
            cache::drop_all();
        }
    }
    Ok(Before { resident: resident_share(files()), block_bytes: cache::block_bytes_read() })
}

fn resident_share<'a>(files: impl Iterator<Item = &'a Path>) -> Option<f64> {
    cache::residency(files).ok()?.share()
}

/// What happened between `before` and now.
pub(super) fn conclude(before: &Before, bytes_read: u64) -> CacheEvidence {
    let block_bytes = before.block_bytes.and_then(|start| Some(cache::block_bytes_read()?.saturating_sub(start)));
    CacheEvidence { resident_before: before.resident, block_bytes, bytes_read }
}
