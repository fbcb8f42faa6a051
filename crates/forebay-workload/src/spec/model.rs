//! The model, as far as checkpoints know it, and the checkpoints.

use serde::{Deserialize, Serialize};

use super::Element;

/// The model, as far as checkpoints know it.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    pub name: String,
    pub kind: Option<String>,
    /// Bytes of the state that every saving rank writes, for models that are not transformers with layers.
    pub size_bytes: u64,
    pub weight: Element,
    pub optimizer: Element,
    /// Lengths of the optimiser's groups, in one-byte values.
    pub optimization_groups: Vec<u64>,
    /// `None` for a model that is saved as one flat state of `size_bytes`.
    pub n_layers: Option<u64>,
    /// Lengths of a layer's tensors, in bytes; divided by the tensor parallelism.
    pub layer_parameters: Vec<u64>,
    pub parallelism: Parallelism,
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
    pub tensor: u64,
    pub pipeline: u64,
    /// Copies of the model; `None` for as many as the ranks allow.
    pub data: Option<u64>,
    /// ZeRO stage, 0 to 3: what data-parallel ranks shard instead of replicating.
    pub zero_stage: u8,
}

impl Default for Parallelism {
    fn default() -> Self {
        Self { tensor: 1, pipeline: 1, data: None, zero_stage: 0 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// Which shards of a model are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckpointMode {
    #[default]
    Default,
    /// One shard per rank, if there are fewer ranks than shards.
    Subset,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    pub folder: String,
    /// The first epoch that is followed by a save.
    pub after_epoch: u64,
    /// Epochs from one save to the next.
    pub epochs_between: u64,
    /// Steps from one save to the next within an epoch, instead of epochs.
    pub steps_between: Option<u64>,
    /// Whether every rank saves the flat state, or only the ranks of the first copy of the model.
    pub all_ranks: bool,
    /// Whether a save ends only when it is durable. DLIO never waits for this.
    pub fsync: bool,
    /// Seconds between the saves of a checkpoint-only run.
    pub time_between: f64,
    /// Number of saves of a run without training.
    pub n_write: u64,
    /// Number of restores of a run without training.
    pub n_read: u64,
    /// Whether a rank restores another rank's shard.
    pub recovery_rank_shift: bool,
    /// Whether a save ends only when it has ended on all ranks.
    pub rank_sync: bool,
    pub mode: CheckpointMode,
    /// False writes ones, which DLIO can do too; a device that compresses or deduplicates then stores much less.
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
