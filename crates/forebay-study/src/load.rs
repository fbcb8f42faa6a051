//! Finds and reads a study's file; errors name the line and suggest the nearest known word.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use forebay_record::StudySpec;
use forebay_units::{PathText, nearest, suggest};

use super::error::{Error, Result};

const BUILT_IN: &[(&str, &str)] = &[
    ("advice", include_str!("../studies/advice.toml")),
    ("chien-2018", include_str!("../studies/chien-2018.toml")),
    ("hugen-2025", include_str!("../studies/hugen-2025.toml")),
    ("nelson-2022", include_str!("../studies/nelson-2022.toml")),
];
/// Study files are written by hand; a longer file is not one.
const MAX_FILE_BYTES: u64 = 4 << 20;

#[derive(Debug, Clone)]
pub struct Found {
    /// All its paths are absolute.
    pub spec: StudySpec,
    pub text: String,
}

pub fn built_in() -> impl Iterator<Item = &'static str> + Clone {
    BUILT_IN.iter().map(|(name, _)| *name)
}

/// Reads a built-in study by name, or one from a file.
///
/// # Errors
/// When neither exists, or the file is not a study.
pub fn find(name: impl AsRef<OsStr>) -> Result<Found> {
    let name = name.as_ref();
    if let Some((_, text)) = BUILT_IN.iter().find(|(known, _)| *known == name) {
        return Ok(Found { spec: parse(text)?, text: (*text).to_owned() });
    }
    let path = Path::new(name);
    let shown = name.escaped();
    if !path.exists() && !shown.contains('/') && !shown.ends_with(".toml") {
        return Err(Error::Unknown { hint: hint_of_names(&shown), name: shown.into_owned() });
    }
    let text = read(path)?;
    let mut spec = parse(&text)?;
    let home = path.canonicalize().map_err(Error::io("read", path))?;
    resolve_paths(home.parent().unwrap_or(Path::new("/")), &mut spec);
    for workload in spec.workloads.iter_mut().filter(|workload| workload.text.is_empty()) {
        workload.text = read(&workload.path)?;
    }
    Ok(Found { spec, text })
}

/// # Errors
/// [`Error::Syntax`] with line and column and, for an unknown key, the nearest known one.
pub fn parse(text: &str) -> Result<StudySpec> {
    toml::from_str(text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        let (line, column) = place_of(text, offset);
        let (message, hint) = explain(error.message(), key_before(text, offset));
        Error::Syntax { line, column, message, hint }
    })
}

fn read(path: &Path) -> Result<String> {
    let length = fs::metadata(path).map_err(Error::io("read", path))?.len();
    if length > MAX_FILE_BYTES {
        let too_long = std::io::Error::other("larger than 4 MiB, the limit for a study file");
        return Err(Error::io("read", path)(too_long));
    }
    fs::read_to_string(path).map_err(Error::io("read", path))
}

fn hint_of_names(name: &str) -> String {
    let list = "`forebay study list` shows the built-in studies";
    match nearest(name, built_in()) {
        Some(near) => format!("did you mean `{near}`? {list}"),
        None => list.to_owned(),
    }
}

/// Makes relative paths relative to the file's folder instead of the working directory.
fn resolve_paths(folder: &Path, spec: &mut StudySpec) {
    let resolve = |path: &mut Option<PathBuf>| {
        if let Some(path) = path {
            *path = folder.join(&*path);
        }
    };
    spec.datasets.iter_mut().for_each(|dataset| resolve(&mut dataset.path));
    spec.tiers.iter_mut().for_each(|tier| resolve(&mut tier.path));
    spec.workloads.iter_mut().for_each(|workload| workload.path = folder.join(&workload.path));
}

/// Line and column, from 1.
fn place_of(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// The key whose value starts at this byte offset; empty if there is none.
fn key_before(text: &str, offset: usize) -> &str {
    let before = text.get(..offset).unwrap_or_default().trim_end_matches(' ');
    let Some(key) = before.strip_suffix('=').map(|before| before.trim_end_matches(' ')) else { return "" };
    let is_bare = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    &key[key.rfind(|c| !is_bare(c)).map_or(0, |at| at + 1)..]
}

/// Rewords serde's "unknown field `x`, expected one of `a`, `b`".
fn explain(message: &str, key: &str) -> (String, Option<String>) {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let kind = ["unknown field", "unknown variant"].into_iter().find(|kind| message.starts_with(kind));
    match (kind, quoted.split_first()) {
        (Some(kind), Some((word, candidates))) => {
            let what = if kind == "unknown field" { "unknown key" } else { "unknown value" };
            (format!("{what} \"{word}\""), suggest(word, candidates.iter().copied()))
        }
        _ if message.starts_with("must be ") => {
            let key = if key.is_empty() { "this value" } else { key };
            (format!("{key} {message}"), None)
        }
        _ if message.ends_with("expected u64") && !key.is_empty() => {
            (format!("{key} must be a whole number of at least 0"), None)
        }
        _ => (message.lines().next().unwrap_or_default().replace('`', "\""), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refuse(text: &str) -> (String, Option<String>) {
        let error = parse(text).unwrap_err();
        (error.to_string(), error.hint())
    }

    #[test]
    fn an_unknown_key_is_refused_with_its_place_and_the_nearest_key() {
        let (said, hint) =
            refuse("name = \"s\"\ntitle = \"t\"\n[[experiment]]\nname = \"e\"\nrun = \"ingest\"\nfacters = {}\n");
        assert_eq!(said, "line 6, column 1: unknown key \"facters\"");
        assert_eq!(hint.unwrap(), "did you mean `factors`?");
        let (said, hint) = refuse("name = \"s\"\ntitle = \"t\"\ncolour = 1\n");
        assert_eq!(said, "line 3, column 1: unknown key \"colour\"");
        assert!(hint.unwrap().starts_with("expected one of name, title, "));
    }

    #[test]
    fn an_unknown_step_is_refused_with_the_nearest() {
        let (said, hint) = refuse("name = \"s\"\ntitle = \"t\"\n[[experiment]]\nname = \"e\"\nrun = \"ingets\"\n");
        assert_eq!(
            (said.as_str(), hint.as_deref()),
            ("line 5, column 7: unknown value \"ingets\"", Some("did you mean `ingest`?"))
        );
    }

    #[test]
    fn a_value_of_another_type_is_refused_at_its_place() {
        let head = "name = \"s\"\ntitle = \"t\"\n";
        let (said, _) = refuse(&format!("{head}seed = \"x\"\n"));
        assert_eq!(said, "line 3, column 8: seed must be a whole number of at least 0");
        let experiment = format!("{head}[[experiment]]\nname = \"e\"\nrun = \"ingest\"\n");
        let scaled = |one: &str, some: &str| format!("must be {one}, or {{ quick = …, full = … }} of {some}");
        for (line, column, said) in [
            ("repeats = \"x\"", 11, format!("repeats {}", scaled("a whole number", "whole numbers"))),
            ("repeats = { quick = 1 }", 11, format!("repeats {}", scaled("a whole number", "whole numbers"))),
            ("factors = { threads = 3 }", 23, format!("threads {}", scaled("a list of levels", "lists"))),
            (
                "settings.batch = []",
                18,
                format!("settings.batch {}", scaled("true or false, a number or a text", "these")),
            ),
        ] {
            assert_eq!(refuse(&format!("{experiment}{line}\n")).0, format!("line 6, column {column}: {said}"));
        }
        let (said, _) = refuse(&format!("{head}about = \"\n"));
        assert!(said.starts_with("line 3, column "), "{said}");
        assert_eq!(refuse("title = \"t\"\n").0, "line 1, column 1: missing field \"name\"");
    }

    #[test]
    fn relative_paths_start_at_the_files_folder() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.toml");
        fs::write(&path, "name = \"s\"\ntitle = \"t\"\n[[dataset]]\nname = \"d\"\npath = \"set\"\n").unwrap();
        let found = find(path.to_str().unwrap()).unwrap();
        assert_eq!(found.spec.datasets[0].path, Some(dir.path().canonicalize().unwrap().join("set")));
    }

    #[test]
    fn a_missing_study_is_named_with_the_nearest() {
        let error = find("chien-2081").unwrap_err();
        assert_eq!(error.to_string(), "no built-in study or file named \"chien-2081\"");
        assert!(error.hint().unwrap().starts_with("did you mean `chien-2018`? "));
        let error = find("gone/study.toml").unwrap_err();
        assert_eq!(error.to_string(), "cannot read gone/study.toml");
    }
}
