//! The folder of a run: its plan, its machine, and every finished cell.
//!
//! `plan.toml` holds the study as run, `environment.json` the machine, `record.jsonl` a header line and one line per
//! cell. Each line is appended with one write and synced before the next cell starts, so a kill loses only the cell it
//! interrupts. A run locks the hidden file `.lock`.

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
/// Data generated for the run, unless the user names another folder.
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
    /// Starts a run in an empty or missing folder.
    ///
    /// # Errors
    /// [`Error::Occupied`] if it holds anything, [`Error::Busy`] if another process runs a study there.
    pub fn begin(path: &Path, head: &StudyHead) -> Result<Self> {
        if names_in(path)?.iter().any(|name| name != LOCK) {
            let is_run = path.join(RECORD).exists() || path.join(PLAN).exists();
            return Err(Error::Occupied { path: path.to_owned(), is_run });
        }
        Self::create(path, head)
    }

    /// Continues the run in a folder and returns its finished cells. A run killed before its record existed starts over.
    ///
    /// # Errors
    /// [`Error::NoRun`] if there is none, [`Error::Different`] if its plan differs from the head's, [`Error::Record`] if
    /// the record is damaged before its end, [`Error::Busy`] if another process runs a study there.
    pub fn resume(path: &Path, head: &StudyHead) -> Result<(Self, StudyRun)> {
        if !is_begun(path)? {
            let folder = Self::create(path, head)?;
            return Ok((folder, empty_run(head)));
        }
        let lock = lock(path)?;
        let Read { record, mut run, mut intact, mut length } = read(path, head)?;
        if is_presented_anew(&run.head, head) {
            run.head.spec = head.spec.clone();
            intact = present_anew(path, &record, &run.head, intact)?;
            length = intact;
        }
        let file = OpenOptions::new().append(true).open(&record).map_err(Error::io("append to", &record))?;
        if intact < length {
            file.set_len(intact as u64).and_then(|()| file.sync_all()).map_err(Error::io("truncate", &record))?;
        }
        Ok((Self { record, file, length: intact as u64, is_new: false, _lock: lock }, run))
    }

    /// Returns what [`Folder::resume`] would return, without writing or locking.
    ///
    /// # Errors
    /// As [`Folder::resume`], except [`Error::Busy`].
    pub fn read(path: &Path, head: &StudyHead) -> Result<StudyRun> {
        Ok(if is_begun(path)? { read(path, head)?.run } else { empty_run(head) })
    }

    fn create(path: &Path, head: &StudyHead) -> Result<Self> {
        fs::create_dir_all(path).map_err(Error::io("create", path))?;
        let lock = lock(path)?;
        write(&path.join(PLAN), plan_text(head).as_bytes())?;
        let environment = serde_json::to_string_pretty(&head.environment).expect("an environment serializes to JSON");
        write(&path.join(ENVIRONMENT), format!("{environment}\n").as_bytes())?;
        // The record is written last and atomically: without it, there is no run.
        let record = path.join(RECORD);
        let line = StudyLine::Head(Box::new(head.clone())).to_jsonl();
        write(&record, line.as_bytes())?;
        let file = OpenOptions::new().append(true).open(&record).map_err(Error::io("append to", &record))?;
        Ok(Self { record, file, length: line.len() as u64, is_new: true, _lock: lock })
    }

    /// Whether the run is new rather than resumed.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// Appends a line, which is durable when this returns.
    ///
    /// # Errors
    /// When the line cannot be written. The record is then truncated to its former length, if the device allows.
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
    /// Length of the intact part, and of the whole file.
    intact: usize,
    length: usize,
}

/// Refuses a run whose plan differs from the head's.
fn read(path: &Path, head: &StudyHead) -> Result<Read> {
    let record = path.join(RECORD);
    let text = fs::read_to_string(&record).map_err(Error::io("read", &record))?;
    let read = StudyRun::from_jsonl(&text);
    let (run, intact) = read.map_err(|source| Error::Record { path: record.clone(), source })?;
    match difference(&run.head, head) {
        Some(what) => Err(Error::Different { path: path.to_owned(), what }),
        None => Ok(Read { record, run, intact, length: text.len() }),
    }
}

/// Whether two heads whose cells are the same differ in titles, figures or published values.
fn is_presented_anew(theirs: &StudyHead, ours: &StudyHead) -> bool {
    let text = |head: &StudyHead| serde_json::to_value(&head.spec).expect("a study serializes to JSON");
    text(theirs) != text(ours)
}

/// Writes the plan and the record, up to `intact`, with a head whose presentation is new; returns the record's length.
fn present_anew(path: &Path, record: &Path, head: &StudyHead, intact: usize) -> Result<usize> {
    let text = fs::read_to_string(record).map_err(Error::io("read", record))?;
    let cells = text[..intact].split_once('\n').map_or("", |(_, cells)| cells);
    let text = StudyLine::Head(Box::new(head.clone())).to_jsonl() + cells;
    write(&path.join(PLAN), plan_text(head).as_bytes())?;
    write(record, text.as_bytes())?;
    Ok(text.len())
}

/// Whether the folder has a record; refuses a folder without a run.
fn is_begun(path: &Path) -> Result<bool> {
    if path.join(RECORD).exists() {
        return Ok(true);
    }
    // A run killed before its record existed leaves only these.
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

fn empty_run(head: &StudyHead) -> StudyRun {
    StudyRun { head: head.clone(), cells: Vec::new(), resumed: Vec::new(), series: None }
}

/// The machine on which a run started; `None` if there is no run, or its environment cannot be read.
pub fn environment_of(path: &Path) -> Option<Environment> {
    serde_json::from_slice(&fs::read(path.join(ENVIRONMENT)).ok()?).ok()
}

/// The path to record for the data: relative inside the run's folder, so the folder can be moved.
pub fn data_to_keep(run: &Path, data: &Path) -> PathBuf {
    match data.strip_prefix(run) {
        Ok(inside) if inside.as_os_str().is_empty() => PathBuf::from("."),
        Ok(inside) if inside.components().all(|part| matches!(part, Component::Normal(_))) => inside.to_owned(),
        _ => data.to_owned(),
    }
}

/// Where a run's data is, and the recorded path if it is no longer valid.
///
/// Earlier versions recorded an absolute path even for data in the run's folder, which may have been copied or moved.
pub fn data_of(run: &Path, head: &StudyHead) -> (PathBuf, Option<PathBuf>) {
    let own = run.join(DATA);
    let Some(kept) = &head.data else { return (own, None) };
    // Earlier versions did not escape the path.
    let kept = run.join(unescape(kept).unwrap_or_else(|_| kept.into()));
    let was_given = head.command_line.iter().any(|word| word == "--data" || word.starts_with("--data="));
    let was_inside = !was_given || (kept.ends_with(DATA) && (own.is_dir() || !kept.exists()));
    if was_inside && !kept.starts_with(run) { (own, Some(kept)) } else { (kept, None) }
}

/// No names if the folder does not exist.
fn names_in(path: &Path) -> Result<Vec<String>> {
    match fs::read_dir(path) {
        Ok(entries) => Ok(entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(Error::io("list", path)(error)),
    }
}

/// Locks the run's folder. The lock file stays after the run: if it were removed, one process could hold the lock of the
/// removed file and another the lock of a new one.
fn lock(path: &Path) -> Result<File> {
    let name = path.join(LOCK);
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&name);
    let file = file.map_err(Error::io("open", &name))?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(Error::Busy { path: path.to_owned() }),
        // On a file system without locks, the run is unprotected.
        _ => Ok(file),
    }
}

/// Writes a file atomically and durably.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut writer = Local::default().create(path)?;
    writer.write(bytes)?;
    Ok(writer.commit()?)
}

fn plan_text(head: &StudyHead) -> String {
    let scale = head.scale.name();
    let spec = toml::to_string_pretty(&head.spec).expect("a study read from TOML serializes to TOML");
    format!("# The study as it was run. To run it again: forebay study run {PLAN} --scale {scale}\n\n{spec}")
}

/// Keys of a study that no cell depends on: a resumed run takes them from the study as it is now.
const PRESENTATION: [&str; 6] = ["title", "about", "source", "figure", "reference", "limits"];

/// Describes how two plans differ in what cells depend on; `None` if they do not.
fn difference(theirs: &StudyHead, ours: &StudyHead) -> Option<String> {
    let value = |head: &StudyHead| {
        let mut spec = serde_json::to_value(&head.spec).expect("a study serializes to JSON");
        if let Some(spec) = spec.as_object_mut() {
            spec.retain(|key, _| !PRESENTATION.contains(&key.as_str()));
        }
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
