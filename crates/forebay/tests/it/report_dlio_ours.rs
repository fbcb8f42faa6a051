//! `forebay report --from-dlio` on what `forebay workload run --out` wrote: the same figures as the run's own record.

use crate::dir::{Dir, flat};
use crate::workload::TINY;

/// The figures of a report by their names.
fn figure(dir: &Dir, of: &str, metric: &str) -> f64 {
    dir.met(&format!("report {of} --csv figures.csv"));
    let csv = String::from_utf8(dir.read("figures.csv")).unwrap();
    let head: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    let column = |name: &str| head.iter().position(|found| *found == name).unwrap_or_else(|| panic!("{name}: {csv}"));
    let (name, value) = (column("metric"), column("value"));
    let mut rows = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let row = rows.find(|row| row[name] == metric).unwrap_or_else(|| panic!("{metric}: {csv}"));
    row[value].parse().unwrap_or_else(|_| panic!("{metric}: {csv}"))
}

/// Accelerators, epochs, steps and batch of an account.
fn setting(text: &str) -> Vec<String> {
    let text = flat(text);
    let of = |name: &str, end: &str| {
        text.split_once(name).and_then(|(_, rest)| rest.split_once(end)).map(|of| of.0.to_owned())
    };
    let line = of(" settings ", " processor ").unwrap_or_default();
    let is_told = |words: &&str| ["batch ", " epoch", " accelerator"].iter().any(|told| words.contains(told));
    line.split("; ").filter(is_told).map(str::to_owned).chain(of("steps per epoch ", " ")).collect()
}

/// Runs the tiny workload with what is changed of it, and holds both accounts against each other.
fn agrees(changes: &str, flags: &str) {
    let dir = Dir::new();
    dir.write("tiny.yaml", TINY);
    dir.met(&format!("workload make tiny.yaml --data set {changes}"));
    let ran = dir.run(&format!("workload run tiny.yaml --data set --out results {flags} {changes}"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let text = dir.met("report --from-dlio results");
    assert_eq!(setting(&text), setting(&ran.stdout), "{changes} {flags}\n{text}\n{}", ran.stdout);
    assert!(!text.contains("batch size"), "the batch is known: {text}");
    // DLIO's times of day have microseconds; its own figures are written with all their digits.
    for (metric, within) in [("samples_per_s", 2e-3), ("au_epoch", 2e-3), ("au_dlio", 1e-12), ("wall_s", 2e-3)] {
        let [ours, theirs] = ["results", "--from-dlio results"].map(|of| figure(&dir, of, metric));
        assert!((ours / theirs - 1.0).abs() <= within, "{changes} {flags}: {metric} {ours} {theirs}");
    }
}

#[test]
fn one_accelerator_whose_last_batch_would_not_be_whole() {
    agrees("++workload.dataset.num_files_train=30 ++workload.reader.batch_size=7", "");
}

#[test]
fn two_accelerators_with_checkpoints_between_steps() {
    let saves = "++workload.workflow.checkpoint=True ++workload.checkpoint.steps_between_checkpoints=2";
    agrees(
        &format!("++workload.dataset.num_files_train=33 ++workload.reader.batch_size=3 {saves}"),
        "--accelerators 2",
    );
}

#[test]
fn evaluations_and_fewer_steps_than_there_is_data_for() {
    let evaluates = "++workload.workflow.evaluation=True ++workload.dataset.num_files_eval=4";
    let few =
        "++workload.dataset.num_files_train=30 ++workload.reader.batch_size=4 ++workload.train.total_training_steps=3";
    agrees(&format!("{few} {evaluates} ++workload.dataset.num_samples_per_file=2"), "");
}
