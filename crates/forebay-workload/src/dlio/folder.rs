//! A folder of DLIO's results as the times of its steps.
//!
//! How long a block took on the clock is what its utilisation was divided by, and is not in the files. But its samples a
//! second were divided by the same clock and are there with all their digits, so that it can be had back exactly. Which of
//! DLIO's two formulas they follow is found by trying: the one whose clock agrees with the written times of day.

use std::collections::{BTreeMap, BTreeSet};

use super::{Output, OutputEpoch, PerEpochStats, SpanStats, Summary, parse};
use crate::check::Problem;
use crate::metric::{self, Dlio, DlioRun, Excluded};
use crate::{Checked, Workload};

/// Why a folder cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// A file is not what DLIO writes.
    #[error("cannot read {file}")]
    Json {
        /// Which.
        file: String,
        /// Why.
        source: serde_json::Error,
    },
    /// A file is missing.
    #[error("there is no {0}")]
    Missing(&'static str),
    /// The workload it ran cannot be read.
    #[error("cannot read {file}: {problem}")]
    Config {
        /// Which file.
        file: String,
        /// The first thing that is wrong.
        problem: Problem,
    },
}

/// Whose formula of samples a second it is; see [`metric`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Version {
    /// Up to 2.0.0.
    V2_0,
    /// Since then.
    #[default]
    Later,
}

/// A run of DLIO.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Its summary.
    pub summary: Summary,
    /// The workload it ran, from `.hydra/config.yaml`; `None` where that is not kept.
    pub workload: Option<Workload>,
    /// Which formula it follows.
    pub version: Version,
    /// Its ranks, by number.
    pub ranks: Vec<RankRun>,
}

/// What one rank wrote.
#[derive(Debug, Clone, PartialEq)]
pub struct RankRun {
    /// Its number.
    pub rank: u64,
    /// Its host.
    pub hostname: Option<String>,
    /// Its epochs, in order.
    pub epochs: Vec<EpochRun>,
}

/// An epoch of a rank.
#[derive(Debug, Clone, PartialEq)]
pub struct EpochRun {
    /// Its number, from 1.
    pub epoch: u64,
    /// When it was; the first rank's where only that was written.
    pub span: Option<Span>,
    /// Its blocks, in order.
    pub blocks: Vec<BlockRun>,
    /// Its evaluation.
    pub eval: Option<BlockRun>,
    /// Its checkpoints, in order.
    pub saves: Vec<SaveRun>,
}

/// A checkpoint that a rank saved or read back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SaveRun {
    /// Its number in the epoch, by which the shares of ranks belong together.
    pub number: u64,
    /// Whether it was read back.
    pub is_restore: bool,
    /// When it was.
    pub span: Span,
}

/// From when to when, in seconds since 1970 by the clock of the host, which is in local time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    /// From.
    pub start_s: f64,
    /// To.
    pub end_s: f64,
}

impl Span {
    /// How long.
    pub fn seconds(&self) -> f64 {
        self.end_s - self.start_s
    }
}

/// A block, or an evaluation.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockRun {
    /// "block1", "eval".
    pub name: String,
    /// From asking for a batch to having it. The first of a second block is missing, because DLIO forgets it.
    pub load_s: Vec<f64>,
    /// What each step computed.
    pub compute_s: Vec<f64>,
    /// From asking for a batch to the end of its step.
    pub whole_s: Vec<f64>,
    /// The utilisation that DLIO wrote, in percent.
    pub au: Option<f64>,
    /// The samples a second that DLIO wrote.
    pub samples_per_s: Option<f64>,
    /// When it was.
    pub span: Option<Span>,
    /// How long it was on the clock: exactly, where the batch is known, else by the times of day.
    pub wall_s: Option<f64>,
}

/// Reads a run from the texts of its files, by their names in the folder: `summary.json`, `0_output.json`,
/// `0_per_epoch_stats.json` or `per_epoch_stats.json`, `.hydra/config.yaml`. Others are passed over.
///
/// # Errors
/// When there is no summary or no rank, or a file is not what DLIO writes.
pub fn read_run(files: &BTreeMap<String, String>) -> Result<Run, ReadError> {
    let summary = files.get("summary.json").ok_or(ReadError::Missing("summary.json"))?;
    let summary = parse(summary).map_err(json("summary.json"))?;
    let workload = workload(files)?;
    let mut ranks = Vec::new();
    for (rank, text) in files.iter().filter_map(|(name, text)| Some((rank_of(name, "_output.json")?, text))) {
        let output: Output = parse(text).map_err(json(&format!("{rank}_output.json")))?;
        let stats = stats_of(files, rank)?;
        let epochs = output.epochs().map_err(json(&format!("{rank}_output.json")))?;
        // A run that only saves has no steps, and its epochs are in the other file alone.
        let numbers: BTreeSet<u64> = epochs.keys().chain(stats.keys()).copied().collect();
        let none = OutputEpoch::default();
        let epoch = |number: &u64| epoch_of(*number, epochs.get(number).unwrap_or(&none), &stats);
        let epochs = numbers.iter().map(epoch).collect();
        ranks.push(RankRun { rank, hostname: output.hostname, epochs });
    }
    if ranks.is_empty() {
        return Err(ReadError::Missing("0_output.json"));
    }
    ranks.sort_by_key(|rank| rank.rank);
    let mut run = Run { summary, workload, version: Version::default(), ranks };
    run.find_walls();
    Ok(run)
}

fn json(file: &str) -> impl Fn(serde_json::Error) -> ReadError {
    let file = file.to_owned();
    move |source| ReadError::Json { file: file.clone(), source }
}

fn rank_of(name: &str, ending: &str) -> Option<u64> {
    name.strip_suffix(ending)?.parse().ok()
}

fn workload(files: &BTreeMap<String, String>) -> Result<Option<Workload>, ReadError> {
    let file = ".hydra/config.yaml";
    let Some(text) = files.get(file) else { return Ok(None) };
    match crate::read("dlio", text, &[]) {
        Ok(Checked { mut workload, .. }) => {
            workload.name.clone_from(&workload.model.name);
            Ok(Some(workload))
        }
        Err(problems) => match problems.into_iter().next() {
            Some(problem) => Err(ReadError::Config { file: file.to_owned(), problem }),
            None => Ok(None),
        },
    }
}

/// The times of day of a rank: its own file, or the one that the first rank wrote for all.
fn stats_of(files: &BTreeMap<String, String>, rank: u64) -> Result<PerEpochStats, ReadError> {
    let own = format!("{rank}_per_epoch_stats.json");
    for name in [own.as_str(), "per_epoch_stats.json", "0_per_epoch_stats.json"] {
        if let Some(text) = files.get(name) {
            return parse(text).map_err(json(name));
        }
    }
    Ok(PerEpochStats::new())
}

fn epoch_of(epoch: u64, times: &OutputEpoch, stats: &PerEpochStats) -> EpochRun {
    let stats = stats.get(&epoch);
    let span_of = |name: &str| stats.and_then(|stats| stats.spans.get(name)).and_then(span);
    let block = |name: &str| BlockRun {
        name: name.to_owned(),
        load_s: times.load.get(name).cloned().unwrap_or_default(),
        compute_s: times.compute.get(name).cloned().unwrap_or_default(),
        whole_s: times.proc.get(name).cloned().unwrap_or_default(),
        au: times.au.get(name).copied().flatten(),
        samples_per_s: times.throughput.get(name).copied().flatten(),
        span: span_of(name),
        wall_s: None,
    };
    // Blocks are sorted by number: "block10" comes behind "block9".
    let mut numbers: Vec<u64> = times.proc.keys().filter_map(|key| key.strip_prefix("block")?.parse().ok()).collect();
    numbers.sort_unstable();
    let mut saves: Vec<SaveRun> = stats.into_iter().flat_map(|stats| &stats.spans).filter_map(save).collect();
    saves.sort_by(|a, b| a.span.start_s.total_cmp(&b.span.start_s));
    let own = stats.map(|stats| SpanStats { start: stats.start.clone(), end: stats.end.clone(), ..Default::default() });
    EpochRun {
        epoch,
        span: own.as_ref().and_then(span),
        blocks: numbers.iter().map(|number| block(&format!("block{number}"))).collect(),
        eval: times.proc.contains_key("eval").then(|| block("eval")),
        saves,
    }
}

/// A span that is a checkpoint: `save_ckpt1`, `load_ckpt1`, or `ckpt1` of older versions.
fn save((name, stats): (&String, &SpanStats)) -> Option<SaveRun> {
    let (is_restore, of) = match name.strip_prefix("load_") {
        Some(of) => (true, of),
        None => (false, name.strip_prefix("save_").unwrap_or(name)),
    };
    let number = of.strip_prefix("ckpt")?.parse().ok()?;
    Some(SaveRun { number, is_restore, span: span(stats)? })
}

fn span(stats: &SpanStats) -> Option<Span> {
    let at = |text: &Option<String>| text.as_deref().and_then(seconds_of);
    Some(Span { start_s: at(&stats.start)?, end_s: at(&stats.end)? })
}

/// Seconds since 1970 of a time of day without a zone.
fn seconds_of(text: &str) -> Option<f64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let whole = forebay_units::parse_utc(&format!("{}Z", whole.replace(' ', "T")))?;
    Some(whole.as_secs_f64() + format!("0.{fraction}").parse::<f64>().ok()?)
}

impl Run {
    /// What DLIO's formulas make of the times again: what it printed.
    pub fn dlio(&self) -> Option<DlioRun> {
        let batch = self.workload.as_ref().map_or(1, |workload| workload.reader.batch_size);
        let excluded = |epoch: &EpochRun| self.excluded(epoch.steps());
        let of = |epoch: &EpochRun| epoch.dlio(self.version, batch, excluded(epoch));
        let ranks: Option<Vec<Vec<Dlio>>> = self.ranks.iter().map(|rank| rank.trained().map(of).collect()).collect();
        DlioRun::of(&ranks?)
    }

    /// Computing over the whole of training, nothing left out: by epoch the mean over ranks, in percent.
    pub fn au_epochs(&self) -> Vec<Option<f64>> {
        let epochs = self.ranks.iter().map(|rank| rank.trained().count()).max().unwrap_or(0);
        let of = |i: usize| {
            let each: Option<Vec<f64>> = self.ranks.iter().map(|rank| rank.trained().nth(i)?.au_epoch()).collect();
            each.filter(|each| !each.is_empty()).map(|each| each.iter().sum::<f64>() / each.len() as f64)
        };
        (0..epochs).map(of).collect()
    }

    fn excluded(&self, steps_per_epoch: u64) -> Excluded {
        let limits = self.workload.as_ref().map(|workload| workload.limits).unwrap_or_default();
        Excluded { start: limits.exclude_start_steps, end: limits.exclude_end_steps, steps_per_epoch }
    }

    /// Finds out which formula the figures follow, and by it how long each block was.
    fn find_walls(&mut self) {
        let batches = self.workload.as_ref().map(|w| (w.reader.batch_size, w.reader.batch_size_eval));
        self.version = [Version::Later, Version::V2_0]
            .into_iter()
            .min_by(|a, b| self.disagreement(*a, batches).total_cmp(&self.disagreement(*b, batches)))
            .unwrap_or_default();
        let (version, excluded) = (self.version, self.excluded(0));
        for epoch in self.ranks.iter_mut().flat_map(|rank| &mut rank.epochs) {
            let excluded = Excluded { steps_per_epoch: epoch.steps(), ..excluded };
            for block in epoch.blocks.iter_mut().chain(epoch.eval.iter_mut()) {
                block.wall_s = block.wall_by_rate(version, batches, excluded).or(block.span.map(|span| span.seconds()));
            }
        }
    }

    /// How far the clocks that a version's formula gives are from the times of day, in seconds.
    fn disagreement(&self, version: Version, batches: Option<(u64, u64)>) -> f64 {
        let epochs = self.ranks.iter().take(1).flat_map(|rank| &rank.epochs);
        let apart = |epoch: &EpochRun| {
            let excluded = self.excluded(epoch.steps());
            let of = |block: &BlockRun| {
                let by_rate = block.wall_by_rate(version, batches, excluded)?;
                Some((by_rate - block.span?.seconds()).abs())
            };
            epoch.blocks.iter().filter_map(of).sum::<f64>()
        };
        epochs.map(apart).sum()
    }
}

impl RankRun {
    /// Its epochs that have steps: a run that only saves has one without.
    pub fn trained(&self) -> impl Iterator<Item = &EpochRun> {
        self.epochs.iter().filter(|epoch| epoch.steps() > 0)
    }
}

impl EpochRun {
    /// Steps of its blocks.
    pub fn steps(&self) -> u64 {
        self.blocks.iter().map(|block| block.compute_s.len() as u64).sum()
    }

    /// What its steps computed, in seconds.
    pub fn compute_s(&self) -> f64 {
        self.blocks.iter().flat_map(|block| &block.compute_s).sum()
    }

    /// All of its time, checkpoints among it; an evaluation inside of it is none of its training.
    pub fn wall_s(&self) -> Option<f64> {
        let Some(span) = self.span else { return self.blocks.iter().map(|block| block.wall_s).sum() };
        let is_inside = |eval: &Span| eval.start_s >= span.start_s && eval.end_s <= span.end_s;
        let eval = self.eval.as_ref().and_then(|eval| eval.span).filter(is_inside);
        Some(span.seconds() - eval.map_or(0.0, |span| span.seconds()))
    }

    /// From its start to its first batch.
    pub fn first_batch_s(&self) -> f64 {
        let first = self.blocks.first();
        let until_s = first.and_then(|block| Some(block.span?.start_s - self.span?.start_s)).unwrap_or(0.0);
        until_s + first.and_then(|block| block.loads_s().first().copied()).unwrap_or(0.0)
    }

    /// Computing over all of its time, in percent.
    pub fn au_epoch(&self) -> Option<f64> {
        metric::au_epoch(self.compute_s(), self.wall_s()?)
    }

    fn dlio(&self, version: Version, batch: u64, excluded: Excluded) -> Option<Dlio> {
        let of = |block: &BlockRun| Some((block.dlio(version, batch, excluded)?, block.whole_s.len()));
        let blocks: Option<Vec<(Dlio, usize)>> = self.blocks.iter().map(of).collect();
        metric::dlio_epoch(&blocks?)
    }
}

impl BlockRun {
    /// The wait for every batch. Where DLIO lost one, all are taken from its whole steps.
    pub fn loads_s(&self) -> Vec<f64> {
        let Self { load_s, compute_s, whole_s, .. } = self;
        if load_s.len() == compute_s.len() || whole_s.len() != compute_s.len() {
            return load_s.clone();
        }
        whole_s.iter().zip(compute_s).map(|(whole, compute)| whole - compute).collect()
    }

    /// What DLIO's formula makes of it; `None` where its time on the clock is not known.
    pub fn dlio(&self, version: Version, batch: u64, excluded: Excluded) -> Option<Dlio> {
        let wall_s = self.wall_s?;
        Some(match version {
            Version::V2_0 => metric::dlio_2_0(&self.compute_s, &self.whole_s, wall_s, batch),
            Version::Later => metric::dlio_of(&self.compute_s, &self.whole_s, wall_s, batch, excluded),
        })
    }

    /// The time on the clock that its samples a second were divided by.
    fn wall_by_rate(&self, version: Version, batches: Option<(u64, u64)>, excluded: Excluded) -> Option<f64> {
        let (train, eval) = batches?;
        let rate = self.samples_per_s.filter(|rate| *rate > 0.0)?;
        let steps = self.compute_s.len() as f64;
        if self.name == "eval" {
            return Some(steps * eval as f64 / rate);
        }
        if version == Version::V2_0 {
            return Some(steps * train as f64 / rate);
        }
        Some((steps - 2.0) * train as f64 / rate + excluded.seconds(&self.whole_s))
    }
}
