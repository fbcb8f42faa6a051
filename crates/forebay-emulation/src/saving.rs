//! Checkpoints of a run: every accelerator is a rank of the model and saves its part to its own store.
//!
//! `<checkpoints>/rank-0000/step-…/` holds the files of that rank, with sizes from the workload. A save is durable when
//! it ends. A run that trains keeps the two newest checkpoints; one that only saves keeps those that it reads back, and
//! at least the newest.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use forebay_checkpoint::format::Layout;
use forebay_checkpoint::{Checkpoint, Fs, Keep, Name, Options, Store, Tier};
use forebay_measure::FileSystem;
use forebay_measure::cold;
use forebay_ranks::{Ranks, everybody};
use forebay_units::Bytes;
use forebay_workload::{Workload, model};

use super::place::there;
use super::plan::Plan;
use super::prepare::together;
use super::run::Error;
use super::state::State;

/// Checkpoints kept by runs that train.
const KEPT: usize = 2;
/// Bytes per chunk: small, since many accelerators save at the same time.
const CHUNK: usize = 1 << 20;

pub(super) struct Saver {
    dir: PathBuf,
    /// All accelerators share one emulated device.
    fs: Arc<dyn Fs>,
    /// The first accelerator of this process, and the number of all.
    first: u64,
    of: u64,
    shards: Vec<Option<Shard>>,
    n_read: u64,
    is_shifted: bool,
}

struct Shard {
    store: Store,
    state: State,
    layout: Layout,
    bytes: u64,
    /// Step of the newest checkpoint that existed before.
    base: u64,
}

pub(super) struct RankCheckpoint {
    tier: Tier,
    name: Name,
    /// Fraction that was still in memory.
    pub(super) resident: Option<f64>,
}

impl Saver {
    /// For accelerators `first..first + n` of `of`.
    pub(super) fn open(
        workload: &Workload,
        (dir, fs): (&Path, Arc<dyn Fs>),
        accelerators: std::ops::Range<u64>,
        of: u64,
    ) -> Result<Self, Error> {
        let rules = &workload.checkpoint;
        let keep = kept(workload);
        let mut saver = Self {
            dir: dir.to_owned(),
            fs,
            first: accelerators.start,
            of,
            shards: Vec::new(),
            n_read: rules.n_read,
            is_shifted: rules.recovery_rank_shift,
        };
        let shards = accelerators.map(|rank| Ok((rank, model::shard_of(workload, rank, of)?)));
        let shards = shards.collect::<Result<Vec<_>, Error>>()?;
        for (rank, files) in shards {
            let shard = if files.is_empty() { None } else { Some(saver.shard(rank, &files, rules.randomize, keep)?) };
            saver.shards.push(shard);
        }
        Ok(saver)
    }

    fn shard(&self, rank: u64, files: &[model::ShardFile], randomize: bool, keep: usize) -> Result<Shard, Error> {
        let tier = Tier { keep: Keep::last(keep), ..self.tier_of(rank) };
        let options = Options { chunk_bytes: CHUNK, drains_behind: false, ..Options::default() };
        let store = Store::open(vec![tier], options)?;
        let base = store.tiers()[0].names()?.last().map_or(0, |name| name.step);
        let state = State::new(files, randomize, rank);
        let layout = state.layout()?;
        let bytes = files.iter().map(model::ShardFile::bytes).sum();
        Ok(Shard { store, state, layout, bytes, base })
    }

    fn tier_of(&self, rank: u64) -> Tier {
        Tier::new(Arc::clone(&self.fs), self.dir.join(format!("rank-{rank:04}")))
    }

    /// Returns the bytes of the values; `None` if it was stopped, in which case nothing of the save remains.
    pub(super) fn save(&self, accelerator: u64, step: u64, stop: &AtomicBool) -> Result<Option<u64>, Error> {
        let Some(shard) = &self.shards[(accelerator - self.first) as usize] else { return Ok(Some(0)) };
        shard.state.change(step);
        let (step, snapshot) = (shard.base + step, shard.state.snapshot());
        match shard.store.save_until(step, None, &snapshot, &shard.layout, stop) {
            Err(forebay_checkpoint::Error::Stopped) => Ok(None),
            saved => saved.map(|_| Some(shard.bytes)).map_err(Error::from),
        }
    }

    pub(super) fn prune(&self, accelerator: u64) -> Result<(), Error> {
        let shard = self.shards[(accelerator - self.first) as usize].as_ref();
        Ok(shard.map_or(Ok(()), |shard| shard.store.prune())?)
    }

    /// The checkpoint that an accelerator reads in restore `number` (from 1), evicted from the page cache: the newest
    /// checkpoints, oldest first. With `recovery_rank_shift` it is the one that the next rank wrote.
    pub(super) fn checkpoint(&self, accelerator: u64, number: u64) -> Result<Option<RankCheckpoint>, Error> {
        if self.shards[(accelerator - self.first) as usize].is_none() {
            return Ok(None);
        }
        let tier = self.tier_of(self.read_by(accelerator));
        let names = tier.names()?;
        let from = names.len().saturating_sub(self.n_read as usize);
        let Some(name) = names.get(from + number as usize - 1).copied() else {
            return Err(Error::NothingSaved { path: tier.dir, n: names.len() as u64, wanted: self.n_read });
        };
        let checkpoint = open(&tier, name)?;
        let files = checkpoint.manifest().files.iter().map(|file| tier.path_of(name).join(&file.name));
        let before = cold::prepare(&files.collect::<Vec<_>>(), true)?;
        Ok(Some(RankCheckpoint { tier, name, resident: before.resident() }))
    }

    /// Its own checkpoint, or that of the next rank that has one.
    fn read_by(&self, accelerator: u64) -> u64 {
        let next = (accelerator + 1) % self.of;
        let has_saved = |rank: u64| !self.tier_of(rank).names().unwrap_or_default().is_empty();
        match (self.is_shifted, has_saved(next)) {
            (false, _) => accelerator,
            (true, true) => next,
            // The last rank that saves is followed by the first.
            (true, false) => 0,
        }
    }
}

impl RankCheckpoint {
    /// Verifies every chunk's checksum. Returns the bytes read; `None` if it was stopped.
    pub(super) fn read(&self, stop: &AtomicBool) -> Result<Option<u64>, Error> {
        let checkpoint = open(&self.tier, self.name)?;
        match checkpoint.verify_rest(stop) {
            Err(forebay_checkpoint::Error::Stopped) => Ok(None),
            read => {
                read.map(|()| Some(checkpoint.manifest().files.iter().map(|file| file.len).sum())).map_err(Error::from)
            }
        }
    }
}

fn open(tier: &Tier, name: Name) -> Result<Checkpoint, Error> {
    let path = || tier.path_of(name);
    let damaged = |damage| forebay_checkpoint::Error::Damaged { path: path(), damage };
    Ok(Checkpoint::open(tier, name).map_err(damaged)?)
}

fn kept(workload: &Workload) -> usize {
    if workload.workflow.train { KEPT } else { (workload.checkpoint.n_read as usize).max(1) }
}

/// Checks for enough space, counting all ranks on a file system together.
pub(super) fn check_room(plan: &Plan, ranks: &dyn Ranks, n_saves: u64) -> Result<(), Error> {
    let (n, of) = (plan.settings.all_accelerators(), plan.settings.all_accelerators() * ranks.size());
    let shares = (ranks.rank() * n..(ranks.rank() + 1) * n).map(|rank| {
        let files = model::shard_of(&plan.workload, rank, of)?;
        Ok(files.iter().map(model::ShardFile::bytes).sum::<u64>())
    });
    let bytes = together(ranks, shares.sum::<Result<u64, Error>>())?;
    // One more than is kept: the newest is written before the oldest is removed.
    let mine = bytes.saturating_mul(n_saves.min(kept(&plan.workload) as u64 + 1));
    let there = there(&plan.checkpoints.dir);
    let device = std::fs::metadata(there).map_or(0, |found| found.dev());
    let place = format!("{} {device}", ranks.host());
    let all = everybody(ranks, &format!("{mine} {place}"))?;
    let here = all.iter().filter_map(|said| said.split_once(' ')).filter(|(_, of)| *of == place);
    let needed = here.fold(0_u64, |sum, (bytes, _)| sum.saturating_add(bytes.parse().unwrap_or(0)));
    let free = FileSystem::of(there).ok().and_then(|system| system.free_bytes);
    together(ranks, free.map_or(Ok(()), |free| enough(&plan.checkpoints.dir, needed, free)))
}

fn enough(dir: &Path, needed: u64, free: u64) -> Result<(), Error> {
    match needed <= free {
        true => Ok(()),
        false => Err(Error::TooLittleSpace { path: dir.to_owned(), needed: Bytes(needed), free: Bytes(free) }),
    }
}
