//! Who makes what: files dealt out to ranks, and the big ones cut into ranges so that all threads work on one.

use std::ops::Range;

use forebay_workload::{Dataset, Part};

use super::form::{Form, Piece};
use super::noise::Noise;

/// Which files are cut, and into what.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cut {
    /// Files from this on are made range by range, where their format allows it.
    pub(crate) from: u64,
    /// Bytes of a range, about.
    pub(crate) range: u64,
}

impl Default for Cut {
    fn default() -> Self {
        Self { from: 256 << 20, range: 64 << 20 }
    }
}

/// The files of one rank, and the ranges they are made in.
pub(crate) struct Ranges<'a> {
    dataset: &'a Dataset,
    form: &'a dyn Form,
    rank: u64,
    ranks: u64,
    cut: Cut,
    n_files: u64,
    /// Ranges of all files before this one and of itself.
    ends: Vec<u64>,
}

/// One range of one file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Item {
    /// Which of the rank's files.
    pub(crate) file: u64,
    pub(crate) range: Range<u64>,
    /// Of how many ranges of this file.
    pub(crate) n_ranges: u64,
}

impl<'a> Ranges<'a> {
    pub(crate) fn new(dataset: &'a Dataset, form: &'a dyn Form, (rank, ranks): (u64, u64), cut: Cut) -> Self {
        let total = dataset.n_files(Part::Train) + dataset.n_files(Part::Eval);
        let n_files = total.saturating_sub(rank).div_ceil(ranks);
        let mut ranges = Self { dataset, form, rank, ranks, cut, n_files, ends: Vec::new() };
        let mut end = 0;
        let ends = (0..n_files).map(|file| {
            end += ranges.n_ranges(&ranges.piece(file));
            end
        });
        ranges.ends = ends.collect();
        ranges
    }

    pub(crate) fn n_files(&self) -> u64 {
        self.n_files
    }

    /// Ranges of all files.
    pub(crate) fn len(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// The rank's file number `file`.
    pub(crate) fn piece(&self, file: u64) -> Piece {
        piece(self.dataset, self.rank + file * self.ranks)
    }

    /// Range number `at` of all of them.
    pub(crate) fn item(&self, at: u64) -> (Piece, Item) {
        let file = self.ends.partition_point(|&end| end <= at) as u64;
        let piece = self.piece(file);
        let n_ranges = self.n_ranges(&piece);
        let within = at + n_ranges - self.ends[file as usize];
        let (len, step) = (self.form.room(&piece), self.step(&piece));
        let range = if n_ranges == 1 { 0..len } else { within * step..((within + 1) * step).min(len) };
        (piece, Item { file, range, n_ranges })
    }

    fn n_ranges(&self, piece: &Piece) -> u64 {
        let len = self.form.room(piece);
        if len < self.cut.from || self.form.grain(piece).is_none() { 1 } else { len.div_ceil(self.step(piece)) }
    }

    /// Bytes of a range: a whole number of grains.
    fn step(&self, piece: &Piece) -> u64 {
        let grain = self.form.grain(piece).unwrap_or(1).max(1);
        (self.cut.range / grain).max(1) * grain
    }
}

/// File `number` of all parts: those to train on first.
pub(crate) fn piece(dataset: &Dataset, number: u64) -> Piece {
    let n_train = dataset.n_files(Part::Train);
    let (part, i) = if number < n_train { (Part::Train, number) } else { (Part::Eval, number - n_train) };
    let (path, shape) = (dataset.path_of(part, i), dataset.shape_of(part, i));
    Piece { path, part, number, shape, noise: Noise::new(dataset, part, i) }
}
