//! The checkpoint state of each rank: DLIO's sizing, ZeRO, tensor and pipeline parallelism.
//!
//! A checkpoint can contain three kinds of state: a *flat* blob of a given size, for models that are not transformers; the
//! *layers*, from a transformer's shape or from lengths in the file; and the *optimiser*'s moments and master weights.
//! The ZeRO stage decides which rank saves what: without ZeRO the first copy of the model saves everything, stages 1 and
//! 2 spread the optimiser over all copies, and stage 3 the layers too.

use crate::Workload;
use crate::check::Problem;
use crate::spec::{CheckpointMode, Element, Model, Transformer};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardTensor {
    pub name: String,
    pub element: Element,
    pub shape: Vec<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardFile {
    /// DLIO's name without the extension: "zero_pp_rank_0_mp_rank_0_optim_states".
    pub name: String,
    pub tensors: Vec<ShardTensor>,
}

impl ShardFile {
    pub fn bytes(&self) -> u64 {
        self.tensors.iter().map(|tensor| tensor.shape.iter().product::<u64>() * tensor.element.bytes()).sum()
    }
}

/// What rank `rank` of `ranks` saves; empty if others save for it.
///
/// # Errors
/// When the model cannot be spread over this many ranks.
pub fn shard_of(workload: &Workload, rank: u64, ranks: u64) -> Result<Vec<ShardFile>, Problem> {
    let place = Place::of(workload, rank, ranks)?;
    let mut files = Vec::new();
    files.extend(flat(workload, rank, &place));
    files.extend(optimizer(&workload.model, &place));
    files.extend(layers(&workload.model, &place));
    files.retain(|file| file.bytes() > 0);
    Ok(files)
}

/// Bytes of a checkpoint over all ranks.
///
/// # Errors
/// When the model cannot be spread over this many ranks.
pub fn checkpoint_bytes(workload: &Workload, ranks: u64) -> Result<u64, Problem> {
    let too_big =
        || Problem { key: "model".to_owned(), text: format!("the size of a checkpoint of {ranks} ranks overflows") };
    (0..ranks).try_fold(0_u64, |sum, rank| {
        let bytes = shard_of(workload, rank, ranks)?.iter().map(ShardFile::bytes).sum();
        sum.checked_add(bytes).ok_or_else(too_big)
    })
}

/// Upper bound on the bytes that a copy of the model saves, to detect typing errors.
pub(crate) fn bytes_about(model: &Model) -> f64 {
    let sum = |lengths: &[u64]| lengths.iter().map(|&n| n as f64).sum::<f64>();
    let layers = model.n_layers.unwrap_or(0) as f64;
    let shape = model.transformer.unwrap_or_default();
    let (h, ffn, vocab) = (shape.hidden_size as f64, shape.ffn_hidden_size as f64, shape.vocab_size as f64);
    let d_kv = (shape.hidden_size / shape.n_attention_heads.max(1)) as f64 * shape.n_kv_heads as f64;
    let layer = h * (h + 2.0 * d_kv) + h * h + 3.0 * h * ffn + 2.0 * h;
    // A weight and three optimiser values, at most 8 bytes each.
    let transformer = if model.is_transformer() { (2.0 * vocab * h + layers * layer) * 32.0 } else { 0.0 };
    model.size_bytes as f64
        + 3.0 * sum(&model.optimization_groups)
        + layers * sum(&model.layer_parameters)
        + transformer
}

/// Number of parameters of a transformer; `None` for other models.
pub fn n_parameters(workload: &Workload) -> Option<u64> {
    let model = &workload.model;
    let layers = model.n_layers.filter(|_| model.is_transformer())?;
    let shape = model.transformer.unwrap_or_default();
    let (head, norm) = (shape.vocab_size * shape.hidden_size, shape.hidden_size);
    let layer: u64 = layer_lengths(&shape, 1).iter().map(|(_, length)| length).sum();
    Some(2 * head + norm + layers * layer)
}

/// The minimum number of ranks: one copy of the model, or the number it states.
pub fn ranks_of(workload: &Workload) -> u64 {
    let parallelism = &workload.model.parallelism;
    parallelism.tensor * parallelism.pipeline * parallelism.data.unwrap_or(1)
}

impl Model {
    /// Whether its layers are those of a transformer, and there is no flat blob.
    pub fn is_transformer(&self) -> bool {
        self.kind.as_deref() == Some("transformer")
    }
}

/// A rank's position among the copies, stages and slices of a model.
struct Place {
    tp: u64,
    pp: u64,
    dp: u64,
    pp_rank: u64,
    dp_rank: u64,
    mp_rank: u64,
    zero_stage: u8,
}

impl Place {
    fn of(workload: &Workload, rank: u64, ranks: u64) -> Result<Self, Problem> {
        let parallelism = &workload.model.parallelism;
        let (tp, pp) = (parallelism.tensor, parallelism.pipeline);
        let mp = tp * pp;
        let dp = match (workload.checkpoint.mode, parallelism.data) {
            (CheckpointMode::Subset, Some(data)) if ranks <= mp * data => data,
            (CheckpointMode::Subset, Some(data)) => return Err(too_many(mp * data, ranks)),
            _ if ranks.is_multiple_of(mp) => ranks / mp,
            _ => return Err(uneven(tp, pp, ranks)),
        };
        let (pp_rank, dp_rank, mp_rank) = ((rank / tp) % pp, rank / mp, rank % mp);
        Ok(Self { tp, pp, dp, pp_rank, dp_rank, mp_rank, zero_stage: parallelism.zero_stage })
    }

    /// The name of the files of a copy's slice.
    fn slice(&self) -> String {
        format!("zero_pp_rank_{}_mp_rank_{}", self.dp_rank, self.mp_rank)
    }

    /// The layers of its stage: 0 is the embedding, the transformer's layers count from 1, then the head and the last norm.
    fn layers(&self, n: u64) -> std::ops::RangeInclusive<u64> {
        let (each, more) = (n / self.pp, n % self.pp);
        let first = self.pp_rank * each + self.pp_rank.min(more) + 1;
        let last = first + each + u64::from(self.pp_rank < more) - 1;
        let first = if self.pp_rank == 0 { 0 } else { first };
        first..=if self.pp_rank == self.pp - 1 { n + 2 } else { last }
    }
}

fn uneven(tp: u64, pp: u64, ranks: u64) -> Problem {
    let text = format!("tensor {tp} × pipeline {pp} needs a multiple of {} ranks, found {ranks}", tp * pp);
    Problem { key: "model.parallelism".to_owned(), text }
}

fn too_many(shards: u64, ranks: u64) -> Problem {
    let text = format!(
        "the model has {shards} shards, fewer than the {ranks} ranks; a subset needs at least one shard per rank"
    );
    Problem { key: "model.parallelism".to_owned(), text }
}

/// The blob of a model that is not a transformer: saved by the ranks of the first copy, by all with ZeRO stage 3, or by all
/// on request.
fn flat(workload: &Workload, rank: u64, place: &Place) -> Option<ShardFile> {
    let saves = workload.checkpoint.all_ranks || place.dp_rank == 0 || place.zero_stage == 3;
    let model = &workload.model;
    (saves && !model.is_transformer() && model.size_bytes > 0).then(|| ShardFile {
        name: format!("model_states-{rank}"),
        tensors: vec![tensor("model".to_owned(), Element::I8, vec![model.size_bytes])],
    })
}

fn optimizer(model: &Model, place: &Place) -> Option<ShardFile> {
    if place.zero_stage == 0 && place.dp_rank > 0 {
        return None;
    }
    let tensors = match model.optimization_groups.is_empty() {
        false => groups(&model.optimization_groups),
        true => moments(model, place)?,
    };
    Some(ShardFile { name: format!("{}_optim_states", place.slice()), tensors })
}

/// Lengths from the file: two tensors per group, and one as long as all groups.
fn groups(lengths: &[u64]) -> Vec<ShardTensor> {
    let of = |(i, &length): (usize, &u64)| {
        ["a", "b"].map(|name| tensor(format!("optimizer.{i}.{name}"), Element::I8, vec![length]))
    };
    let mut tensors: Vec<_> = lengths.iter().enumerate().flat_map(of).collect();
    tensors.push(tensor("optimizer.combined".to_owned(), Element::I8, vec![lengths.iter().sum()]));
    tensors
}

/// A transformer's master weights and two moments, each with DLIO's five additional vectors.
fn moments(model: &Model, place: &Place) -> Option<Vec<ShardTensor>> {
    let layers = model.n_layers.filter(|_| model.is_transformer())?;
    let shape = model.transformer.unwrap_or_default();
    let head = 2 * shape.vocab_size * shape.hidden_size + shape.hidden_size;
    let layer: u64 = layer_lengths(&shape, 1).iter().map(|(_, length)| length).sum();
    let copies = if place.zero_stage > 0 { place.dp } else { 1 };
    let share = (head + layers * layer) / (place.tp * place.pp * copies);
    let of = |name: &str| {
        [("shared", share), ("own", 5 * shape.hidden_size)]
            .map(|(part, n)| tensor(format!("optimizer.{name}.{part}"), model.optimizer, vec![n]))
    };
    Some(["weights", "first_moments", "second_moments"].iter().flat_map(|name| of(name)).collect())
}

fn layers(model: &Model, place: &Place) -> Vec<ShardFile> {
    let has_lengths = model.is_transformer() || !model.layer_parameters.is_empty();
    let saves = place.zero_stage == 3 || place.dp_rank == 0;
    let Some(n) = model.n_layers.filter(|_| has_lengths && saves) else { return Vec::new() };
    let each = place.layers(n).map(|i| (i, layer(model, place, n, i)));
    let one = |name: String| -> Vec<ShardFile> {
        let tensors = place.layers(n).flat_map(|i| layer(model, place, n, i)).collect();
        vec![ShardFile { name, tensors }]
    };
    let mp = place.mp_rank;
    match place.zero_stage {
        0 | 3 => one(format!("{}_model_states", place.slice())),
        _ if place.pp == 1 => one(format!("model_{mp}_model_states")),
        _ => {
            each.map(|(i, tensors)| ShardFile { name: format!("layer_{i}-model_{mp}_model_states"), tensors }).collect()
        }
    }
}

fn layer(model: &Model, place: &Place, n: u64, i: u64) -> Vec<ShardTensor> {
    let named = |name: &str, length: u64, element| tensor(format!("layers.{i}.{name}"), element, vec![length]);
    if !model.layer_parameters.is_empty() {
        let lengths = model.layer_parameters.iter().enumerate();
        return lengths.map(|(k, length)| named(&k.to_string(), length / place.tp, Element::I8)).collect();
    }
    let shape = model.transformer.unwrap_or_default();
    let lengths = match i {
        0 => vec![("embedding", shape.vocab_size * shape.hidden_size / place.tp)],
        _ if i == n + 1 => vec![("head", shape.vocab_size * shape.hidden_size / place.tp)],
        _ if i == n + 2 => vec![("norm", shape.hidden_size)],
        _ => layer_lengths(&shape, place.tp).to_vec(),
    };
    let copies = if place.zero_stage == 3 { place.dp } else { 1 };
    lengths.into_iter().map(|(name, length)| named(name, length / copies, model.weight)).collect()
}

/// The tensors of one transformer layer and their lengths on one of `tp` ranks; norms are on all ranks.
fn layer_lengths(shape: &Transformer, tp: u64) -> [(&'static str, u64); 6] {
    let Transformer { hidden_size: h, ffn_hidden_size: ffn, .. } = *shape;
    let d_kv = h / shape.n_attention_heads * shape.n_kv_heads;
    [
        ("input_norm", h),
        ("attention", h * (h + 2 * d_kv) / tp),
        ("dense", h * h / tp),
        ("norm", h),
        ("up", 2 * h * ffn / tp),
        ("down", h * ffn / tp),
    ]
}

fn tensor(name: String, element: Element, shape: Vec<u64>) -> ShardTensor {
    ShardTensor { name, element, shape }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Checkpoint, Parallelism};

    fn llama_7b(zero_stage: u8, tensor: u64, pipeline: u64) -> Workload {
        let transformer =
            Transformer { hidden_size: 4096, ffn_hidden_size: 11_008, n_kv_heads: 32, ..Default::default() };
        let model = Model {
            kind: Some("transformer".to_owned()),
            n_layers: Some(32),
            transformer: Some(transformer),
            parallelism: Parallelism { tensor, pipeline, data: None, zero_stage },
            ..Model::default()
        };
        Workload { model, ..Workload::default() }
    }

    fn names(workload: &Workload, rank: u64, ranks: u64) -> Vec<String> {
        shard_of(workload, rank, ranks).unwrap().into_iter().map(|file| file.name).collect()
    }

    #[test]
    fn a_llama_of_7b_has_6_738_billion_values_in_87_86_gib() {
        assert_eq!(n_parameters(&llama_7b(1, 1, 1)), Some(6_738_415_616));
        let gib = checkpoint_bytes(&llama_7b(1, 1, 1), 1).unwrap() as f64 / (1u64 << 30) as f64;
        assert!((gib - 87.86).abs() < 0.01, "{gib}");
    }

    #[test]
    fn who_saves_what_follows_the_stage_of_zero() {
        assert_eq!(names(&llama_7b(0, 1, 1), 1, 2), [] as [String; 0]);
        assert_eq!(names(&llama_7b(1, 1, 1), 0, 2), ["zero_pp_rank_0_mp_rank_0_optim_states", "model_0_model_states"]);
        assert_eq!(names(&llama_7b(1, 1, 1), 1, 2), ["zero_pp_rank_1_mp_rank_0_optim_states"]);
        let third = ["zero_pp_rank_1_mp_rank_1_optim_states", "zero_pp_rank_1_mp_rank_1_model_states"];
        assert_eq!(names(&llama_7b(3, 2, 1), 3, 4), third);
    }

    #[test]
    fn a_pipeline_saves_each_layer_once_and_the_ends_keep_the_embedding_and_the_head() {
        let workload = llama_7b(1, 1, 5);
        let layers: Vec<String> = (0..5).flat_map(|rank| names(&workload, rank, 5)).collect();
        let layers: Vec<&String> = layers.iter().filter(|name| name.starts_with("layer_")).collect();
        let wanted: Vec<u64> = (0..=34).collect();
        let found = layers.iter().map(|name| name["layer_".len()..name.find('-').unwrap()].parse().unwrap());
        assert_eq!(found.collect::<Vec<u64>>(), wanted);
    }

    #[test]
    fn all_ways_of_spreading_save_the_same_values_but_for_what_each_keeps_for_itself() {
        let whole = checkpoint_bytes(&llama_7b(0, 1, 1), 1).unwrap() as f64;
        for (zero, tp, pp, ranks) in [(0, 2, 4, 16), (1, 2, 4, 16), (2, 4, 1, 8), (3, 2, 1, 8)] {
            let spread = checkpoint_bytes(&llama_7b(zero, tp, pp), ranks).unwrap() as f64;
            assert!((spread / whole - 1.0).abs() < 1e-3, "zero {zero}, tp {tp}, pp {pp}: {spread} of {whole}");
        }
    }

    #[test]
    fn ranks_that_do_not_divide_are_refused() {
        let problem = shard_of(&llama_7b(1, 8, 4), 0, 48).unwrap_err();
        assert_eq!(
            problem.to_string(),
            "model.parallelism: tensor 8 × pipeline 4 needs a multiple of 32 ranks, found 48"
        );
    }

    #[test]
    fn a_subset_saves_as_many_shards_as_there_are_ranks() {
        let mut workload = llama_7b(3, 1, 1);
        workload.model.parallelism.data = Some(16);
        workload.checkpoint = Checkpoint { mode: CheckpointMode::Subset, ..Checkpoint::default() };
        let (half, whole) = (checkpoint_bytes(&workload, 8).unwrap(), checkpoint_bytes(&workload, 16).unwrap());
        assert_eq!(half * 2, whole);
        assert!(shard_of(&workload, 0, 17).is_err());
    }

    #[test]
    fn a_flat_model_is_saved_by_every_rank_of_the_first_copy() {
        let savers = |tensor, pipeline, zero_stage| {
            let parallelism = Parallelism { tensor, pipeline, data: None, zero_stage };
            let model = Model { size_bytes: 7, parallelism, ..Model::default() };
            let workload = Workload { model, ..Workload::default() };
            (0..8).filter(|rank| !names(&workload, *rank, 8).is_empty()).collect::<Vec<u64>>()
        };
        assert_eq!(savers(1, 1, 0), [0]);
        assert_eq!(savers(2, 2, 0), [0, 1, 2, 3]);
        assert_eq!(savers(2, 1, 1), [0, 1]);
        assert_eq!(savers(1, 2, 2), [0, 1]);
        assert_eq!(savers(2, 1, 3), [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn a_flat_model_is_saved_by_the_first_rank_or_by_all() {
        let model = Model { size_bytes: 499_153_191, ..Model::default() };
        let mut workload = Workload { model, ..Workload::default() };
        assert_eq!(checkpoint_bytes(&workload, 3).unwrap(), 499_153_191);
        assert_eq!(names(&workload, 0, 3), ["model_states-0"]);
        workload.checkpoint.all_ranks = true;
        assert_eq!(checkpoint_bytes(&workload, 3).unwrap(), 3 * 499_153_191);
    }
}
