//! The data: how many samples there are, and how long.

use forebay_units::Element;

use super::format::{Compression, Format};

/// The data.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    /// Bytes of a sample; made as a square of `int(sqrt(bytes))` to a side.
    pub record_length_bytes: f64,
    /// How much that varies.
    pub record_length_bytes_stdev: f64,
    /// Bytes of the tensor that is handed on; 0: as it was read.
    pub record_length_bytes_resize: u64,
    /// Files to train on.
    pub n_files_train: u64,
    /// Files to evaluate on.
    pub n_files_eval: u64,
    /// Samples in each.
    pub n_samples_per_file: u64,
    /// Where they are: `train` and `valid` lie in it.
    pub data_folder: String,
    /// Folders that the files are dealt out to; 0 and 1: none.
    pub n_subfolders_train: u64,
    /// The same for evaluation.
    pub n_subfolders_eval: u64,
    /// What the names of files begin with.
    pub file_prefix: String,
    /// What samples lie in.
    pub format: Format,
    /// How files are compressed.
    pub compression: Compression,
    /// How hard.
    pub compression_level: u32,
    /// HDF5 in chunks, each of about so many bytes; `None`: contiguous, or as [`Hdf5::chunk_dims`] say.
    pub chunk_bytes: Option<u64>,
    /// Whether the data stays when the run is over.
    pub keep_files: bool,
    /// A sample's shape, in place of the square.
    pub record_dims: Vec<u64>,
    /// What a sample is made of.
    pub element: Element,
    /// HDF5's own.
    pub hdf5: Hdf5,
    /// Parquet's own.
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

/// HDF5's own.
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

/// Parquet's own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Parquet {
    /// The columns of a row; empty: one of a sample's bytes.
    pub columns: Vec<ParquetColumn>,
    /// Rows of a group; 0: all of a file's.
    pub row_group_rows: u64,
}

/// Columns of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParquetColumn {
    /// The name; of several, each gets its number behind it.
    pub name: String,
    /// The type of its values.
    pub element: Element,
    /// Values in a row.
    pub width: u64,
    /// How many columns like this there are.
    pub count: u64,
    /// Whether it is read.
    pub is_read: bool,
}
