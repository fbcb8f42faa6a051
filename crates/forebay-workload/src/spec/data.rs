//! The data: how many samples there are, and how long.

use forebay_units::Element;

use super::format::{Compression, Format};

#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    /// Bytes of a sample; made as a square of `int(sqrt(bytes))` to a side.
    pub record_length_bytes: f64,
    /// Standard deviation of the length; all samples of a file are of one size.
    pub record_length_bytes_stdev: f64,
    /// Bytes of the tensor that is handed on; 0: as it was read.
    pub record_length_bytes_resize: u64,
    pub n_files_train: u64,
    pub n_files_eval: u64,
    pub n_samples_per_file: u64,
    /// Holds the folders `train` and `valid`; relative to [`Workload::storage_root`](super::Workload::storage_root).
    pub data_folder: String,
    /// Folders that the files are dealt out to; 0 and 1: none.
    pub n_subfolders_train: u64,
    pub n_subfolders_eval: u64,
    /// What the names of files begin with.
    pub file_prefix: String,
    pub format: Format,
    pub compression: Compression,
    /// 0 to 9, for gzip and zip; the others have no levels.
    pub compression_level: u32,
    /// HDF5 in chunks, each of about so many bytes; `None`: contiguous, or as [`Hdf5::chunk_dims`] say.
    pub chunk_bytes: Option<u64>,
    /// Whether the data stays when the run is over.
    pub keep_files: bool,
    /// A sample's shape, in place of the square.
    pub record_dims: Vec<u64>,
    pub element: Element,
    pub hdf5: Hdf5,
    pub parquet: Parquet,
    /// The sides of every file's samples, those to train on first, where they are given and not drawn; no key sets it, a study
    /// that imitates a run of DLIO does.
    pub sides: Option<Vec<[u64; 2]>>,
    /// Seed of the data's bytes and sizes. Ours: DLIO's contents cannot be made again.
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
    /// The shape of a chunk; empty: contiguous, unless [`Dataset::chunk_bytes`] asks for chunks.
    pub chunk_dims: Vec<u64>,
    /// Datasets that a record is spread over.
    pub n_dsets_per_record: u64,
    /// How far a dataset may grow; empty: not at all.
    pub max_shape: Vec<u64>,
}

impl Default for Hdf5 {
    fn default() -> Self {
        Self { chunk_dims: Vec::new(), n_dsets_per_record: 1, max_shape: Vec::new() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Parquet {
    /// The columns of a row; empty: one of a sample's bytes.
    pub columns: Vec<ParquetColumn>,
    /// Rows of a group; 0: all of a file's.
    pub row_group_rows: u64,
}

/// A group of columns that differ in their numbers alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParquetColumn {
    /// The name; of several, each gets its number behind it.
    pub name: String,
    pub element: Element,
    /// Values per row; more than 1 makes a list.
    pub width: u64,
    /// How many columns like this there are.
    pub count: u64,
    /// A column that is not read is made all the same, and passed over when reading.
    pub is_read: bool,
}
