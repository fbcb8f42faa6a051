//! Files as people write them: what they mean, what is said of them, what is refused.

use forebay_workload::{Checked, Compression, Element, Format, Framework, Loader, Problem, Shuffle, Time, read};

fn ok(text: &str) -> Checked {
    read("test", text, &[]).unwrap_or_else(|problems| panic!("{problems:?}"))
}

/// All problems of a text, as they are told.
fn problems(text: &str) -> Vec<String> {
    match read("test", text, &[]) {
        Ok(checked) => panic!("it was taken: {checked:?}"),
        Err(problems) => problems.iter().map(Problem::to_string).collect(),
    }
}

fn notes<'a>(checked: &'a Checked, key: &str) -> Vec<&'a str> {
    checked.notes.iter().filter(|note| note.key == key).map(|note| note.text.as_str()).collect()
}

#[test]
fn a_file_of_dlio_is_read_as_it_is() {
    let checked = ok("
model:
  name: unet3d
  type: cnn
  model_size: 499153191
framework: pytorch
workflow:
  generate_data: False
  train: True
  checkpoint: True
dataset:
  data_folder: data/unet3d/
  format: npz
  num_files_train: 168
  num_samples_per_file: 1
  record_length_bytes: 146600628
  record_length_bytes_stdev: 68341808
  record_length_bytes_resize: 2097152
reader:
  data_loader: pytorch
  batch_size: 7
  read_threads: 4
  file_shuffle: seed
  sample_shuffle: seed
train:
  epochs: 5
  computation_time: 0.323
checkpoint:
  checkpoint_folder: checkpoints/unet3d
  checkpoint_after_epoch: 5
  epochs_between_checkpoints: 2
metric:
  au: 0.90
");
    let built_in = forebay_workload::builtin::find("unet3d").unwrap().checked().workload;
    assert_eq!(checked.workload, forebay_workload::Workload { name: "test".to_owned(), ..built_in });
    assert_eq!(notes(&checked, "model.model_size").len(), 1);
    assert_eq!(notes(&checked, "reader.sample_shuffle").len(), 1);
}

#[test]
fn older_spellings_mean_what_they_meant() {
    let old = ok("
model: bert
data_reader: {data_loader: pytorch, batch_size: 4}
dataset: {record_length: 2500, record_length_stdev: 10, record_length_resize: 99}
checkpoint: {model_size: 77, num_layers: 3, layer_parameters: [8, 16], tensor_parallelism: 2, pipeline_parallelism: 3}
");
    let workload = &old.workload;
    assert_eq!((workload.model.name.as_str(), workload.model.size_bytes), ("bert", 77));
    assert_eq!(notes(&old, "model.model_size"), [] as [&str; 0], "DLIO 2.0 read it there");
    assert_eq!((workload.model.n_layers, &workload.model.layer_parameters[..]), (Some(3), &[8, 16][..]));
    assert_eq!((workload.model.parallelism.tensor, workload.model.parallelism.pipeline), (2, 3));
    assert_eq!((workload.reader.batch_size, workload.reader.loader), (4, Loader::Pytorch));
    assert_eq!((workload.dataset.record_length_bytes, workload.dataset.record_length_bytes_stdev), (2500.0, 10.0));
    assert_eq!(workload.dataset.record_length_bytes_resize, 99);
    let twice = problems("dataset: {record_length: 1, record_length_bytes: 2}");
    assert_eq!(twice, ["dataset.record_length: same key as dataset.record_length_bytes, which is given too"]);
}

#[test]
fn our_toml_takes_units_and_a_wrapper_is_taken_off() {
    let ours = "[dataset]\nrecord_length_bytes = \"112 KiB\"\n[train]\ncomputation_time = \"224 ms\"\n";
    let workload = ok(ours).workload;
    assert_eq!(workload.dataset.record_length_bytes, 114_688.0);
    assert_eq!(workload.train.computation_time, Time::Normal { mean: 0.224, stdev: 0.0 });
    let wrapped = "workload:\n  framework: pytorch\n  train: {epochs: 3}\n";
    assert_eq!(ok(wrapped).workload.train.epochs, 3);
    assert_eq!(ok(wrapped).workload.framework, Framework::Pytorch);
}

#[test]
fn overrides_take_the_files_place_in_their_order() {
    let overrides =
        ["++workload.reader.batch_size=9", "++workload.reader.batch_size=5", "+workload.dataset.format=npy"];
    let overrides = overrides.map(str::to_owned);
    let workload = read("x", "reader: {batch_size: 2}\n", &overrides).unwrap().workload;
    assert_eq!((workload.reader.batch_size, workload.dataset.format), (5, Format::Npy));
    let law = "++workload.train.computation_time={type:uniform,min:0.002,max:0.004}".to_owned();
    let time = read("x", "", &[law]).unwrap().workload.train.computation_time;
    assert_eq!(time, Time::Uniform { min: 0.002, max: 0.004 });
    let problems = read("x", "", &["++workload.reader.bach_size=9".to_owned()]).unwrap_err();
    assert_eq!(problems[0].to_string(), "reader.bach_size: unknown key; did you mean `batch_size`?");
}

#[test]
fn overrides_find_what_the_file_spells_otherwise() {
    let old =
        "model: bert\ndataset: {record_length: 2500}\ndata_reader: {batch_size: 4}\ncheckpoint: {model_size: 77}\n";
    let new = ["model.type=cnn", "dataset.record_length_bytes=9", "reader.read_threads=3", "model.model_size_bytes=5"];
    let workload = read("x", old, &new.map(|text| format!("++workload.{text}"))).unwrap().workload;
    assert_eq!((workload.model.name.as_str(), workload.model.kind.as_deref()), ("bert", Some("cnn")));
    assert_eq!((workload.dataset.record_length_bytes, workload.model.size_bytes), (9.0, 5));
    assert_eq!((workload.reader.batch_size, workload.reader.read_threads), (4, 3));
    let unread = read("x", "model: {model_size: 7}\n", &["++workload.model.model_size_bytes=5".to_owned()]).unwrap();
    assert_eq!((unread.workload.model.size_bytes, notes(&unread, "model.model_size").len()), (5, 1));
    let older = ["++workload.data_reader.batch_size=6".to_owned(), "++workload.dataset.record_length=8".to_owned()];
    let workload = read("x", "dataset: {record_length_bytes: 1}\n", &older).unwrap().workload;
    assert_eq!((workload.reader.batch_size, workload.dataset.record_length_bytes), (6, 8.0));
}

#[test]
fn an_empty_file_is_dlios_defaults() {
    let checked = ok("");
    let wanted = forebay_workload::Workload { name: "test".to_owned(), ..Default::default() };
    assert_eq!((checked.workload, checked.notes), (wanted, vec![]));
}

#[test]
fn unknown_keys_are_refused_by_name_all_of_them() {
    let told = problems("dataset: {fromat: npz, colour: red, batch_size: 3}\nreadr: {}\nepochs: 3\n");
    let wanted = [
        "dataset.fromat: unknown key; did you mean `format`?",
        "dataset.colour: unknown key",
        "dataset.batch_size: unknown key; did you mean `reader.batch_size`?",
        "readr: unknown key; did you mean `reader`?",
        "epochs: unknown key; did you mean `train.epochs`?",
    ];
    assert_eq!(told, wanted);
}

#[test]
fn values_are_checked_and_all_of_them_are_told() {
    let told = problems(
        "
reader: {batch_size: 0, read_threads: -1, prefetch_size: 1.5, transfer_size: many}
train: {epochs: [1], computation_time: .nan}
",
    );
    assert_eq!(told.len(), 1, "YAML itself refuses what is no number: {told:?}");
    let told = problems(
        "
reader: {batch_size: 0, read_threads: -1, prefetch_size: 1.5, transfer_size: many, odirect: perhaps}
train: {epochs: [1], computation_time: -1, seed: 1e20}
dataset: {format: npx, record_dims: [2, -1], num_files_train: true}
metric: {au: 90}
workflow: train
",
    );
    let wanted = [
        "workflow: expected a table of keys, found a text",
        "dataset.num_files_train: expected a number, found a boolean",
        "dataset.format: unknown value \"npx\"; did you mean `npy`?",
        "dataset.record_dims: expected a list of non-negative whole numbers, found -1 in it",
        "reader.batch_size: must be at least 1, is 0",
        "reader.read_threads: must not be negative, is -1",
        "reader.prefetch_size: must be a whole number, is 1.5",
        "reader.transfer_size: expected a number, found \"many\"",
        "reader.odirect: expected true or false, found \"perhaps\"",
        "train.epochs: expected a number, found a list",
        "train.computation_time: must not be negative, is -1",
        "train.seed: must be at most 1000000000000000, is 1e20",
        "metric.au: must be at most 1, is 90; 0.9 means 90 %",
    ];
    assert_eq!(told, wanted);
    let told = problems("[train]\ncomputation_time = nan\n");
    assert_eq!(told, ["train.computation_time: must be a finite number"]);
    assert_eq!(problems("hello"), ["the text: expected a table of keys, found a text"]);
    assert_eq!(
        problems("reader: {file_shuffle: yes}"),
        ["reader.file_shuffle: unknown value true; expected one of off, seed, random"]
    );
}

#[test]
fn contradictions_are_refused() {
    for (text, wanted) in [
        (
            "dataset: {record_dims: [3, 4], record_length_bytes_stdev: 5}",
            "dataset.record_dims: cannot be combined with record_length_bytes_stdev: a fixed shape does not vary",
        ),
        (
            "dataset: {format: jpeg, record_dims: [3, 4, 5]}",
            "dataset.record_dims: a jpeg has at most 2 dimensions, found 3",
        ),
        (
            "dataset: {format: png, num_samples_per_file: 2}",
            "dataset.num_samples_per_file: a png file holds one sample",
        ),
        (
            "dataset: {format: npz, compression: gzip}",
            "dataset.compression: gzip is not supported for npz files; expected one of none, zip",
        ),
        ("reader: {odirect: true}", "reader.odirect: only npy and npz files can be read with O_DIRECT, not tfrecord"),
        (
            "dataset: {num_files_train: 1000000000, num_samples_per_file: 1000000000}",
            "dataset.num_files_train: the data would have 6.6e22 bytes",
        ),
        (
            "dataset: {num_files_train: 1000000000, record_length_bytes_stdev: 5}",
            "dataset.num_files_train: must be at most 100000000 with record_length_bytes_stdev above 0, is 1000000000",
        ),
        ("workflow: {evaluation: true}", "dataset.num_files_eval: no files to evaluate on"),
        ("dataset: {num_files_train: 0}", "dataset.num_files_train: no files to train on"),
        ("checkpoint: {mode: subset}", "checkpoint.mode: subset needs model.parallelism.data"),
        (
            "model: {parallelism: {data: 4}}",
            "model.parallelism.data: only for checkpoint.mode subset; otherwise it follows from the number of ranks",
        ),
        (
            "checkpoint: {num_checkpoints_write: 2, num_checkpoints_read: 3}",
            "checkpoint.num_checkpoints_read: 3 checkpoints cannot be read: only 2 are written",
        ),
        (
            "workflow: {train: false, checkpoint: true}",
            "checkpoint.num_checkpoints_write: must be set if workflow.train is off",
        ),
        (
            "{model: {type: transformer}, workflow: {checkpoint: true}}",
            "model.num_layers: must be set for a transformer: without layers there is nothing to save",
        ),
        (
            "model: {parallelism: {pipeline: 2, zero_stage: 3}}",
            "model.parallelism.pipeline: must be 1 with zero_stage 3",
        ),
        ("model: {parallelism: {zero_stage: 4}}", "model.parallelism.zero_stage: must be 0, 1, 2 or 3, is 4"),
        ("dataset: {enable_chunking: true}", "dataset.chunk_size: must be above 0 if enable_chunking is set"),
        ("dataset: {hdf5: {chunk_dims: [4]}}", "dataset.hdf5.chunk_dims: tfrecord has no chunks"),
        ("dataset: {compression_level: 11}", "dataset.compression_level: must be at most 9, is 11"),
        ("dataset: {file_prefix: a/b}", "dataset.file_prefix: must not contain /"),
    ] {
        assert_eq!(problems(text), [wanted], "{text}");
    }
}

#[test]
fn what_cannot_be_done_is_refused_by_name() {
    for (text, key) in [
        ("storage: {storage_type: s3}", "storage.storage_type"),
        ("storage: {storage_type: aistore}", "storage.storage_type"),
        ("storage: {storage_options: {endpoint_url: x}}", "storage.storage_options"),
        ("reader: {data_loader: custom}", "reader.data_loader"),
        ("reader: {data_loader_classname: a.b}", "reader.data_loader_classname"),
        ("reader: {reader_classname: a.b}", "reader.reader_classname"),
        ("checkpoint: {checkpoint_mechanism_classname: a.b}", "checkpoint.checkpoint_mechanism_classname"),
        ("{workflow: {profiling: true}, profiling: {profiler: darshan}}", "profiling.profiler"),
        ("workflow: {query: dataset.format}", "workflow.query"),
        ("defaults: [other]", "defaults"),
        ("dataset: {data_folder: \"${hydra:runtime.cwd}/data\"}", "dataset.data_folder"),
    ] {
        let told = problems(text);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with(&format!("{key}: ")) && told[0].len() > key.len() + 15, "{told:?}");
    }
}

#[test]
fn keys_that_dlio_drops_are_honoured_with_a_note() {
    let checked = ok("
checkpoint: {fsync: true, recovery_rank_shift: true, type: all_ranks}
dataset: {format: hdf5, enable_chunking: true, chunk_size: 65536, num_subfolders_train: 1}
storage: {storage_type: parallel_fs, storage_root: /lustre}
reader: {read_type: memory, file_access: shared, dont_use_mmap: true, pin_memory: false, multiprocessing_context: spawn}
workflow: {do_eval: false, profiling: true}
framework: pytorch
");
    let workload = &checked.workload;
    assert!(workload.checkpoint.fsync && workload.checkpoint.recovery_rank_shift && workload.checkpoint.all_ranks);
    assert_eq!((workload.dataset.chunk_bytes, workload.storage_root.as_str()), (Some(65_536), "/lustre"));
    assert!(workload.reader.in_memory);
    for key in [
        "checkpoint.fsync",
        "checkpoint.recovery_rank_shift",
        "checkpoint.type",
        "dataset.enable_chunking",
        "dataset.num_subfolders_train",
        "storage.storage_type",
        "reader.read_type",
        "reader.file_access",
        "reader.dont_use_mmap",
        "reader.pin_memory",
        "reader.multiprocessing_context",
        "workflow.do_eval",
        "workflow.profiling",
        "framework",
    ] {
        assert_eq!(notes(&checked, key).len(), 1, "{key}");
    }
}

#[test]
fn times_follow_laws() {
    let time = |text: &str| ok(&format!("train: {{computation_time: {text}}}")).workload.train.computation_time;
    assert_eq!(time("{mean: 1.5, stdev: 0.25}"), Time::Normal { mean: 1.5, stdev: 0.25 });
    assert_eq!(time("{type: uniform, min: 0.5, max: 2}"), Time::Uniform { min: 0.5, max: 2.0 });
    assert_eq!(time("{type: gamma, shape: 2, scale: 0.1}"), Time::Gamma { shape: 2.0, scale: 0.1 });
    assert_eq!(time("{type: exponential, scale: 0.1}"), Time::Exponential { scale: 0.1 });
    assert_eq!(time("{type: poisson, lam: 3}"), Time::Poisson { lam: 3.0 });
    let apart = ok("evaluation: {eval_time: 0.5, eval_time_stdev: 0.1}").workload.evaluation.eval_time;
    assert_eq!(apart, Time::Normal { mean: 0.5, stdev: 0.1 });
    let told = problems("reader: {preprocess_time: {type: poisson, lam: 1, mean: 2}, preprocess_time_stdev: 0.1}");
    let wanted = [
        "reader.preprocess_time.mean: unknown key",
        "reader.preprocess_time_stdev: only a normal distribution has a deviation, but preprocess_time is not normal",
    ];
    assert_eq!(told, wanted);
    assert_eq!(time("{}"), Time::default(), "DLIO's way to say that there is none");
    let told = problems("train: {computation_time: {type: gamma, shape: 2}}\nevaluation: {eval_time: {stdev: 1}}");
    assert_eq!(
        told,
        [
            "train.computation_time.scale: missing; this distribution needs it",
            "evaluation.eval_time.mean: missing; this distribution needs it"
        ]
    );
    let told = problems("train: {computation_time: {type: uniform, min: 2, max: 1}}");
    assert_eq!(told, ["train.computation_time.min: must not be above max: 2 > 1"]);
}

#[test]
fn parquet_is_spelt_as_in_mlperf() {
    let checked = ok("
dataset:
  format: parquet
  compression: snappy
  parquet:
    row_group_size: 100000
    generation_batch_size: 10000
    read_mode: default
    columns:
      - {name: label, dtype: float32, size: 1, read: true}
      - {name: features, dtype: float16, size: 128}
      - {name: spare, dtype: int8, read: false}
");
    let dataset = &checked.workload.dataset;
    assert_eq!((dataset.compression, dataset.parquet.row_group_rows), (Compression::Snappy, 100_000));
    let read: Vec<_> =
        dataset.parquet.columns.iter().map(|c| (c.name.as_str(), c.element, c.width, c.is_read)).collect();
    let wanted =
        [("label", Element::F32, 1, true), ("features", Element::F16, 128, true), ("spare", Element::I8, 1, false)];
    assert_eq!(read, wanted);
    assert_eq!(notes(&checked, "dataset.parquet.read_mode").len(), 1);
    let told = problems("dataset: {format: parquet, parquet: {columns: [{dtype: float32}, 3]}}");
    let wanted = [
        "dataset.parquet.columns.0.name: missing; every column needs a name",
        "dataset.parquet.columns.1: expected a table of keys, found a number",
        "dataset.parquet.columns.1.name: missing; every column needs a name",
    ];
    assert_eq!(told, wanted);
}

#[test]
fn yamls_own_words_for_truth_are_words_for_shuffling() {
    let reader = ok("reader: {file_shuffle: off, sample_shuffle: 'random'}").workload.reader;
    assert_eq!((reader.file_shuffle, reader.sample_shuffle), (Shuffle::Off, Shuffle::Random));
}

#[test]
fn what_is_neither_yaml_nor_toml_is_told_with_its_place() {
    let yaml = problems("dataset:\n  format: [npz\ntrain: 1\n");
    assert!(yaml.len() == 1 && yaml[0].starts_with("line "), "{yaml:?}");
    let toml = problems("[dataset]\nformat = \"npz\n");
    assert!(toml.len() == 1 && toml[0].starts_with("line 2, column "), "{toml:?}");
}
