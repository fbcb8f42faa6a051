//! A DLIO run as times of steps, and DLIO's formulas applied to them.
//!
//! The wall-clock time of a block, the divisor of its utilisation, is not in the files. But its samples per second have
//! the same divisor and are written with all digits, so the time can be recovered exactly. Which of DLIO's two formulas
//! applies is found by trying: the one whose time agrees with the utilisation.

use super::Summary;
use crate::Workload;
use crate::metric::{self, Dlio, DlioRun, Excluded};

/// The DLIO version whose formula for samples per second applies; see [`metric`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Version {
    /// Up to 2.0.0, the one that `pip` installs.
    V2_0,
    #[default]
    Later,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Its summary; empty if missing.
    pub summary: Summary,
    /// The workload's name, from `.hydra/overrides.yaml`.
    pub name: Option<String>,
    /// The workload it ran, from `.hydra/config.yaml`; `None` if missing.
    pub workload: Option<Workload>,
    /// Invalid keys of that workload, which have their defaults in it.
    pub refused: Vec<String>,
    /// Samples per step and rank: from the workload, or else inferred.
    pub batch: Option<u64>,
    pub version: Version,
    pub ranks: Vec<RankRun>,
    /// Oddities of its files, as text.
    pub odd: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RankRun {
    pub rank: u64,
    pub hostname: Option<String>,
    pub epochs: Vec<EpochRun>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct EpochRun {
    /// Counted from 1, as DLIO does.
    pub epoch: u64,
    /// Its start and end; rank 0's if only that was written.
    pub span: Option<Span>,
    /// Blocks between checkpoints; one without checkpoints.
    pub blocks: Vec<BlockRun>,
    pub eval: Option<BlockRun>,
    pub saves: Vec<SaveRun>,
}

/// A checkpoint that a rank saved or read back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SaveRun {
    /// Its number in the epoch, which connects the parts of different ranks.
    pub number: u64,
    pub is_restore: bool,
    pub span: Span,
}

/// Start and end in seconds since 1970, by the host's clock in local time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    pub start_s: f64,
    pub end_s: f64,
}

impl Span {
    pub fn seconds(&self) -> f64 {
        self.end_s - self.start_s
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct BlockRun {
    /// DLIO's name: "block1", "eval".
    pub name: String,
    /// From requesting a batch to receiving it. The first of a second block is missing, because DLIO drops it.
    pub load_s: Vec<f64>,
    /// Computing time of each step in seconds.
    pub compute_s: Vec<f64>,
    /// From requesting a batch to the end of its step.
    pub whole_s: Vec<f64>,
    /// The utilisation that DLIO wrote, in percent.
    pub au: Option<f64>,
    /// The samples per second that DLIO wrote.
    pub samples_per_s: Option<f64>,
    /// By the host's clock; the steps' own times are more precise.
    pub span: Option<Span>,
    /// Wall-clock time: exact if the batch size is known, otherwise from timestamps.
    pub wall_s: Option<f64>,
}

impl Run {
    /// DLIO's formulas applied to the times: the figures it printed.
    pub fn dlio(&self) -> Option<DlioRun> {
        let batch = self.batch.unwrap_or(1);
        let excluded = |epoch: &EpochRun| self.excluded(epoch.steps());
        let of = |epoch: &EpochRun| epoch.dlio(self.version, batch, excluded(epoch));
        let ranks: Option<Vec<Vec<Dlio>>> = self.trained().map(|rank| rank.trained().map(of).collect()).collect();
        DlioRun::of(&ranks?)
    }

    /// Computing time divided by total training time, nothing excluded: by epoch the mean over ranks, as a fraction of 1.
    pub fn au_epochs(&self) -> Vec<Option<f64>> {
        let epochs = self.trained().map(|rank| rank.trained().count()).max().unwrap_or(0);
        let of = |i: usize| {
            let each: Option<Vec<f64>> = self.trained().map(|rank| rank.trained().nth(i)?.au_epoch()).collect();
            each.filter(|each| !each.is_empty()).map(|each| each.iter().sum::<f64>() / each.len() as f64)
        };
        (0..epochs).map(of).collect()
    }

    pub fn trained(&self) -> impl Iterator<Item = &RankRun> {
        self.ranks.iter().filter(|rank| rank.trained().next().is_some())
    }

    /// Whether the workload's value of a key is known.
    pub fn is_known(&self, key: &str) -> bool {
        self.workload.is_some() && !self.refused.iter().any(|refused| refused == key)
    }

    pub(super) fn excluded(&self, steps_per_epoch: u64) -> Excluded {
        let limits = self.workload.as_ref().map(|workload| workload.limits).unwrap_or_default();
        Excluded { start: limits.exclude_start_steps, end: limits.exclude_end_steps, steps_per_epoch }
    }

    /// Finds out which formula the figures follow, and computes each block's time from it.
    pub(super) fn find_walls(&mut self) {
        let eval = self.workload.as_ref().filter(|_| self.is_known("reader.batch_size_eval"));
        let batches = Batches { train: self.batch, eval: eval.map(|workload| workload.reader.batch_size_eval) };
        self.version = [Version::Later, Version::V2_0]
            .into_iter()
            .min_by(|a, b| self.disagreement(*a, batches).total_cmp(&self.disagreement(*b, batches)))
            .unwrap_or_default();
        let (version, excluded) = (self.version, self.excluded(0));
        for epoch in self.ranks.iter_mut().flat_map(|rank| &mut rank.epochs) {
            let excluded = Excluded { steps_per_epoch: epoch.steps(), ..excluded };
            for block in epoch.blocks.iter_mut().chain(epoch.eval.iter_mut()) {
                let by_rate = block.wall_by_rate(version, batches, excluded);
                block.wall_s = by_rate.or_else(|| block.wall_otherwise(excluded));
            }
        }
    }

    /// Distance in seconds between the times by a version's formula and the timestamps.
    fn disagreement(&self, version: Version, batches: Batches) -> f64 {
        let epochs = self.ranks.iter().take(1).flat_map(|rank| &rank.epochs);
        let apart = |epoch: &EpochRun| {
            let excluded = self.excluded(epoch.steps());
            let of = |block: &BlockRun| {
                let by_rate = block.wall_by_rate(version, batches, excluded)?;
                Some((by_rate - block.wall_otherwise(excluded)?).abs())
            };
            epoch.blocks.iter().filter_map(of).sum::<f64>()
        };
        epochs.map(apart).sum()
    }
}

/// Samples per step, as far as they are known.
#[derive(Debug, Clone, Copy)]
struct Batches {
    train: Option<u64>,
    eval: Option<u64>,
}

impl RankRun {
    /// Epochs with steps: a checkpoint-only run has one without.
    pub fn trained(&self) -> impl Iterator<Item = &EpochRun> {
        self.epochs.iter().filter(|epoch| epoch.steps() > 0)
    }
}

impl EpochRun {
    pub fn steps(&self) -> u64 {
        self.blocks.iter().map(|block| block.compute_s.len() as u64).sum()
    }

    pub fn compute_s(&self) -> f64 {
        self.blocks.iter().flat_map(|block| &block.compute_s).sum()
    }

    /// Its total time including checkpoints; an evaluation inside it does not count as training.
    pub fn wall_s(&self) -> Option<f64> {
        let Some(span) = self.span else {
            let of = |block: &BlockRun| block.wall_s.or_else(|| block.steps_s());
            return self.blocks.iter().map(of).sum();
        };
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

    /// Computing time divided by total time, as a fraction of 1.
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
    /// The wait for every batch. If DLIO dropped one, all are computed from the whole steps.
    pub fn loads_s(&self) -> Vec<f64> {
        let Self { load_s, compute_s, whole_s, .. } = self;
        if load_s.len() == compute_s.len() || whole_s.len() != compute_s.len() {
            return load_s.clone();
        }
        whole_s.iter().zip(compute_s).map(|(whole, compute)| whole - compute).collect()
    }

    /// DLIO's figures; `None` if the wall-clock time is unknown.
    pub fn dlio(&self, version: Version, batch: u64, excluded: Excluded) -> Option<Dlio> {
        let wall_s = self.wall_s?;
        Some(match version {
            Version::V2_0 => metric::dlio_2_0(&self.compute_s, &self.whole_s, wall_s, batch),
            Version::Later => metric::dlio_of(&self.compute_s, &self.whole_s, wall_s, batch, excluded),
        })
    }

    /// The wall-clock time implied by its samples per second.
    fn wall_by_rate(&self, version: Version, batches: Batches, excluded: Excluded) -> Option<f64> {
        let rate = self.samples_per_s.filter(|rate| *rate > 0.0)?;
        let steps = self.compute_s.len() as f64;
        if self.name == "eval" {
            return Some(steps * batches.eval? as f64 / rate);
        }
        let train = batches.train? as f64;
        if version == Version::V2_0 {
            return Some(steps * train / rate);
        }
        Some((steps - 2.0) * train / rate + excluded.seconds(&self.whole_s))
    }

    /// The wall-clock time implied by its utilisation, or between its timestamps.
    fn wall_otherwise(&self, excluded: Excluded) -> Option<f64> {
        let by_au = || {
            let au = self.au.filter(|au| *au > 0.0)?;
            let counted_s = excluded.counted(&self.compute_s);
            (counted_s > 0.0).then(|| 100.0 * counted_s / au + excluded.seconds(&self.whole_s))
        };
        by_au().or(self.span.map(|span| span.seconds()))
    }

    /// The batch size implied by its samples per second and its time, not rounded.
    pub(super) fn batch_by_rate(&self, version: Version, excluded: Excluded) -> Option<f64> {
        let (rate, wall_s) = (self.samples_per_s.filter(|rate| *rate > 0.0)?, self.wall_otherwise(excluded)?);
        let steps = self.compute_s.len() as f64;
        match version {
            Version::V2_0 => Some(rate * wall_s / steps),
            Version::Later => Some(rate * (wall_s - excluded.seconds(&self.whole_s)) / (steps - 2.0)),
        }
    }

    /// The sum of its steps' times, if every step has one.
    fn steps_s(&self) -> Option<f64> {
        (!self.whole_s.is_empty() && self.whole_s.len() == self.compute_s.len()).then(|| self.whole_s.iter().sum())
    }
}
