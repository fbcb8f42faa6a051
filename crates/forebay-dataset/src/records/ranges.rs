//! Division of work: files are assigned to ranks, and big files are split into ranges for all threads.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use forebay_workload::{Dataset, Part};

use super::format::{DataFormat, Piece};
use super::noise::Noise;
use crate::{Error, Result};

/// Which files are cut, and into what.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cut {
    /// Files of at least this size are made range by range, if their format allows it.
    pub(crate) from: u64,
    /// Bytes per range, rounded to the format's grain.
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
    form: &'a dyn DataFormat,
    rank: u64,
    ranks: u64,
    cut: Cut,
    n_files: u64,
    ends: Ends,
}

/// Where the ranges of each file end, counted over all files.
enum Ends {
    /// All files of a part are equal: number of training files, ranges per training file, ranges per other file.
    Alike { n_train: u64, per_train: u64, per_eval: u64 },
    /// Ranges of all files up to the end of each group of [`GROUP`] files.
    Counted(Vec<u64>),
}

/// Files of different sizes whose ranges are counted together: a count for each of a billion files would take 8 GB.
const GROUP: u64 = 32;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) file: u64,
    pub(crate) range: Range<u64>,
    /// Number of ranges of this file.
    pub(crate) n_ranges: u64,
}

impl<'a> Ranges<'a> {
    /// If files are equal, this takes constant time.
    ///
    /// # Errors
    /// [`Error::Cancelled`] when `cancel` is set before all files of different sizes are counted.
    pub(crate) fn new(
        dataset: &'a Dataset,
        form: &'a dyn DataFormat,
        (rank, ranks): (u64, u64),
        cut: Cut,
        cancel: &AtomicBool,
    ) -> Result<Self> {
        let of_rank = |n: u64| n.saturating_sub(rank).div_ceil(ranks);
        let n_train = of_rank(dataset.n_files(Part::Train));
        let n_files = of_rank(dataset.n_files(Part::Train) + dataset.n_files(Part::Eval));
        let ends = Ends::Alike { n_train, per_train: 1, per_eval: 1 };
        let mut ranges = Self { dataset, form, rank, ranks, cut, n_files, ends };
        ranges.ends = if is_alike(dataset) {
            let of = |file: u64| if file < n_files { ranges.n_ranges(&ranges.piece(file)) } else { 1 };
            Ends::Alike { n_train, per_train: of(0), per_eval: of(n_train) }
        } else {
            Ends::Counted(ranges.count(cancel)?)
        };
        Ok(ranges)
    }

    fn count(&self, cancel: &AtomicBool) -> Result<Vec<u64>> {
        let (mut ends, mut end) = (Vec::new(), 0);
        for first in (0..self.n_files).step_by(GROUP as usize) {
            if cancel.load(Ordering::Relaxed) {
                return Err(Error::Cancelled);
            }
            let files = first..(first + GROUP).min(self.n_files);
            end += files.map(|file| self.n_ranges(&self.piece(file))).sum::<u64>();
            ends.push(end);
        }
        Ok(ends)
    }

    pub(crate) fn n_files(&self) -> u64 {
        self.n_files
    }

    /// Training files of this rank; they come first.
    pub(crate) fn n_train(&self) -> u64 {
        self.dataset.n_files(Part::Train).saturating_sub(self.rank).div_ceil(self.ranks)
    }

    pub(crate) fn len(&self) -> u64 {
        match &self.ends {
            Ends::Alike { n_train, per_train, per_eval } => n_train * per_train + (self.n_files - n_train) * per_eval,
            Ends::Counted(ends) => ends.last().copied().unwrap_or(0),
        }
    }

    pub(crate) fn piece(&self, file: u64) -> Piece {
        piece(self.dataset, self.rank + file * self.ranks)
    }

    /// Range number `at` of all of them.
    pub(crate) fn item(&self, at: u64) -> (Piece, Item) {
        let (file, within) = self.place(at);
        let piece = self.piece(file);
        let n_ranges = self.n_ranges(&piece);
        let (len, step) = (self.form.room(&piece), self.step(&piece));
        let range = if n_ranges == 1 { 0..len } else { within * step..((within + 1) * step).min(len) };
        (piece, Item { file, range, n_ranges })
    }

    /// The file of a range, and the range's number in the file.
    fn place(&self, at: u64) -> (u64, u64) {
        match &self.ends {
            Ends::Alike { n_train, per_train, per_eval } => match at.checked_sub(n_train * per_train) {
                None => (at / per_train, at % per_train),
                Some(rest) => (n_train + rest / per_eval, rest % per_eval),
            },
            Ends::Counted(ends) => {
                let group = ends.partition_point(|&end| end <= at);
                let mut within = at - group.checked_sub(1).map_or(0, |before| ends[before]);
                let mut file = group as u64 * GROUP;
                loop {
                    let n_ranges = self.n_ranges(&self.piece(file));
                    if within < n_ranges {
                        return (file, within);
                    }
                    (file, within) = (file + 1, within - n_ranges);
                }
            }
        }
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

/// Whether all files of a part have the same length.
pub(crate) fn is_alike(dataset: &Dataset) -> bool {
    !dataset.sizes_vary() && dataset.sides.is_none()
}

/// File `number` of all parts, training files first.
pub(crate) fn piece(dataset: &Dataset, number: u64) -> Piece {
    let n_train = dataset.n_files(Part::Train);
    let (part, i) = if number < n_train { (Part::Train, number) } else { (Part::Eval, number - n_train) };
    let (path, shape) = (dataset.path_of(part, i), dataset.shape_of(part, i));
    Piece { path, part, number, shape, noise: Noise::new(dataset, part, i) }
}

#[cfg(test)]
mod tests {
    use forebay_workload::Format;

    use super::super::format;
    use super::*;

    static NEVER: AtomicBool = AtomicBool::new(false);

    fn dataset(stdev: f64) -> Dataset {
        Dataset {
            format: Format::Npy,
            record_length_bytes: 30_000.0,
            record_length_bytes_stdev: stdev,
            n_files_train: 101,
            n_files_eval: 40,
            ..Dataset::default()
        }
    }

    #[test]
    fn every_byte_of_every_file_is_in_one_range_whether_files_are_alike_or_not() {
        for (stdev, cut) in [(0.0, 7_000), (0.0, 1 << 20), (9_000.0, 7_000)] {
            let dataset = dataset(stdev);
            let form = format::made(&dataset).unwrap();
            for ranks in [(0, 1), (1, 3), (2, 3), (150, 151)] {
                let cut = Cut { from: cut, range: 7_000 };
                let ranges = Ranges::new(&dataset, &*form, ranks, cut, &NEVER).unwrap();
                let mut expected = (0, 0);
                for at in 0..ranges.len() {
                    let (piece, item) = ranges.item(at);
                    assert_eq!((item.file, item.range.start), expected, "{stdev} {ranks:?}");
                    let is_last = item.range.end == form.room(&piece);
                    expected = if is_last { (item.file + 1, 0) } else { (item.file, item.range.end) };
                }
                assert_eq!(expected, (ranges.n_files(), 0), "{stdev} {ranks:?}");
            }
        }
    }

    #[test]
    fn a_billion_files_that_are_alike_need_no_list_of_them() {
        let dataset = Dataset { n_files_train: 1_000_000_000, n_files_eval: 7, ..dataset(0.0) };
        let form = format::made(&dataset).unwrap();
        let ranges = Ranges::new(&dataset, &*form, (0, 1), Cut::default(), &NEVER).unwrap();
        assert_eq!(ranges.len(), 1_000_000_007);
        let (piece, item) = ranges.item(1_000_000_003);
        assert_eq!((piece.path.as_str(), item.file), ("valid/img_3_of_7.npy", 1_000_000_003));
    }

    #[test]
    fn counting_files_of_different_sizes_can_be_stopped() {
        let dataset = Dataset { n_files_train: 1_000_000_000_000, ..dataset(9_000.0) };
        let form = format::made(&dataset).unwrap();
        let stopped = Ranges::new(&dataset, &*form, (0, 1), Cut::default(), &AtomicBool::new(true));
        assert!(matches!(stopped.err(), Some(Error::Cancelled)));
    }
}
