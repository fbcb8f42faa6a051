//! Keys of earlier DLIO versions, and their present names.
//!
//! They are renamed before overrides apply, so an override in the present spelling finds a value that the file has in an
//! older one, and vice versa.

use super::section::Findings;
use super::tree::Tree;
use super::{Note, Problem};

/// Keys of DLIO 2.0 and earlier, and their present names.
pub(super) const MOVED: [(&str, &str); 13] = [
    ("data_reader", "reader"),
    ("dataset.record_length", "dataset.record_length_bytes"),
    ("dataset.record_length_stdev", "dataset.record_length_bytes_stdev"),
    ("dataset.record_length_resize", "dataset.record_length_bytes_resize"),
    ("checkpoint.model_size", "model.model_size_bytes"),
    ("checkpoint.optimization_groups", "model.optimization_groups"),
    ("checkpoint.num_layers", "model.num_layers"),
    ("checkpoint.layer_parameters", "model.layer_parameters"),
    ("checkpoint.tensor_parallelism", "model.parallelism.tensor"),
    ("checkpoint.pipeline_parallelism", "model.parallelism.pipeline"),
    ("checkpoint.num_checkpoints", "checkpoint.num_checkpoints_write"),
    ("model.model_size", "model.model_size_bytes"),
    ("workflow.do_eval", "workflow.evaluation"),
];

/// Keys that occur in DLIO's own files but that DLIO does not read.
const UNREAD: [(&str, &str); 2] = [
    (
        "model.model_size",
        "DLIO ignores it, reads only model_size_bytes and saves 10,240 bytes; here it is the model size",
    ),
    ("workflow.do_eval", "DLIO ignores it, reads only evaluation and does not evaluate; here it means evaluation"),
];

/// Converts a file's tree to the present form: no `workload:` around it, the model as a table, keys renamed.
pub(super) fn modernise(tree: &mut Tree, findings: &mut Findings) {
    unwrap_workload(tree);
    match tree.remove(&["model"]) {
        Some(Tree::Text(name)) => tree.put(&["model", "name"], Tree::Text(name)),
        Some(other) => tree.put(&["model"], other),
        None => {}
    }
    for (old, new) in MOVED {
        let Some(value) = tree.remove(&path(old)) else { continue };
        if tree.has(&path(new)) {
            // Files for several versions of DLIO have both spellings.
            if tree.get(&path(new)) == Some(&value) {
                continue;
            }
            let text = format!("same key as {new}, which is given too");
            findings.problems.push(Problem { key: old.to_owned(), text });
            continue;
        }
        tree.put(&path(new), value);
        let unread = UNREAD.iter().filter(|(key, _)| *key == old);
        findings.notes.extend(unread.map(|(key, text)| Note { key: (*key).to_owned(), text: (*text).to_owned() }));
    }
}

/// The present path of a key.
pub(super) fn modern<'a>(given: &[&'a str]) -> Vec<&'a str> {
    for (old, new) in MOVED {
        if let Some(rest) = given.strip_prefix(path(old).as_slice()) {
            return new.split('.').chain(rest.iter().copied()).collect();
        }
    }
    given.to_vec()
}

fn path(key: &str) -> Vec<&str> {
    key.split('.').collect()
}

/// Removes a `workload:` around everything, as Hydra writes it into its output folder.
fn unwrap_workload(tree: &mut Tree) {
    if let Tree::Table(entries) = tree
        && let [(key, inner)] = entries.as_mut_slice()
        && key == "workload"
    {
        *tree = std::mem::replace(inner, Tree::Null);
    }
}
