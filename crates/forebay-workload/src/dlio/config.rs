//! Hydra's files of a DLIO run: `.hydra/config.yaml` and `.hydra/overrides.yaml`.
//!
//! DLIO's post-processor and tools that compare runs read batch, epochs and record length from there. Every key is
//! written, because readers have different defaults. Floats have a decimal point and no exponent, as YAML 1.1 requires.

use crate::Workload;
use crate::import::with_defaults;

/// `.hydra/config.yaml`: the workload as run, with overrides applied.
///
/// The record length is written in the spelling of DLIO 2.0 too.
pub fn config_yaml(workload: &Workload) -> String {
    let mut table: toml::Table = toml::from_str(&with_defaults(workload)).expect("our own TOML is right");
    if let Some(toml::Value::Table(dataset)) = table.get_mut("dataset") {
        for end in ["", "_stdev", "_resize"] {
            let value = dataset.get(&format!("record_length_bytes{end}")).cloned();
            value.map(|value| dataset.insert(format!("record_length{end}"), value));
        }
    }
    format!("workload:\n{}", block(&table, 1))
}

/// `.hydra/overrides.yaml`: the workload's name and the overrides.
pub fn overrides_yaml(name: &str, overrides: &[String]) -> String {
    let line = |word: &str| format!("- {}\n", if is_plain(word) { word.to_owned() } else { text(word) });
    overrides.iter().fold(line(&format!("workload={name}")), |lines, word| lines + &line(word))
}

/// Whether YAML accepts a text unquoted.
fn is_plain(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || "+._=/-".contains(c))
}

fn block(table: &toml::Table, depth: usize) -> String {
    let entry = |(key, value): (&String, &toml::Value)| {
        let indent = "  ".repeat(depth);
        match value {
            toml::Value::Table(below) if !below.is_empty() => format!("{indent}{key}:\n{}", block(below, depth + 1)),
            value => format!("{indent}{key}: {}\n", inline(value)),
        }
    };
    table.iter().map(entry).collect()
}

fn inline(value: &toml::Value) -> String {
    let listed = |parts: Vec<String>| parts.join(", ");
    match value {
        toml::Value::String(value) => text(value),
        toml::Value::Float(value) if value.fract() == 0.0 => format!("{value:.1}"),
        toml::Value::Float(value) => value.to_string(),
        toml::Value::Array(values) => format!("[{}]", listed(values.iter().map(inline).collect())),
        toml::Value::Table(table) => {
            let entries = table.iter().map(|(key, value)| format!("{key}: {}", inline(value)));
            format!("{{{}}}", listed(entries.collect()))
        }
        other => other.to_string(),
    }
}

/// A text in double quotes, where YAML uses JSON's escapes.
fn text(text: &str) -> String {
    serde_json::to_string(text).expect("a text is JSON")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Time, builtin, read};

    #[test]
    fn every_built_in_comes_back_from_its_config() {
        for builtin in builtin::all() {
            let workload = builtin.checked().workload;
            let text = config_yaml(&workload);
            let again = read(builtin.name, &text, &[]).unwrap_or_else(|problems| panic!("{problems:?} in\n{text}"));
            assert_eq!(again.workload, workload, "{text}");
        }
    }

    #[test]
    fn what_readers_look_for_is_there_also_where_it_is_the_default() {
        let mut workload = Workload::default();
        workload.train.computation_time = Time::Normal { mean: 1e-7, stdev: 0.0 };
        workload.model.name = "a \"b\": #c".to_owned();
        let text = config_yaml(&workload);
        for line in [
            "workload:",
            "    batch_size: 1",
            "    epochs: 1",
            "    record_length: 65536",
            "    record_length_bytes: 65536",
            "    computation_time: 0.0000001",
            "    name: \"a \\\"b\\\": #c\"",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
        assert_eq!(read("", &text, &[]).unwrap().workload, workload);
    }

    #[test]
    fn overrides_are_listed_as_hydra_lists_them() {
        let text =
            overrides_yaml("tiny", &["++workload.reader.batch_size=7", "++workload.a={b: 1}"].map(str::to_owned));
        assert_eq!(text, "- workload=tiny\n- ++workload.reader.batch_size=7\n- \"++workload.a={b: 1}\"\n");
    }
}
