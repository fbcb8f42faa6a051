//! Notes on valid keys that have less effect than expected, because of other keys.

use super::Note;
use super::section::Findings;
use crate::Workload;
use crate::spec::{Compression, Dataset, Format, Loader, Shuffle};

/// Adds these notes for a valid workload.
pub(super) fn find(workload: &Workload, findings: &mut Findings) {
    let Findings { notes, given, .. } = findings;
    let mut note = |key: &str, text: String| {
        if given.contains(key) {
            notes.push(Note { key: key.to_owned(), text });
        }
    };
    loader(workload, &mut note);
    threads(workload, &mut note);
    lengths(workload, &mut note);
    packing(&workload.dataset, &mut note);
    phases(workload, &mut note);
    model(workload, &mut note);
}

fn loader(workload: &Workload, note: &mut impl FnMut(&str, String)) {
    let (reader, dataset) = (&workload.reader, &workload.dataset);
    match reader.loader {
        Loader::Dali | Loader::NativeDali => {
            note("reader.data_loader", "DALI is not used: samples are read and decoded as for all loaders".to_owned());
        }
        Loader::Synthetic => note("reader.data_loader", "nothing is read: samples are generated".to_owned()),
        Loader::Tensorflow | Loader::Pytorch => {}
    }
    match (reader.sample_shuffle, reader.loader) {
        (Shuffle::Off, _) => note("reader.shuffle_size", "no effect: samples are not shuffled".to_owned()),
        (_, Loader::Pytorch) => {
            let text = "no effect: it is the shuffle buffer of TensorFlow and DALI; PyTorch, and so forebay, shuffles all samples";
            note("reader.shuffle_size", text.to_owned());
        }
        _ => {}
    }
    if let Some(text) = dataset.format.facts().no_transfer_size {
        note("reader.transfer_size", text.to_owned());
    }
}

fn threads(workload: &Workload, note: &mut impl FnMut(&str, String)) {
    let (reader, dataset) = (&workload.reader, &workload.dataset);
    if reader.computation_threads == 1 {
        return;
    }
    let key = "reader.computation_threads";
    if reader.read_threads == 0 {
        note(key, "no effect without read_threads: the accelerator's own thread reads and computes".to_owned());
    } else if !dataset.decodes() && reader.preprocess_time.is_zero() {
        let format = dataset.format.name();
        note(key, format!("no effect: {format} without preprocess_time leaves nothing to compute"));
    }
}

/// Competing keys for the length of a sample.
fn lengths(workload: &Workload, note: &mut impl FnMut(&str, String)) {
    let (dataset, reader) = (&workload.dataset, &workload.reader);
    let holds = match (dataset.parquet.columns.is_empty(), dataset.record_dims.is_empty()) {
        (false, _) => Some("the columns define the length of a row"),
        (true, false) => Some("record_dims define the length of a sample"),
        (true, true) => None,
    };
    if let Some(holds) = holds {
        note("dataset.record_length_bytes", format!("no effect: {holds}"));
    }
    if dataset.record_length_bytes_stdev > dataset.record_length_bytes && dataset.sizes_vary() {
        let text = "larger than record_length_bytes itself: the mean sample is far larger than that";
        note("dataset.record_length_bytes_stdev", text.to_owned());
    }
    if !dataset.parquet.columns.is_empty() {
        let text = "no effect: the columns define a row";
        for key in ["dataset.record_length_bytes_stdev", "dataset.record_dims", "dataset.record_element_type"] {
            note(key, text.to_owned());
        }
    }
    match reader.transformed_dims.is_empty() {
        true => {
            note("reader.transformed_record_element_type", "no effect without transformed_record_dims".to_owned());
        }
        false => {
            let text = "no effect: transformed_record_dims define the output";
            note("dataset.record_length_bytes_resize", text.to_owned());
        }
    }
}

fn packing(dataset: &Dataset, note: &mut impl FnMut(&str, String)) {
    let format = dataset.format.name();
    let unlike = |what: &str| format!("no effect: {format} has no {what}");
    match (dataset.format, dataset.compression) {
        (_, Compression::None) => note("dataset.compression_level", "no effect: nothing is compressed".to_owned()),
        (_, Compression::Lzf | Compression::Snappy) => {
            note("dataset.compression_level", "no effect: this compression has no levels".to_owned());
        }
        _ => {}
    }
    if !dataset.is_made() {
        let text = "these files can be read, but `forebay workload make` cannot make them";
        note("dataset.compression", text.to_owned());
    }
    if dataset.format != Format::Hdf5 {
        note("dataset.hdf5.max_shape", unlike("datasets that grow"));
        note("dataset.hdf5.num_dset_per_record", unlike("datasets"));
    }
    if !divides(dataset) {
        let text =
            "these files can be read, but not made: the first dimension of every sample must be a multiple of it";
        note("dataset.hdf5.num_dset_per_record", text.to_owned());
    }
    if dataset.format != Format::Parquet {
        note("dataset.parquet.row_group_size", unlike("row groups"));
    }
}

/// Whether every sample can be split into this number of datasets; samples of varying size cannot.
pub(super) fn divides(dataset: &Dataset) -> bool {
    let n = dataset.hdf5.n_dsets_per_record;
    let side = dataset.record_dims.first().copied().unwrap_or(dataset.record_length_bytes.sqrt() as u64);
    dataset.format != Format::Hdf5 || n == 1 || !dataset.sizes_vary() && side.is_multiple_of(n)
}

fn phases(workload: &Workload, note: &mut impl FnMut(&str, String)) {
    let (workflow, checkpoint) = (&workload.workflow, &workload.checkpoint);
    if workflow.evaluation && !workflow.train {
        note("workflow.evaluation", "no effect: without training there is no evaluation".to_owned());
    }
    if !workflow.train {
        return;
    }
    let text = || "no effect: it is for runs that save without training".to_owned();
    if checkpoint.n_write > 0 {
        note("checkpoint.num_checkpoints_write", text());
    }
    if checkpoint.n_read > 0 {
        note("checkpoint.num_checkpoints_read", text());
    }
    if checkpoint.time_between > 0.0 {
        note("checkpoint.time_between_checkpoints", text());
    }
}

fn model(workload: &Workload, note: &mut impl FnMut(&str, String)) {
    let model = &workload.model;
    if model.n_layers.is_none() && !model.layer_parameters.is_empty() {
        note("model.layer_parameters", "no effect without num_layers".to_owned());
    }
    match model.is_transformer() {
        true => {
            note("model.model_size_bytes", "no effect: the size of a transformer follows from its layers".to_owned())
        }
        false => note("model.transformer", "no effect without a transformer type".to_owned()),
    }
}
