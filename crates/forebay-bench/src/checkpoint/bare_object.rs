//! One object written in parts and read in ranges, as fast as the store takes and gives them: the upper bound for saves
//! to object stores and restores from there.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use forebay_measure::{random, stamp};
use forebay_storage::{Buffer, Routed, Storage, bucket};

use super::Error;
use super::bare_file::{Pass, together};

/// Bytes per part, as of a save.
const PART: u64 = 8 << 20;
/// As many requests as a save keeps in flight.
const DEPTH: usize = 16;

/// Writes and reads an object, and removes it. `run` changes its content.
pub(super) fn rates(path: &Path, bytes: u64, run: u64, cancel: &AtomicBool) -> Result<[Pass; 2], Error> {
    let bucket = bucket();
    let upload = bucket.begin(path)?;
    let mut content = vec![0; PART.min(bytes) as usize];
    random(0, run).fill(&mut content);
    let start = Instant::now();
    let sent = each_part(bytes, cancel, |offset, len| {
        let mut part = content[..len as usize].to_vec();
        stamp(&mut part, offset, run);
        upload.put((offset / PART) as usize, part)
    });
    let sent = match sent {
        Ok(sent) if !cancel.load(Ordering::Relaxed) => {
            upload.complete()?;
            sent
        }
        other => {
            bucket.abandon(path, upload.id())?;
            let bytes = other?;
            return Ok([Pass { bytes, seconds: start.elapsed().as_secs_f64() }; 2]);
        }
    };
    let write = Pass { bytes: sent, seconds: start.elapsed().as_secs_f64() };
    let read = read(path, bytes, cancel);
    bucket.clear(path)?;
    Ok([write, read?])
}

fn read(path: &Path, bytes: u64, cancel: &AtomicBool) -> Result<Pass, Error> {
    let start = Instant::now();
    let (object, spare) = (Routed::default().open(path)?, Mutex::new(Vec::<Buffer>::new()));
    let read = each_part(bytes, cancel, |offset, len| {
        let mut buffer = spare.lock().expect("no holder of this lock panics").pop().unwrap_or_default();
        object.read_at(offset, len as usize, &mut buffer)?;
        spare.lock().expect("no holder of this lock panics").push(buffer);
        Ok(())
    })?;
    Ok(Pass { bytes: read, seconds: start.elapsed().as_secs_f64() })
}

/// Calls `act` with the offset and length of each part, from several threads; returns the bytes moved.
fn each_part(
    bytes: u64,
    cancel: &AtomicBool,
    act: impl Fn(u64, u64) -> forebay_storage::Result<()> + Sync,
) -> Result<u64, Error> {
    let (next, moved, failed) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let work = || -> forebay_storage::Result<()> {
        while !cancel.load(Ordering::Relaxed) && !failed.load(Ordering::Relaxed) {
            let offset = next.fetch_add(PART, Ordering::Relaxed);
            if offset >= bytes {
                break;
            }
            let len = PART.min(bytes - offset);
            act(offset, len).inspect_err(|_| failed.store(true, Ordering::Relaxed))?;
            moved.fetch_add(len, Ordering::Relaxed);
        }
        Ok(())
    };
    let (_, ended) = together((0..DEPTH).map(|_| work));
    for ended in ended {
        ended.map_err(forebay_measure::Error::Thread)??;
    }
    Ok(moved.into_inner())
}
