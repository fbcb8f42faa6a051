//! What a probe is going to do.

use std::path::{Path, PathBuf};
use std::time::Duration;

use forebay_measure::random;
use forebay_record::{Engine, ProbeMode};
use forebay_storage::Profile;
use forebay_units::{Bytes, PathText, count};

use super::error::Error;
use super::mix::Mix;
use super::requests::GRAIN;

/// A random or files run ends when everything was read once, or after this long: slow devices would need hours.
pub const TIME_LIMIT: Duration = Duration::from_secs(5);

/// The most files of a tree that is not like a dataset.
const TREE_MAX: usize = 1 << 20;

/// Files per folder of a tree.
pub(super) const FILES_PER_FOLDER: usize = 1000;

/// The longest file of a tree: each is read at once.
const FILE_MAX: u64 = 1 << 30;

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Modes {
    /// One file written and read from end to end.
    pub sequential: bool,
    /// Reads at random places of that file.
    pub random: bool,
    /// Open, read and close of many files.
    pub files: bool,
}

/// The sizes of random requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sizes {
    /// Each of these, one cell a size.
    Fixed(Vec<u64>),
    /// A mix.
    Mix(Mix),
}

impl Sizes {
    /// The trees of files of these sizes, `total` bytes of each.
    ///
    /// # Errors
    /// When not a single file fits.
    pub fn trees(&self, total: u64, seed: u64) -> Result<Vec<Tree>, Error> {
        match self {
            Self::Mix(mix) => Ok(vec![Tree::of_mix(mix, total, seed)?]),
            Self::Fixed(sizes) => sizes.iter().map(|size| Tree::of_one_size(*size, total)).collect(),
        }
    }
}

/// The files of the mode `files`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// The length of each file.
    pub sizes: Vec<u64>,
    /// Where the lengths come from, in words.
    pub of: String,
}

impl Tree {
    /// Files as long as those of the dataset `data`; a random choice of them if `total` is less.
    ///
    /// # Errors
    /// When not a single one fits.
    pub fn like(data: &Path, files: &[PathBuf], total: u64, seed: u64) -> Result<Self, Error> {
        // A file that is listed and not there is left out, as ingest leaves it out.
        let lens = files.iter().filter_map(|path| std::fs::metadata(path).ok()).map(|found| found.len());
        let mut sizes: Vec<u64> = lens.collect();
        let n_all = sizes.len() as u64;
        random(seed, 0).shuffle(&mut sizes);
        let sizes = up_to(sizes.into_iter(), total);
        let of = format!("{} of {} as in {}", sizes.len(), count(n_all, "file"), data.escaped());
        Self { sizes, of }.checked(total)
    }

    /// Files of a mix of sizes, `total` bytes of them.
    ///
    /// # Errors
    /// When not a single one fits.
    pub fn of_mix(mix: &Mix, total: u64, seed: u64) -> Result<Self, Error> {
        let mut random = random(seed, 0);
        let sizes = up_to(std::iter::repeat_with(|| mix.draw(&mut random)).take(TREE_MAX), total);
        Self { of: format!("{}, {mix}", count(sizes.len() as u64, "file")), sizes }.checked(total)
    }

    /// Files of one size, `total` bytes of them.
    ///
    /// # Errors
    /// When not a single one fits.
    pub fn of_one_size(size: u64, total: u64) -> Result<Self, Error> {
        let sizes = up_to(std::iter::repeat_n(size, TREE_MAX), total);
        Self { of: format!("{} of {}", count(sizes.len() as u64, "file"), Bytes(size)), sizes }.checked(total)
    }

    fn checked(self, total: u64) -> Result<Self, Error> {
        if self.largest() > FILE_MAX {
            let (largest, limit) = (Bytes(self.largest()), Bytes(FILE_MAX));
            let what =
                format!("--files is for files up to {limit}, and one has {largest}; use --sequential or --random");
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

    /// The length that all files have, if it is the same.
    pub(super) fn one_size(&self) -> Option<u64> {
        let first = *self.sizes.first()?;
        self.sizes.iter().all(|size| *size == first).then_some(first)
    }

    pub(super) fn largest(&self) -> u64 {
        self.sizes.iter().copied().max().unwrap_or(0)
    }
}

/// As many of the sizes as fit, those that do not fit passed over only at the end.
fn up_to(sizes: impl Iterator<Item = u64>, total: u64) -> Vec<u64> {
    let mut left = total;
    sizes.map_while(|size| left.checked_sub(size).map(|rest| (left = rest, size).1)).collect()
}

/// A probe.
#[derive(Debug, Clone)]
pub struct Plan {
    /// A folder on the storage to be measured, or a file there, whose reads alone are measured.
    pub target: PathBuf,
    /// What is measured.
    pub modes: Modes,
    /// Bytes of the file that is written; of a file that is there, how many of its bytes are read.
    pub size: u64,
    /// Bytes a request of the sequential mode, swept.
    pub blocks: Vec<u64>,
    /// The sizes of the random mode's requests.
    pub sizes: Sizes,
    /// The files of the mode `files`, one cell a tree.
    pub trees: Vec<Tree>,
    /// Requests in flight, swept.
    pub depths: Vec<usize>,
    /// How requests are made, swept; `None` for direct I/O, or buffered where there is none.
    pub engines: Option<Vec<Engine>>,
    /// Runs of each cell, of which the first is not kept.
    pub runs: usize,
    /// The device to emulate.
    pub tier: Option<Profile>,
    /// Seed of places, order and content.
    pub seed: u64,
}

/// One combination of settings: a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Combination {
    pub(super) mode: ProbeMode,
    pub(super) engine: Engine,
    pub(super) depth: usize,
    pub(super) unit: Unit,
}

/// What one request is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unit {
    Block(u64),
    Mix(Mix),
    /// A file of the tree of this number.
    File(usize),
}

impl Plan {
    /// Whether it makes sense at all; `advice` is what helps where a request does not fit into the file.
    pub(super) fn check(&self, advice: &str) -> Result<(), Error> {
        if self.runs < 2 {
            return Err(Error::senseless("--runs: give at least 2; the first is not kept"));
        }
        if self.tier.is_some() && self.engines.as_ref().is_some_and(|engines| engines.contains(&Engine::Uring)) {
            let what = "--tier is emulated for threads, and io_uring would go past it; use --engine sync or direct";
            return Err(Error::senseless(what));
        }
        let blocks = self.request_sizes();
        if let Some(block) = blocks.iter().find(|block| **block == 0 || *block % 512 != 0) {
            return Err(Error::senseless(format!(
                "--block: {block} is not a multiple of 512 bytes; use a binary unit, such as 128KiB"
            )));
        }
        let largest = blocks.into_iter().max().unwrap_or(0);
        if self.usable_size() < largest.next_multiple_of(GRAIN) {
            let (size, largest) = (Bytes(self.size), Bytes(largest));
            return Err(Error::senseless(format!("a file of {size} has no room for a request of {largest}; {advice}")));
        }
        Ok(())
    }

    /// Sizes of the requests on the one file.
    fn request_sizes(&self) -> Vec<u64> {
        let of_blocks = self.blocks.iter().copied().filter(|_| self.modes.sequential);
        let of_random = match &self.sizes {
            Sizes::Fixed(sizes) => sizes.clone(),
            Sizes::Mix(mix) => mix.sizes().collect(),
        };
        of_blocks.chain(of_random.into_iter().filter(|_| self.modes.random)).collect()
    }

    /// The file's length in whole pages, as direct I/O needs it.
    pub(super) fn usable_size(&self) -> u64 {
        self.size - self.size % GRAIN
    }

    /// Bytes that the buffers of the largest combination take.
    pub(super) fn buffer_bytes(&self) -> u64 {
        let of_files = self.trees.iter().map(Tree::largest).filter(|_| self.modes.files);
        let largest = self.request_sizes().into_iter().chain(of_files).max().unwrap_or(0) + GRAIN;
        let depth = self.depths.iter().copied().max().unwrap_or(1) as u64;
        largest.next_multiple_of(GRAIN).saturating_mul(depth)
    }

    /// Bytes on the disk while it runs.
    pub(super) fn space_bytes(&self) -> u64 {
        let file = if self.modes.sequential || self.modes.random { self.usable_size() } else { 0 };
        let slack = |tree: &Tree| tree.sizes.iter().map(|size| size.next_multiple_of(GRAIN)).sum::<u64>();
        file + if self.modes.files { self.trees.iter().map(slack).sum() } else { 0 }
    }

    /// Files and folders that it makes: its own folder, the two files in it, and the trees.
    pub(super) fn n_files(&self) -> u64 {
        let of = |tree: &Tree| (tree.sizes.len() + tree.sizes.len().div_ceil(FILES_PER_FOLDER) + 1) as u64;
        3 + if self.modes.files { self.trees.iter().map(of).sum() } else { 0 }
    }

    /// Bytes written off the clock: a file that is only read, and the trees.
    pub(super) fn prepared_bytes(&self) -> u64 {
        let file = if self.modes.random && !self.modes.sequential { self.usable_size() } else { 0 };
        file + if self.modes.files { self.trees.iter().map(Tree::n_bytes).sum() } else { 0 }
    }

    /// The cells, in the order of a round; a write comes right before the read of what it wrote.
    pub(super) fn combinations(&self, engines: &[Engine], may_write: bool) -> Vec<Combination> {
        let mut cells = Vec::new();
        let mut each = |units: &[Unit], modes: &[ProbeMode]| {
            for engine in engines {
                for unit in units {
                    for depth in &self.depths {
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
        if self.modes.sequential {
            let both = [ProbeMode::SequentialWrite, ProbeMode::SequentialRead];
            let blocks: Vec<Unit> = self.blocks.iter().map(|block| Unit::Block(*block)).collect();
            each(&blocks, if may_write { &both } else { &both[1..] });
        }
        if self.modes.random {
            let units = match &self.sizes {
                Sizes::Fixed(sizes) => sizes.iter().map(|size| Unit::Block(*size)).collect(),
                Sizes::Mix(mix) => vec![Unit::Mix(mix.clone())],
            };
            each(&units, &[ProbeMode::RandomRead]);
        }
        if self.modes.files {
            each(&(0..self.trees.len()).map(Unit::File).collect::<Vec<_>>(), &[ProbeMode::Files]);
        }
        if self.tier.is_some() {
            // The emulated device takes one write after the other, so that more in flight would only repeat the cell.
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
