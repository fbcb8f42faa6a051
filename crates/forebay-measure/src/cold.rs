//! Evicting files from the page cache, and evidence of where their bytes came from.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use forebay_record::CacheEvidence;
use forebay_storage::cache::{self, Residency};
use forebay_storage::{Error, is_url};

pub struct Before {
    resident: Option<f64>,
    block_bytes: Option<u64>,
}

impl Before {
    /// Fraction of the files' pages in memory; `None` where the kernel does not report it.
    pub fn resident(&self) -> Option<f64> {
        self.resident
    }
}

/// Evicts the files if a cold start is wanted, then records what remains in memory and the device counters. Objects are
/// in no page cache.
pub fn prepare(files: &[PathBuf], evict: bool) -> forebay_storage::Result<Before> {
    let files: Vec<&PathBuf> = files.iter().filter(|file| !is_url(file)).collect();
    let files = files.as_slice();
    if evict {
        for path in files {
            of_usable(cache::evict([path.as_path()]))?;
        }
        if resident_share(files) > Some(0.05) {
            // Another process holds the pages; dropping all caches (root only) is the last resort.
            cache::drop_all();
        }
    }
    Ok(Before { resident: resident_share(files), block_bytes: cache::block_bytes_read() })
}

fn resident_share(files: &[&PathBuf]) -> Option<f64> {
    let mut sum = Residency::default();
    for path in files {
        if let Some(of_file) = of_usable(cache::residency([path.as_path()])).ok()? {
            sum.total_bytes += of_file.total_bytes;
            sum.cached_bytes += of_file.cached_bytes;
        }
    }
    sum.share()
}

/// Missing, unreadable and irregular files have no pages to evict; reading them fails later, for each sample
/// separately.
fn of_usable<T>(outcome: forebay_storage::Result<T>) -> forebay_storage::Result<Option<T>> {
    match outcome {
        Err(Error::NotFound { .. } | Error::Denied { .. } | Error::Unsupported { .. }) => Ok(None),
        other => other.map(Some),
    }
}

/// Subtracts the bytes that other parts of this process read from devices meanwhile, known only within these bounds. If
/// the bounds would decide between cold and warm, the evidence shows neither.
pub fn without(evidence: CacheEvidence, others: RangeInclusive<u64>) -> CacheEvidence {
    let with = |block_bytes: Option<u64>| CacheEvidence { block_bytes, ..evidence.clone() };
    let least = with(evidence.block_bytes.map(|all| all.saturating_sub(*others.end())));
    // Others cannot have read more than all together; if they seem to, the two counters do not match.
    let most = with(evidence.block_bytes.and_then(|all| all.checked_sub(*others.start())));
    if least.state() == most.state() { most } else { CacheEvidence { block_bytes: None, ..evidence } }
}

pub fn conclude(before: &Before, bytes_read: u64) -> CacheEvidence {
    let block_bytes = before.block_bytes.and_then(|start| Some(cache::block_bytes_read()?.saturating_sub(start)));
    CacheEvidence { resident_before: before.resident, block_bytes, bytes_read }
}

#[cfg(test)]
mod tests {
    use forebay_record::CacheState;

    use super::*;

    #[test]
    fn what_others_read_does_not_make_a_warm_run_cold() {
        let evidence =
            |block| CacheEvidence { resident_before: Some(1.0), block_bytes: Some(block), bytes_read: 1_000 };
        assert_eq!(evidence(5_000).state(), CacheState::Cold);
        let warm = without(evidence(5_000), 5_000..=5_000);
        assert_eq!((warm.state(), warm.block_bytes), (CacheState::Warm, Some(0)));
        let cold = without(evidence(6_000), 4_000..=5_000);
        assert_eq!((cold.state(), cold.block_bytes), (CacheState::Cold, Some(2_000)));
        let unknown = without(evidence(5_000), 0..=5_000);
        assert_eq!((unknown.state(), unknown.block_bytes), (CacheState::Mixed, None));
    }
}
