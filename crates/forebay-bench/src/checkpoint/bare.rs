//! Upper bounds for checkpoints: the storage's own rates, and a plain copy in memory.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use forebay_checkpoint::{Fetch, Region, Snapshot, Values};
use forebay_measure::{Place, Scratch};
use forebay_storage::is_url;

use super::Error;
use super::bare_file::{self, Pass, together};
use super::bare_object;

/// Removed before the next save.
const FILE: &str = "bare";

/// Megabytes (10^6 bytes) per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rates {
    pub(super) write: f64,
    pub(super) read: f64,
}

/// From the profile if this process emulates the device, otherwise measured.
pub(super) fn rates(
    place: &Place,
    scratch: &Scratch,
    bytes: u64,
    run: u64,
    cancel: &AtomicBool,
) -> Result<Rates, Error> {
    if let Some(profile) = &place.shaped {
        let [write, read] = [profile.write_bytes_per_s, profile.read_bytes_per_s].map(|rate| rate as f64 / 1e6);
        return Ok(Rates { write, read });
    }
    if is_url(scratch.path()) {
        let [write, read] = bare_object::rates(&scratch.path().join(FILE), bytes, run, cancel)?.map(Pass::mb_per_s);
        return Ok(Rates { write, read });
    }
    let write = bare_file::write(scratch, FILE, bytes, run, cancel)?;
    let read = bare_file::read(scratch, FILE, bytes, cancel)?;
    let path = scratch.path().join(FILE);
    std::fs::remove_file(&path)
        .map_err(|source| Error::Shared(forebay_measure::Error::Io { what: "removing", path, source }))?;
    let [write, read] = [write, read].map(Pass::mb_per_s);
    Ok(Rates { write, read })
}

/// Seconds to copy the bytes into touched memory, with as many threads as a save uses.
pub(super) fn copy_s(bytes: &[u8], into: &mut Region) -> f64 {
    const CHUNK: usize = 4 << 20;
    let n_threads = std::thread::available_parallelism().map_or(1, usize::from).min(4);
    let share = bytes.len().div_ceil(n_threads).next_multiple_of(CHUNK).max(1);
    let shares = Mutex::new(bytes.chunks(share).zip(into.chunks_mut(share)));
    let copy = || {
        let next = || shares.lock().expect("taking a share does not panic").next();
        while let Some((from, to)) = next() {
            to[..from.len()].copy_from_slice(from);
        }
    };
    let (start, _) = together((0..n_threads).map(|_| copy));
    // If no thread can be started, this one does all of it.
    copy();
    start.elapsed().as_secs_f64()
}

/// Seconds to copy a state into memory end to end. Copies from a device are queued together and awaited once.
pub(super) fn fetch_s(snapshot: &Snapshot<'_>, into: &mut Region) -> Result<f64, forebay_checkpoint::Error> {
    let (mut fetches, mut rest) = (Vec::new(), &mut into[..]);
    for tensor in &snapshot.tensors {
        let (mine, others) = std::mem::take(&mut rest).split_at_mut(tensor.bytes.n_bytes() as usize);
        match tensor.bytes {
            Values::Here(bytes) => mine.copy_from_slice(bytes),
            Values::There { index, .. } => fetches.push(Fetch { index, offset: 0, into: mine }),
        }
        rest = others;
    }
    let start = Instant::now();
    if let Some(device) = snapshot.device() {
        let failed = |source| forebay_checkpoint::Error::Fetch { source: Arc::new(source) };
        device.fetch(&mut fetches).map_err(failed)?;
    }
    Ok(start.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_the_same_bytes() {
        let bytes: Vec<u8> = (0..9_000_000_u32).map(|n| (n % 251) as u8).collect();
        let mut into = Region::new(bytes.len()).unwrap();
        assert!(copy_s(&bytes, &mut into) > 0.0);
        assert_eq!(into[..bytes.len()], bytes);
    }

    #[test]
    fn an_emulated_place_has_the_rates_of_its_profile() {
        let dir = tempfile::tempdir().unwrap();
        let scratch = Scratch::create(dir.path(), ".forebay-bare-").unwrap();
        let mut place = Place::new(dir.path());
        let cancel = AtomicBool::new(false);
        let measured = rates(&place, &scratch, 1 << 20, 1, &cancel).unwrap();
        assert!(measured.write > 0.0 && measured.read > 0.0);
        assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0, "the file is gone");
        place.shaped = Some(forebay_storage::Profile::hdd());
        assert_eq!(rates(&place, &scratch, 1 << 20, 1, &cancel).unwrap(), Rates { write: 133.0, read: 163.0 });
    }
}
