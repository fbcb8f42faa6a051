//! The tier to bring up, and its resulting profile.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use forebay_units::Bytes;
use serde::{Deserialize, Serialize};

use super::{Error, Result, Tier};
use crate::Profile;

/// 1 TB/s, which no storage reaches: a larger rate is a typing error.
const GREATEST_RATE: u64 = 1_000_000_000_000;
/// Bytes per second below which even unmounting, which writes back dirty pages, would take hours.
const LEAST_RATE: u64 = 64_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A loop device that the kernel throttles for all processes.
    Kernel,
    /// A folder where forebay slows down only its own reads and writes; needs no privileges.
    Shaped,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kernel => "kernel",
            Self::Shaped => "shaped",
        })
    }
}

/// The file system of a kernel tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileSystem {
    #[default]
    Ext4,
    Xfs,
}

impl FileSystem {
    /// The smallest image that holds it: for ext4 with a journal, for XFS the minimum of `mkfs.xfs`.
    pub(super) fn least_size(self) -> u64 {
        match self {
            Self::Ext4 => 16 << 20,
            Self::Xfs => 300 << 20,
        }
    }
}

impl fmt::Display for FileSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
        })
    }
}

impl FromStr for FileSystem {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "ext4" => Ok(Self::Ext4),
            "xfs" => Ok(Self::Xfs),
            _ => Err(format!("\"{text}\" is not one of ext4, xfs")),
        }
    }
}

/// Requested rates; `None` keeps the existing tier's rate, or the profile's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rates {
    pub read_bytes_per_s: Option<u64>,
    pub write_bytes_per_s: Option<u64>,
    /// Requests per second; applies to reads and writes separately.
    pub iops: Option<u64>,
}

/// A tier to bring up. `None` keeps an existing tier's value, or means the default for a new one.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The name of a profile, or any other name with rates.
    pub name: String,
    pub kind: Kind,
    pub rates: Rates,
    /// Size of the image of a kernel tier; 4 GiB by default.
    pub size: Option<u64>,
    pub fs: Option<FileSystem>,
    /// The folder that holds the tier's folder; the registry's own by default. It must exist.
    pub dir: Option<PathBuf>,
    /// Owner of the data folder, as user and group id.
    pub owner: Option<(u32, u32)>,
}

impl Plan {
    /// Default size of a new image.
    pub const DEFAULT_SIZE: u64 = 4 << 30;

    /// A tier with all defaults.
    pub fn new(name: &str, kind: Kind) -> Self {
        Self { name: name.to_owned(), kind, rates: Rates::default(), size: None, fs: None, dir: None, owner: None }
    }

    /// Checks everything that does not depend on the machine, given the existing tier of that name, if any.
    ///
    /// # Errors
    /// When the name, a rate or the size is invalid.
    pub fn check(&self, known: Option<&Tier>) -> Result<()> {
        check_name(&self.name)?;
        self.profile(known)?;
        match self.kind {
            Kind::Kernel => self.new_size().map(drop),
            Kind::Shaped => Ok(()),
        }
    }

    /// The size of a new image, in whole MiB.
    pub(super) fn new_size(&self) -> Result<u64> {
        let (fs, size) = (self.fs.unwrap_or_default(), self.size.unwrap_or(Self::DEFAULT_SIZE));
        let least = fs.least_size();
        if size < least { Err(Error::TooSmall { fs, size, least }) } else { Ok(whole_mebibytes(size)) }
    }

    /// The device to emulate and its request limit: the existing tier or the profile of that name, with the requested
    /// rates applied.
    pub(super) fn profile(&self, known: Option<&Tier>) -> Result<(Profile, Option<u64>)> {
        let rates = self.rates;
        let (mut profile, known_iops) = match (known, self.name.parse::<Profile>()) {
            (Some(tier), _) => (tier.profile.clone(), tier.iops),
            (None, Ok(profile)) => (profile, None),
            (None, Err(_)) => (plain(&self.name, rates)?, None),
        };
        if let Some(read) = rates.read_bytes_per_s {
            profile.read_bytes_per_s = read;
        }
        if let Some(write) = rates.write_bytes_per_s {
            profile.write_bytes_per_s = write;
        }
        if rates.read_bytes_per_s.or(rates.write_bytes_per_s).is_some() {
            profile.stream_bytes_per_s = profile.read_bytes_per_s.max(profile.write_bytes_per_s);
        }
        let iops = rates.iops.or(known_iops);
        if let Some(n) = rates.iops {
            one_at_a_time(&mut profile, n);
        }
        check_rates(&profile, iops)?;
        Ok((profile, iops))
    }
}

/// A device without latency: for a name that is not a profile, only the rates are known.
fn plain(name: &str, rates: Rates) -> Result<Profile> {
    let (Some(read), Some(write)) = (rates.read_bytes_per_s, rates.write_bytes_per_s) else {
        return Err(Error::RatesMissing { name: name.to_owned() });
    };
    Ok(Profile {
        name: name.to_owned(),
        read_bytes_per_s: read,
        write_bytes_per_s: write,
        stream_bytes_per_s: read.max(write),
        latency_ns: 0,
        servers: 1,
        latency_share_by_queue: [1.0; 6],
        asks_each_time: false,
        tail: Vec::new(),
    })
}

/// Requests per second in the shaper's terms: one server that is busy for 1/n s per request before it transfers.
fn one_at_a_time(profile: &mut Profile, n: u64) {
    profile.latency_ns = 1_000_000_000 / n.max(1);
    profile.servers = 1;
    profile.latency_share_by_queue = [1.0; 6];
    profile.tail.clear();
}

fn check_rates(profile: &Profile, iops: Option<u64>) -> Result<()> {
    for (what, rate) in [("read", profile.read_bytes_per_s), ("write", profile.write_bytes_per_s)] {
        if rate < LEAST_RATE {
            return Err(Error::TooSlow { what, value: format!("{}/s", Bytes(rate)) });
        }
        if rate > GREATEST_RATE {
            return Err(Error::TooFast { what, value: format!("{}/s", Bytes(rate)) });
        }
    }
    match iops {
        Some(0) => Err(Error::TooSlow { what: "request", value: "0 per second".to_owned() }),
        _ => Ok(()),
    }
}

pub(super) fn whole_mebibytes(size: u64) -> u64 {
    size >> 20 << 20
}

/// A valid name: letters, digits, `-` and `_`, starting with a letter or digit.
pub(super) fn check_name(name: &str) -> Result<()> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let first = name.chars().next().is_some_and(|c| c.is_ascii_alphanumeric());
    if first && name.len() <= 64 && name.chars().all(fits) {
        Ok(())
    } else {
        Err(Error::BadName { name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(read: u64, write: u64, iops: Option<u64>) -> Rates {
        Rates { read_bytes_per_s: Some(read), write_bytes_per_s: Some(write), iops }
    }

    #[test]
    fn a_profile_keeps_its_rates_and_another_name_needs_some() {
        let (profile, iops) = Plan::new("hdd", Kind::Kernel).profile(None).unwrap();
        assert_eq!((profile, iops), (Profile::hdd(), None));
        let error = Plan::new("tape", Kind::Kernel).profile(None).unwrap_err();
        assert!(error.to_string().starts_with("\"tape\" is neither an existing tier nor a profile"), "{error}");
        assert_eq!(error.hint().unwrap(), "pass --read and --write, or use a profile: hdd, ssd, optane, lustre, s3");
    }

    #[test]
    fn requests_a_second_become_the_latency_of_one_server() {
        let plan = Plan { rates: rates(100_000_000, 50_000_000, Some(125)), ..Plan::new("mine", Kind::Shaped) };
        let (profile, iops) = plan.profile(None).unwrap();
        assert_eq!((profile.latency_ns, profile.servers, iops), (8_000_000, 1, Some(125)));
        assert_eq!(profile.stream_bytes_per_s, 100_000_000);
        let plan = Plan { rates: Rates { iops: Some(1000), ..Rates::default() }, ..Plan::new("lustre", Kind::Shaped) };
        let (profile, _) = plan.profile(None).unwrap();
        assert_eq!((profile.latency_ns, profile.servers, profile.read_bytes_per_s), (1_000_000, 1, 1_969_000_000));
    }

    #[test]
    fn rates_and_sizes_that_nothing_can_be_done_with_are_refused() {
        let slow =
            |read, write, iops| Plan { rates: rates(read, write, iops), ..Plan::new("x", Kind::Kernel) }.check(None);
        assert!(matches!(slow(1, 1_000_000, None), Err(Error::TooSlow { what: "read", .. })));
        assert!(matches!(slow(1_000_000, 1, None), Err(Error::TooSlow { what: "write", .. })));
        assert!(matches!(slow(1_000_000, 1_000_000, Some(0)), Err(Error::TooSlow { what: "request", .. })));
        assert!(matches!(slow(1_000_000_000_001, 1_000_000, None), Err(Error::TooFast { what: "read", .. })));
        assert!(matches!(slow(1_000_000, u64::MAX, None), Err(Error::TooFast { what: "write", .. })));
        slow(1_000_000_000_000, 1_000_000_000_000, None).unwrap();
        let small = Plan { size: Some(100 << 20), fs: Some(FileSystem::Xfs), ..Plan::new("hdd", Kind::Kernel) };
        assert!(matches!(small.check(None), Err(Error::TooSmall { .. })));
    }

    #[test]
    fn names_that_leave_the_folder_are_refused() {
        for name in ["", ".", "..", "a/b", "-x", "_x", "ä", "a b", &"x".repeat(65)] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
        for name in ["hdd", "my-disk_2", "2x"] {
            check_name(name).unwrap();
        }
    }
}
