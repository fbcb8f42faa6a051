//! A plan: everything that a probe will do.

use std::path::{Path, PathBuf};
use std::time::Duration;

use forebay_measure::{FileSystem, random};
use forebay_record::{Engine, ProbeMode};
use forebay_storage::Profile;
use forebay_units::{Bytes, PathText, count};

use super::error::{Context, Error};
use super::mix::Mix;
use super::preflight::{self, Target};
use super::requests::GRAIN;
use super::settings::{Kind, ProbeSettings};

/// Limit of a run of random requests or files, which ends earlier once everything was read: slow devices would take
/// hours.
pub const TIME_LIMIT: Duration = Duration::from_secs(5);

/// Limit on files in trees of a mix of sizes; a tree like a dataset has as many files as the dataset.
const TREE_MAX: usize = 1 << 20;

pub(super) const FILES_PER_FOLDER: usize = 1000;

/// Each file is read in one request into one buffer.
const FILE_MAX: u64 = 1 << 30;

/// Fixed: all probes use the same offsets, order and content, so their results are comparable.
pub(super) const SEED: u64 = 0;

#[derive(Debug, Clone)]
pub struct Like {
    data: PathBuf,
    mix: Mix,
    files: Vec<PathBuf>,
}

impl Like {
    /// Size mix of a dataset; also its files, if it consists of files or the mode is `files`.
    ///
    /// # Errors
    /// If there is no mix, because no sample could be read.
    pub fn new(data: &Path, mix: Option<&str>, files: Vec<PathBuf>) -> Result<Self, Error> {
        let named = |reason: String| Error::senseless(format!("{}: {reason}", data.escaped()));
        let mix = mix.ok_or_else(|| named("no readable sample to take sizes from".to_owned()))?;
        Ok(Self { data: data.to_owned(), mix: mix.parse().map_err(named)?, files })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tree {
    pub(super) sizes: Vec<u64>,
    /// Origin of the lengths, for display.
    pub(super) of: String,
}

impl Tree {
    /// Files as long as a dataset's; a random selection if `total` is less.
    fn like(like: &Like, total: u64) -> Result<Self, Error> {
        // Files that are listed but missing are skipped, as ingest skips them.
        let lens = like.files.iter().filter_map(|path| std::fs::metadata(path).ok()).map(|found| found.len());
        let mut sizes: Vec<u64> = lens.collect();
        let n_all = sizes.len() as u64;
        random(SEED, 0).shuffle(&mut sizes);
        let sizes = up_to(sizes.into_iter(), total);
        let of = format!("{} of {} as in {}", sizes.len(), count(n_all, "file"), like.data.escaped());
        Self { sizes, of }.checked(total)
    }

    fn of(mix: &Mix, total: u64) -> Result<Self, Error> {
        let mut random = random(SEED, 0);
        let sizes = up_to(std::iter::repeat_with(|| mix.draw(&mut random)).take(TREE_MAX), total);
        let n = count(sizes.len() as u64, "file");
        let of = mix.one_size().map_or_else(|| format!("{n}, {mix}"), |size| format!("{n} of {}", Bytes(size)));
        Self { sizes, of }.checked(total)
    }

    fn checked(self, total: u64) -> Result<Self, Error> {
        if self.largest() > FILE_MAX {
            let (largest, limit) = (Bytes(self.largest()), Bytes(FILE_MAX));
            let what =
                format!("--files supports files up to {limit}, but one has {largest}; use --sequential or --random");
            return Err(Error::senseless(what));
        }
        if self.n_bytes() == 0 {
            return Err(Error::senseless(format!("no file fits into {}; give a larger --size", Bytes(total))));
        }
        Ok(self)
    }

    pub(super) fn n_bytes(&self) -> u64 {
        self.sizes.iter().sum()
    }

    pub(super) fn one_size(&self) -> Option<u64> {
        let first = *self.sizes.first()?;
        self.sizes.iter().all(|size| *size == first).then_some(first)
    }

    pub(super) fn largest(&self) -> u64 {
        self.sizes.iter().copied().max().unwrap_or(0)
    }
}

/// Takes sizes in order until one exceeds what is left of `total`.
fn up_to(sizes: impl Iterator<Item = u64>, total: u64) -> Vec<u64> {
    let mut left = total;
    sizes.map_while(|size| left.checked_sub(size).map(|rest| (left = rest, size).1)).collect()
}

#[derive(Debug, Clone)]
pub struct Plan {
    /// Complete: the target and the imitated dataset determine what the user left open.
    pub settings: ProbeSettings,
    /// A folder on the storage to measure, or a file there, of which only reads are measured.
    pub target: PathBuf,
    /// Emulated in this process.
    pub tier: Option<Profile>,
    /// Runs per cell; the first is dropped.
    pub runs: usize,
    /// One cell per tree in the mode `files`.
    pub(super) trees: Vec<Tree>,
}

/// One cell of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Combination {
    pub(super) mode: ProbeMode,
    pub(super) engine: Engine,
    pub(super) depth: usize,
    pub(super) unit: Unit,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unit {
    Block(u64),
    Mix(Mix),
    /// Index of the tree.
    File(usize),
}

impl Unit {
    /// `None` for files, whose sizes are those of their tree.
    pub(super) fn mix(&self) -> Option<Mix> {
        match self {
            Self::Block(size) => Some(Mix::of_one(*size)),
            Self::Mix(mix) => Some(mix.clone()),
            Self::File(_) => None,
        }
    }
}

impl Plan {
    /// Determines what the settings leave open. The imitated dataset is scanned last, because a large one takes long:
    /// an unusable target is refused before.
    ///
    /// # Errors
    /// If settings contradict one another or the target, or the dataset cannot be imitated.
    pub fn new<E: From<Error>>(
        settings: ProbeSettings,
        target: PathBuf,
        like: Option<impl FnOnce() -> Result<Like, E>>,
        tier: Option<Profile>,
        runs: usize,
    ) -> Result<Self, E> {
        let mut plan = Self { settings, target, tier, runs, trees: Vec::new() };
        let len = std::fs::metadata(&plan.target).ok().filter(|found| found.is_file()).map(|found| Bytes(found.len()));
        plan.settings.size = plan.settings.size.or(len);
        let like = match like {
            Some(look) => {
                let system = FileSystem::of(&plan.target).context("inspecting", &plan.target);
                preflight::check_target(&plan, Target::of(&plan.target)?, &system?)?;
                Some(look()?)
            }
            None => None,
        };
        let settings = &mut plan.settings;
        if let Some(like) = &like {
            if settings.mode.is_empty() && len.is_none() && !like.files.is_empty() {
                settings.mode = Kind::ALL.to_vec();
            }
            settings.mix = Some(like.mix.clone());
        }
        if settings.does(Kind::Files) {
            let total = settings.file_size().0;
            plan.trees = match like {
                Some(like) => vec![Tree::like(&like, total)?],
                None => settings
                    .pieces()
                    .iter()
                    .filter_map(Unit::mix)
                    .map(|mix| Tree::of(&mix, total))
                    .collect::<Result<_, _>>()?,
            };
        }
        Ok(plan)
    }

    /// `advice` completes the error for a request that does not fit into the file.
    pub(super) fn check(&self, advice: &str) -> Result<(), Error> {
        if self.runs < 2 {
            return Err(Error::senseless("--runs: give at least 2; the first run is not kept"));
        }
        if self.tier.is_some() && self.settings.engine.contains(&Engine::Uring) {
            let what =
                "--tier is emulated in the reading threads, which io_uring bypasses; use --engine sync or direct";
            return Err(Error::senseless(what));
        }
        let largest = self.largest_request();
        if self.usable_size() < largest.next_multiple_of(GRAIN) {
            let (size, largest) = (self.settings.file_size(), Bytes(largest));
            return Err(Error::senseless(format!(
                "a file of {size} is too small for a request of {largest}; {advice}"
            )));
        }
        Ok(())
    }

    fn does(&self, kind: Kind) -> bool {
        self.settings.does(kind)
    }

    /// The largest request to the file; 0 if there is no file.
    fn largest_request(&self) -> u64 {
        let of_blocks = self.settings.blocks().iter().map(|block| block.0).filter(|_| self.does(Kind::Sequential));
        let pieces = self.settings.pieces().into_iter().filter(|_| self.does(Kind::Random));
        of_blocks.chain(pieces.filter_map(|piece| Some(piece.mix()?.largest()))).max().unwrap_or(0)
    }

    /// Direct I/O needs whole pages.
    pub(super) fn usable_size(&self) -> u64 {
        let size = self.settings.file_size().0;
        size - size % GRAIN
    }

    /// For the combination that needs most.
    pub(super) fn buffer_bytes(&self) -> u64 {
        let of_files = self.trees.iter().map(Tree::largest).max().unwrap_or(0);
        let largest = self.largest_request().max(of_files) + GRAIN;
        let depth = self.settings.depth.iter().copied().max().unwrap_or(1) as u64;
        largest.next_multiple_of(GRAIN).saturating_mul(depth)
    }

    pub(super) fn space_bytes(&self) -> u64 {
        let file = if self.settings.has_file() { self.usable_size() } else { 0 };
        let slack = |tree: &Tree| tree.sizes.iter().map(|size| size.next_multiple_of(GRAIN)).sum::<u64>();
        file + self.trees.iter().map(slack).sum::<u64>()
    }

    /// Its own folder, the two files in it, and the trees.
    pub(super) fn n_files(&self) -> u64 {
        let of = |tree: &Tree| (tree.sizes.len() + tree.sizes.len().div_ceil(FILES_PER_FOLDER) + 1) as u64;
        3 + self.trees.iter().map(of).sum::<u64>()
    }

    /// Untimed writes: a file that is only read, and the trees.
    pub(super) fn prepared_bytes(&self) -> u64 {
        let file = if self.is_laid_out() { self.usable_size() } else { 0 };
        file + self.trees.iter().map(Tree::n_bytes).sum::<u64>()
    }

    /// Whether no cell writes the file, so it must be written untimed before the first read.
    pub(super) fn is_laid_out(&self) -> bool {
        self.does(Kind::Random) && !self.does(Kind::Sequential)
    }

    /// In the order of a round; each write comes right before the read of the same file.
    pub(super) fn combinations(&self, engines: &[Engine], may_write: bool) -> Vec<Combination> {
        let mut cells = Vec::new();
        let mut each = |units: &[Unit], modes: &[ProbeMode]| {
            for engine in engines {
                for unit in units {
                    for depth in &self.settings.depth {
                        let of = |mode: &ProbeMode| Combination {
                            mode: *mode,
                            engine: *engine,
                            depth: *depth,
                            unit: unit.clone(),
                        };
                        cells.extend(modes.iter().map(of));
                    }
                }
            }
        };
        if self.does(Kind::Sequential) {
            let both = [ProbeMode::SequentialWrite, ProbeMode::SequentialRead];
            let blocks: Vec<Unit> = self.settings.blocks().iter().map(|block| Unit::Block(block.0)).collect();
            each(&blocks, if may_write { &both } else { &both[1..] });
        }
        if self.does(Kind::Random) {
            each(&self.settings.pieces(), &[ProbeMode::RandomRead]);
        }
        each(&(0..self.trees.len()).map(Unit::File).collect::<Vec<_>>(), &[ProbeMode::Files]);
        if self.tier.is_some() {
            // The emulated device serializes writes: a greater depth would only repeat the cell.
            let writes = cells.iter_mut().filter(|cell| cell.mode == ProbeMode::SequentialWrite);
            writes.for_each(|cell| cell.depth = 1);
            let mut seen = Vec::new();
            cells.retain(|cell| !seen.contains(cell) && (seen.push(cell.clone()), true).1);
        }
        cells
    }
}

#[cfg(test)]
mod tests;
