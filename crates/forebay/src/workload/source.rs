//! Which workload: a built-in's name or a file, with DLIO's overrides.

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use forebay_units::count;
use forebay_workload::{Checked, Problem, builtin, read};

/// Endings of files that hold workloads.
const ENDINGS: [&str; 3] = ["yaml", "yml", "toml"];

/// A workload and DLIO's way to change it.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Source {
    /// A built-in workload's name, or a file: DLIO's YAML or our TOML
    #[arg(value_name = "NAME|FILE")]
    pub(super) name: String,

    /// DLIO's overrides, such as ++workload.reader.read_threads=8
    #[arg(value_name = "++workload.a.b=c", value_parser = parse_override)]
    pub(super) overrides: Vec<String>,
}

impl Source {
    /// Reads it, with its overrides.
    pub(super) fn read(&self) -> Result<Checked> {
        let (name, text) = text_of(&self.name)?;
        read(&name, &text, &self.overrides).map_err(|problems| refused(&self.name, &problems))
    }

    /// The words of a command line that name it again.
    pub(super) fn words(&self) -> String {
        std::iter::once(&self.name).chain(&self.overrides).map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
    }
}

/// A word as a shell takes it.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=+,@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The name and the text of a built-in workload or a file.
pub(super) fn text_of(source: &str) -> Result<(String, String)> {
    if let Some(builtin) = builtin::find(source) {
        return Ok((builtin.name.to_owned(), builtin.text.to_owned()));
    }
    if let Some(name) = source.strip_prefix("workload=") {
        bail!("{source}: give the name alone: {name}");
    }
    let path = Path::new(source);
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    if !(ENDINGS.contains(&ending) || source.contains('/') || path.exists()) {
        bail!("{}", unknown(source));
    }
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {source}"))?;
    let name = path.file_stem().map_or(source.to_owned(), |stem| stem.to_string_lossy().into_owned());
    Ok((name, text))
}

fn unknown(name: &str) -> String {
    let near = builtin::all().iter().map(|builtin| (distance(name, builtin.name), builtin.name)).min();
    let near = near.filter(|(far, near)| *far <= near.len() / 2).map(|(_, near)| format!("; {near} is near"));
    format!(
        "there is no workload called {name}, and no such file{}\nhint: `forebay workload list` names them",
        near.unwrap_or_default()
    )
}

/// Letters to add, drop or change to come from one to the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let changed = corner + usize::from(from != *to);
            corner = row[j + 1];
            row[j + 1] = changed.min(corner + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// All that is wrong with a workload, a line each.
pub(super) fn refused(name: &str, problems: &[Problem]) -> anyhow::Error {
    match problems {
        [one] => anyhow!("{name}: {one}"),
        several => {
            let lines: Vec<String> = several.iter().map(|problem| format!("\n  {problem}")).collect();
            anyhow!("{name}: {}{}", count(several.len() as u64, "problem"), lines.concat())
        }
    }
}

/// DLIO's overrides begin with signs and name a value; what they name is checked with the workload.
fn parse_override(text: &str) -> Result<String, String> {
    let bare = text.trim_start_matches('+');
    match bare.split_once('=') {
        Some(("workload", name)) => Err(format!("give the workload's name alone, in the first place: {name}")),
        Some((key, _)) if key.starts_with("workload.") => Ok(text.to_owned()),
        Some((key, _)) if key.starts_with("hydra.") => {
            Err("this is of DLIO's launcher; --out DIR says where results go".to_owned())
        }
        _ => Err("give an override as ++workload.reader.batch_size=4".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_override_names_a_key_of_the_workload() {
        assert!(parse_override("++workload.reader.batch_size=4").is_ok());
        assert_eq!(
            parse_override("workload=unet3d").unwrap_err(),
            "give the workload's name alone, in the first place: unet3d"
        );
        assert!(parse_override("++hydra.run.dir=x").unwrap_err().contains("--out"));
        assert!(parse_override("reader.batch_size=4").is_err() && parse_override("other").is_err());
    }

    #[test]
    fn a_word_is_quoted_only_where_a_shell_would_change_it() {
        assert_eq!(quoted("++workload.a.b=4"), "++workload.a.b=4");
        assert_eq!(quoted("++workload.a.b=[1, 2]"), "'++workload.a.b=[1, 2]'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }

    #[test]
    fn letters_are_counted_from_one_word_to_another() {
        assert_eq!(distance("unet3d_h10", "unet3d_h100"), 1);
        assert_eq!(distance("dlrn", "dlrm"), 1);
        assert_eq!(distance("", "abc"), 3);
    }
}
