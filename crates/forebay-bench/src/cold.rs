//! Emptying the page cache of some files, and gathering the evidence of where their bytes come from.

use std::path::PathBuf;

use forebay_record::CacheEvidence;
use forebay_storage::Error;
use forebay_storage::cache::{self, Residency};

/// The state before a repeat.
pub(crate) struct Before {
    resident: Option<f64>,
    block_bytes: Option<u64>,
}

/// Evicts the files where a cold start is asked for, and takes stock.
pub(crate) fn prepare(files: &[PathBuf], evict: bool) -> forebay_storage::Result<Before> {
    if evict {
        for path in files {
            of_usable(cache::evict([path.as_path()]))?;
        }
        if resident_share(files) > Some(0.05) {
            // Somebody else holds the pages; root may drop them all the same.
            cache::drop_all();
        }
    }
    Ok(Before { resident: resident_share(files), block_bytes: cache::block_bytes_read() })
}

fn resident_share(files: &[PathBuf]) -> Option<f64> {
    let mut sum = Residency::default();
    for path in files {
        if let Some(of_file) = of_usable(cache::residency([path.as_path()])).ok()? {
            sum.total_bytes += of_file.total_bytes;
            sum.cached_bytes += of_file.cached_bytes;
        }
    }
    sum.share()
}

/// What is not there, may not be read or is no regular file has no pages to speak of; it fails as a sample, with its reason.
fn of_usable<T>(outcome: forebay_storage::Result<T>) -> forebay_storage::Result<Option<T>> {
    match outcome {
        Err(Error::NotFound { .. } | Error::Denied { .. } | Error::Unsupported { .. }) => Ok(None),
        other => other.map(Some),
    }
}

/// What happened between `before` and now.
pub(crate) fn conclude(before: &Before, bytes_read: u64) -> CacheEvidence {
    let block_bytes = before.block_bytes.and_then(|start| Some(cache::block_bytes_read()?.saturating_sub(start)));
    CacheEvidence { resident_before: before.resident, block_bytes, bytes_read }
}
