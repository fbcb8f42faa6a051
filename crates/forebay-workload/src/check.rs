//! From a text to a workload: every key is honoured or refused by name.

use crate::Workload;

/// Something to say about a key that is honoured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The key, as `checkpoint.fsync`.
    pub key: String,
    /// What to know of it.
    pub text: String,
}

/// A key or a value that is refused, or a contradiction.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {text}")]
pub struct Problem {
    /// The key, as `dataset.fromat`; the text's place where it is not even YAML or TOML.
    pub key: String,
    /// What is wrong, with the nearest key where it is unknown.
    pub text: String,
}

/// A workload and what to know of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// The workload.
    pub workload: Workload,
    /// Keys that mean more or something else than DLIO makes of them.
    pub notes: Vec<Note>,
}

/// Reads a workload of DLIO's YAML or our TOML (told apart by the text), with `++workload.a.b=c` overrides in their order.
///
/// # Errors
/// Everything that is wrong with it, not only the first.
pub fn read(name: &str, text: &str, overrides: &[String]) -> Result<Checked, Vec<Problem>> {
    let _ = (name, text, overrides);
    unimplemented!()
}
