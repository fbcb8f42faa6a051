//! Parsing a workload: every key is honoured or refused by name.

mod data;
pub mod keys;
mod law;
mod meanings;
mod overrides;
mod phases;
mod place;
mod remarks;
mod rules;
mod section;
mod spelling;
mod syntax;
mod tree;

pub use place::line_of;
pub(crate) use syntax::of_toml as toml_problem;

use section::{Findings, Section};
use tree::Tree;

use crate::{Compression, Dataset, Format, Framework, Loader, Workload};

/// A note on an accepted key, for instance that it has another effect than in DLIO.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Note {
    /// The key, for example `checkpoint.fsync`.
    pub key: String,
    pub text: String,
}

/// An invalid key or value, or a contradiction.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {text}")]
pub struct Problem {
    /// The key, for example `dataset.fromat`; the line and column if the text is neither YAML nor TOML.
    pub key: String,
    /// What is wrong; for an unknown key, with the nearest known key.
    pub text: String,
}

/// A workload with its notes.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    pub workload: Workload,
    /// Notes on keys whose effect differs from DLIO.
    pub notes: Vec<Note>,
}

/// Reads a workload in DLIO's YAML or our TOML (recognised by the text), and applies `++workload.a.b=c` overrides in order.
///
/// # Errors
/// All problems, not only the first.
pub fn read(name: &str, text: &str, overrides: &[String]) -> Result<Checked, Vec<Problem>> {
    let (workload, findings) = found(name, text, overrides).map_err(|problem| vec![problem])?;
    if findings.problems.is_empty() { Ok(Checked { workload, notes: findings.notes }) } else { Err(findings.problems) }
}

/// Reads a workload that another program has already run: problems are returned with it, and refused keys get their
/// defaults.
///
/// # Errors
/// When the text is neither YAML nor TOML.
pub(crate) fn read_foreign(name: &str, text: &str) -> Result<(Workload, Vec<Problem>), Problem> {
    found(name, text, &[]).map(|(workload, findings)| (workload, findings.problems))
}

fn found(name: &str, text: &str, overrides: &[String]) -> Result<(Workload, Findings), Problem> {
    let mut tree = tree::parse(text)?;
    let mut findings = Findings::default();
    spelling::modernise(&mut tree, &mut findings);
    overrides::apply(&mut tree, overrides, &mut findings.problems);
    let mut interpolations = Vec::new();
    tree.interpolations("", &mut interpolations);
    for (key, value) in interpolations {
        findings.problems.push(Problem { key, text: format!("{value} is not interpolated; write the value itself") });
    }
    let mut workload = workload(name, tree, &mut findings);
    findings.say_where_unknown_keys_belong();
    rules::check(&workload, &mut findings);
    remarks::find(&workload, &mut findings);
    if workload.reader.loader == Loader::Synthetic {
        let Dataset { hdf5, parquet, .. } = Dataset::default();
        let (format, compression) = (Format::Synthetic, Compression::None);
        workload.dataset = Dataset { format, compression, hdf5, parquet, ..workload.dataset };
    }
    Ok((workload, findings))
}

fn workload(name: &str, tree: Tree, findings: &mut Findings) -> Workload {
    let mut workload = Workload { name: name.to_owned(), ..Workload::default() };
    let mut top = Section::new("", tree, findings);
    let frameworks = [("tensorflow", Framework::Tensorflow), ("pytorch", Framework::Pytorch)];
    workload.framework = top.choice("framework", &frameworks).unwrap_or_default();
    workload.model = phases::model(top.below("model"));
    workload.checkpoint = phases::checkpoint(top.below("checkpoint"));
    let (workflow, profiling) = phases::workflow(top.below("workflow"));
    workload.workflow = workflow;
    phases::profiling(top.below("profiling"), profiling);
    data::storage(top.below("storage"), &mut workload.storage_root);
    workload.dataset = data::dataset(top.below("dataset"));
    workload.reader = data::reader(top.below("reader"));
    if workload.framework == Framework::Tensorflow && workload.reader.loader == Loader::Pytorch
        || workload.framework == Framework::Pytorch && workload.reader.loader == Loader::Tensorflow
    {
        top.note("framework", "DLIO refuses a loader of another framework; here neither key affects how data is read");
    }
    workload.train = phases::train(top.below("train"));
    workload.evaluation = phases::evaluation(top.below("evaluation"));
    workload.output_folder = phases::output(top.below("output"), &mut workload.limits);
    phases::metric(top.below("metric"), &mut workload.limits);
    top.impossible("defaults", "composing files is not supported; write the workload into one file");
    top.impossible("hydra", "not supported: it configures Hydra's own folders");
    top.finish();
    workload
}
