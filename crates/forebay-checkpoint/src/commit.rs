//! The commit protocol. Once [`commit`] returns, the checkpoint survives a power cut; before that, it does not exist.
//!
//! 1. Create a folder whose name is not a checkpoint name.
//! 2. For each file: allocate space, write its chunks (several in flight) while computing the crc32c of each, and sync.
//!    Then write the small files that need the checksums of tensors, which are computed in the same pass.
//! 3. Write the manifest with all lengths and checksums, and sync it.
//! 4. Sync the folder to make the file names durable.
//! 5. Rename the folder and sync the tier's folder. Only now is the checkpoint durable.
//!
//! After a failed sync the file is lost, and a second sync would falsely report success. Everything is therefore
//! written again under another name, up to a fixed number of attempts.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::format::{Layout, Seen, Sums};
use crate::fs::PAGE;
use crate::manifest::{FileSum, MANIFEST, is_name};
use crate::source::{Made, Source};
use crate::tier::{STAGING, TRASH, Tier};
use crate::{Error, FilePlan, Manifest, Name, Piece, Result, Snapshot, parallel};

/// Retries after a failed sync: three attempts in all, then the save fails.
const TIMES_ANEW: usize = 2;

/// How the files of a checkpoint are made durable.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Durability {
    /// Sync each file. Use this when others write to the same file system.
    #[default]
    EachFile,
    /// Sync the whole file system once. Use this when it holds checkpoints only.
    FileSystem,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Writing {
    pub(crate) chunk_bytes: usize,
    pub(crate) durability: Durability,
}

/// Writes a checkpoint and makes it durable.
pub(crate) fn commit(
    tier: &Tier,
    name: Name,
    metric: Option<f64>,
    source: &dyn Source,
    writing: Writing,
) -> Result<Manifest> {
    let mut n_lost = 0;
    loop {
        match write_and_publish(tier, name, metric, source, writing) {
            Err(error) if error.is_failed_sync() && n_lost < TIMES_ANEW => n_lost += 1,
            other => return other,
        }
    }
}

fn write_and_publish(
    tier: &Tier,
    name: Name,
    metric: Option<f64>,
    source: &dyn Source,
    writing: Writing,
) -> Result<Manifest> {
    let staging = tier.spare_path(STAGING, name)?;
    let mut manifest = Manifest { step: name.step, metric, chunk_bytes: writing.chunk_bytes as u64, files: Vec::new() };
    let published = write(tier, &staging, &mut manifest, source, writing).and_then(|()| publish(tier, &staging, name));
    if published.is_err() {
        // Leftovers that cannot be removed now are removed when the store is next opened. Report the first error.
        let _ = tier.clear(&staging);
    }
    published.map(|()| manifest)
}

fn write(tier: &Tier, dir: &Path, manifest: &mut Manifest, source: &dyn Source, writing: Writing) -> Result<()> {
    tier.fs.make_dir(dir)?;
    let sums = source.layout().and_then(Layout::sums).map(Mutex::new);
    write_files(tier, dir, manifest, source, sums.as_ref(), writing)?;
    if let (Some(layout), Some(sums)) = (source.layout(), sums) {
        let sums = sums.into_inner().expect("no holder of this lock panics").finish();
        let last = layout.close(&sums.map_err(|error| Error::Plan { what: error.to_string() })?);
        write_files(tier, dir, manifest, &Made(last), None, writing)?;
    }
    let file = tier.fs.create(&dir.join(MANIFEST))?;
    file.write_at(0, &manifest.encode())?;
    match writing.durability {
        Durability::EachFile => {
            file.sync()?;
            tier.fs.sync_dir(dir)
        }
        Durability::FileSystem => tier.fs.sync_all(dir),
    }
}

/// Writes all files of a source, one after the other, with several chunks in flight.
fn write_files(
    tier: &Tier,
    dir: &Path,
    manifest: &mut Manifest,
    source: &dyn Source,
    sums: Option<&Mutex<Sums>>,
    writing: Writing,
) -> Result<()> {
    for (index, (name, len)) in source.files().into_iter().enumerate() {
        let file = tier.fs.create(&dir.join(&name))?;
        file.allocate(len)?;
        let n_chunks = len.div_ceil(writing.chunk_bytes as u64) as usize;
        let crcs: Vec<AtomicU32> = (0..n_chunks).map(|_| AtomicU32::new(0)).collect();
        let scratch_bytes = writing.chunk_bytes.min((len as usize).next_multiple_of(PAGE));
        parallel::for_each(tier.fs.in_flight(), scratch_bytes, 0..n_chunks, |chunk, scratch| {
            let offset = (chunk * writing.chunk_bytes) as u64;
            let n_bytes = writing.chunk_bytes.min((len - offset) as usize);
            let (bytes, crc) = source.bytes(index, offset, n_bytes, scratch)?;
            crcs[chunk].store(crc, Ordering::Relaxed);
            if let (Some(layout), Some(sums)) = (source.layout(), sums) {
                let seen = Seen::of(&layout.files[index], offset, bytes, crc);
                sums.lock().expect("no holder of this lock panics").add_seen(&seen);
            }
            file.write_at(offset, bytes)
        })?;
        if writing.durability == Durability::EachFile {
            file.sync()?;
        }
        manifest.files.push(FileSum { name, len, crcs: crcs.into_iter().map(AtomicU32::into_inner).collect() });
    }
    Ok(())
}

fn publish(tier: &Tier, staging: &Path, name: Name) -> Result<()> {
    let path = tier.path_of(name);
    tier.fs.rename(staging, &path)?;
    tier.fs.sync_dir(&tier.dir).inspect_err(|_| {
        // The name may or may not survive a power cut, so nothing may rely on it. Its files stay until names are known
        // to be durable again: if they were removed now, a name that came back would have no files.
        if let Ok(trash) = tier.spare_path(TRASH, name) {
            let _ = tier.fs.rename(&path, &trash);
        }
    })
}

/// Whether these files form a valid checkpoint of this state.
pub(crate) fn check(layout: &Layout, snapshot: &Snapshot<'_>) -> Result<()> {
    let refuse = |what: String| Err(Error::Plan { what });
    if !layout.is_of(snapshot.tensors.len()) {
        return refuse("the layout was planned for a different number of tensors".to_owned());
    }
    let last = layout.last_files();
    let plans: Vec<&FilePlan> = layout.files.iter().chain(&last).collect();
    if plans.is_empty() {
        return refuse("the layout has no files".to_owned());
    }
    for (k, plan) in plans.iter().enumerate() {
        if !is_name(&plan.name) {
            return refuse(format!("invalid file name \"{}\"", plan.name));
        }
        if plans[..k].iter().any(|other| other.name == plan.name) {
            return refuse(format!("duplicate file name \"{}\"", plan.name));
        }
        let holds: u64 = plan.pieces.iter().map(Piece::n_bytes).sum();
        if plan.len != holds {
            return refuse(format!("\"{}\" has {} bytes but its pieces add up to {holds}", plan.name, plan.len));
        }
        let within = |index: usize, end: u64| snapshot.tensors.get(index).is_some_and(|t| end <= t.bytes.n_bytes());
        for piece in &plan.pieces {
            if let Piece::Tensor { index, range } = piece
                && (range.start > range.end || !within(*index, range.end))
            {
                return refuse(format!(
                    "\"{}\" refers to bytes {range:?} of tensor {index}, which do not exist",
                    plan.name
                ));
            }
        }
    }
    Ok(())
}
