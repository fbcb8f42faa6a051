//! Outputs onto inputs, onto others' files, onto folders, onto a full device.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::{SUBJECTS, is_root};
use crate::hostile::arena::run_quietly;
use crate::hostile::case::Case;
use crate::hostile::subject::Subject;

pub fn cases(_is_short: bool) -> Vec<Case> {
    SUBJECTS.iter().flat_map(|subject| subject.outputs.iter().flat_map(|flag| of_flag(subject, flag))).collect()
}

/// All that is tried with one output of a subject.
fn of_flag(subject: &Subject, flag: &str) -> Vec<Case> {
    let mut cases = Vec::new();
    for input in subject.reads {
        cases.push(refused(subject, flag, "new.json", input));
        cases.push(onto_input(subject, flag, input));
    }
    for (path, how) in [
        ("bystander/notes.txt", "a file of somebody else"),
        ("bystander", "a folder"),
        ("bystander/notes.txt/out", "below a file"),
    ] {
        let mut case = aimed(Case::new(subject, format!("{flag} onto {how}")), flag, path);
        case.must_fail = true;
        cases.push(case);
    }
    let mut new =
        aimed(Case::new(subject, format!("{flag} into a folder that is not there")), flag, "nowhere/deep/out");
    new.also_writes.push("nowhere".to_owned());
    cases.push(new);
    cases.extend([device(subject, flag, "full", "7"), device(subject, flag, "null", "3")]);
    cases
}

/// A device, which must still be one afterwards. It is the case's own: a program that replaces it does no harm.
fn device(subject: &Subject, flag: &str, name: &'static str, minor: &'static str) -> Case {
    let mut case = aimed(Case::new(subject, format!("{flag} onto the device {name}")), flag, name);
    case.must_fail = name == "full";
    case.prepare(move |folder| {
        if is_root() {
            return run_quietly(Command::new("mknod").arg(folder.join(name)).args(["c", "1", minor]));
        }
        Ok(std::os::unix::fs::symlink(Path::new("/dev").join(name), folder.join(name))?)
    })
}

/// A new file inside an input.
fn refused(subject: &Subject, flag: &str, name: &str, input: &str) -> Case {
    let path = format!("{input}/{name}");
    let mut case = aimed(Case::new(subject, format!("{flag} inside the input")), flag, &path);
    case.must_fail = true;
    case
}

/// A file of the input itself, through a link beside it, so that its name says nothing.
fn onto_input(subject: &Subject, flag: &str, input: &str) -> Case {
    let mut case = aimed(Case::new(subject, format!("{flag} onto a file of the input, by a link")), flag, "innocent");
    case.must_fail = true;
    let input = input.to_owned();
    case.prepare(move |folder| {
        let target = first_file(&folder.join(&input))?;
        Ok(std::os::unix::fs::symlink(target, folder.join("innocent"))?)
    })
}

fn first_file(path: &Path) -> Result<std::path::PathBuf> {
    if path.is_file() {
        return Ok(path.to_owned());
    }
    let mut below: Vec<_> = fs::read_dir(path)?.flatten().map(|entry| entry.path()).collect();
    below.sort();
    let found = below.iter().find_map(|path| first_file(path).ok());
    found.ok_or_else(|| anyhow::anyhow!("{} has no file", path.display()))
}

/// The line with this output: in place of the one that it has, or added before a watched command.
fn aimed(mut case: Case, flag: &str, path: &str) -> Case {
    let mut words: Vec<String> = case.line.split(' ').map(str::to_owned).collect();
    match words.iter().position(|word| word == flag) {
        Some(at) => words[at + 1] = path.to_owned(),
        None => words.extend([flag.to_owned(), path.to_owned()]),
    }
    case.line = words.join(" ");
    case
}
