//! Contradictions between keys that are valid by themselves.

use super::section::Findings;
use super::{Problem, remarks};
use crate::spec::{CheckpointMode, Compression, Dataset, Format};
use crate::{Part, Workload, model};

/// Limit on files of different sizes: all sizes are drawn to know the total, which takes seconds at this number.
const MOST_VARYING: u64 = 100_000_000;

/// More bytes than any file system holds today: a typing error, not a dataset.
const MOST_BYTES: f64 = 1e18;

/// Checks a workload whose keys have been read.
pub(super) fn check(workload: &Workload, findings: &mut Findings) {
    let wrong: Vec<String> = findings.problems.iter().map(|problem| problem.key.clone()).collect();
    // Invalid values were replaced by defaults, which must not count as contradictions.
    let are_right =
        |sections: &[&str]| !wrong.iter().any(|key| sections.iter().any(|section| key.starts_with(section)));
    let mut refuse = |key: &str, text: String| findings.problems.push(Problem { key: key.to_owned(), text });
    if are_right(&["dataset"]) {
        shape(&workload.dataset, &mut refuse);
        compression(&workload.dataset, &mut refuse);
        bytes(&workload.dataset, &mut refuse);
    }
    if are_right(&["dataset", "reader", "workflow"]) {
        reading(workload, &mut refuse);
    }
    if are_right(&["model", "checkpoint", "workflow"]) {
        saving(workload, &mut refuse);
    }
}

fn shape(dataset: &Dataset, refuse: &mut impl FnMut(&str, String)) {
    let dims = &dataset.record_dims;
    let is_picture = dataset.format.facts().is_picture;
    if !dims.is_empty() && dataset.record_length_bytes_stdev > 0.0 {
        refuse(
            "dataset.record_dims",
            "cannot be combined with record_length_bytes_stdev: a fixed shape does not vary".to_owned(),
        );
    }
    if dims.contains(&0) {
        refuse("dataset.record_dims", "every dimension must be at least 1".to_owned());
    }
    if is_picture && dims.len() > 2 {
        let name = dataset.format.name();
        refuse("dataset.record_dims", format!("a {name} has at most 2 dimensions, found {}", dims.len()));
    }
    if is_picture && dataset.n_samples_per_file > 1 {
        refuse("dataset.num_samples_per_file", format!("a {} file holds one sample", dataset.format.name()));
    }
    if dataset.record_length_bytes < 1.0 {
        refuse("dataset.record_length_bytes", "must be at least 1".to_owned());
    }
    if !dataset.parquet.columns.is_empty() && dataset.format != Format::Parquet {
        refuse("dataset.parquet.columns", format!("{} has no columns", dataset.format.name()));
    }
    if !dataset.parquet.columns.is_empty() && dataset.parquet.columns.iter().all(|column| !column.is_read) {
        refuse("dataset.parquet.columns", "no column is read".to_owned());
    }
    if !dataset.hdf5.chunk_dims.is_empty() && dataset.format != Format::Hdf5 {
        refuse("dataset.hdf5.chunk_dims", format!("{} has no chunks", dataset.format.name()));
    }
}

fn compression(dataset: &Dataset, refuse: &mut impl FnMut(&str, String)) {
    if dataset.is_read() {
        return;
    }
    let (facts, none) = (dataset.format.facts(), Compression::None);
    let may: Vec<&str> =
        [&none].into_iter().chain(facts.made).chain(facts.only_read).map(|compression| compression.name()).collect();
    let (format, asked) = (dataset.format.name(), dataset.compression.name());
    let text = format!("{asked} is not supported for {format} files; expected one of {}", may.join(", "));
    refuse("dataset.compression", text);
}

fn bytes(dataset: &Dataset, refuse: &mut impl FnMut(&str, String)) {
    let dims = dataset.record_dims.iter().map(|&n| n as f64).product::<f64>();
    let square = if dataset.record_dims.is_empty() { dataset.record_length_bytes } else { dims };
    let rows = dataset.parquet.columns.iter().map(|c| c.width as f64 * c.count as f64).sum::<f64>();
    let sample = square.max(rows) * dataset.element.bytes() as f64;
    if sample > MOST_BYTES {
        refuse("dataset", format!("a sample would have {sample:.1e} bytes"));
        return;
    }
    for (part, key) in [(Part::Train, "dataset.num_files_train"), (Part::Eval, "dataset.num_files_eval")] {
        let total = dataset.n_files(part) as f64 * dataset.n_samples_per_file as f64 * sample;
        if total > MOST_BYTES {
            refuse(key, format!("the data would have {total:.1e} bytes"));
        } else if dataset.sizes_vary() && dataset.n_files(part) > MOST_VARYING {
            let n = dataset.n_files(part);
            let text = format!("must be at most {MOST_VARYING} with record_length_bytes_stdev above 0, is {n}");
            refuse(key, text);
        }
    }
}

fn reading(workload: &Workload, refuse: &mut impl FnMut(&str, String)) {
    let (dataset, reader) = (&workload.dataset, &workload.reader);
    if reader.odirect && !dataset.format.facts().is_direct {
        refuse(
            "reader.odirect",
            format!("only npy and npz files can be read with O_DIRECT, not {}", dataset.format.name()),
        );
    }
    let handed_on = reader.transformed_dims.iter().map(|&n| n as f64).product::<f64>() * 8.0;
    let sample = handed_on.max(dataset.record_length_bytes_resize as f64);
    let batch = reader.batch_size.max(reader.batch_size_eval) as f64 * sample;
    if batch > MOST_BYTES {
        refuse("reader.batch_size", format!("a batch would have {batch:.1e} bytes"));
    }
    if reader.transformed_dims.contains(&0) {
        refuse("reader.transformed_record_dims", "every dimension must be at least 1".to_owned());
    }
    let workflow = &workload.workflow;
    if workflow.generate_data && !dataset.is_made() {
        let text = "these files can be read, but not made; turn workflow.generate_data off, or use another compression";
        refuse("dataset.compression", text.to_owned());
    }
    if workflow.generate_data && !remarks::divides(dataset) {
        let text = "to make data, the first dimension of every sample must be a multiple of it";
        refuse("dataset.hdf5.num_dset_per_record", text.to_owned());
    }
    if workflow.train && dataset.n_files_train == 0 {
        refuse("dataset.num_files_train", "no files to train on".to_owned());
    }
    if workflow.train && workflow.evaluation && dataset.n_files_eval == 0 {
        refuse("dataset.num_files_eval", "no files to evaluate on".to_owned());
    }
}

fn saving(workload: &Workload, refuse: &mut impl FnMut(&str, String)) {
    let (model, checkpoint) = (&workload.model, &workload.checkpoint);
    let state = model::bytes_about(model);
    if state > MOST_BYTES {
        refuse("model", format!("a checkpoint would have {state:.1e} bytes"));
    }
    let is_subset = checkpoint.mode == CheckpointMode::Subset;
    match model.parallelism.data {
        None if is_subset => refuse("checkpoint.mode", "subset needs model.parallelism.data".to_owned()),
        Some(_) if !is_subset => {
            refuse(
                "model.parallelism.data",
                "only for checkpoint.mode subset; otherwise it follows from the number of ranks".to_owned(),
            );
        }
        _ => {}
    }
    if checkpoint.n_read > checkpoint.n_write && checkpoint.n_write > 0 {
        let text = format!("{} checkpoints cannot be read: only {} are written", checkpoint.n_read, checkpoint.n_write);
        refuse("checkpoint.num_checkpoints_read", text);
    }
    let workflow = &workload.workflow;
    if workflow.checkpoint && !workflow.train && checkpoint.n_write + checkpoint.n_read == 0 {
        refuse("checkpoint.num_checkpoints_write", "must be set if workflow.train is off".to_owned());
    }
    if workflow.checkpoint && model.is_transformer() && model.n_layers.is_none() {
        refuse("model.num_layers", "must be set for a transformer: without layers there is nothing to save".to_owned());
    }
    if model.parallelism.zero_stage == 3 && model.parallelism.pipeline > 1 {
        refuse("model.parallelism.pipeline", "must be 1 with zero_stage 3".to_owned());
    }
}
