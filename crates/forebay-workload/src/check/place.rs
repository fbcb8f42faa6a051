//! Finding the line of a key in a text.
//!
//! The tree of a text has no line numbers, so lines are found by their beginning: keys and indentation in YAML, headers
//! and keys in TOML. A key inside a bracket gets the line of the key before the bracket.

use super::spelling::modern;
use super::tree::is_toml;

/// The line, counted from 1, of a key such as `reader.batch_size`; if it has no line of its own, the line of its table.
/// `None` if the section is missing too.
pub fn line_of(text: &str, key: &str) -> Option<usize> {
    let wanted: Vec<&str> = key.split('.').collect();
    let mut best: Option<(usize, usize)> = None;
    let mut look = |line: usize, path: &[&str]| {
        let path = modern(path.strip_prefix(&["workload"]).unwrap_or(path));
        let is_better = best.is_none_or(|(depth, _)| depth < path.len());
        if !path.is_empty() && wanted.starts_with(&path) && is_better {
            best = Some((path.len(), line));
        }
    };
    if is_toml(text) {
        toml_keys(text, &mut look)
    } else {
        yaml_keys(text, &mut look)
    }
    best.map(|(_, line)| line)
}

fn yaml_keys<'a>(text: &'a str, look: &mut impl FnMut(usize, &[&'a str])) {
    let mut open: Vec<(usize, &str)> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let rest = line.trim_start_matches([' ', '\u{feff}']);
        let indentation = line.len() - rest.len();
        let Some((key, _)) = rest.split_once(':').filter(|_| !rest.starts_with(['#', '-'])) else { continue };
        open.retain(|(outer, _)| *outer < indentation);
        open.push((indentation, bare(key)));
        look(number, &open.iter().map(|(_, key)| *key).collect::<Vec<_>>());
    }
}

fn toml_keys<'a>(text: &'a str, look: &mut impl FnMut(usize, &[&'a str])) {
    let mut section: Vec<&str> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if let Some(header) = line.strip_prefix('[') {
            section =
                header.trim_start_matches('[').split(']').next().unwrap_or_default().split('.').map(bare).collect();
            look(number, &section);
        } else if let Some((key, _)) = line.split_once('=').filter(|_| !line.starts_with('#')) {
            let path: Vec<&str> = section.iter().copied().chain(key.split('.').map(bare)).collect();
            look(number, &path);
        }
    }
}

fn bare(key: &str) -> &str {
    key.trim().trim_matches(['"', '\''])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_in_its_own_section_under_any_spelling() {
        let yaml = "# batch_size: 1\nworkload:\n  dataset:\n    format: npz\n\n  data_reader:\n    format: x\n    batch_size: 4\n";
        let place = |key| line_of(yaml, key);
        assert_eq!(
            (place("dataset.format"), place("reader.batch_size"), place("reader.format")),
            (Some(4), Some(8), Some(7))
        );
        assert_eq!((place("dataset"), place("train.epochs")), (Some(3), None));
        let toml = "a.b = 1\n[reader]\n# why\nbatch_size = 4\n[model.parallelism]\ntensor = 2\n";
        let place = |key| line_of(toml, key);
        assert_eq!(
            (place("a.b"), place("reader.batch_size"), place("model.parallelism.tensor")),
            (Some(1), Some(4), Some(6))
        );
    }

    #[test]
    fn what_has_no_line_of_its_own_is_where_its_table_is() {
        let yaml = "train:\n  computation_time: {type: gamma,\n    mean: 3}\nmodel: {name: x}\n";
        assert_eq!(line_of(yaml, "train.computation_time.type"), Some(2));
        assert_eq!((line_of(yaml, "train.epochs"), line_of(yaml, "model.name")), (Some(1), Some(4)));
    }
}
