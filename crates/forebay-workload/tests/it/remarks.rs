//! Keys that do less than they seem to beside others, and numbers too large to be meant.

use forebay_workload::{Compression, Format, Plan, Problem, read};

/// The notes on a text, as `key: text`.
fn notes(text: &str) -> Vec<String> {
    let checked = read("test", text, &[]).unwrap_or_else(|problems| panic!("{problems:?} in {text}"));
    checked.notes.iter().map(|note| format!("{}: {}", note.key, note.text)).collect()
}

fn problems(text: &str) -> Vec<String> {
    let problems = read("test", text, &[]).expect_err(text);
    problems.iter().map(Problem::to_string).collect()
}

#[test]
fn a_key_that_does_nothing_beside_others_is_noted() {
    for (text, key) in [
        ("{dataset: {format: jpeg}, reader: {transfer_size: 4096}}", "reader.transfer_size"),
        ("{dataset: {format: hdf5}, reader: {transfer_size: 4096}}", "reader.transfer_size"),
        ("{dataset: {format: mmap_indexed_binary}, reader: {transfer_size: 4096}}", "reader.transfer_size"),
        ("{dataset: {format: npy}, reader: {computation_threads: 2}}", "reader.computation_threads"),
        ("reader: {read_threads: 0, computation_threads: 2}", "reader.computation_threads"),
        ("reader: {data_loader: dali}", "reader.data_loader"),
        ("reader: {data_loader: native_dali}", "reader.data_loader"),
        ("dataset: {keep_files: false}", "dataset.keep_files"),
        ("dataset: {generation_buffer_size: 4096}", "dataset.generation_buffer_size"),
        ("reader: {shuffle_size: 9}", "reader.shuffle_size"),
        ("dataset: {format: hdf5, compression: lzf}", "dataset.compression"),
        ("dataset: {record_length_bytes: 2000, record_length_bytes_stdev: 68e6}", "dataset.record_length_bytes_stdev"),
        ("dataset: {format: hdf5, hdf5: {num_dset_per_record: 3}}", "dataset.hdf5.num_dset_per_record"),
        ("dataset: {format: csv, compression: zip}", "dataset.compression"),
        ("dataset: {hdf5: {max_shape: [4]}}", "dataset.hdf5.max_shape"),
        ("dataset: {hdf5: {num_dset_per_record: 4}}", "dataset.hdf5.num_dset_per_record"),
        ("dataset: {parquet: {row_group_size: 4}}", "dataset.parquet.row_group_size"),
        ("dataset: {compression_level: 4}", "dataset.compression_level"),
        ("dataset: {format: parquet, compression: snappy, compression_level: 4}", "dataset.compression_level"),
        ("dataset: {enable_chunking: true, chunk_size: 4096}", "dataset.enable_chunking"),
        ("dataset: {record_dims: [4], record_length_bytes: 4}", "dataset.record_length_bytes"),
        ("checkpoint: {num_checkpoints_write: 4}", "checkpoint.num_checkpoints_write"),
        ("checkpoint: {num_checkpoints_read: 4}", "checkpoint.num_checkpoints_read"),
        ("checkpoint: {time_between_checkpoints: 4}", "checkpoint.time_between_checkpoints"),
        ("workflow: {train: false, evaluation: true}", "workflow.evaluation"),
        ("model: {layer_parameters: [4]}", "model.layer_parameters"),
        ("model: {transformer: {hidden_size: 4}}", "model.transformer"),
        ("reader: {transformed_record_element_type: int8}", "reader.transformed_record_element_type"),
    ] {
        let found = notes(text);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert!(found[0].starts_with(&format!("{key}: ")), "{text}: {found:?}");
    }
    let columns = "record_dims: [4], record_element_type: int8, parquet: {columns: [{name: a}]}";
    assert_eq!(notes(&format!("dataset: {{format: parquet, {columns}}}")).len(), 2);
}

#[test]
fn the_same_keys_are_not_noted_where_they_do_something() {
    for text in [
        "reader: {transfer_size: 4096, computation_threads: 4}",
        "{dataset: {format: npy}, reader: {computation_threads: 2, preprocess_time: 0.1}}",
        "reader: {shuffle_size: 9, sample_shuffle: seed}",
        "dataset: {format: hdf5, hdf5: {max_shape: [4], num_dset_per_record: 4}}",
        "dataset: {format: parquet, compression: gzip, compression_level: 3, parquet: {row_group_size: 4}}",
        "{workflow: {train: false, checkpoint: true}, checkpoint: {num_checkpoints_write: 4, time_between_checkpoints: 1}}",
    ] {
        assert_eq!(notes(text), [] as [&str; 0], "{text}");
    }
}

#[test]
fn pytorchs_shuffle_has_no_buffer_and_a_synthetic_loader_no_files() {
    let found = notes("{framework: pytorch, reader: {data_loader: pytorch, sample_shuffle: seed, shuffle_size: 9}}");
    assert!(found.iter().any(|note| note.starts_with("reader.shuffle_size: ")), "{found:?}");
    let text = "{dataset: {format: csv, compression: gzip}, reader: {data_loader: synthetic}}";
    let dataset = read("x", text, &[]).unwrap().workload.dataset;
    assert_eq!((dataset.format, dataset.compression), (Format::Synthetic, Compression::None));
    assert_eq!(notes(text).len(), 1);
}

#[test]
fn what_is_only_read_is_not_asked_to_be_made() {
    let hdf5 = |rest: &str| format!("{{dataset: {{format: hdf5, {rest}}}, workflow: {{generate_data: true}}}}");
    for rest in ["hdf5: {num_dset_per_record: 3}", "record_length_bytes_stdev: 9, hdf5: {num_dset_per_record: 2}"] {
        let found = problems(&hdf5(rest));
        assert!(found.len() == 1 && found[0].starts_with("dataset.hdf5.num_dset_per_record: "), "{found:?}");
    }
    assert!(read("x", &hdf5("hdf5: {num_dset_per_record: 4}"), &[]).is_ok());
    for dataset in ["format: hdf5, compression: lzf", "format: csv, compression: zip"] {
        let found = problems(&format!("{{dataset: {{{dataset}}}, workflow: {{generate_data: true}}}}"));
        let said = "dataset.compression: these files can be read, but not made; turn workflow.generate_data off";
        assert!(found.len() == 1 && found[0].starts_with(said), "{found:?}");
    }
}

#[test]
fn numbers_whose_products_do_not_fit_are_refused_by_name() {
    let big = "999999999999999";
    for (text, key) in [
        (format!("dataset: {{num_samples_per_file: {big}}}"), "dataset.num_samples_per_file"),
        (format!("dataset: {{num_files_train: {big}}}"), "dataset.num_files_train"),
        (
            format!("dataset: {{num_files_train: 0, record_dims: [{big}, {big}]}}\nworkflow: {{train: false}}"),
            "dataset",
        ),
        (format!("model: {{parallelism: {{tensor: {big}}}}}"), "model.parallelism.tensor"),
        (format!("model: {{num_layers: {big}}}"), "model.num_layers"),
        (format!("model: {{type: transformer, num_layers: 2, transformer: {{hidden_size: {big}}}}}"), "model"),
        (format!("model: {{num_layers: 20000, layer_parameters: [{big}]}}"), "model"),
        (format!("train: {{epochs: {big}}}"), "train.epochs"),
        (format!("reader: {{batch_size: {big}}}"), "reader.batch_size"),
        (format!("reader: {{transformed_record_dims: [{big}, {big}]}}"), "reader.batch_size"),
        (format!("reader: {{read_threads: {big}}}"), "reader.read_threads"),
    ] {
        let found = problems(&text);
        assert!(found.len() == 1 && found[0].starts_with(&format!("{key}: ")), "{text}: {found:?}");
    }
}

#[test]
fn a_plan_that_cannot_be_counted_is_refused() {
    let text = "dataset: {num_files_train: 4000000000, num_samples_per_file: 200000000, record_length_bytes: 1}\n\
                train: {epochs: 1000000}";
    let workload = read("x", text, &[]).unwrap().workload;
    assert_eq!(Plan::new(&workload, 1).unwrap_err().key, "train.epochs");
    let text = "model: {model_size_bytes: 900000000000000}\ncheckpoint: {type: all_ranks}\n\
                dataset: {num_files_train: 100000}\nworkflow: {checkpoint: true}";
    let workload = read("x", text, &[]).unwrap().workload;
    assert_eq!(Plan::new(&workload, 30_000).unwrap_err().key, "model");
}
