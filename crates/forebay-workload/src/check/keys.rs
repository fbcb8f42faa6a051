//! All keys of a workload file, for the reference page. The reader declares them: a file that has nothing but the optional tables is
//! read, and every key that was looked for is one.

use forebay_units::Element;

use super::law::LAWS;
use super::meanings::MEANINGS;
use super::section::ELEMENTS;
use super::spelling::MOVED;
use crate::import::with_defaults;
use crate::{Compression, Format};

/// A key of a workload file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Such as `reader.batch_size`; `[]` is an element of a list.
    pub path: String,
    pub role: Role,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    Honoured {
        /// Accepted values, in Markdown.
        value: String,
    },
    /// Accepted without effect, for this reason.
    Idle(&'static str),
    /// Refused if given, for this reason.
    Refused(&'static str),
}

/// Tables that a file may leave out.
const OPTIONAL: &str = "{model: {transformer: {}}, dataset: {parquet: {columns: [{name: x}]}}}";

/// In the order of the sections of a file.
pub fn all() -> Vec<Key> {
    declared_by(OPTIONAL)
}

fn declared_by(text: &str) -> Vec<Key> {
    let (_, findings) = super::found("", text, &[]).expect("the text is YAML");
    findings.keys.into_iter().map(|key| Key { path: shown(&key.path), ..key }).collect()
}

/// The number of an element is of no interest.
fn shown(path: &str) -> String {
    path.replace(".0.", "[].")
}

/// What an honoured key means.
pub fn meaning(path: &str) -> Option<&'static str> {
    MEANINGS.iter().find(|(key, _)| *key == path).map(|(_, meaning)| *meaning)
}

/// Keys with a default, and its TOML.
pub fn defaults() -> Vec<(String, String)> {
    let (workload, _) = super::found("", OPTIONAL, &[]).expect("the text is YAML");
    let table: toml::Table = toml::from_str(&with_defaults(&workload)).expect("our own TOML is right");
    let mut found = Vec::new();
    flatten("", &toml::Value::Table(table), &mut found);
    let says_nothing = |value: &str| ["\"\"", "[]"].contains(&value);
    found.retain(|(path, value)| !says_nothing(value) && path != "dataset.parquet.columns[].name");
    found
}

fn flatten(path: &str, value: &toml::Value, found: &mut Vec<(String, String)>) {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match value {
        toml::Value::Table(table) => table.iter().for_each(|(key, value)| flatten(&below(key), value, found)),
        toml::Value::Array(items) if items.iter().any(toml::Value::is_table) => {
            items.iter().for_each(|item| flatten(&format!("{path}[]"), item, found));
        }
        value => found.push((path.to_owned(), value.to_string())),
    }
}

/// The distributions that a time may follow, with their parameters.
pub fn distributions() -> Vec<(&'static str, Vec<String>)> {
    let parameters = |name: &str| {
        let prefix = "train.computation_time.";
        let keys = declared_by(&format!("train: {{computation_time: {{type: {name}}}}}")).into_iter();
        let below = keys.filter_map(|key| key.path.strip_prefix(prefix).map(str::to_owned));
        below.filter(|key| key != "type").collect()
    };
    LAWS.iter().map(|(name, _)| (*name, parameters(name))).collect()
}

/// Keys of earlier versions of DLIO, and their present names.
pub fn older_names() -> &'static [(&'static str, &'static str)] {
    &MOVED
}

/// Element types, with all their names.
pub fn element_types() -> Vec<Vec<&'static str>> {
    let names = |element: Element| ELEMENTS.iter().filter(move |(_, of)| *of == element).map(|(name, _)| *name);
    Element::ALL.into_iter().map(|element| names(element).collect()).collect()
}

/// What a data format supports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Support {
    pub format: &'static str,
    /// Compressions that files are made and read with.
    pub made: Vec<&'static str>,
    /// Compressions that files are read with, but not made.
    pub only_read: Vec<&'static str>,
    /// Whether files can be read with O_DIRECT.
    pub is_direct: bool,
}

/// Of every format.
pub fn formats() -> Vec<Support> {
    let names = |all: &[Compression]| all.iter().map(|compression| compression.name()).collect();
    let support = |format: Format| {
        let facts = format.facts();
        let (made, only_read) = (names(facts.made), names(facts.only_read));
        Support { format: format.name(), made, only_read, is_direct: facts.is_direct }
    };
    Format::ALL.into_iter().map(support).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_honoured_key_has_one_meaning() {
        let keys: BTreeSet<String> =
            all().into_iter().filter(|key| matches!(key.role, Role::Honoured { .. })).map(|key| key.path).collect();
        let meanings: Vec<&str> = MEANINGS.iter().map(|(key, _)| *key).collect();
        assert_eq!(meanings.iter().collect::<BTreeSet<_>>().len(), meanings.len());
        let missing: Vec<&String> = keys.iter().filter(|key| !meanings.contains(&key.as_str())).collect();
        let unknown: Vec<&&str> = meanings.iter().filter(|key| !keys.contains(**key)).collect();
        assert_eq!((missing, unknown), (Vec::<&String>::new(), Vec::new()));
    }

    #[test]
    fn every_key_that_is_written_is_listed() {
        let keys: Vec<String> = all().into_iter().map(|key| key.path).collect();
        let unlisted: Vec<(String, String)> = defaults().into_iter().filter(|(path, _)| !keys.contains(path)).collect();
        assert_eq!(unlisted, []);
    }

    #[test]
    fn values_reasons_and_defaults_are_those_of_the_reader() {
        let keys = all();
        let role = |path: &str| keys.iter().find(|key| key.path == path).unwrap().role.clone();
        let threads = Role::Honoured { value: "whole number from 0 to 1,024".to_owned() };
        assert_eq!(role("reader.read_threads"), threads);
        assert!(matches!(role("reader.pin_memory"), Role::Idle(why) if why.contains("PyTorch")));
        assert!(matches!(role("defaults"), Role::Refused(why) if why.contains("composing")));
        let default = |path: &str| defaults().into_iter().find(|(key, _)| key == path).map(|(_, value)| value);
        assert_eq!(default("metric.au").as_deref(), Some("0.9"));
        assert_eq!(default("dataset.parquet.columns[].dtype").as_deref(), Some("\"f32\""));
        let gamma = distributions().into_iter().find(|(name, _)| *name == "gamma").unwrap();
        assert_eq!(gamma.1, ["shape", "scale"]);
    }
}
