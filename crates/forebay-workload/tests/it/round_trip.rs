//! Any workload comes back from its own TOML, and no text makes the reader fall.

use forebay_workload::import::to_toml;
use forebay_workload::{
    Checked, Checkpoint, CheckpointMode, Compression, Dataset, Element, Evaluation, Format, Framework, Hdf5, Limits,
    Loader, Model, Parallelism, Parquet, ParquetColumn, Plan, Reader, Shuffle, Time, Train, Transformer, Workflow,
    Workload, read,
};
use proptest::prelude::*;

fn element() -> impl Strategy<Value = Element> {
    prop::sample::select(&Element::ALL[..])
}

fn time() -> impl Strategy<Value = Time> {
    let number = || 0.0..10.0f64;
    prop_oneof![
        (number(), prop_oneof![Just(0.0), number()]).prop_map(|(mean, stdev)| Time::Normal { mean, stdev }),
        (number(), number()).prop_map(|(min, more)| Time::Uniform { min, max: min + more }),
        (number(), number()).prop_map(|(shape, scale)| Time::Gamma { shape, scale }),
        number().prop_map(|scale| Time::Exponential { scale }),
        number().prop_map(|lam| Time::Poisson { lam }),
    ]
}

fn dims() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(1..50u64, 0..4)
}

/// Words with all that TOML must quote.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[a-zA-Z0-9_ \\\\\"'#=\\[\\]{}é.\n\t-]{0,12}"]
}

fn format() -> impl Strategy<Value = (Format, Compression)> {
    prop::sample::select(vec![
        (Format::Tfrecord, Compression::None),
        (Format::Hdf5, Compression::Lzf),
        (Format::Csv, Compression::Gzip),
        (Format::Npz, Compression::Zip),
        (Format::Npy, Compression::None),
        (Format::Parquet, Compression::Snappy),
        (Format::MmapIndexedBinary, Compression::None),
        (Format::Synthetic, Compression::None),
    ])
}

prop_compose! {
    fn dataset()(
        (format, compression) in format(),
        record_dims in dims(),
        length in 1.0..1e9f64,
        whole in any::<bool>(),
        stdev in prop_oneof![Just(0.0), 0.0..1e8f64],
        counts in [0..1_000_000u64, 1..1000u64, 0..1000u64, 0..1000u64, 0..9u64],
        chunk_bytes in prop::option::of(1..1_000_000u64),
        element in element(),
        dsets in 1..4u64,
        max_shape in dims(),
        names in (word(), "[a-z_.-]{0,5}"),
        columns in prop::collection::vec((word(), element(), 1..9u64, 1..9u64, any::<bool>()), 0..4),
    ) -> Dataset {
        let columns = columns.into_iter().map(|(name, element, width, count, is_read)| ParquetColumn {
            name, element, width, count, is_read,
        });
        let is_parquet = format == Format::Parquet;
        let mut columns: Vec<_> = columns.filter(|_| is_parquet).collect();
        if let Some(first) = columns.first_mut() {
            first.is_read = true;
        }
        Dataset {
            record_length_bytes: if whole { length.floor() } else { length },
            record_length_bytes_stdev: if record_dims.is_empty() { stdev } else { 0.0 },
            record_length_bytes_resize: counts[0],
            n_files_train: counts[1],
            n_files_eval: counts[1],
            n_samples_per_file: counts[1],
            data_folder: names.0,
            n_subfolders_train: counts[2],
            n_subfolders_eval: counts[3],
            file_prefix: names.1,
            format,
            compression,
            compression_level: counts[4] as u32,
            chunk_bytes,
            keep_files: whole,
            hdf5: Hdf5 {
                chunk_dims: if format == Format::Hdf5 { record_dims.clone() } else { Vec::new() },
                n_dsets_per_record: dsets,
                max_shape,
            },
            record_dims,
            element,
            parquet: Parquet { columns, row_group_rows: counts[2] },
            sides: None,
            seed: counts[0],
        }
    }
}

prop_compose! {
    fn reader()(
        counts in [1..100u64, 1..100u64, 0..100u64, 1..100u64, 0..100u64, 0..5000u64],
        loader in prop::sample::select(vec![Loader::Tensorflow, Loader::Pytorch, Loader::NativeDali, Loader::Dali]),
        shuffles in [prop::sample::select(vec![Shuffle::Off, Shuffle::Seed, Shuffle::Random]),
            prop::sample::select(vec![Shuffle::Off, Shuffle::Seed, Shuffle::Random])],
        in_memory in any::<bool>(),
        transfer_size in prop::option::of(1..1_000_000u64),
        preprocess_time in time(),
        transformed_dims in dims(),
        transformed_element in element(),
    ) -> Reader {
        let [batch_size, batch_size_eval, read_threads, computation_threads, prefetch_size, shuffle_size] = counts;
        let [file_shuffle, sample_shuffle] = shuffles;
        Reader {
            loader, batch_size, batch_size_eval, read_threads, computation_threads, prefetch_size, file_shuffle,
            sample_shuffle, shuffle_size, in_memory, transfer_size, odirect: false, preprocess_time, transformed_dims,
            transformed_element, decode_bytes_per_s: None,
        }
    }
}

prop_compose! {
    fn model()(
        name in word(),
        kind in prop::option::of(word()),
        size_bytes in 0..1_000_000_000u64,
        elements in [element(), element()],
        lists in [dims(), dims()],
        n_layers in prop::option::of(1..100u64),
        spread in (1..9u64, 1..9u64, 0..3u8),
        transformer in prop::option::of([1..9u64, 1..9u64, 1..9u64, 1..9u64, 1..9u64]),
    ) -> Model {
        let [optimization_groups, layer_parameters] = lists;
        let transformer = transformer.map(|[vocab_size, hidden_size, ffn_hidden_size, n_attention_heads, n_kv_heads]| {
            Transformer { vocab_size, hidden_size, ffn_hidden_size, n_attention_heads, n_kv_heads }
        });
        Model {
            name, kind, size_bytes, weight: elements[0], optimizer: elements[1], optimization_groups, n_layers,
            layer_parameters, transformer,
            parallelism: Parallelism { tensor: spread.0, pipeline: spread.1, data: None, zero_stage: spread.2 },
        }
    }
}

prop_compose! {
    fn checkpoint()(
        folder in word(),
        counts in [1..9u64, 1..9u64, 5..9u64, 0..5u64],
        steps_between in prop::option::of(1..99u64),
        flags in any::<[bool; 5]>(),
        time_between in 0.0..9.0f64,
    ) -> Checkpoint {
        let [after_epoch, epochs_between, n_write, n_read] = counts;
        let [all_ranks, fsync, recovery_rank_shift, rank_sync, randomize] = flags;
        Checkpoint {
            folder, after_epoch, epochs_between, steps_between, all_ranks, fsync, time_between, n_write, n_read,
            recovery_rank_shift, rank_sync, mode: CheckpointMode::Default, randomize,
        }
    }
}

prop_compose! {
    fn workload()(
        (dataset, reader, model, checkpoint) in (dataset(), reader(), model(), checkpoint()),
        names in (word(), prop::option::of(word())),
        flags in any::<[bool; 6]>(),
        train in (1..9u64, time(), prop::option::of(1..99u64), 0..999u64),
        evaluation in (time(), 1..9u64, 1..9u64),
        limits in (0.0..1.0f64, 0..9u64, 0..9u64),
    ) -> Workload {
        let [pytorch, generate_data, with_train, with_evaluation, with_checkpoint, seed_change_epoch] = flags;
        Workload {
            name: "any".to_owned(),
            framework: if pytorch { Framework::Pytorch } else { Framework::Tensorflow },
            model,
            workflow: Workflow {
                generate_data: generate_data && dataset.compression != Compression::Lzf,
                train: with_train, evaluation: with_evaluation, checkpoint: with_checkpoint,
            },
            storage_root: names.0,
            dataset,
            reader,
            train: Train {
                epochs: train.0, computation_time: train.1, max_steps: train.2, seed: train.3, seed_change_epoch,
            },
            evaluation: Evaluation { eval_time: evaluation.0, after_epoch: evaluation.1, epochs_between: evaluation.2 },
            checkpoint,
            output_folder: names.1,
            limits: Limits { au: limits.0, exclude_start_steps: limits.1, exclude_end_steps: limits.2 },
        }
    }
}

proptest! {
    #[test]
    fn a_workload_comes_back_from_its_toml(workload in workload()) {
        let text = to_toml(&Checked { workload: workload.clone(), notes: Vec::new() });
        match read("any", &text, &[]) {
            Ok(again) => prop_assert_eq!(again.workload, workload, "{}", text),
            Err(problems) => prop_assert!(false, "{:?} in\n{}", problems, text),
        }
    }

    #[test]
    fn no_text_makes_the_reader_fall(text in "(model|dataset|reader|train)?:?[\n -~]{0,80}") {
        let _ = read("any", &text, std::slice::from_ref(&text));
    }

    #[test]
    fn accelerators_never_take_more_samples_than_there_are(workload in workload(), accelerators in 1..50u64) {
        if let Ok(plan) = Plan::new(&workload, accelerators) {
            let taken = plan.steps_per_epoch * workload.reader.batch_size * accelerators;
            prop_assert!(taken <= plan.samples_train, "{} of {}", taken, plan.samples_train);
        }
    }
}
