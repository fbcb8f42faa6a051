//! The data: number and length of samples.

use forebay_units::Element;

use super::format::{Compression, Format};

#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    /// Bytes per sample; made as a square with sides of `int(sqrt(bytes))`.
    pub record_length_bytes: f64,
    /// Standard deviation of the length; all samples of a file have the same size.
    pub record_length_bytes_stdev: f64,
    /// Bytes of the output tensor; 0 for the size as read.
    pub record_length_bytes_resize: u64,
    pub n_files_train: u64,
    pub n_files_eval: u64,
    pub n_samples_per_file: u64,
    /// Holds the folders `train` and `valid`; relative to [`Workload::storage_root`](super::Workload::storage_root).
    pub data_folder: String,
    /// Number of subfolders for the files; 0 and 1 mean none.
    pub n_subfolders_train: u64,
    pub n_subfolders_eval: u64,
    /// Prefix of file names.
    pub file_prefix: String,
    pub format: Format,
    pub compression: Compression,
    /// 0 to 9, for gzip and zip; other compressions have no levels.
    pub compression_level: u32,
    /// Approximate bytes per HDF5 chunk; `None` for contiguous data or [`Hdf5::chunk_dims`].
    pub chunk_bytes: Option<u64>,
    /// Whether the data stays after the run.
    pub keep_files: bool,
    /// A sample's shape, instead of the square.
    pub record_dims: Vec<u64>,
    pub element: Element,
    pub hdf5: Hdf5,
    pub parquet: Parquet,
    /// The sides of every file's samples, training files first, if not drawn. No key sets it; a study that reproduces a
    /// DLIO run does.
    pub sides: Option<Vec<[u64; 2]>>,
    /// Seed of the data's bytes and sizes. Our own key: DLIO's contents cannot be reproduced.
    pub seed: u64,
}

impl Default for Dataset {
    fn default() -> Self {
        Self {
            record_length_bytes: 65_536.0,
            record_length_bytes_stdev: 0.0,
            record_length_bytes_resize: 0,
            n_files_train: 8,
            n_files_eval: 0,
            n_samples_per_file: 1,
            data_folder: "./data/".to_owned(),
            n_subfolders_train: 0,
            n_subfolders_eval: 0,
            file_prefix: "img".to_owned(),
            format: Format::Tfrecord,
            compression: Compression::None,
            compression_level: 4,
            chunk_bytes: None,
            keep_files: true,
            record_dims: Vec::new(),
            element: Element::U8,
            hdf5: Hdf5::default(),
            parquet: Parquet::default(),
            sides: None,
            seed: 10,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hdf5 {
    /// The shape of a chunk; empty for contiguous data, unless [`Dataset::chunk_bytes`] is set.
    pub chunk_dims: Vec<u64>,
    /// Number of datasets per record.
    pub n_dsets_per_record: u64,
    /// Maximum shape of a dataset; empty if it cannot grow.
    pub max_shape: Vec<u64>,
}

impl Default for Hdf5 {
    fn default() -> Self {
        Self { chunk_dims: Vec::new(), n_dsets_per_record: 1, max_shape: Vec::new() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Parquet {
    /// The columns of a row; empty for one column of a sample's bytes.
    pub columns: Vec<ParquetColumn>,
    /// Rows per group; 0 for all rows of a file.
    pub row_group_rows: u64,
}

/// A group of columns that differ only in their number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParquetColumn {
    /// The name; with several columns, each gets its number appended.
    pub name: String,
    pub element: Element,
    /// Values per row; more than 1 makes a list.
    pub width: u64,
    /// Number of columns of this kind.
    pub count: u64,
    /// A column that is not read is still made, and skipped when reading.
    pub is_read: bool,
}
