//! The sections on data: `storage`, `dataset`, `reader`.

use super::keys::Role;
use super::law;
use super::section::Section;
use super::tree::Tree;
use crate::spec::{Compression, Dataset, Element, Format, Hdf5, Loader, Parquet, ParquetColumn, Reader, Shuffle};

#[derive(Clone, Copy)]
enum Place {
    Local,
    Parallel,
    Elsewhere,
}

pub(super) fn storage(mut section: Section<'_>, root: &mut String) {
    let places = [
        ("local_fs", Place::Local),
        ("parallel_fs", Place::Parallel),
        ("s3", Place::Elsewhere),
        ("aistore", Place::Elsewhere),
        ("local", Place::Local),
        ("file", Place::Local),
    ];
    match section.choice("storage_type", &places) {
        Some(Place::Parallel) => {
            let text = "DLIO fails on this value; here it means local_fs, because a parallel file system is mounted";
            section.note("storage_type", text);
        }
        Some(Place::Elsewhere) => section.refuse("storage_type", "object stores are not supported; mount the data"),
        Some(Place::Local) | None => {}
    }
    if let Some(text) = section.text("storage_root") {
        *root = text;
    }
    section.impossible("storage_options", "options of object stores are not supported");
    section.impossible("storage_library", "object stores are not supported");
    section.finish();
}

/// Files, and samples of a file, are numbered in 32 bits.
const MOST_NUMBERED: u64 = u32::MAX as u64;

pub(super) fn dataset(mut section: Section<'_>) -> Dataset {
    let mut dataset = Dataset::default();
    section.length("record_length_bytes", &mut dataset.record_length_bytes);
    section.length("record_length_bytes_stdev", &mut dataset.record_length_bytes_stdev);
    section.bytes("record_length_bytes_resize", &mut dataset.record_length_bytes_resize);
    section.count_within("num_files_train", 0..=MOST_NUMBERED, &mut dataset.n_files_train);
    section.count_within("num_files_eval", 0..=MOST_NUMBERED, &mut dataset.n_files_eval);
    section.count_within("num_samples_per_file", 1..=MOST_NUMBERED, &mut dataset.n_samples_per_file);
    section.idle(
        "eval_num_samples_per_file",
        "ignored, as in DLIO: training and evaluation files both hold num_samples_per_file samples",
    );
    subfolders(&mut section, "num_subfolders_train", &mut dataset.n_subfolders_train);
    subfolders(&mut section, "num_subfolders_eval", &mut dataset.n_subfolders_eval);
    names(&mut section, &mut dataset);
    section.count("seed", 0, &mut dataset.seed);
    section.flag("keep_files", &mut dataset.keep_files);
    if !dataset.keep_files {
        section.note("keep_files", "the run removes only data that it has made itself");
    }
    section.idle("generation_buffer_size", "ignored: files are always written in pieces of 1 MB");
    section.element("record_element_type", &mut dataset.element);
    dataset.record_dims = section.counts("record_dims").unwrap_or_default();
    packing(&mut section, &mut dataset);
    dataset.hdf5 = hdf5(section.below("hdf5"));
    dataset.parquet = parquet(section.below("parquet"));
    section.finish();
    dataset
}

fn names(section: &mut Section<'_>, dataset: &mut Dataset) {
    if let Some(folder) = section.text("data_folder") {
        dataset.data_folder = folder;
    }
    if let Some(prefix) = section.text("file_prefix") {
        if prefix.contains('/') {
            section.refuse("file_prefix", "must not contain /");
        }
        dataset.file_prefix = prefix;
    }
    let formats = Format::ALL.map(|format| (format.name(), format));
    if let Some(format) = section.choice("format", &formats) {
        dataset.format = format;
    }
}

fn subfolders(section: &mut Section<'_>, key: &'static str, target: &mut u64) {
    section.count(key, 0, target);
    if *target == 1 {
        section.note(key, "1 means the same as 0 here; DLIO makes the data without folders and then looks for one");
    }
}

/// Compression and chunks of files.
fn packing(section: &mut Section<'_>, dataset: &mut Dataset) {
    if let Some(compression) = section.choice("compression", &Compression::NAMES) {
        dataset.compression = compression;
    }
    let mut level = u64::from(dataset.compression_level);
    section.count("compression_level", 0, &mut level);
    match u32::try_from(level) {
        Ok(level) if level <= 9 => dataset.compression_level = level,
        _ => section.refuse("compression_level", format!("must be at most 9, is {level}")),
    }
    let (mut chunks, mut size) = (false, 0);
    section.flag("enable_chunking", &mut chunks);
    section.bytes("chunk_size", &mut size);
    match (chunks, size) {
        (true, 0) => section.refuse("chunk_size", "must be above 0 if enable_chunking is set"),
        (true, size) => {
            let text = match dataset.format {
                Format::Hdf5 => "DLIO ignores it; here HDF5 files are written in these chunks",
                _ => "no effect: only HDF5 has chunks",
            };
            section.note("enable_chunking", text);
            dataset.chunk_bytes = Some(size);
        }
        (false, 0) => {}
        (false, _) => section.note("chunk_size", "no effect without enable_chunking"),
    }
}

fn hdf5(mut section: Section<'_>) -> Hdf5 {
    let chunk_dims = section.counts("chunk_dims").unwrap_or_default();
    let max_shape = section.counts("max_shape").unwrap_or_default();
    let mut n_dsets_per_record = 1;
    section.count("num_dset_per_record", 1, &mut n_dsets_per_record);
    section.finish();
    Hdf5 { chunk_dims, n_dsets_per_record, max_shape }
}

fn parquet(mut section: Section<'_>) -> Parquet {
    let mut parquet = Parquet::default();
    section.count("row_group_size", 0, &mut parquet.row_group_rows);
    section.idle("read_mode", "ignored: a row group's columns are always read with the first of its rows");
    section.idle("generation_batch_size", "ignored: files are written one row group at a time");
    section.declare("columns", Role::Honoured { value: "list of tables".to_owned() });
    match section.take("columns") {
        None => {}
        Some(Tree::List(items)) => {
            for (i, item) in items.into_iter().enumerate() {
                let column = column(section.child(&format!("columns.{i}"), item));
                parquet.columns.extend(column);
            }
        }
        Some(other) => section.refuse("columns", format!("must be a list, is {}", other.kind())),
    }
    section.finish();
    parquet
}

fn column(mut section: Section<'_>) -> Option<ParquetColumn> {
    let name = section.text("name");
    let (mut element, mut width, mut count, mut is_read) = (Element::F32, 1, 1, true);
    section.element("dtype", &mut element);
    section.count("size", 1, &mut width);
    section.count("count", 1, &mut count);
    section.flag("read", &mut is_read);
    if name.is_none() {
        section.refuse("name", "missing; every column needs a name");
    }
    section.finish();
    Some(ParquetColumn { name: name?, element, width, count, is_read })
}

/// Limit on threads per accelerator: more than any machine runs.
const MOST_THREADS: u64 = 1024;

/// Limit on samples per batch; 500 batches on a million accelerators still fit into a number.
const MOST_BATCH: u64 = 1_000_000_000;

pub(super) fn reader(mut section: Section<'_>) -> Reader {
    let mut reader = Reader::default();
    loader(&mut section, &mut reader);
    section.count_within("batch_size", 1..=MOST_BATCH, &mut reader.batch_size);
    section.count_within("batch_size_eval", 1..=MOST_BATCH, &mut reader.batch_size_eval);
    section.count_within("read_threads", 0..=MOST_THREADS, &mut reader.read_threads);
    section.count_within("computation_threads", 1..=MOST_THREADS, &mut reader.computation_threads);
    section.count("prefetch_size", 0, &mut reader.prefetch_size);
    section.count("shuffle_size", 0, &mut reader.shuffle_size);
    shuffles(&mut section, &mut reader);
    let types = [("on_demand", false), ("memory", true)];
    if let Some(in_memory) = section.choice("read_type", &types) {
        let text = "DLIO treats every value as memory; here samples stay in memory only if the value is memory";
        section.note("read_type", text);
        reader.in_memory = in_memory;
    }
    let mut transfer = 0;
    section.bytes("transfer_size", &mut transfer);
    reader.transfer_size = (transfer > 0).then_some(transfer);
    section.flag("odirect", &mut reader.odirect);
    law::read(&mut section, "preprocess_time", "preprocess_time_stdev", &mut reader.preprocess_time);
    reader.transformed_dims = section.counts("transformed_record_dims").unwrap_or_default();
    section.element("transformed_record_element_type", &mut reader.transformed_element);
    section.idle("file_access", "ignored, as in DLIO: every thread opens the files it reads");
    section.idle("dont_use_mmap", "no effect here: it concerns DALI's readers");
    section.idle("pin_memory", "no effect here: it concerns PyTorch's memory");
    section.idle("multiprocessing_context", "no effect here: readers are threads, not processes");
    section.idle("data_loader_sampler", "no effect here: it is for custom data loaders");
    section.impossible("data_loader_classname", "custom Python data loaders are not supported");
    section.impossible("reader_classname", "custom Python readers are not supported");
    section.finish();
    reader
}

fn loader(section: &mut Section<'_>, reader: &mut Reader) {
    let loaders = [
        ("tensorflow", Some(Loader::Tensorflow)),
        ("pytorch", Some(Loader::Pytorch)),
        ("dali", Some(Loader::Dali)),
        ("native_dali", Some(Loader::NativeDali)),
        ("synthetic", Some(Loader::Synthetic)),
        ("custom", None),
        ("none", None),
    ];
    match section.choice("data_loader", &loaders) {
        Some(Some(loader)) => reader.loader = loader,
        Some(None) => {
            section.refuse("data_loader", "custom data loaders are not supported, and nothing is read without a loader")
        }
        None => {}
    }
}

fn shuffles(section: &mut Section<'_>, reader: &mut Reader) {
    let words = [("off", Shuffle::Off), ("seed", Shuffle::Seed), ("random", Shuffle::Random)];
    reader.file_shuffle = section.choice("file_shuffle", &words).unwrap_or_default();
    reader.sample_shuffle = section.choice("sample_shuffle", &words).unwrap_or_default();
    if reader.loader == Loader::Tensorflow {
        return;
    }
    for (key, shuffle) in [("file_shuffle", reader.file_shuffle), ("sample_shuffle", reader.sample_shuffle)] {
        if shuffle != Shuffle::Off {
            section.note(key, "DLIO's loader still reads in order; here the order is really shuffled");
        }
    }
}
