//! The devices of Chien et al. 2018, Table I, and an object store; what tells them apart under load.

use std::str::FromStr;

use forebay_units::Bytes;
use serde::{Deserialize, Serialize};

/// A device's limits, as the shaper applies them and as a tier's state file keeps them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    pub name: String,
    /// Upper bound on all reads together. Reads and writes do not share it.
    pub read_bytes_per_s: u64,
    /// Upper bound on all writes together.
    pub write_bytes_per_s: u64,
    /// Upper bound on the transfer rate of one read; if lower than `read_bytes_per_s`, only several streams reach that rate.
    pub stream_bytes_per_s: u64,
    /// Positioning or round-trip time of a request that does not continue the previous one, in nanoseconds.
    pub latency_ns: u64,
    /// Requests served at the same time; each pays its latency on its own server.
    pub servers: usize,
    /// Fraction of the latency left at queue lengths 1, 2, 4, 8, 16 and 32, interpolated on log2: a disk reorders its queue.
    pub latency_share_by_queue: [f64; 6],
    /// Whether a read that continues another pays the latency too, as where each is a request over a network.
    #[serde(default)]
    pub asks_each_time: bool,
    /// Requests that take longer, the rarest first.
    #[serde(default)]
    pub tail: Vec<Tail>,
}

/// One of so many requests takes this long instead of the usual latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tail {
    pub one_in: u64,
    pub latency_ns: u64,
}

const NO_GAIN: [f64; 6] = [1.0; 6];

impl Profile {
    pub const NAMES: [&'static str; 5] = ["hdd", "ssd", "optane", "lustre", "s3"];

    /// A 4 TB disk: 163 / 133 MB/s (Table I of Chien et al. 2018).
    ///
    /// 8 ms is the positioning time of a 7200-rpm disk; the shares are solved from the paper's thread scaling on it
    /// (1.65×, 1.95× and 2.3× for 2, 4 and 8 readers of 112 KB files), the last two by continuing the curve.
    pub fn hdd() -> Self {
        Self {
            name: "hdd".to_owned(),
            read_bytes_per_s: 163_000_000,
            write_bytes_per_s: 133_000_000,
            stream_bytes_per_s: 163_000_000,
            latency_ns: 8_000_000,
            servers: 1,
            latency_share_by_queue: [1.0, 0.572, 0.471, 0.386, 0.33, 0.29],
            asks_each_time: false,
            tail: Vec::new(),
        }
    }

    /// A SATA flash drive: 280 / 195 MB/s (Table I), about 0.1 ms per read.
    pub fn ssd() -> Self {
        Self {
            name: "ssd".to_owned(),
            read_bytes_per_s: 280_000_000,
            write_bytes_per_s: 195_000_000,
            stream_bytes_per_s: 280_000_000,
            latency_ns: 100_000,
            servers: 32,
            latency_share_by_queue: NO_GAIN,
            asks_each_time: false,
            tail: Vec::new(),
        }
    }

    /// An Optane card: 1603 / 512 MB/s (Table I), about 12 µs per read.
    pub fn optane() -> Self {
        Self {
            name: "optane".to_owned(),
            read_bytes_per_s: 1_603_000_000,
            write_bytes_per_s: 512_000_000,
            stream_bytes_per_s: 1_603_000_000,
            latency_ns: 12_000,
            servers: 16,
            latency_share_by_queue: NO_GAIN,
            asks_each_time: false,
            tail: Vec::new(),
        }
    }

    /// A parallel file system: 1969 / 992 MB/s (Table I). 4 ms model the metadata and object-server round trips of
    /// one small file on a shared cluster; the paper saw 7.8× at 8 threads, which only latency on many servers gives.
    pub fn lustre() -> Self {
        Self {
            name: "lustre".to_owned(),
            read_bytes_per_s: 1_969_000_000,
            write_bytes_per_s: 992_000_000,
            stream_bytes_per_s: 600_000_000,
            latency_ns: 4_000_000,
            servers: 64,
            latency_share_by_queue: NO_GAIN,
            asks_each_time: false,
            tail: Vec::new(),
        }
    }

    /// An object store over a network of 10 Gbit/s: the first byte after 30 ms, 90 MB/s per connection, and a long tail. These are
    /// round numbers of the usual order, not a measurement.
    pub fn s3() -> Self {
        Self {
            name: "s3".to_owned(),
            read_bytes_per_s: 1_250_000_000,
            write_bytes_per_s: 1_250_000_000,
            stream_bytes_per_s: 90_000_000,
            latency_ns: 30_000_000,
            servers: 256,
            latency_share_by_queue: NO_GAIN,
            asks_each_time: true,
            tail: vec![
                Tail { one_in: 1_000, latency_ns: 1_000_000_000 },
                Tail { one_in: 100, latency_ns: 300_000_000 },
            ],
        }
    }

    /// Nanoseconds of latency at this queue length; constant beyond 32.
    pub fn latency_at(&self, queue: usize) -> u64 {
        let place = (queue.max(1) as f64).log2().min((self.latency_share_by_queue.len() - 1) as f64);
        let (below, above) = (place.floor() as usize, place.ceil() as usize);
        let shares = &self.latency_share_by_queue;
        let share = shares[below] + (shares[above] - shares[below]) * (place - below as f64);
        (self.latency_ns as f64 * share) as u64
    }

    pub fn describe(&self) -> String {
        let (read, write) = (Bytes(self.read_bytes_per_s), Bytes(self.write_bytes_per_s));
        format!("{}: {read}/s read, {write}/s write, {} µs per request", self.name, self.latency_ns / 1_000)
    }
}

impl FromStr for Profile {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "hdd" => Ok(Self::hdd()),
            "ssd" => Ok(Self::ssd()),
            "optane" => Ok(Self::optane()),
            "lustre" => Ok(Self::lustre()),
            "s3" => Ok(Self::s3()),
            _ => Err(format!("\"{text}\" is not one of {}", Self::NAMES.join(", "))),
        }
    }
}
