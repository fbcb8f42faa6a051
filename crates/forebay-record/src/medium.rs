//! Where bytes came from or went: storage, emulated tier, page cache.

use serde::{Deserialize, Serialize};

/// How a tier is implemented.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TierKind {
    /// A real device, unthrottled.
    Device,
    /// A loop device throttled by the kernel.
    Kernel,
    /// Shaped within the forebay process, over the real disk.
    Shaped,
}

impl TierKind {
    /// For display: "shaped in this process".
    pub fn describe(self) -> &'static str {
        match self {
            Self::Device => "a real device",
            Self::Kernel => "a loop device throttled by the kernel",
            Self::Shaped => "shaped in this process",
        }
    }
}

/// Whether bytes came from the device or from memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CacheState {
    /// At most 5 % of the bytes came from memory, by the block layer's count.
    Cold,
    /// At most 5 % of the bytes came from the device.
    Warm,
    /// Anything between, or unknown.
    Mixed,
}

impl CacheState {
    /// The word in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cold => "cold",
            Self::Warm => "warm",
            Self::Mixed => "mixed",
        }
    }

    /// Mixed if the repeats differ; `None` without a repeat.
    pub fn of_all(states: impl IntoIterator<Item = Self>) -> Option<Self> {
        states.into_iter().reduce(|all, state| if all == state { all } else { Self::Mixed })
    }
}

/// Evidence for a cache state.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CacheEvidence {
    /// Fraction of the files in the page cache before the run, by `cachestat` or `mincore`; `None` where unknown.
    pub resident_before: Option<f64>,
    /// Bytes the block layer fetched for this process during the run; `None` where the kernel does not report it.
    pub block_bytes: Option<u64>,
    /// Bytes the pipeline read.
    pub bytes_read: u64,
}

impl CacheEvidence {
    /// Fraction of the bytes; `None` if the kernel does not report it or nothing was read.
    pub fn from_memory(&self) -> Option<f64> {
        let block = self.block_bytes?;
        (self.bytes_read > 0).then(|| 1.0 - block as f64 / self.bytes_read as f64)
    }

    /// Mixed if the kernel does not report enough to decide.
    pub fn state(&self) -> CacheState {
        match self.from_memory() {
            Some(share) if share <= 0.05 => CacheState::Cold,
            Some(share) if share >= 0.95 => CacheState::Warm,
            _ => CacheState::Mixed,
        }
    }
}

/// Storage that a cell read from or wrote to.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Medium {
    /// Description of the access path: I/O mode, folder, file system; empty where nothing was read.
    #[serde(default)]
    pub storage: String,
    /// Name of the tier; `None` unless one is emulated.
    #[serde(default)]
    pub tier: Option<String>,
    /// How the tier is implemented; `None` without a tier.
    #[serde(default)]
    pub kind: Option<TierKind>,
    /// Cache state over all repeats; `None` when nothing was read. For writes, cold means that the bytes went to the device.
    #[serde(default)]
    pub cache: Option<CacheState>,
    /// Evidence for the cache state, one entry per kept repeat.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<CacheEvidence>,
}

impl Medium {
    /// Derives the cache state from the evidence.
    pub fn new(storage: String, tier: Option<(&str, TierKind)>, evidence: Vec<CacheEvidence>) -> Self {
        let cache = CacheState::of_all(evidence.iter().map(CacheEvidence::state));
        let (tier, kind) = tier.map(|(name, kind)| (name.to_owned(), kind)).unzip();
        Self { storage, tier, kind, cache, evidence }
    }

    /// Largest over the repeats; `None` if unknown for all.
    pub fn from_memory(&self) -> Option<f64> {
        // Readahead may fetch more than was read; then no byte came from memory.
        let shares = self.evidence.iter().filter_map(|evidence| evidence.from_memory().map(|share| share.max(0.0)));
        shares.reduce(f64::max)
    }

    /// Largest over the repeats, as a fraction of the files.
    pub fn resident_before(&self) -> Option<f64> {
        self.evidence.iter().filter_map(|evidence| evidence.resident_before).reduce(f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(block_bytes: Option<u64>, bytes_read: u64) -> CacheEvidence {
        CacheEvidence { resident_before: None, block_bytes, bytes_read }
    }

    #[test]
    fn five_percent_from_the_other_side_is_the_limit() {
        assert_eq!(evidence(Some(100), 100).state(), CacheState::Cold);
        assert_eq!(evidence(Some(130), 100).state(), CacheState::Cold, "readahead fetches more than is read");
        assert_eq!(evidence(Some(96), 100).state(), CacheState::Cold);
        assert_eq!(evidence(Some(94), 100).state(), CacheState::Mixed);
        assert_eq!(evidence(Some(4), 100).state(), CacheState::Warm);
        assert_eq!(evidence(None, 100).state(), CacheState::Mixed, "what is not known is not claimed");
        assert_eq!(evidence(Some(0), 0).state(), CacheState::Mixed);
    }

    #[test]
    fn repeats_that_differ_make_a_medium_mixed_and_the_largest_shares_are_shown() {
        let repeats = vec![evidence(Some(100), 100), evidence(Some(4), 100)];
        let medium = Medium::new("buffered".to_owned(), Some(("hdd", TierKind::Shaped)), repeats);
        assert_eq!((medium.cache, medium.kind), (Some(CacheState::Mixed), Some(TierKind::Shaped)));
        assert_eq!((medium.from_memory(), medium.resident_before()), (Some(0.96), None));
        assert_eq!(Medium::new(String::new(), None, Vec::new()), Medium::default());
    }
}
