//! `forebay tier up`.

use std::path::PathBuf;

use anyhow::{Context, Result};
use forebay_measure::value;
use forebay_storage::tier::{Change, FileSystem, Kind, Plan, Raised, Rates, Tier, kernel_support};
use forebay_units::{Bytes, PathText, group_digits};

use super::{each, go_on, registry};
use crate::output::{Outcome, print, remark};
use crate::values::of;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// hdd, ssd, optane, lustre or s3; or any other name with --read and --write
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,

    /// Size of the image, fully allocated; 4GiB by default
    #[arg(long, value_name = "SIZE")]
    size: Option<Bytes>,

    /// Read limit in bytes per second, for example 163MB/s
    #[arg(long, value_name = "RATE", value_parser = of(value::bytes_per_s))]
    read: Option<Bytes>,

    /// Write limit in bytes per second
    #[arg(long, value_name = "RATE", value_parser = of(value::bytes_per_s))]
    write: Option<Bytes>,

    /// Limit of requests per second, for reads and for writes
    ///
    /// A shaped tier serves one request at a time, each in 1/N seconds plus its transfer.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    iops: Option<u32>,

    /// Existing folder for image and mount point, one subfolder per tier; by default forebay's data folder
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// File system of the image: ext4 (the default) or xfs
    #[arg(long, value_name = "TYPE")]
    fs: Option<FileSystem>,

    /// Emulate in process, even as root
    #[arg(long, conflicts_with_all = ["size", "fs"])]
    shaped: bool,
}

pub(crate) fn run(args: Args) -> Result<Outcome> {
    let registry = registry()?;
    let kind = args.kind();
    // All names are checked before the first tier is brought up.
    for name in &args.names {
        let plan = args.plan(name, kind);
        let checked = registry.tier(name).and_then(|known| plan.check(known.as_ref()));
        checked.with_context(|| format!("cannot bring up {name}"))?;
    }
    each(&args.names, |name| {
        let raised = registry.up(&args.plan(name, kind), &mut go_on);
        say(&raised.with_context(|| format!("cannot bring up {name}"))?)
    })
}

impl Args {
    /// A kernel tier if possible; otherwise a shaped tier, with a remark that says why.
    fn kind(&self) -> Kind {
        match kernel_support() {
            _ if self.shaped => Kind::Shaped,
            Ok(()) => Kind::Kernel,
            Err(obstacle) => {
                let unused =
                    if self.size.is_some() || self.fs.is_some() { "; it ignores size and file system" } else { "" };
                remark(&format!(
                    "forebay: {obstacle}: using a shaped tier instead, which slows down only forebay{unused}"
                ));
                Kind::Shaped
            }
        }
    }

    fn plan(&self, name: &str, kind: Kind) -> Plan {
        let bytes = |rate: Option<Bytes>| rate.map(|Bytes(n)| n);
        Plan {
            rates: Rates {
                read_bytes_per_s: bytes(self.read),
                write_bytes_per_s: bytes(self.write),
                iops: self.iops.map(u64::from),
            },
            size: bytes(self.size),
            fs: self.fs,
            dir: self.dir.clone(),
            owner: owner(),
            ..Plan::new(name, kind)
        }
    }
}

/// The user who called sudo and will own the tier.
fn owner() -> Option<(u32, u32)> {
    let id = |name| std::env::var(name).ok()?.parse().ok();
    // SAFETY: the call has no arguments and touches no memory.
    if unsafe { libc::geteuid() } == 0 { Some((id("SUDO_UID")?, id("SUDO_GID")?)) } else { None }
}

fn say(raised: &Raised) -> Result<()> {
    let tier = &raised.tier;
    for note in &raised.notes {
        remark(&format!("forebay: {}: {note}", tier.name));
    }
    let what = match raised.change {
        Change::New => "up",
        Change::Again => "up again",
        Change::Limits => "limits changed",
        Change::Nothing => "already up, unchanged",
    };
    print(&format!("{}: {what}: {}\n  {}\n", tier.name, tier.data().escaped(), describe(tier)))
}

pub(super) fn describe(tier: &Tier) -> String {
    let profile = &tier.profile;
    let (read, write) = (Bytes(profile.read_bytes_per_s), Bytes(profile.write_bytes_per_s));
    let mut rates = format!("{read}/s read, {write}/s write");
    if let Some(iops) = tier.iops {
        rates.push_str(&format!(", {} requests/s", group_digits(iops)));
    }
    match (tier.kind, &tier.device) {
        (Kind::Kernel, Some(device)) => {
            let (fs, size) = (tier.fs.unwrap_or_default(), Bytes(tier.size.unwrap_or_default()));
            format!("{fs} of {size} on {}, limited by the kernel to {rates}", device.path.escaped())
        }
        (Kind::Kernel, None) => format!("limited by the kernel to {rates}"),
        (Kind::Shaped, _) => {
            let latency = profile.latency_ns as f64 / 1e3;
            format!("shaped in process to {rates}, {latency} µs per request, {} at a time", profile.servers)
        }
    }
}
