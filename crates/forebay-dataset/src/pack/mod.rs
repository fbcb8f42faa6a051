//! `forebay data pack`: image files into shards, and back.
//!
//! Which file goes into which shard is decided beforehand from names and sizes alone, so shards are made in parallel, in
//! any order, with the same bytes. A shard gets its name when it is complete and durable; a small hidden note next to it
//! lists its content, and a later run with the same inputs keeps it. The manifest is written last.

mod encode;
mod plan;
mod unpack;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use forebay_record::Fault;
use forebay_storage::{Buffer, Routed, Storage};
use forebay_units::Bytes;
use serde::{Deserialize, Serialize};

pub use plan::{PackOptions, PackPlan, Packing};
pub use unpack::{UnpackOptions, Unpacked, unpack};

use crate::home::{Home, commit_json};
use crate::manifest::{MANIFEST, Manifest, ShardEntry};
use crate::reason::why_unreadable;
use crate::{Control, Error, Progress, Result, write};
use encode::Shard;

/// The part of a tar sample that stores a file name that the entry's own name cannot represent.
pub(crate) const NAME_PART: &str = "filename.txt";
const MARKER: &str = ".forebay-pack.json";

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Packed {
    pub n_samples: u64,
    pub n_shards: u64,
    /// Complete shards of an earlier run, not written again.
    pub n_kept: u64,
    pub bytes: Bytes,
    /// Inputs that could not be packed, and why.
    pub skipped: Vec<Fault>,
}

/// Makes the shards of `plan` in `out`, or the missing ones.
///
/// # Errors
/// When `out` contains other files or cannot be written to, when an input is bad and the options say to stop, or when
/// the caller stops it. Finished shards stay.
pub fn pack(plan: &PackPlan, out: &Path, control: &Control<'_>) -> Result<Packed> {
    plan.refuse_inside(out)?;
    let home = Home::claim(out, MARKER, &plan.identity())?;
    if home.resumed {
        write::sweep(out)?;
    }
    let storage = Routed::default();
    if let Some(manifest) = finished(&storage, plan, out) {
        return Ok(outcome(&manifest, plan.n_shards()));
    }
    let run = Run {
        plan,
        out,
        storage,
        control,
        done: Mutex::new(Progress { total: plan.n_files(), ..Progress::default() }),
    };
    let notes = Mutex::new(vec![None; plan.n_shards() as usize]);
    let quiet = Control { progress: &|_| (), ..*control };
    let work = |buffer: &mut Buffer, number: u64| {
        let (note, kept) = run.shard(number as usize, buffer)?;
        notes.lock().expect("storing does not panic")[number as usize] = Some((note, kept));
        Ok(0)
    };
    quiet.for_each("pack", plan.n_shards(), Buffer::default, work)?;
    let notes = notes.into_inner().expect("storing does not panic");
    let notes: Vec<(Note, bool)> = notes.into_iter().map(|note| note.expect("every shard was made")).collect();
    let n_kept = notes.iter().filter(|(_, kept)| *kept).count() as u64;
    let manifest = plan.manifest(notes.into_iter().map(|(note, _)| note).collect());
    let value = serde_json::to_value(&manifest).expect("a manifest is plain data");
    commit_json(&out.join(MANIFEST), &value)?;
    for entry in &manifest.shards {
        run.storage.remove(&note_path(out, &entry.file))?;
    }
    Ok(outcome(&manifest, n_kept))
}

fn outcome(manifest: &Manifest, n_kept: u64) -> Packed {
    Packed {
        n_samples: manifest.n_samples,
        n_shards: manifest.shards.len() as u64,
        n_kept,
        bytes: Bytes(manifest.bytes),
        skipped: manifest.skipped.clone(),
    }
}

/// The manifest of an earlier run, if everything it lists exists.
fn finished(storage: &dyn Storage, plan: &PackPlan, out: &Path) -> Option<Manifest> {
    let manifest = Manifest::beside(storage, out)?.ok()?;
    let whole = |entry: &ShardEntry| storage.size(&out.join(&entry.file)).is_ok_and(|size| size == entry.bytes);
    (manifest.shards.len() as u64 == plan.n_shards() && manifest.shards.iter().all(whole)).then_some(manifest)
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Note {
    pub(crate) entry: ShardEntry,
    pub(crate) skipped: Vec<Fault>,
}

fn note_path(out: &Path, file: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(file);
    name.push(".done.json");
    out.join(name)
}

struct Run<'a> {
    plan: &'a PackPlan,
    out: &'a Path,
    storage: Routed,
    control: &'a Control<'a>,
    done: Mutex<Progress>,
}

impl Run<'_> {
    /// Makes a shard, unless it exists.
    fn shard(&self, number: usize, buffer: &mut Buffer) -> Result<(Note, bool)> {
        let file = self.plan.shard_name(number);
        if let Some(note) = self.kept(&file) {
            let inputs = self.plan.inputs_of(number);
            self.advance(inputs.len() as u64, note.entry.bytes);
            return Ok((note, true));
        }
        let note = self.build(number, file, buffer)?;
        let value = serde_json::to_value(&note).expect("a note is plain data");
        commit_json(&note_path(self.out, &note.entry.file), &value)?;
        Ok((note, false))
    }

    fn kept(&self, file: &Path) -> Option<Note> {
        let mut buffer = Buffer::default();
        self.storage.open(&note_path(self.out, file)).ok()?.read_all(&mut buffer).ok()?;
        let note: Note = serde_json::from_slice(buffer.as_slice()).ok()?;
        let size = self.storage.size(&self.out.join(file)).ok()?;
        (note.entry.file == file && note.entry.bytes == size).then_some(note)
    }

    fn build(&self, number: usize, file: PathBuf, buffer: &mut Buffer) -> Result<Note> {
        let mut shard = Shard::start(&self.plan.options().packing, self.storage.create(&self.out.join(&file))?);
        let mut skipped = Vec::new();
        for &input in self.plan.inputs_of(number) {
            if self.control.cancel.load(Ordering::Relaxed) {
                return Err(Error::Cancelled);
            }
            let input = self.plan.input(input);
            let limit = self.plan.options().max_sample.0;
            let read = self.storage.open(&input.path).and_then(|object| object.read_within(limit, buffer));
            // After a failed read the buffer's content is undefined.
            let (added, bytes) = match read {
                Ok(()) => (shard.append(input, buffer.as_slice())?, buffer.len() as u64),
                Err(error) => (Err(why_unreadable(&error)), 0),
            };
            if let Err(reason) = added {
                let fault = Fault::of_file(&input.path, reason);
                if self.plan.options().stop_at_bad {
                    return Err(Error::Bad(fault));
                }
                skipped.push(fault);
            }
            self.advance(1, bytes);
        }
        Ok(Note { entry: shard.commit(file, self.control.cancel)?, skipped })
    }

    fn advance(&self, files: u64, bytes: u64) {
        let mut done = self.done.lock().expect("the progress callback does not panic");
        done.done += files;
        done.bytes += bytes;
        (self.control.progress)(*done);
    }
}
