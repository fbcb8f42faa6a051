//! Generates the pages of `docs/` that follow from the code, or checks that they are up to date.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::ci;
use crate::shell::{output, program, root, run, target};

/// A file, and the examples that print it: each with the word that it is asked with.
type Page = (&'static str, &'static [(&'static str, &'static str)]);

const PAGES: &[Page] = &[
    ("docs/reference/record.schema.json", &[("record_schema", "json")]),
    ("docs/reference/record.md", &[("record_schema", "page")]),
    ("docs/words.md", &[("record_schema", "words")]),
    (
        "docs/reference/study-file.md",
        &[("record_schema", "study"), ("study_reference", "settings"), ("record_schema", "study-results")],
    ),
    ("docs/reference/workload-file.md", &[("workload_reference", "page")]),
];

/// The folder that `forebay man --format markdown` fills.
const COMMANDS: &str = "docs/reference/commands";

/// Texts by path from the repository's root.
type Texts = BTreeMap<PathBuf, String>;

/// Writes the files, and removes pages of commands that are no more.
pub fn write() -> Result<()> {
    let generated = generated()?;
    for path in present()?.keys().filter(|path| !generated.contains_key(*path)) {
        std::fs::remove_file(root().join(path)).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    for (name, text) in generated {
        let path = root().join(&name);
        std::fs::create_dir_all(path.parent().context("a file lies in a folder")?)?;
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", name.display()))?;
    }
    Ok(())
}

/// Compares the files with what would be written; the error names those that differ.
pub fn check() -> Result<()> {
    let (generated, present) = (generated()?, present()?);
    let stale = stale(&generated, &present);
    if !stale.is_empty() {
        bail!("out of date: {}; run cargo xtask generate", stale.join(", "));
    }
    eprintln!("{} generated files are up to date", generated.len());
    Ok(())
}

/// Files that differ, are missing, or are no longer generated.
fn stale(generated: &Texts, present: &Texts) -> Vec<String> {
    let changed = generated.iter().filter(|(path, text)| present.get(*path) != Some(*text)).map(|(path, _)| path);
    let extra = present.keys().filter(|path| !generated.contains_key(*path));
    changed.chain(extra).map(|path| path.display().to_string()).collect()
}

/// The generated files that the repository has.
fn present() -> Result<Texts> {
    let pages = PAGES.iter().map(|(name, _)| PathBuf::from(name)).filter(|path| root().join(path).is_file());
    let read = |path: PathBuf| {
        let text =
            std::fs::read_to_string(root().join(&path)).with_context(|| format!("cannot read {}", path.display()))?;
        Ok((path, text))
    };
    let mut texts: Texts = pages.map(read).collect::<Result<_>>()?;
    if root().join(COMMANDS).is_dir() {
        texts.extend(folder(&root().join(COMMANDS))?);
    }
    Ok(texts)
}

fn generated() -> Result<Texts> {
    let mut targets = vec!["--bin", "forebay"];
    for example in PAGES.iter().flat_map(|(_, parts)| parts.iter().map(|(example, _)| *example)) {
        if !targets.contains(&example) {
            targets.extend(["--example", example]);
        }
    }
    ci::build_like_tests(&targets)?;
    let mut texts = commands()?;
    for (name, parts) in PAGES {
        let print =
            |(example, what): &(&str, &str)| output(program(target().join("debug/examples").join(example)).arg(what));
        texts.insert(PathBuf::from(name), parts.iter().map(print).collect::<Result<String>>()?);
    }
    Ok(texts)
}

/// The pages of the commands, as the program writes them into a new folder.
fn commands() -> Result<Texts> {
    let out = std::path::absolute(target().join("commands"))?;
    if out.exists() {
        std::fs::remove_dir_all(&out).with_context(|| format!("cannot remove {}", out.display()))?;
    }
    run(program(target().join("debug/forebay")).args(["man", "--format", "markdown", "--out"]).arg(&out))?;
    folder(&out)
}

/// The files of a folder, as those of [`COMMANDS`].
fn folder(dir: &Path) -> Result<Texts> {
    let entries = std::fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))?;
    let read = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry?;
        let text =
            std::fs::read_to_string(entry.path()).with_context(|| format!("cannot read {}", entry.path().display()))?;
        Ok((Path::new(COMMANDS).join(entry.file_name()), text))
    };
    entries.map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_differ_are_missing_or_left_over_are_named() {
        let texts = |all: &[(&str, &str)]| -> Texts {
            all.iter().map(|(path, text)| (PathBuf::from(path), (*text).to_owned())).collect()
        };
        let generated = texts(&[("a.md", "1"), ("b.md", "2"), ("c.md", "3")]);
        let present = texts(&[("a.md", "1"), ("b.md", "old"), ("gone.md", "x")]);
        assert_eq!(stale(&generated, &present), ["b.md", "c.md", "gone.md"]);
        assert!(stale(&generated, &generated).is_empty());
    }
}
