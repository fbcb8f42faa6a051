//! Rules that no compiler checks, each with its reason. See also ARCHITECTURE.md.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::shell::{output, program, root};

/// A source file longer than this holds two ideas.
const MAX_LINES: usize = 450;
/// The binary's `main.rs` only names the rooms.
const MAX_MAIN_LINES: usize = 40;
/// A line longer than this is not read.
const MAX_COLUMNS: usize = 140;

/// Names that say nothing about what is in a file.
const EMPTY_NAMES: [&str; 9] = ["util", "utils", "common", "helper", "helpers", "base", "manager", "handler", "misc"];

/// Pieces of text that must not be in a source file, written apart so that this file does not hold them.
const FORBIDDEN: [(&str, &str); 7] = [
    (concat!("todo", "!("), "unfinished code"),
    (concat!("unimplemented", "!("), "unfinished code"),
    (concat!("dbg", "!("), "a left-over"),
    (concat!("#[ig", "nore"), "a test that does not run"),
    (concat!("assert!(", "true"), "a test that cannot fail"),
    (concat!("/ro", "ot/"), "a path of a personal machine"),
    (concat!("/ho", "me/"), "a path of a personal machine"),
];

/// Checks all files that git knows or would add.
pub fn run() -> Result<()> {
    let files = files()?;
    let mut wrong = Vec::new();
    for path in &files {
        check_name(path, &mut wrong);
        let Ok(text) = std::fs::read_to_string(root().join(path)) else { continue };
        match path.extension().and_then(|e| e.to_str()) {
            Some("rs") => check_rust(path, &text, &files, &mut wrong),
            Some("md") => check_links(path, &text, &mut wrong),
            _ => {}
        }
        check_text(path, &text, &mut wrong);
    }
    if !wrong.is_empty() {
        bail!("{} problems:\n{}", wrong.len(), wrong.join("\n"));
    }
    eprintln!("{} files are tidy", files.len());
    Ok(())
}

fn files() -> Result<Vec<PathBuf>> {
    let listed = output(program("git").args(["ls-files", "--cached", "--others", "--exclude-standard"]))?;
    Ok(listed.lines().map(PathBuf::from).filter(|path| root().join(path).is_file()).collect())
}

fn check_name(path: &Path, wrong: &mut Vec<String>) {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    if EMPTY_NAMES.contains(&stem.as_ref()) {
        wrong.push(format!("{}: the name says nothing", path.display()));
    }
}

fn check_text(path: &Path, text: &str, wrong: &mut Vec<String>) {
    let source = matches!(path.extension().and_then(|e| e.to_str()), Some("rs" | "py" | "sh" | "toml" | "md"));
    if !source {
        return;
    }
    for (number, line) in text.lines().enumerate() {
        let place = || format!("{}:{}", path.display(), number + 1);
        if line.ends_with([' ', '\t']) {
            wrong.push(format!("{}: space at the end of the line", place()));
        }
        for (piece, why) in FORBIDDEN {
            if line.contains(piece) {
                wrong.push(format!("{}: \"{piece}\" is {why}", place()));
            }
        }
    }
}

fn check_rust(path: &Path, text: &str, files: &[PathBuf], wrong: &mut Vec<String>) {
    let n_lines = text.lines().count();
    let limit = if path.ends_with("crates/forebay/src/main.rs") { MAX_MAIN_LINES } else { MAX_LINES };
    if n_lines > limit {
        wrong.push(format!("{}: {n_lines} lines, more than {limit}: split the file", path.display()));
    }
    if !text.starts_with("//!") {
        wrong.push(format!("{}: missing `//!` paragraph at the start that explains the file", path.display()));
    }
    for (number, line) in text.lines().enumerate() {
        if line.chars().count() > MAX_COLUMNS {
            wrong.push(format!("{}:{}: longer than {MAX_COLUMNS} columns", path.display(), number + 1));
        }
        if line.trim_start().starts_with("pub use") && line.trim_end().ends_with("::*;") {
            wrong.push(format!("{}:{}: a glob re-export hides what is public", path.display(), number + 1));
        }
    }
    if !is_declared(path, files) {
        wrong.push(format!("{}: no module declares this file", path.display()));
    }
}

/// Whether a file of a crate is a root, or its parent module names it.
fn is_declared(path: &Path, files: &[PathBuf]) -> bool {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let dir = path.parent().unwrap_or(Path::new(""));
    let is_root = ["lib", "main", "build"].contains(&name.as_str())
        || dir.ends_with("bin")
        || dir.ends_with("tests")
        || dir.ends_with("benches")
        || dir.ends_with("examples");
    if is_root {
        return true;
    }
    let (module, home) = match name.as_str() {
        "mod" => (dir.file_name().unwrap_or_default().to_string_lossy().into_owned(), dir.parent().unwrap_or(dir)),
        _ => (name, dir),
    };
    let beside = home.with_extension("rs");
    let parents = ["lib.rs", "main.rs", "mod.rs"].map(|file| home.join(file));
    let declared = |parent: &Path| {
        let text = std::fs::read_to_string(root().join(parent)).unwrap_or_default();
        text.lines().any(|line| line.trim().trim_end_matches(';').ends_with(&format!("mod {module}")))
    };
    parents.iter().chain([&beside]).filter(|parent| files.contains(parent)).any(|parent| declared(parent))
}

/// Every relative link of a page leads somewhere.
fn check_links(path: &Path, text: &str, wrong: &mut Vec<String>) {
    let dir = root().join(path.parent().unwrap_or(Path::new("")));
    for piece in text.split("](").skip(1) {
        let target = piece.split([')', '#', ' ']).next().unwrap_or_default();
        if !target.is_empty() && !target.contains("://") && !dir.join(target).exists() {
            wrong.push(format!("{}: broken link to {target}", path.display()));
        }
    }
}

/// The names of the examples' binaries.
pub fn examples() -> Result<Vec<String>> {
    let dir = root().join("examples/src/bin");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&dir).with_context(|| dir.display().to_string())? {
        let path = entry?.path();
        names.push(path.file_stem().unwrap_or_default().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}
