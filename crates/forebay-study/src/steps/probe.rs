//! The probe step: a cell of it is one probe of one place.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use forebay_dataset::{Control, InspectOptions};
use forebay_measure::{Observer, Refused, value};
use forebay_pipeline::Source;
use forebay_probe::{self as probe, Mix, Modes, Plan, Sizes, Tree};
use forebay_record::{Engine, Level, Measured};
use forebay_storage::Local;
use forebay_units::{Bytes, PathText};

use super::{Failed, Stage, StepResult, record};

/// Bytes a sequential request, as `forebay probe` has them.
const BLOCK: u64 = 1 << 20;
/// Seed of places, order and content.
const SEED: u64 = 0;

/// What a cell may be told.
pub(super) const NAMES: &[&str] = &["block", "depth", "engine", "mix", "mode", "size"];

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
            modes: vec![ProbeKind::Sequential],
            size: Bytes(5 << 30),
            blocks: None,
            depths: vec![1],
            engines: None,
            mix: None,
        }
    }

    /// Sets one of [`NAMES`].
    pub(super) fn set(&mut self, name: &str, level: &Level) -> Result<(), Refused> {
        match name {
            "block" => self.blocks = Some(value::list(block)(level)?),
            "depth" => self.depths = value::list(value::integer(1..=1_024))(level)?,
            "engine" => self.engines = Some(value::list(engine)(level)?),
            "mix" => self.mix = Some(mix(level)?),
            "mode" => self.modes = value::list(mode)(level)?,
            "size" => self.size = value::bytes(4_096..=64 << 40)(level)?,
            _ => return Err("not a setting of probe".to_owned()),
        }
        Ok(())
    }
}

/// What contradicts itself or lacks something; `like` is whether the sizes are those of a dataset.
pub(super) fn check(settings: &ProbeSettings, like: bool) -> Result<(), Refused> {
    if settings.mix.is_some() && like {
        return Err("give mix or like, not both".to_owned());
    }
    if settings.modes == [ProbeKind::Sequential] && (settings.mix.is_some() || like) {
        return Err("mix and like are for random requests and files; sequential ones have block".to_owned());
    }
    Ok(())
}

/// Runs a cell.
pub(super) fn run(request: &ProbeRequest<'_>, observer: Observer<'_>) -> Result<StepResult, Failed> {
    let plan = plan(request, observer.cancel)?;
    let is_there = plan.target.exists();
    std::fs::create_dir_all(&plan.target)?;
    let probed = probe::run(&plan, record(), observer);
    if !is_there {
        // Only an empty folder is removed by this, and one that is not shall stay.
        let _ = std::fs::remove_dir(&plan.target);
    }
    let mut record = probed?;
    if let Some(profile) = &request.on.kernel {
        record.cells.iter_mut().for_each(|cell| cell.on_kernel_tier(&profile.name));
    }
    if record.cells.is_empty() {
        return Err("no run was finished".into());
    }
    Ok(StepResult { measured: Some(Measured::Probe(record.cells)), notes: record.notes })
}

fn plan(request: &ProbeRequest<'_>, cancel: &AtomicBool) -> Result<Plan, Failed> {
    let settings = request.settings;
    let of_blocks = settings.blocks.as_ref().map(|blocks| blocks.iter().map(|block| block.0).collect::<Vec<_>>());
    let sizes = match (&settings.mix, &request.like, &of_blocks) {
        (Some(mix), _, _) => Sizes::Mix(mix.parse::<Mix>()?),
        (None, Some(data), _) => Sizes::Mix(mix_of(data, cancel)?),
        (None, None, Some(blocks)) => Sizes::Fixed(blocks.clone()),
        (None, None, None) => Sizes::Mix(Mix::of_images()),
    };
    let has = |kind| settings.modes.contains(&kind);
    let mut plan = Plan {
        target: request.dir.clone(),
        modes: Modes {
            sequential: has(ProbeKind::Sequential),
            random: has(ProbeKind::Random),
            files: has(ProbeKind::Files),
        },
        size: settings.size.0,
        blocks: of_blocks.unwrap_or_else(|| vec![BLOCK]),
        sizes,
        trees: Vec::new(),
        depths: settings.depths.iter().map(|depth| *depth as usize).collect(),
        engines: settings.engines.clone(),
        runs: request.on.warmups + request.on.repeats,
        tier: request.on.shaped.clone(),
        seed: SEED,
    };
    if plan.modes.files {
        plan.trees = match &request.like {
            Some(data) => {
                let source = Source::discover(Arc::new(Local::default()), data)?;
                vec![Tree::like(data, source.files(), plan.size, SEED)?]
            }
            None => plan.sizes.trees(plan.size, SEED)?,
        };
    }
    Ok(plan)
}

/// The mix of a dataset's sizes.
fn mix_of(data: &Path, cancel: &AtomicBool) -> Result<Mix, Failed> {
    let control = Control { threads: 0, cancel, progress: &|_| {} };
    let found = forebay_dataset::inspect(data, &InspectOptions::default(), &control)?;
    let none = || format!("{}: there is not a single sound sample to take sizes from", data.escaped());
    Ok(found.bssplit.ok_or_else(none)?.parse()?)
}

fn block(level: &Level) -> Result<Bytes, Refused> {
    let block = value::bytes(512..=1 << 30)(level)?;
    if block.0 % 512 == 0 { Ok(block) } else { Err("give a multiple of 512 bytes, as 128KiB".to_owned()) }
}

fn engine(level: &Level) -> Result<Engine, Refused> {
    match value::text(level)?.as_str() {
        "sync" => Ok(Engine::Sync),
        "direct" => Ok(Engine::Direct),
        "uring" => Ok(Engine::Uring),
        _ => Err("give sync, direct or uring".to_owned()),
    }
}

fn mode(level: &Level) -> Result<ProbeKind, Refused> {
    match value::text(level)?.as_str() {
        "sequential" => Ok(ProbeKind::Sequential),
        "random" => Ok(ProbeKind::Random),
        "files" => Ok(ProbeKind::Files),
        _ => Err("give sequential, random or files".to_owned()),
    }
}

/// "4K/10:128K/90": sizes and their shares in per cent.
fn mix(level: &Level) -> Result<String, Refused> {
    let text = value::text(level)?;
    match text.parse::<Mix>() {
        Ok(_) => Ok(text),
        Err(reason) => Err(format!("give sizes and shares, as 4K/10:128K/90 ({reason})")),
    }
}
