//! Workloads and DLIO's results: texts, held against the laws of their readers.

use forebay_workload::{Plan, builtin, dlio, import, read};

/// The built-in workloads, and YAML that has what they lack.
pub fn seeds() -> Vec<Vec<u8>> {
    let yaml = "workload:\n  model: {name: x, type: cnn, model_size: 5}\n  framework: pytorch\n  data_reader: {batch_size: 2,\n    \
        sample_shuffle: off, preprocess_time: {type: gamma, shape: 2, scale: 0.1}, transfer_size: 64 KiB}\n  dataset:\n    \
        record_dims: [2, 3]\n    format: hdf5\n    enable_chunking: true\n    chunk_size: 4096\n    hdf5: {chunk_dims: [1, 3]}\n  \
        checkpoint: {num_layers: 3, type: all_ranks}\n  metric: {au: 0.5}\n";
    let built_in = builtin::all().iter().map(|builtin| builtin.text.as_bytes().to_vec());
    built_in.chain([yaml.as_bytes().to_vec()]).collect()
}

/// A workload that could be read comes back from its own TOML, and can be planned or not.
pub fn read_text(input: &[u8]) -> String {
    let Ok(text) = std::str::from_utf8(input) else { return "no text".to_owned() };
    let checked = match read("fuzzed", text, &[]) {
        Ok(checked) => checked,
        Err(problems) => {
            return problems.first().map_or(String::new(), |problem| letters(&problem.text));
        }
    };
    let again = read("fuzzed", &import::to_toml(&checked), &[]).expect("our own TOML is right");
    assert_eq!(again.workload, checked.workload);
    match Plan::new(&checked.workload, 2) {
        Ok(_) => "ok".to_owned(),
        Err(problem) => letters(&problem.key),
    }
}

/// What one rank of DLIO wrote.
pub fn dlio_seeds() -> Vec<Vec<u8>> {
    let output = r#"{"host_memory_GB": 23.5, "1": {"load": {"block1": [0.1, 0.2], "eval": [0.1]},
        "proc": {"block1": [0.3, 0.4, 0.5], "eval": [0.2]}, "compute": {"block1": [0.2, 0.2, 0.2], "eval": [0.1]},
        "au": {"block1": 66.0, "eval": NaN}, "throughput": {"block1": 2.5, "eval": 5.0}}, "hostname": "node"}"#;
    vec![output.as_bytes().to_vec()]
}

/// Times that could be read come to figures or to nothing.
pub fn dlio_text(input: &[u8]) -> String {
    let Ok(text) = std::str::from_utf8(input) else { return "no text".to_owned() };
    let stats = r#"{"1": {"start": "2026-01-01T00:00:00.0", "end": "2026-01-01T00:00:02.5"}}"#;
    let files = [
        ("summary.json", "{}"),
        ("0_output.json", text),
        ("per_epoch_stats.json", stats),
        (".hydra/config.yaml", "reader: {batch_size: 2}"),
    ];
    match dlio::read_run(&files.map(|(name, text)| (name.to_owned(), text.to_owned())).into()) {
        Ok(run) => format!("{} {}", run.dlio().is_some(), run.au_epochs().len().min(3)),
        Err(error) => letters(&error.to_string()),
    }
}

/// The first words of a message: behind them is what was found, which makes no outcome new.
fn letters(message: &str) -> String {
    let unquoted: String = message.split(['"', '`']).step_by(2).collect();
    let words = unquoted.split(' ').filter(|word| word.chars().all(char::is_alphabetic));
    words.take(2).collect::<Vec<_>>().join(" ")
}
