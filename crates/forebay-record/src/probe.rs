//! The cells of `forebay probe`: what storage gives without a pipeline on top.

use serde::{Deserialize, Deserializer, Serialize};

use crate::check::Checked;
use crate::level::LevelsOf;
use crate::metric::{Measurement, Metric, Unit};
use crate::{Cell, Disturbed, Levels, Medium, Step, TierKind};

/// How the probe accesses the storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ProbeMode {
    /// One file written sequentially, fsync included.
    SequentialWrite,
    /// One file read sequentially.
    SequentialRead,
    /// Random reads within one file.
    RandomRead,
    /// Open, read and close of many small files.
    Files,
}

impl ProbeMode {
    /// For display: "sequential read".
    pub fn describe(self) -> &'static str {
        match self {
            Self::SequentialWrite => "sequential write",
            Self::SequentialRead => "sequential read",
            Self::RandomRead => "random read",
            Self::Files => "files",
        }
    }
}

/// System calls that make the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// `pread`/`pwrite` through the page cache, one thread per request in flight.
    Sync,
    /// `pread`/`pwrite` with O_DIRECT, one thread per request in flight.
    Direct,
    /// One io_uring with O_DIRECT and `depth` requests in flight.
    Uring,
}

impl Engine {
    /// In the order in which they are shown.
    pub const ALL: [Self; 3] = [Self::Sync, Self::Direct, Self::Uring];

    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Direct => "direct",
            Self::Uring => "uring",
        }
    }
}

/// Latencies of single requests in microseconds; not a number, `null` in JSON, where unknown.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Latency {
    /// Half of the requests were faster.
    #[serde(deserialize_with = "number_or_null")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub p50: f64,
    /// Latency that 90 % of the requests stay within.
    #[serde(deserialize_with = "number_or_null")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub p90: f64,
    /// Latency that 99 % of the requests stay within.
    #[serde(deserialize_with = "number_or_null")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub p99: f64,
    /// Latency that 99.9 % of the requests stay within.
    #[serde(deserialize_with = "number_or_null")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub p999: f64,
    /// The slowest request, exact; percentiles are bucket bounds.
    #[serde(deserialize_with = "number_or_null")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub max: f64,
}

impl Latency {
    /// For emulated writes, whose single requests are not timed.
    pub const UNKNOWN: Self = Self { p50: f64::NAN, p90: f64::NAN, p99: f64::NAN, p999: f64::NAN, max: f64::NAN };

    /// Emulated writes have no latencies: see [`Self::UNKNOWN`].
    pub fn is_known(&self) -> bool {
        [self.p50, self.p90, self.p99, self.p999, self.max].iter().all(|value| value.is_finite())
    }
}

/// JSON writes NaN as null.
fn number_or_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

/// One bucket of a latency histogram.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyBucket {
    /// Upper bound of the bucket in microseconds.
    pub upto_us: f64,
    /// Requests in this bucket.
    pub n: u64,
}

/// One kept repeat: raw values, from which the cell's medians follow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProbeRepeat {
    /// Bytes read or written.
    pub bytes: u64,
    /// Requests that completed; files in mode `files`.
    pub n_requests: u64,
    /// Wall clock from the first request to the last completion, fsync included, in seconds.
    pub wall_s: f64,
    /// CPU time of the whole process during the repeat, in seconds.
    pub cpu_s: f64,
}

impl ProbeRepeat {
    /// MB (10^6 bytes) per second over the wall clock.
    pub fn mb_per_s(&self) -> f64 {
        self.bytes as f64 / 1e6 / self.wall_s
    }

    /// Requests per second over the wall clock; files per second in mode `files`.
    pub fn iops(&self) -> f64 {
        self.n_requests as f64 / self.wall_s
    }
}

/// One combination of settings, measured several times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProbeCell {
    /// How the storage was accessed.
    pub mode: ProbeMode,
    /// System calls that made the requests.
    pub engine: Engine,
    /// Bytes per request, or per file where all have one size; `None` for mixed sizes.
    pub block: Option<u64>,
    /// Mix of request sizes in the syntax of fio's `bssplit`, or the source of the sizes; `None` for a single size.
    #[serde(default)]
    pub mix: Option<String>,
    /// Requests in flight at a time.
    pub depth: u64,
    /// Median MB (10^6 bytes) per second.
    pub mb_per_s: f64,
    /// Median requests per second; files per second in mode `files`.
    pub iops: f64,
    /// Half the range of the rate over its median; `None` for a single repeat.
    #[serde(default)]
    pub spread: Option<f64>,
    /// Request latencies over all kept repeats, in microseconds.
    pub latency_us: Latency,
    /// Histogram of the latencies, without empty buckets.
    #[serde(default)]
    pub histogram: Vec<LatencyBucket>,
    /// Storage that was measured.
    #[serde(default)]
    pub medium: Medium,
    /// The kept repeats, without warm-ups.
    pub samples: Vec<ProbeRepeat>,
    /// Kept repeats that other processes disturbed; missing when none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbed: Option<Disturbed>,
}

impl ProbeCell {
    /// Marks the measured device as throttled by the kernel.
    pub fn on_kernel_tier(&mut self, name: &str) {
        (self.medium.tier, self.medium.kind) = (Some(name.to_owned()), Some(TierKind::Kernel));
    }
}

/// The fastest cell counts.
fn best(cells: &[ProbeCell], mode: ProbeMode, rate: &'static Metric<ProbeCell>) -> Option<Measurement> {
    let of_mode = cells.iter().filter(|cell| cell.mode == mode).filter_map(|cell| rate.of(cell));
    of_mode.max_by(|a, b| a.value.total_cmp(&b.value))
}

/// For studies: the best cell of each mode.
pub(crate) const BEST: &[Metric<[ProbeCell]>] = &[
    Metric::higher("read_mb_per_s", "sequential read", Unit::Rate("MB"), |cells: &[ProbeCell]| {
        best(cells, ProbeMode::SequentialRead, &ProbeCell::MB_PER_S)
    })
    .headline(),
    Metric::higher("write_mb_per_s", "sequential write", Unit::Rate("MB"), |cells: &[ProbeCell]| {
        best(cells, ProbeMode::SequentialWrite, &ProbeCell::MB_PER_S)
    })
    .headline(),
    Metric::higher("random_mb_per_s", "random read", Unit::Rate("MB"), |cells: &[ProbeCell]| {
        best(cells, ProbeMode::RandomRead, &ProbeCell::MB_PER_S)
    }),
    Metric::higher("random_iops", "random reads/s", Unit::Rate("random reads"), |cells: &[ProbeCell]| {
        best(cells, ProbeMode::RandomRead, &ProbeCell::IOPS)
    })
    .headline(),
    Metric::higher("files_per_s", "files/s", Unit::Rate("files"), |cells: &[ProbeCell]| {
        best(cells, ProbeMode::Files, &ProbeCell::IOPS)
    })
    .headline(),
];

/// Metrics that code refers to; their labels describe them.
impl ProbeCell {
    #[allow(missing_docs)]
    pub const MB_PER_S: Metric<Self> = Metric::higher("mb_per_s", "MB/s", Unit::Rate("MB"), |cell: &Self| {
        let repeats = cell.samples.iter().map(ProbeRepeat::mb_per_s).collect();
        Some(Measurement { value: cell.mb_per_s, repeats })
    })
    .compared();
    #[allow(missing_docs)]
    pub const IOPS: Metric<Self> = Metric::higher("iops", "requests/s", Unit::Rate("requests"), |cell: &Self| {
        Some(Measurement { value: cell.iops, repeats: cell.samples.iter().map(ProbeRepeat::iops).collect() })
    });
}

impl Cell for ProbeCell {
    const STEP: Step = Step::Probe;
    const METRICS: &'static [Metric<Self>] = &[
        Self::MB_PER_S,
        Self::IOPS,
        Metric::lower("p50_us", "p50", Unit::Microseconds, |cell| Some(Measurement::single(cell.latency_us.p50))),
        Metric::lower("p90_us", "p90", Unit::Microseconds, |cell| Some(Measurement::single(cell.latency_us.p90))),
        Metric::lower("p99_us", "p99", Unit::Microseconds, |cell| Some(Measurement::single(cell.latency_us.p99))),
        Metric::lower("p999_us", "p99.9", Unit::Microseconds, |cell| Some(Measurement::single(cell.latency_us.p999))),
        Metric::lower("max_us", "max", Unit::Microseconds, |cell| Some(Measurement::single(cell.latency_us.max))),
    ];
    const ALWAYS: &'static [&'static str] = &["mode", "engine", "depth"];

    fn levels(&self) -> Levels {
        LevelsOf::default()
            .text("mode", self.mode.describe())
            .text("engine", self.engine.name())
            .integer("depth", self.depth)
            // The lengths of files are described by the mix.
            .integer("block", self.block.filter(|_| self.mode != ProbeMode::Files))
            .text("mix", self.mix.as_deref())
            .text("tier", self.medium.tier.as_deref())
            .done()
    }

    fn media(&self) -> Vec<&Medium> {
        vec![&self.medium]
    }

    fn n_repeats(&self) -> usize {
        self.samples.len()
    }

    fn spread(&self) -> Option<f64> {
        self.spread
    }

    fn disturbed(&self) -> Option<Disturbed> {
        self.disturbed
    }

    fn check(&self) -> Checked {
        crate::check::probe::check(self)
    }
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
