//! The probe step: a cell of it is one probe of one place.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use forebay_record::{Engine, Level};
use forebay_units::Bytes;

use super::value::{self, Refused};
use super::{Beat, Failed, Measured, Stage};

/// What a cell may be told.
pub(super) const NAMES: &[&str] = &["block", "depth", "engine", "like", "mix", "mode", "size", "tier"];
/// What can be asked of a measured cell.
pub(super) const METRICS: &[&str] =
    &["read_mb_per_s", "write_mb_per_s", "random_mb_per_s", "random_iops", "files_per_s", "speed_up"];

/// A kind of probing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeKind {
    /// One file written and read from end to end.
    Sequential,
    /// Reads at random places of one file.
    Random,
    /// Open, read and close of many small files.
    Files,
}

/// A probe cell's settings.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbeSettings {
    /// The tier's name; without one the place of the data is probed.
    pub tier: Option<String>,
    /// What is done.
    pub modes: Vec<ProbeKind>,
    /// Size of the file.
    pub size: Bytes,
    /// Bytes a request; without it the probe's own: 1 MiB sequentially, a mix at random.
    pub blocks: Option<Vec<Bytes>>,
    /// Requests in flight.
    pub depths: Vec<u64>,
    /// How it is done; without it past the page cache, where that can be.
    pub engines: Option<Vec<Engine>>,
    /// A mix of request sizes, as fio's `bssplit` writes it.
    pub mix: Option<String>,
    /// The dataset whose sizes are the mix.
    pub like: Option<String>,
}

/// A cell with everything that names stood for.
#[derive(Debug, Clone)]
pub struct ProbeRequest<'a> {
    /// What is done.
    pub settings: &'a ProbeSettings,
    /// Where.
    pub dir: PathBuf,
    /// Where the dataset lies whose sizes are the mix.
    pub like: Option<PathBuf>,
    /// On which device, and how often; of the warm-ups there is one.
    pub on: Stage,
}

impl ProbeSettings {
    /// The defaults of `forebay probe`, sequential alone.
    pub(super) fn new() -> Self {
        Self {
            tier: None,
            modes: vec![ProbeKind::Sequential],
            size: Bytes(5 << 30),
            blocks: None,
            depths: vec![1],
            engines: None,
            mix: None,
            like: None,
        }
    }

    /// Sets one of [`NAMES`].
    pub(super) fn set(&mut self, name: &str, level: &Level) -> Result<(), Refused> {
        match name {
            "block" => self.blocks = Some(value::list(level, block)?),
            "depth" => self.depths = value::list(level, |level| value::integer(level, 1..=1_024))?,
            "engine" => self.engines = Some(value::list(level, engine)?),
            "like" => self.like = Some(value::text(level)?.to_owned()),
            "mix" => self.mix = Some(mix(level)?),
            "mode" => self.modes = value::list(level, mode)?,
            "size" => self.size = value::bytes(level, 4_096..=64 << 40)?,
            "tier" => self.tier = Some(value::text(level)?.to_owned()),
            _ => return Err("not a setting of probe".to_owned()),
        }
        Ok(())
    }

    /// What contradicts itself or lacks something.
    pub(super) fn check(&self) -> Result<(), Refused> {
        if self.mix.is_some() && self.like.is_some() {
            return Err("give mix or like, not both".to_owned());
        }
        if self.modes == [ProbeKind::Sequential] && (self.mix.is_some() || self.like.is_some()) {
            return Err("mix and like are for random requests and files; sequential ones have block".to_owned());
        }
        Ok(())
    }
}

/// Runs a cell.
pub(super) fn run(
    request: &ProbeRequest<'_>,
    _observe: &mut dyn FnMut(Beat),
    _cancel: &AtomicBool,
) -> Result<Measured, Failed> {
    Err(format!("{}: probe is not built in", request.dir.display()).into())
}

fn block(level: &Level) -> Result<Bytes, Refused> {
    let block = value::bytes(level, 512..=1 << 30)?;
    if block.0 % 512 == 0 { Ok(block) } else { Err(value::refuse(level, "a multiple of 512 bytes, as \"128KiB\"")) }
}

fn engine(level: &Level) -> Result<Engine, Refused> {
    match value::text(level)? {
        "sync" => Ok(Engine::Sync),
        "direct" => Ok(Engine::Direct),
        "uring" => Ok(Engine::Uring),
        _ => Err(value::refuse(level, "sync, direct or uring")),
    }
}

fn mode(level: &Level) -> Result<ProbeKind, Refused> {
    match value::text(level)? {
        "sequential" => Ok(ProbeKind::Sequential),
        "random" => Ok(ProbeKind::Random),
        "files" => Ok(ProbeKind::Files),
        _ => Err(value::refuse(level, "sequential, random or files")),
    }
}

/// "4K/10:128K/90": sizes and their shares in per cent.
fn mix(level: &Level) -> Result<String, Refused> {
    let text = value::text(level)?;
    let share = |part: &str| {
        let (size, share) = part.split_once('/')?;
        let is_size = size.parse::<Bytes>().is_ok_and(|size| size.0 > 0);
        share.parse::<u64>().ok().filter(|share| is_size && (1..=100).contains(share))
    };
    let shares: Option<Vec<u64>> = text.split(':').map(share).collect();
    match shares {
        Some(shares) if shares.iter().sum::<u64>() == 100 => Ok(text.to_owned()),
        _ => Err(value::refuse(level, "sizes and shares that make 100 per cent, as \"4K/10:128K/90\"")),
    }
}
