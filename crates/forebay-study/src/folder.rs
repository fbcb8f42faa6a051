//! The folder of a run: what was planned, where it ran, and every finished cell.
//!
//! `plan.toml` is the study as run, `environment.json` the machine, `record.jsonl` the head and then one line per cell. A line is appended
//! with one write and synced before the next cell begins: a kill loses only the cell it interrupts. A run holds the lock of the hidden
//! file `.lock`.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::{Component, Path, PathBuf};

use forebay_record::{Environment, StudyHead, StudyLine, StudyRun};
use forebay_storage::{Local, Storage};
use forebay_units::unescape;
use serde_json::Value;

use super::error::{Error, Result};

pub const PLAN: &str = "plan.toml";
pub const ENVIRONMENT: &str = "environment.json";
pub const RECORD: &str = "record.jsonl";
/// Data made for the run, unless the user names another place.
pub const DATA: &str = "data";
const LOCK: &str = ".lock";

#[derive(Debug)]
pub struct Folder {
    record: PathBuf,
    pub(super) file: File,
    /// Length of the record's intact part.
    length: u64,
    is_new: bool,
    _lock: File,
}

impl Folder {
    /// Begins a run in an empty or missing folder.
    ///
    /// # Errors
    /// [`Error::Occupied`] if it holds anything, [`Error::Busy`] if another process runs a study there.
    pub fn begin(path: &Path, head: &StudyHead) -> Result<Self> {
        if names_in(path)?.iter().any(|name| name != LOCK) {
            let is_run = path.join(RECORD).exists() || path.join(PLAN).exists();
            return Err(Error::Occupied { path: path.to_owned(), is_run });
        }
        Self::found(path, head)
    }

    /// Continues the run in a folder and returns what it has. One that was killed before its record began starts over.
    ///
    /// # Errors
    /// [`Error::NoRun`] if there is none, [`Error::Different`] if it is of another plan than the head's, [`Error::Record`] if it is damaged
    /// before its end, [`Error::Busy`] if another process runs a study there.
    pub fn resume(path: &Path, head: &StudyHead) -> Result<(Self, StudyRun)> {
        if !is_begun(path)? {
            let folder = Self::found(path, head)?;
            return Ok((folder, bare(head)));
        }
        let lock = lock(path)?;
        let Read { record, run, sound, length } = read(path, head)?;
        let file = OpenOptions::new().append(true).open(&record).map_err(Error::io("append to", &record))?;
        if sound < length {
            file.set_len(sound as u64).and_then(|()| file.sync_all()).map_err(Error::io("mend", &record))?;
        }
        Ok((Self { record, file, length: sound as u64, is_new: false, _lock: lock }, run))
    }

    /// What [`Folder::resume`] would continue with; neither writes nor locks.
    ///
    /// # Errors
    /// As [`Folder::resume`], except [`Error::Busy`].
    pub fn look(path: &Path, head: &StudyHead) -> Result<StudyRun> {
        Ok(if is_begun(path)? { read(path, head)?.run } else { bare(head) })
    }

    fn found(path: &Path, head: &StudyHead) -> Result<Self> {
        fs::create_dir_all(path).map_err(Error::io("make", path))?;
        let lock = lock(path)?;
        write(&path.join(PLAN), plan_text(head).as_bytes())?;
        let environment = serde_json::to_string_pretty(&head.environment).expect("an environment is plain data");
        write(&path.join(ENVIRONMENT), format!("{environment}\n").as_bytes())?;
        // The record is written last and whole: without it there is no run yet.
        let record = path.join(RECORD);
        let line = StudyLine::Head(Box::new(head.clone())).to_jsonl();
        write(&record, line.as_bytes())?;
        let file = OpenOptions::new().append(true).open(&record).map_err(Error::io("append to", &record))?;
        Ok(Self { record, file, length: line.len() as u64, is_new: true, _lock: lock })
    }

    /// Whether the run began here instead of being resumed.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// Durable when this returns.
    ///
    /// # Errors
    /// When the line cannot be kept; the record is then as before, as far as the device allows.
    pub fn append(&mut self, line: &StudyLine) -> Result<()> {
        let text = line.to_jsonl();
        match self.file.write_all(text.as_bytes()).and_then(|()| self.file.sync_data()) {
            Ok(()) => {
                self.length += text.len() as u64;
                Ok(())
            }
            Err(source) => {
                // If this fails too, readers skip the torn line.
                let _ = self.file.set_len(self.length);
                Err(Error::io("append to", &self.record)(source))
            }
        }
    }
}

struct Read {
    record: PathBuf,
    run: StudyRun,
    /// Length of the intact part, and of the whole.
    sound: usize,
    length: usize,
}

/// Refuses a run of another plan than the head's.
fn read(path: &Path, head: &StudyHead) -> Result<Read> {
    let record = path.join(RECORD);
    let text = fs::read_to_string(&record).map_err(Error::io("read", &record))?;
    let read = StudyRun::from_jsonl(&text);
    let (run, sound) = read.map_err(|source| Error::Record { path: record.clone(), source })?;
    match difference(&run.head, head) {
        Some(what) => Err(Error::Different { path: path.to_owned(), what }),
        None => Ok(Read { record, run, sound, length: text.len() }),
    }
}

/// Whether the record has begun; refuses a folder that holds no run.
fn is_begun(path: &Path) -> Result<bool> {
    if path.join(RECORD).exists() {
        return Ok(true);
    }
    // A run killed before its record began leaves only these.
    let ours = [LOCK, PLAN, ENVIRONMENT, DATA];
    let names = names_in(path)?;
    if names.iter().any(|name| !ours.contains(&name.as_str()) && !name.ends_with(".tmp")) {
        return Err(Error::Occupied { path: path.to_owned(), is_run: false });
    }
    match names.iter().any(|name| name == LOCK || name == PLAN) {
        true => Ok(false),
        false => Err(Error::NoRun { path: path.to_owned() }),
    }
}

fn bare(head: &StudyHead) -> StudyRun {
    StudyRun { head: head.clone(), cells: Vec::new(), resumed: Vec::new(), series: None }
}

/// `None` if there is no run, or its environment cannot be read.
pub fn begun_on(path: &Path) -> Option<Environment> {
    serde_json::from_slice(&fs::read(path.join(ENVIRONMENT)).ok()?).ok()
}

/// Data inside the run's folder is kept as a relative path, so it moves with the folder.
pub fn data_to_keep(run: &Path, data: &Path) -> PathBuf {
    match data.strip_prefix(run) {
        Ok(inside) if inside.as_os_str().is_empty() => PathBuf::from("."),
        Ok(inside) if inside.components().all(|part| matches!(part, Component::Normal(_))) => inside.to_owned(),
        _ => data.to_owned(),
    }
}

/// Where a run's data is, and where it was if the recorded path no longer exists.
///
/// Earlier versions recorded an absolute path even for data in the run's folder, which may have been copied or moved.
pub fn data_of(run: &Path, head: &StudyHead) -> (PathBuf, Option<PathBuf>) {
    let own = run.join(DATA);
    let Some(kept) = &head.data else { return (own, None) };
    // Earlier versions did not escape it.
    let kept = run.join(unescape(kept).unwrap_or_else(|_| kept.into()));
    let was_given = head.command_line.iter().any(|word| word == "--data" || word.starts_with("--data="));
    let was_inside = !was_given || (kept.ends_with(DATA) && (own.is_dir() || !kept.exists()));
    if was_inside && !kept.starts_with(run) { (own, Some(kept)) } else { (kept, None) }
}

/// None if the folder does not exist.
fn names_in(path: &Path) -> Result<Vec<String>> {
    match fs::read_dir(path) {
        Ok(entries) => Ok(entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(Error::io("look into", path)(error)),
    }
}

/// The lock's file outlives the run: if it were removed, one process could hold the lock of the removed file and another that of a new
/// one.
fn lock(path: &Path) -> Result<File> {
    let name = path.join(LOCK);
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&name);
    let file = file.map_err(Error::io("open", &name))?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(Error::Busy { path: path.to_owned() }),
        // File systems without locks run unprotected.
        _ => Ok(file),
    }
}

/// Writes a file whole and durably, or not at all.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut writer = Local::default().create(path)?;
    writer.write(bytes)?;
    Ok(writer.commit()?)
}

fn plan_text(head: &StudyHead) -> String {
    let scale = head.scale.name();
    let spec = toml::to_string_pretty(&head.spec).expect("a study that was read from TOML can be written as TOML");
    format!("# The study as it was run. To run it again: forebay study run {PLAN} --scale {scale}\n\n{spec}")
}

/// Compares only what cells depend on; `None` if both heads are of the same plan.
fn difference(theirs: &StudyHead, ours: &StudyHead) -> Option<String> {
    let value = |head: &StudyHead| {
        let spec = serde_json::to_value(&head.spec).expect("a study is plain data");
        serde_json::json!({ "scale": head.scale, "spec": spec, "cells": head.n_cells })
    };
    let mut found = Vec::new();
    compare("", &value(theirs), &value(ours), &mut found);
    if found.len() > 3 {
        let more = found.len() - 3;
        found.truncate(3);
        found.push(format!("and {more} more"));
    }
    (!found.is_empty()).then(|| found.join("; "))
}

fn compare(place: &str, theirs: &Value, ours: &Value, found: &mut Vec<String>) {
    match (theirs, ours) {
        (Value::Object(a), Value::Object(b)) => {
            let mut keys: Vec<&String> = a.keys().chain(b.keys()).collect();
            keys.sort_unstable();
            keys.dedup();
            for key in keys {
                let inner = if place.is_empty() || place == "spec" { key.clone() } else { format!("{place}.{key}") };
                compare(&inner, a.get(key).unwrap_or(&Value::Null), b.get(key).unwrap_or(&Value::Null), found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() && a.iter().any(Value::is_object) => {
            for (a, b) in a.iter().zip(b) {
                let name = a.get("name").or_else(|| a.get("id")).and_then(Value::as_str).unwrap_or_default();
                compare(&format!("{place} {name}"), a, b, found);
            }
        }
        (a, b) if a != b => found.push(format!("{place} was {} and is now {}", shortened(a), shortened(b))),
        _ => {}
    }
}

fn shortened(value: &Value) -> String {
    match value {
        Value::Null => "not set".to_owned(),
        Value::Array(items) if items.iter().any(Value::is_object) => format!("{} entries", items.len()),
        other => {
            let text = other.to_string();
            if text.chars().count() > 80 { format!("{}…", text.chars().take(79).collect::<String>()) } else { text }
        }
    }
}
