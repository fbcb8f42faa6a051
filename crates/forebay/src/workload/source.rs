//! The workload on the command line: a built-in name or a file, with DLIO's overrides.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use forebay_emulation::WorkloadSettings;
use forebay_measure::spelled;
use forebay_units::{PathText, count, nearest, shell_word};
use forebay_workload::{Checked, Problem, builtin, line_of, read};

use crate::flags::flag;

const ENDINGS: [&str; 3] = ["yaml", "yml", "toml"];

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Source {
    /// Name of a built-in workload, or a file: DLIO's YAML or forebay's TOML
    #[arg(value_name = "NAME|FILE")]
    pub(super) name: OsString,

    /// Overrides in DLIO's syntax, for example ++workload.reader.read_threads=8
    #[arg(value_name = "++workload.a.b=c", value_parser = parse_override)]
    pub(super) overrides: Vec<String>,
}

impl Source {
    pub(super) fn read(&self) -> Result<Checked> {
        let (name, text) = text_of(&self.name)?;
        if self.replay()?.is_some() {
            bail!(
                "{}: this is a traced job, which only `workload check`, `show`, `make` and `run` take",
                self.name.escaped()
            );
        }
        read(&name, &text, &self.overrides).map_err(|problems| {
            let told = |problem: &Problem| describe_problem(problem, line(problem, &text, &self.overrides));
            all_refused(&self.name, &problems.iter().map(told).collect::<Vec<_>>())
        })
    }

    /// Reads the workload and applies the settings that shrink it or emulate a loader.
    pub(super) fn read_with(&self, settings: &WorkloadSettings) -> Result<Checked> {
        let mut checked = self.read()?;
        settings.apply(&mut checked.workload).map_err(|refused| all_refused(&self.name, &[spelled(&refused, flag)]))?;
        Ok(checked)
    }

    pub(super) fn file(&self) -> Option<&Path> {
        file_of(&self.name)
    }

    /// The arguments that name the workload on a command line.
    pub(super) fn words(&self) -> String {
        let overrides = self.overrides.iter().map(shell_word);
        std::iter::once(shell_word(&self.name)).chain(overrides).collect::<Vec<_>>().join(" ")
    }
}

/// The file, unless the name is a built-in workload.
pub(super) fn file_of(name: &OsStr) -> Option<&Path> {
    name.to_str().and_then(builtin::find).is_none().then(|| Path::new(name))
}

/// The name and text of a built-in workload or a file.
pub(super) fn text_of(source: &OsStr) -> Result<(String, String)> {
    let shown = source.escaped();
    if let Some(builtin) = source.to_str().and_then(builtin::find) {
        return Ok((builtin.name.to_owned(), builtin.text.to_owned()));
    }
    if let Some(name) = shown.strip_prefix("workload=") {
        bail!("{shown}: give the name alone: {name}");
    }
    let path = Path::new(source);
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    if !(ENDINGS.contains(&ending) || shown.contains('/') || path.exists()) {
        bail!("{}", unknown(&shown));
    }
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
    let name = path.file_stem().unwrap_or(source).escaped().into_owned();
    Ok((name, text))
}

fn unknown(name: &str) -> String {
    let near = nearest(name, builtin::all().iter().map(|builtin| builtin.name));
    let near = near.map(|near| format!("; did you mean `{near}`?"));
    format!("no workload or file named {name}{}\nhint: `forebay workload list` lists them", near.unwrap_or_default())
}

pub(super) fn refused(name: &OsStr, problem: &Problem) -> anyhow::Error {
    all_refused(name, &[problem.to_string()])
}

fn all_refused(name: &OsStr, problems: &[String]) -> anyhow::Error {
    let name = name.escaped();
    match problems {
        [one] => anyhow!("{name}: {one}"),
        several => {
            let lines: Vec<String> = several.iter().map(|problem| format!("\n  {problem}")).collect();
            anyhow!("{name}: {}{}", count(several.len() as u64, "problem"), lines.concat())
        }
    }
}

pub(super) fn describe_problem(problem: &Problem, line: Option<usize>) -> String {
    line.map_or_else(|| problem.to_string(), |line| format!("line {line}: {problem}"))
}

/// The line of a problem; none if an override caused it.
pub(super) fn line(problem: &Problem, text: &str, overrides: &[String]) -> Option<usize> {
    let within = |inner: &str, outer: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let is_overridden = overrides.iter().any(|words| {
        let path = words.trim_start_matches('+').split('=').next().unwrap_or_default();
        let path = path.trim_start_matches("workload.");
        within(&problem.key, path) || within(path, &problem.key)
    });
    if is_overridden { None } else { line_of(text, &problem.key) }
}

/// Checks the syntax of an override in DLIO's form; its key is checked with the workload.
pub(super) fn parse_override(text: &str) -> Result<String, String> {
    let bare = text.trim_start_matches('+');
    match bare.split_once('=') {
        Some(("workload", name)) => Err(format!("give the workload's name as the first argument: {name}")),
        Some((key, _)) if key.starts_with("workload.") => Ok(text.to_owned()),
        Some((key, _)) if key.starts_with("hydra.") => {
            Err("this sets DLIO's launcher; use --out DIR for results".to_owned())
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
            "give the workload's name as the first argument: unet3d"
        );
        assert!(parse_override("++hydra.run.dir=x").unwrap_err().contains("--out"));
        assert!(parse_override("reader.batch_size=4").is_err() && parse_override("other").is_err());
    }

    #[test]
    fn a_problem_is_told_with_its_line_unless_an_override_made_it() {
        let (text, problem) = ("a:\n  b: x\n", Problem { key: "a.b".to_owned(), text: "no".to_owned() });
        assert_eq!(describe_problem(&problem, line(&problem, text, &[])), "line 2: a.b: no");
        assert_eq!(line(&problem, text, &["++workload.a.bc=1".to_owned()]), Some(2));
        for words in ["++workload.a.b=1", "+workload.a={b: 1}", "++workload.a.b.c=1"] {
            assert_eq!(line(&problem, text, &[words.to_owned()]), None, "{words}");
        }
    }
}
