//! What a workload says, section by section, with DLIO's defaults.

use serde::{Deserialize, Serialize};

use crate::time::Time;

/// A whole workload.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Workload {
    /// The built-in's name, or the file's without its ending.
    pub name: String,
    /// Whose loader is imitated.
    pub framework: Framework,
    /// The model, as far as checkpoints know it.
    pub model: Model,
    /// What is done.
    pub workflow: Workflow,
    /// Where the data lies: prefixed to [`Dataset::data_folder`].
    pub storage_root: String,
    /// The data.
    pub dataset: Dataset,
    /// How it is read.
    pub reader: Reader,
    /// Training.
    pub train: Train,
    /// Evaluation.
    pub evaluation: Evaluation,
    /// Checkpoints.
    pub checkpoint: Checkpoint,
    /// Where results go, if the file says so.
    pub output_folder: Option<String>,
    /// What is left out of DLIO's figures, and what must be reached.
    pub limits: Limits,
}

/// Whose loader is imitated; it decides nothing here but is kept for the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Framework {
    #[default]
    Tensorflow,
    Pytorch,
}

/// The model, as far as checkpoints know it.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// Its name.
    pub name: String,
    /// `transformer`, or a label.
    pub kind: Option<String>,
    /// Bytes of the state that every saving rank writes when it is no transformer with layers.
    pub size_bytes: u64,
    /// Bytes of a weight.
    pub weight: Element,
    /// Bytes of a value of the optimiser.
    pub optimizer: Element,
    /// Lengths of the optimiser's groups, in values of one byte.
    pub optimization_groups: Vec<u64>,
    /// Layers of a transformer.
    pub n_layers: Option<u64>,
    /// Lengths of a layer's tensors, in bytes; divided by the tensor parallelism.
    pub layer_parameters: Vec<u64>,
    /// How it is spread over ranks.
    pub parallelism: Parallelism,
    /// The shape of a transformer.
    pub transformer: Option<Transformer>,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            name: "default".to_owned(),
            kind: None,
            size_bytes: 10_240,
            weight: Element::F16,
            optimizer: Element::F32,
            optimization_groups: Vec::new(),
            n_layers: None,
            layer_parameters: Vec::new(),
            parallelism: Parallelism::default(),
            transformer: None,
        }
    }
}

/// How a model is spread over ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parallelism {
    /// Ranks that share each tensor.
    pub tensor: u64,
    /// Ranks that share the layers.
    pub pipeline: u64,
    /// Copies of the whole; `None`: as many as the ranks allow.
    pub data: Option<u64>,
    /// ZeRO's stage, 0 to 3.
    pub zero_stage: u8,
}

impl Default for Parallelism {
    fn default() -> Self {
        Self { tensor: 1, pipeline: 1, data: None, zero_stage: 0 }
    }
}

/// The shape of a transformer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Transformer {
    pub vocab_size: u64,
    pub hidden_size: u64,
    pub ffn_hidden_size: u64,
    pub n_attention_heads: u64,
    pub n_kv_heads: u64,
}

impl Default for Transformer {
    fn default() -> Self {
        Self { vocab_size: 32_000, hidden_size: 2048, ffn_hidden_size: 8192, n_attention_heads: 32, n_kv_heads: 8 }
    }
}

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workflow {
    /// Data is made first.
    pub generate_data: bool,
    /// It is trained on.
    pub train: bool,
    /// Evaluated.
    pub evaluation: bool,
    /// Saved.
    pub checkpoint: bool,
}

impl Default for Workflow {
    fn default() -> Self {
        Self { generate_data: false, train: true, evaluation: false, checkpoint: false }
    }
}

/// What samples lie in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Format {
    #[default]
    Tfrecord,
    Hdf5,
    Csv,
    Npz,
    Npy,
    Jpeg,
    Png,
    Parquet,
    IndexedBinary,
    MmapIndexedBinary,
    Synthetic,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Tfrecord,
        Self::Hdf5,
        Self::Csv,
        Self::Npz,
        Self::Npy,
        Self::Jpeg,
        Self::Png,
        Self::Parquet,
        Self::IndexedBinary,
        Self::MmapIndexedBinary,
        Self::Synthetic,
    ];

    /// As DLIO spells it, which is also the ending of the files' names.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tfrecord => "tfrecord",
            Self::Hdf5 => "hdf5",
            Self::Csv => "csv",
            Self::Npz => "npz",
            Self::Npy => "npy",
            Self::Jpeg => "jpeg",
            Self::Png => "png",
            Self::Parquet => "parquet",
            Self::IndexedBinary => "indexed_binary",
            Self::MmapIndexedBinary => "mmap_indexed_binary",
            Self::Synthetic => "synthetic",
        }
    }
}

/// How files are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Compression {
    #[default]
    None,
    Gzip,
    Lzf,
    Bz2,
    Zip,
    Xz,
    Snappy,
}

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Element {
    #[default]
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    F16,
    Bf16,
    F32,
    F64,
}

impl Element {
    /// Bytes of one.
    pub fn bytes(self) -> u64 {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 | Self::F16 | Self::Bf16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }
}

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
    /// Bytes that the writer of indexed files gathers.
    pub generation_buffer_bytes: u64,
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
            generation_buffer_bytes: 2 << 30,
            keep_files: true,
            record_dims: Vec::new(),
            element: Element::U8,
            hdf5: Hdf5::default(),
            parquet: Parquet::default(),
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

/// Whose loader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Loader {
    #[default]
    Tensorflow,
    Pytorch,
    Dali,
    NativeDali,
    Synthetic,
}

/// In which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shuffle {
    /// As they lie.
    #[default]
    Off,
    /// By the workload's seed.
    Seed,
    /// By a seed of the moment, which the record names.
    Random,
}

/// How data is read.
#[derive(Debug, Clone, PartialEq)]
pub struct Reader {
    /// Whose loader the file names; kept for the report.
    pub loader: Loader,
    /// Samples a step and accelerator.
    pub batch_size: u64,
    /// The same for evaluation.
    pub batch_size_eval: u64,
    /// Threads an accelerator; 0: it reads itself, when it waits.
    pub read_threads: u64,
    /// Threads that prepare, kept apart from those that read where there is more than one.
    pub computation_threads: u64,
    /// Batches made ahead.
    pub prefetch_size: u64,
    /// The order of files.
    pub file_shuffle: Shuffle,
    /// The order of samples.
    pub sample_shuffle: Shuffle,
    /// Samples that a shuffle looks at; 0: all of them.
    pub shuffle_size: u64,
    /// Samples stay in memory once they were read.
    pub in_memory: bool,
    /// Bytes of one read; `None`: as much as pays.
    pub transfer_size: Option<u64>,
    /// Past the page cache.
    pub odirect: bool,
    /// Time spent on every sample after it was read.
    pub preprocess_time: Time,
    /// The shape of the tensor that is handed on, in place of the resized length.
    pub transformed_dims: Vec<u64>,
    /// What it is made of.
    pub transformed_element: Element,
}

impl Default for Reader {
    fn default() -> Self {
        Self {
            loader: Loader::Tensorflow,
            batch_size: 1,
            batch_size_eval: 1,
            read_threads: 1,
            computation_threads: 1,
            prefetch_size: 2,
            file_shuffle: Shuffle::Off,
            sample_shuffle: Shuffle::Off,
            shuffle_size: 1024,
            in_memory: false,
            transfer_size: None,
            odirect: false,
            preprocess_time: Time::default(),
            transformed_dims: Vec::new(),
            transformed_element: Element::U8,
        }
    }
}

/// Training.
#[derive(Debug, Clone, PartialEq)]
pub struct Train {
    /// Passes over the data.
    pub epochs: u64,
    /// How long a step computes.
    pub computation_time: Time,
    /// The most steps of an epoch; `None`: all.
    pub max_steps: Option<u64>,
    /// Seed of the orders.
    pub seed: u64,
    /// Whether each epoch has an order of its own.
    pub seed_change_epoch: bool,
}

impl Default for Train {
    fn default() -> Self {
        Self { epochs: 1, computation_time: Time::default(), max_steps: None, seed: 123, seed_change_epoch: true }
    }
}

/// Evaluation.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// How long a step of it computes.
    pub eval_time: Time,
    /// After which epoch it is first done.
    pub after_epoch: u64,
    /// Every how many epochs then.
    pub epochs_between: u64,
}

impl Default for Evaluation {
    fn default() -> Self {
        Self { eval_time: Time::default(), after_epoch: 1, epochs_between: 1 }
    }
}

/// Which of a model's shards are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckpointMode {
    /// All of them.
    #[default]
    Default,
    /// As many as there are ranks.
    Subset,
}

/// Checkpoints.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    /// Where they go.
    pub folder: String,
    /// After which epoch the first is saved.
    pub after_epoch: u64,
    /// Every how many epochs then.
    pub epochs_between: u64,
    /// Every how many steps inside an epoch, in place of that.
    pub steps_between: Option<u64>,
    /// Whether every rank saves the flat state, or the first alone.
    pub all_ranks: bool,
    /// Whether a save ends when it is durable. DLIO's own never does.
    pub fsync: bool,
    /// Seconds between the saves of a run that only saves.
    pub time_between: f64,
    /// Saves of such a run.
    pub n_write: u64,
    /// Restores of such a run.
    pub n_read: u64,
    /// Whether a restore reads what another rank wrote.
    pub recovery_rank_shift: bool,
    /// Whether a save ends when it has ended on all ranks.
    pub rank_sync: bool,
    /// Which shards.
    pub mode: CheckpointMode,
    /// Whether values are random; ones otherwise.
    pub randomize: bool,
}

impl Default for Checkpoint {
    fn default() -> Self {
        Self {
            folder: "./checkpoints/".to_owned(),
            after_epoch: 1,
            epochs_between: 1,
            steps_between: None,
            all_ranks: false,
            fsync: false,
            time_between: 0.0,
            n_write: 0,
            n_read: 0,
            recovery_rank_shift: false,
            rank_sync: false,
            mode: CheckpointMode::Default,
            randomize: true,
        }
    }
}

/// What is left out of DLIO's figures, and what must be reached.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// The accelerators' use that must be reached, of 1.
    pub au: f64,
    /// Steps left out at the start of an epoch.
    pub exclude_start_steps: u64,
    /// And at its end.
    pub exclude_end_steps: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { au: 0.90, exclude_start_steps: 1, exclude_end_steps: 0 }
    }
}
