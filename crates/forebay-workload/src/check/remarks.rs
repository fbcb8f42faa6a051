//! What to know of keys that are right and do less than they seem to, because of what other keys say.

use super::Note;
use super::section::Findings;
use crate::Workload;
use crate::spec::{Compression, Dataset, Format, Loader, Shuffle};

/// Notes such keys of a workload that has been found right.
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
            note("reader.data_loader", "DALI is not run: samples are read and decoded as for all loaders".to_owned());
        }
        Loader::Synthetic => note("reader.data_loader", "nothing is read: samples are generated".to_owned()),
        Loader::Tensorflow | Loader::Pytorch => {}
    }
    match (reader.sample_shuffle, reader.loader) {
        (Shuffle::Off, _) => note("reader.shuffle_size", "samples are not shuffled, so it does nothing".to_owned()),
        (_, Loader::Pytorch) => {
            let text =
                "it is the buffer of TensorFlow's and DALI's shuffles; PyTorch's, and so this, is of all samples";
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
        note(key, "without read_threads an accelerator reads and computes itself, so it does nothing".to_owned());
    } else if !dataset.decodes() && reader.preprocess_time.is_zero() {
        let format = dataset.format.name();
        note(key, format!("{format} without preprocess_time leaves nothing to compute, so it does nothing"));
    }
}

/// Ways to say how long a sample is, of which one holds.
fn lengths(workload: &Workload, note: &mut impl FnMut(&str, String)) {
    let (dataset, reader) = (&workload.dataset, &workload.reader);
    let holds = match (dataset.parquet.columns.is_empty(), dataset.record_dims.is_empty()) {
        (false, _) => Some("the columns say how long a row is"),
        (true, false) => Some("record_dims say how long a sample is"),
        (true, true) => None,
    };
    if let Some(holds) = holds {
        note("dataset.record_length_bytes", format!("{holds}, so it does nothing"));
    }
    if dataset.record_length_bytes_stdev > dataset.record_length_bytes && dataset.sizes_vary() {
        let text = "it is larger than record_length_bytes itself: the samples are far larger in the mean";
        note("dataset.record_length_bytes_stdev", text.to_owned());
    }
    if !dataset.parquet.columns.is_empty() {
        let text = "the columns say what a row is, so it does nothing";
        for key in ["dataset.record_length_bytes_stdev", "dataset.record_dims", "dataset.record_element_type"] {
            note(key, text.to_owned());
        }
    }
    match reader.transformed_dims.is_empty() {
        true => {
            note(
                "reader.transformed_record_element_type",
                "without transformed_record_dims it does nothing".to_owned(),
            );
        }
        false => {
            let text = "transformed_record_dims say what is handed on, so it does nothing";
            note("dataset.record_length_bytes_resize", text.to_owned());
        }
    }
}

fn packing(dataset: &Dataset, note: &mut impl FnMut(&str, String)) {
    let format = dataset.format.name();
    let unlike = |what: &str| format!("{format} has no {what}, so it does nothing");
    match (dataset.format, dataset.compression) {
        (_, Compression::None) => note("dataset.compression_level", "nothing is compressed".to_owned()),
        (_, Compression::Lzf | Compression::Snappy) => {
            note("dataset.compression_level", "this compression has no levels".to_owned());
        }
        _ => {}
    }
    if !dataset.is_made() {
        let text = "such files are read, but `forebay workload make` does not make them";
        note("dataset.compression", text.to_owned());
    }
    if dataset.format != Format::Hdf5 {
        note("dataset.hdf5.max_shape", unlike("datasets that grow"));
        note("dataset.hdf5.num_dset_per_record", unlike("datasets"));
    }
    if !divides(dataset) {
        let text = "such files are read, but not made: the first side of every sample must be a multiple of it";
        note("dataset.hdf5.num_dset_per_record", text.to_owned());
    }
    if dataset.format != Format::Parquet {
        note("dataset.parquet.row_group_size", unlike("row groups"));
    }
}

/// Whether every sample can be spread over as many datasets as it is to be: one of a varying size cannot.
pub(super) fn divides(dataset: &Dataset) -> bool {
    let n = dataset.hdf5.n_dsets_per_record;
    let side = dataset.record_dims.first().copied().unwrap_or(dataset.record_length_bytes.sqrt() as u64);
    dataset.format != Format::Hdf5 || n == 1 || !dataset.sizes_vary() && side.is_multiple_of(n)
}

fn phases(workload: &Workload, note: &mut impl FnMut(&str, String)) {
    let (workflow, checkpoint) = (&workload.workflow, &workload.checkpoint);
    if workflow.evaluation && !workflow.train {
        note("workflow.evaluation", "nothing is trained, so nothing is evaluated".to_owned());
    }
    if !workflow.train {
        return;
    }
    let text = || "it is for runs that save and do not train, so it does nothing".to_owned();
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
        note("model.layer_parameters", "without num_layers there are no layers, so it does nothing".to_owned());
    }
    match model.is_transformer() {
        true => note("model.model_size_bytes", "the size of a transformer follows from its layers".to_owned()),
        false => note("model.transformer", "without a type of transformer it does nothing".to_owned()),
    }
}
