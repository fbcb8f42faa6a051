//! The cells of `forebay probe`: what storage gives without a pipeline on top.

use serde::{Deserialize, Deserializer, Serialize};

use crate::{CacheEvidence, CacheState, Cell, TierKind};

/// What was done to the storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeMode {
    /// One file written from end to end, fsync included.
    SequentialWrite,
    /// One file read from end to end.
    SequentialRead,
    /// Reads at random places of one file.
    RandomRead,
    /// Open, read and close of many small files.
    Files,
}

/// How it was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// `pread`/`pwrite` through the page cache, a thread for each request in flight.
    Sync,
    /// `pread`/`pwrite` past the page cache, a thread for each request in flight.
    Direct,
    /// One io_uring past the page cache, with that many requests in flight.
    Uring,
}

/// Latencies of single requests in microseconds; not a number, in JSON `null`, where they are not known.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Latency {
    /// Median.
    #[serde(deserialize_with = "number_or_null")]
    pub p50: f64,
    /// 90th percentile.
    #[serde(deserialize_with = "number_or_null")]
    pub p90: f64,
    /// 99th percentile.
    #[serde(deserialize_with = "number_or_null")]
    pub p99: f64,
    /// 99.9th percentile.
    #[serde(deserialize_with = "number_or_null")]
    pub p999: f64,
    /// The longest.
    #[serde(deserialize_with = "number_or_null")]
    pub max: f64,
}

impl Latency {
    /// Latencies that are not known.
    pub const UNKNOWN: Self = Self { p50: f64::NAN, p90: f64::NAN, p99: f64::NAN, p999: f64::NAN, max: f64::NAN };

    /// Whether they are known.
    pub fn is_known(&self) -> bool {
        [self.p50, self.p90, self.p99, self.p999, self.max].iter().all(|value| value.is_finite())
    }
}

/// What JSON writes for a number that is none.
fn number_or_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

/// Requests whose latency lies in a range.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LatencyBucket {
    /// The largest latency of the range, in microseconds.
    pub upto_us: f64,
    /// Requests in it.
    pub n: u64,
}

/// One measured repetition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbeRepeat {
    /// Bytes moved.
    pub bytes: u64,
    /// Requests done.
    pub n_requests: u64,
    /// First request to last answer, fsync included, in seconds.
    pub wall_s: f64,
    /// Processor time of the whole process meanwhile.
    pub cpu_s: f64,
    /// Where the bytes came from.
    pub cache: CacheState,
    /// The evidence.
    pub evidence: CacheEvidence,
}

impl ProbeRepeat {
    /// Megabytes (10^6 bytes) a second.
    pub fn mb_per_s(&self) -> f64 {
        self.bytes as f64 / 1e6 / self.wall_s
    }

    /// Requests a second.
    pub fn iops(&self) -> f64 {
        self.n_requests as f64 / self.wall_s
    }
}

/// One combination of settings, measured several times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbeCell {
    /// What was done.
    pub mode: ProbeMode,
    /// How.
    pub engine: Engine,
    /// Bytes a request, or a file where all are of one length; `None` for a mix of sizes and for other files.
    pub block: Option<u64>,
    /// The mix of request sizes as fio's `bssplit` writes it, or where the sizes came from.
    #[serde(default)]
    pub mix: Option<String>,
    /// Requests in flight.
    pub depth: u64,
    /// Median of megabytes (10^6 bytes) a second.
    pub mb_per_s: f64,
    /// Median of requests a second; of files a second in the mode `files`.
    pub iops: f64,
    /// Half the range of the rate over its median.
    #[serde(default)]
    pub spread: Option<f64>,
    /// Latencies over all kept repeats.
    pub latency_us: Latency,
    /// Their histogram, empty ranges left out.
    #[serde(default)]
    pub histogram: Vec<LatencyBucket>,
    /// Cold, warm or mixed, over all repeats. For a write, cold means that the bytes went to the device.
    pub cache: CacheState,
    /// The tier, if an emulated one was measured.
    #[serde(default)]
    pub tier: Option<String>,
    /// How the tier was emulated.
    #[serde(default)]
    pub tier_kind: Option<TierKind>,
    /// The raw repeats, warm-ups left out.
    pub samples: Vec<ProbeRepeat>,
}

impl ProbeCell {
    /// Says that what was measured is a device throttled by the kernel.
    pub fn on_kernel_tier(&mut self, name: &str) {
        self.tier = Some(name.to_owned());
        self.tier_kind = Some(TierKind::Kernel);
    }
}

impl Cell for ProbeCell {
    const COMMAND: &'static str = "probe";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_latencies_are_null_and_keep_their_keys() {
        let text = serde_json::to_string(&Latency::UNKNOWN).unwrap();
        assert_eq!(text, r#"{"p50":null,"p90":null,"p99":null,"p999":null,"max":null}"#);
        assert!(!serde_json::from_str::<Latency>(&text).unwrap().is_known());
        assert!(Latency::default().is_known());
    }
}
