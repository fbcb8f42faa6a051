//! The sections on the phases of a run: `model`, `workflow`, `train`, `evaluation`, `checkpoint`, `output`, `metric`.

use super::keys::Role;
use super::law;
use super::section::{MOST_COUNT as MOST, Section};
use super::tree::Tree;
use crate::spec::{Checkpoint, CheckpointMode, Evaluation, Limits, Model, Parallelism, Train, Transformer, Workflow};

pub(super) fn model(mut section: Section<'_>) -> Model {
    let mut model = Model::default();
    if let Some(name) = section.text("name") {
        model.name = name;
    }
    model.kind = section.text("type");
    section.bytes("model_size_bytes", &mut model.size_bytes);
    section.element("model_datatype", &mut model.weight);
    section.element("optimizer_datatype", &mut model.optimizer);
    model.optimization_groups = section.counts("optimization_groups").unwrap_or_default();
    model.n_layers = section.count_or_none("num_layers", 1..=MOST_LAYERS);
    model.layer_parameters = section.counts("layer_parameters").unwrap_or_default();
    parallelism(section.below("parallelism"), &mut model.parallelism);
    section.declare("transformer", Role::Honoured { value: "table".to_owned() });
    if let Some(value) = section.take("transformer") {
        model.transformer = Some(transformer(section.child("transformer", value)));
    }
    section.finish();
    model
}

/// Limit on each kind of parallelism; the product of three still fits.
const MOST_RANKS: u64 = 1_000_000;

/// Limit on layers, each of which may be a file.
const MOST_LAYERS: u64 = 100_000;

/// Limit on epochs, each of which may be listed.
const MOST_EPOCHS: u64 = 1_000_000;

fn parallelism(mut section: Section<'_>, target: &mut Parallelism) {
    section.count_within("tensor", 1..=MOST_RANKS, &mut target.tensor);
    section.count_within("pipeline", 1..=MOST_RANKS, &mut target.pipeline);
    target.data = section.count_or_none("data", 1..=MOST_RANKS);
    let mut stage = 0;
    section.count("zero_stage", 0, &mut stage);
    match stage {
        0..=3 => target.zero_stage = stage as u8,
        _ => section.refuse("zero_stage", format!("must be 0, 1, 2 or 3, is {stage}")),
    }
    section.finish();
}

fn transformer(mut section: Section<'_>) -> Transformer {
    let mut shape = Transformer::default();
    section.count("vocab_size", 1, &mut shape.vocab_size);
    section.count("hidden_size", 1, &mut shape.hidden_size);
    section.count("ffn_hidden_size", 1, &mut shape.ffn_hidden_size);
    section.count("num_attention_heads", 1, &mut shape.n_attention_heads);
    section.count("num_kv_heads", 1, &mut shape.n_kv_heads);
    section.finish();
    shape
}

/// The phases of the run, and whether a profiler is requested.
pub(super) fn workflow(mut section: Section<'_>) -> (Workflow, bool) {
    let (mut workflow, mut profiling) = (Workflow::default(), false);
    section.flag("generate_data", &mut workflow.generate_data);
    section.flag("train", &mut workflow.train);
    section.flag("evaluation", &mut workflow.evaluation);
    section.flag("checkpoint", &mut workflow.checkpoint);
    section.flag("profiling", &mut profiling);
    if profiling {
        section.note("profiling", "ignored: every run observes the devices");
    }
    section.idle("debug", "no effect here: it lets DLIO wait for a debugger");
    section.impossible("query", "not supported; use `forebay workload show` to print a workload");
    section.finish();
    (workflow, profiling)
}

/// The profiler; devices are observed in any case.
pub(super) fn profiling(mut section: Section<'_>, wanted: bool) {
    let profilers = [("iostat", true), ("none", true), ("darshan", false), ("tensorboard", false), ("default", true)];
    match section.choice("profiler", &profilers) {
        Some(true) => {}
        Some(false) if wanted => {
            section.refuse("profiler", "only iostat is supported; its figures are always recorded")
        }
        Some(false) => section.note("profiler", "no effect without profiling"),
        None => {}
    }
    section.idle("iostat_devices", "ignored: the device that holds the data is observed");
    section.finish();
}

pub(super) fn train(mut section: Section<'_>) -> Train {
    let mut train = Train::default();
    section.count_within("epochs", 1..=MOST_EPOCHS, &mut train.epochs);
    law::read(&mut section, "computation_time", "computation_time_stdev", &mut train.computation_time);
    train.max_steps = section.count_or_none("total_training_steps", 1..=MOST);
    if train.max_steps.is_some() && train.epochs > 1 {
        section.note("total_training_steps", "limits the steps of each epoch, as in DLIO, not of the whole run");
    }
    section.idle("total_eval_steps", "ignored, as in DLIO: an evaluation uses all its samples");
    section.count("seed", 0, &mut train.seed);
    section.flag("seed_change_epoch", &mut train.seed_change_epoch);
    section.finish();
    train
}

pub(super) fn evaluation(mut section: Section<'_>) -> Evaluation {
    let mut evaluation = Evaluation::default();
    law::read(&mut section, "eval_time", "eval_time_stdev", &mut evaluation.eval_time);
    section.count("eval_after_epoch", 1, &mut evaluation.after_epoch);
    section.count("epochs_between_evals", 1, &mut evaluation.epochs_between);
    section.idle("steps_between_evals", "ignored, as in DLIO: evaluations run between epochs");
    section.finish();
    evaluation
}

pub(super) fn checkpoint(mut section: Section<'_>) -> Checkpoint {
    let mut checkpoint = Checkpoint::default();
    if let Some(folder) = section.text("checkpoint_folder") {
        checkpoint.folder = folder;
    }
    section.count("checkpoint_after_epoch", 1, &mut checkpoint.after_epoch);
    section.count("epochs_between_checkpoints", 1, &mut checkpoint.epochs_between);
    checkpoint.steps_between = section.count_or_none("steps_between_checkpoints", 1..=MOST);
    if let Some(all) = section.choice("type", &[("rank_zero", false), ("all_ranks", true)]) {
        section.note("type", "DLIO ignores it; here all_ranks makes all ranks save the state that is not sharded");
        checkpoint.all_ranks = all;
    }
    section.flag("fsync", &mut checkpoint.fsync);
    if checkpoint.fsync {
        section.note("fsync", "DLIO ignores it and never syncs; here a save ends when it is durable");
    }
    saves(&mut section, &mut checkpoint);
    section.flag("recovery_rank_shift", &mut checkpoint.recovery_rank_shift);
    if checkpoint.recovery_rank_shift {
        section.note(
            "recovery_rank_shift",
            "DLIO stores it under another name; here a rank restores another rank's shard",
        );
    }
    section.flag("rank_sync", &mut checkpoint.rank_sync);
    let modes = [("default", CheckpointMode::Default), ("subset", CheckpointMode::Subset)];
    checkpoint.mode = section.choice("mode", &modes).unwrap_or_default();
    section.flag("randomize_tensor", &mut checkpoint.randomize);
    section.idle("ksm", "no effect here: no shard is held in memory twice, so there are no pages to merge");
    section.impossible("checkpoint_mechanism_classname", "custom Python mechanisms are not supported");
    section.impossible("recovery_after_steps", "not supported: restores follow the saves; use num_checkpoints_read");
    section.finish();
    checkpoint
}

/// The saves and restores of a checkpoint-only run.
fn saves(section: &mut Section<'_>, checkpoint: &mut Checkpoint) {
    checkpoint.n_write = section.count_or_none("num_checkpoints_write", 0..=MOST).unwrap_or(0);
    checkpoint.n_read = section.count_or_none("num_checkpoints_read", 0..=MOST).unwrap_or(0);
    if section.is("time_between_checkpoints", &Tree::Int(-1)) {
        section.take("time_between_checkpoints");
    }
    checkpoint.time_between = section.seconds("time_between_checkpoints").unwrap_or(0.0);
}

/// The output folder, and the steps that DLIO's figures exclude.
pub(super) fn output(mut section: Section<'_>, limits: &mut Limits) -> Option<String> {
    let folder = section.text("folder");
    section.idle("log_file", "ignored: no log file is written; messages go to stderr");
    let mut metric = section.below("metric");
    metric.count("exclude_start_steps", 0, &mut limits.exclude_start_steps);
    metric.count("exclude_end_steps", 0, &mut limits.exclude_end_steps);
    metric.finish();
    section.finish();
    folder
}

pub(super) fn metric(mut section: Section<'_>, limits: &mut Limits) {
    section.fraction("au", &mut limits.au);
    section.finish();
}
