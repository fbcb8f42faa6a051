//! The files of a dataset and the sizes of their samples, as a function of the workload alone.
//!
//! Names are exactly DLIO's, so its data and ours are interchangeable. Sizes follow its rule too: a sample is a square with
//! sides of `int(sqrt(length))`, and if lengths vary, each side is drawn separately with a standard deviation of
//! `stdev / 2 / sqrt(length)`. The product of two independent sides varies less: as in DLIO, the resulting deviation is
//! about 0.71 of the requested one.
//!
//! The drawn values differ from DLIO's, which depend on the number of files drawn before. Ours depend only on the seed and
//! the file's number, and use integers and floating-point operations that every machine rounds the same.

use forebay_units::random::{GOLDEN, mix};

use crate::spec::{Dataset, Format};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    Train,
    Eval,
}

impl Part {
    pub fn folder(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Eval => "valid",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileShape {
    /// The shape of one of its samples: two sides of a square that vary, `record_dims`, or the bytes of a row of columns.
    pub dims: Vec<u64>,
    pub n_samples: u64,
    pub sample_bytes: u64,
}

impl Dataset {
    pub fn n_files(&self, part: Part) -> u64 {
        match part {
            Part::Train => self.n_files_train,
            Part::Eval => self.n_files_eval,
        }
    }

    /// Number of folders of a part; 0 for none.
    pub fn n_subfolders(&self, part: Part) -> u64 {
        let n = match part {
            Part::Train => self.n_subfolders_train,
            Part::Eval => self.n_subfolders_eval,
        };
        if n > 1 { n } else { 0 }
    }

    /// The path of file `i` below the data folder: `train/1/img_003_of_168.npz`.
    pub fn path_of(&self, part: Part, i: u64) -> String {
        let n = self.n_files(part);
        let name = format!("{}_{}_of_{n}.{}", self.file_prefix, padded(i, n), self.format.name());
        match self.n_subfolders(part) {
            0 => format!("{}/{name}", part.folder()),
            folders => format!("{}/{}/{name}", part.folder(), padded(i % folders, folders)),
        }
    }

    /// The shape of file `i`: drawn from the seed and `i` alone, so every rank and machine knows it.
    pub fn shape_of(&self, part: Part, i: u64) -> FileShape {
        let n_samples = self.n_samples_per_file;
        if self.has_columns() {
            let sample_bytes = self.row_bytes(false);
            return FileShape { dims: vec![sample_bytes], n_samples, sample_bytes };
        }
        let dims = if self.record_dims.is_empty() { self.square(part, i) } else { self.record_dims.clone() };
        let sample_bytes = dims.iter().product::<u64>() * self.element.bytes();
        FileShape { dims, n_samples, sample_bytes }
    }

    /// Bytes of the values of all samples of a part, before containers and compression.
    pub fn bytes(&self, part: Part) -> u64 {
        let of = |i| self.shape_of(part, i).sample_bytes;
        let n = self.n_files(part);
        let per_sample: u64 = if self.sizes_vary() { (0..n).map(of).sum() } else { n.saturating_mul(of(0)) };
        per_sample.saturating_mul(self.n_samples_per_file)
    }

    /// Mean bytes per sample that a reader requests: the columns that are read, or the record.
    pub fn mean_read_bytes(&self) -> f64 {
        if self.has_columns() {
            return self.row_bytes(true) as f64;
        }
        match self.record_dims.is_empty() {
            true => self.record_length_bytes * self.element.bytes() as f64,
            false => (self.record_dims.iter().product::<u64>() * self.element.bytes()) as f64,
        }
    }

    pub fn sizes_vary(&self) -> bool {
        self.record_length_bytes_stdev > 0.0 && self.record_dims.is_empty() && !self.has_columns()
    }

    fn has_columns(&self) -> bool {
        self.format == Format::Parquet && !self.parquet.columns.is_empty()
    }

    fn row_bytes(&self, read_only: bool) -> u64 {
        let columns = self.parquet.columns.iter().filter(|column| column.is_read || !read_only);
        columns.map(|column| column.element.bytes() * column.width * column.count).sum()
    }

    fn sides_of(&self, part: Part, i: u64) -> Option<[u64; 2]> {
        let before = if part == Part::Eval { self.n_files_train } else { 0 };
        self.sides.as_ref()?.get(usize::try_from(before + i).ok()?).copied()
    }

    fn square(&self, part: Part, i: u64) -> Vec<u64> {
        let side = self.record_length_bytes.sqrt();
        if let Some(sides) = self.sides_of(part, i) {
            return sides.to_vec();
        }
        if !self.sizes_vary() {
            return vec![(side as u64).max(1); 2];
        }
        // DLIO's normal distribution has the integer side as its mean; its deviation uses the exact root.
        let (mean, stdev) = (side.trunc(), self.record_length_bytes_stdev / 2.0 / side);
        let draw = |which| ((mean + stdev * bell(self.seed, part, i, which)) as u64).max(1);
        vec![draw(0), draw(1)]
    }
}

/// `i` padded with zeros to the width of `n`.
fn padded(i: u64, n: u64) -> String {
    format!("{i:0width$}", width = n.to_string().len())
}

/// An approximately normal draw with mean 0 and deviation 1: the sum of twelve uniform draws minus its mean.
///
/// The sum is of integers and its scaling is exact, so file sizes do not depend on a machine's logarithm or cosine. It
/// reaches 6 deviations on each side.
fn bell(seed: u64, part: Part, i: u64, which: u64) -> f64 {
    let key = mix(seed ^ mix(part as u64 + 1)) ^ mix(i.wrapping_mul(2).wrapping_add(which).wrapping_add(0x5EED));
    let halves = (0..6u64).map(|k| mix(key.wrapping_add(k.wrapping_mul(GOLDEN))));
    let sum: u64 = halves.map(|word| (word >> 32) + (word & 0xFFFF_FFFF)).sum();
    (sum as f64 - 6.0 * 4_294_967_295.0) / 4_294_967_296.0
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::spec::{Element, Parquet, ParquetColumn};

    pub(crate) fn unet3d() -> Dataset {
        Dataset {
            record_length_bytes: 146_600_628.0,
            record_length_bytes_stdev: 68_341_808.0,
            n_files_train: 168,
            format: Format::Npz,
            ..Dataset::default()
        }
    }

    #[test]
    fn names_are_dlios() {
        let flat = unet3d();
        assert_eq!(flat.path_of(Part::Train, 3), "train/img_003_of_168.npz");
        let dealt = Dataset { n_subfolders_train: 12, n_files_eval: 8, n_subfolders_eval: 1, ..unet3d() };
        assert_eq!(dealt.path_of(Part::Train, 15), "train/03/img_015_of_168.npz");
        assert_eq!(dealt.path_of(Part::Eval, 7), "valid/img_7_of_8.npz", "one subfolder is none");
    }

    #[test]
    fn a_sample_without_deviation_is_the_square_of_the_whole_root() {
        let shape = Dataset { n_samples_per_file: 3, ..Dataset::default() }.shape_of(Part::Train, 5);
        assert_eq!(shape, FileShape { dims: vec![256, 256], n_samples: 3, sample_bytes: 65_536 });
        let odd = Dataset { record_length_bytes: 114_660.07, element: Element::F32, ..Dataset::default() };
        assert_eq!(odd.shape_of(Part::Train, 0).dims, [338, 338]);
        assert_eq!(odd.shape_of(Part::Train, 0).sample_bytes, 338 * 338 * 4);
    }

    #[test]
    fn sizes_are_the_same_wherever_they_are_drawn() {
        let first: Vec<_> = (0..3).map(|i| unet3d().shape_of(Part::Train, i).dims).collect();
        assert_eq!(first, PINNED, "these are in files that exist");
        assert_ne!(unet3d().shape_of(Part::Eval, 0).dims, first[0]);
        assert_ne!(Dataset { seed: 11, ..unet3d() }.shape_of(Part::Train, 0).dims, first[0]);
    }

    const PINNED: [[u64; 2]; 3] = [[11953, 10405], [17466, 21446], [14544, 12714]];

    #[test]
    fn the_mean_is_met_and_the_deviation_is_0_71_of_the_one_asked_for() {
        let many = Dataset { n_files_train: 20_000, ..unet3d() };
        let bytes: Vec<f64> = (0..20_000).map(|i| many.shape_of(Part::Train, i).sample_bytes as f64).collect();
        let mean = bytes.iter().sum::<f64>() / bytes.len() as f64;
        let stdev = (bytes.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / bytes.len() as f64).sqrt();
        assert!((mean / 146_600_628.0 - 1.0).abs() < 0.01, "{mean}");
        assert!((stdev / 68_341_808.0 - 0.71).abs() < 0.02, "{stdev}");
        assert_eq!(many.bytes(Part::Train) as f64, bytes.iter().sum::<f64>());
    }

    #[test]
    fn a_deviation_beyond_the_mean_leaves_a_side_of_one() {
        let wild = Dataset { record_length_bytes: 100.0, record_length_bytes_stdev: 10_000.0, ..Dataset::default() };
        let sides: Vec<u64> = (0..200).flat_map(|i| wild.shape_of(Part::Train, i).dims).collect();
        assert!(sides.contains(&1) && sides.iter().all(|&side| side >= 1));
    }

    #[test]
    fn dims_and_columns_take_the_squares_place() {
        let volume = Dataset { record_dims: vec![2, 3, 5], element: Element::F64, ..Dataset::default() };
        assert_eq!(volume.shape_of(Part::Train, 1).sample_bytes, 240);
        let column =
            |element, width, count, is_read| ParquetColumn { name: "x".to_owned(), element, width, count, is_read };
        let columns = vec![column(Element::F32, 3, 2, true), column(Element::I8, 1, 5, false)];
        let parquet = Parquet { columns, row_group_rows: 0 };
        let table = Dataset { format: Format::Parquet, parquet, ..Dataset::default() };
        assert_eq!(table.shape_of(Part::Train, 0).sample_bytes, 29);
        assert_eq!(table.mean_read_bytes(), 24.0);
    }
}
