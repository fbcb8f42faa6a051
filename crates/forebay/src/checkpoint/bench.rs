//! `forebay checkpoint bench`: flags in, plan built, measured, table out.

use std::sync::atomic::Ordering;

use anyhow::{Result, anyhow, bail};
use clap::builder::PossibleValuesParser;
use forebay_bench::checkpoint::{Gpu, MODES, Plan, State};
use forebay_checkpoint::{Mode, format};
use forebay_measure::Places;
use forebay_train::Model;
use forebay_units::{Bytes, PathText};

use super::{FolderArgs, TierArgs, files};
use crate::live::QuietArgs;
use crate::output::{JsonArgs, Outcome, give};
use crate::train::DeviceName;
use crate::values::{parse_bytes_per_s, parse_state};
use crate::{live, stop};

/// The flags of `forebay checkpoint bench`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    folders: FolderArgs,

    #[command(flatten)]
    tiers: TierArgs,

    /// Bytes of the state: tensors as AlexNet and its optimiser have them, and fillers; 600MB by default
    #[arg(long, value_name = "SIZE", value_parser = parse_state)]
    size: Option<Bytes>,

    /// The state of a network instead: weights and Adam's moments, after one step
    #[arg(long, conflicts_with = "size", value_parser = PossibleValuesParser::new(Model::names()))]
    model: Option<String>,

    /// Where the network's state lies: cpu, cuda, or cuda:N for one of several; cpu by default
    #[arg(long, requires = "model", conflicts_with = "size", value_name = "cpu|cuda[:N]")]
    device: Option<DeviceName>,

    /// When a save returns: direct, burst or async; a list is measured one after the other
    ///
    /// By default all three where there is a burst buffer, and direct where there is none.
    #[arg(long, value_delimiter = ',', value_name = "MODE,…", value_parser = PossibleValuesParser::new(MODES.map(|(name, _)| name)))]
    mode: Vec<String>,

    /// The formats; both by default
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "FORMAT,…",
        value_parser = PossibleValuesParser::new(format::FORMATS.map(format::Format::name))
    )]
    format: Vec<String>,

    /// Saves and restores that are kept, after one that is not
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    saves: u32,

    #[command(flatten)]
    quiet: QuietArgs,

    /// The most that draining copies a second, as 100MB; what it copied it reads back as fast at the most
    #[arg(long, value_name = "SIZE", requires = "burst_dir", value_parser = parse_bytes_per_s)]
    drain_rate: Option<Bytes>,

    /// Leave out what the storage and the memory do without us
    #[arg(long)]
    no_ceiling: bool,

    #[command(flatten)]
    json: JsonArgs,
}

pub(super) fn run(args: &Args) -> Result<Outcome> {
    args.folders.check()?;
    let placements = args.folders.places(&args.tiers, 1)?;
    let plan = args.plan(placements.places)?;
    // It works in a folder of its own beside what is there: a record may lie there too, but not in a checkpoint.
    args.json.json.as_deref().map_or(Ok(()), files::check_outside)?;
    let json = args.json.target([])?;
    stop::finishing("the save");
    let (mut record, series) = live::observed("saving", "", stop::flag(), args.quiet, |observer| {
        forebay_bench::checkpoint::run(&plan, live::record(&args.folders.dir), observer).map_err(in_our_words)
    })?;
    record.notes.extend(placements.notes);
    record.series = Some(series);
    give(&forebay_report::record(&record), json.as_ref().map(|target| (target, record.to_json())))?;
    let is_stopped = stop::flag().load(Ordering::Relaxed);
    Ok(if is_stopped { Outcome::Missed } else { Outcome::Met })
}

impl Args {
    fn plan(&self, places: Places) -> Result<Plan> {
        let named = |name: &String| MODES.into_iter().find(|(known, _)| known == name).map(|(_, mode)| mode);
        // One that is named twice is measured once.
        let first = |(n, name): &(usize, &String)| !self.mode[..*n].contains(name);
        let mut modes: Vec<Mode> =
            self.mode.iter().enumerate().filter(first).filter_map(|(_, name)| named(name)).collect();
        if modes.is_empty() {
            let all = MODES.map(|(_, mode)| mode);
            modes = if places.fast.is_some() { all.to_vec() } else { vec![Mode::Direct] };
        }
        if modes.contains(&Mode::Burst) && places.fast.is_none() {
            bail!("--mode burst: name the burst buffer with --burst-dir");
        }
        let known = format::FORMATS.map(format::Format::name);
        let is_wanted = |name: &&str| self.format.is_empty() || self.format.iter().any(|wanted| wanted == name);
        Ok(Plan {
            places,
            state: match &self.model {
                Some(name) => State::Model(name.clone()),
                None => State::Bytes(self.size.map_or(600_000_000, |size| size.0)),
            },
            gpu: match self.device {
                Some(DeviceName::Cuda(ordinal)) => Some(Gpu { ordinal, cuda_folders: crate::cuda::folders() }),
                Some(DeviceName::Cpu) | None => None,
            },
            modes,
            formats: known.into_iter().filter(is_wanted).collect(),
            saves: self.saves as usize,
            drain_bytes_per_s: self.drain_rate.map(|rate| rate.0),
            ceiling: !self.no_ceiling,
            seed: 0,
        })
    }
}

/// What cannot be done, without what to do about it in a probe.
fn in_our_words(error: forebay_bench::checkpoint::Error) -> anyhow::Error {
    use forebay_bench::checkpoint::Error::Shared;
    use forebay_measure::Error::{Denied, NothingCanBeMade, ReadOnly};
    match &error {
        Shared(ReadOnly { path }) => {
            anyhow!("{}: the file system is mounted read-only; name a folder that can be written", path.escaped())
        }
        Shared(Denied { path }) => anyhow!("{}: permission denied; name a folder you may write to", path.escaped()),
        Shared(NothingCanBeMade { path }) => {
            anyhow!("{}: nothing can be created there; name a folder of a disk", path.escaped())
        }
        _ => error.into(),
    }
}
