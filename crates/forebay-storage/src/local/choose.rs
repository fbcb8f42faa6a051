//! Choosing the read mode by measurement.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use serde::Serialize;

use super::{Capabilities, Local, Mode};
use crate::{Buffer, Result, Storage, cache};

/// Rounds per mode; the best counts, because a disturbance can only slow a round down.
const ROUNDS: usize = 2;
/// The largest file allowed in a sample for [`choose_mode`], which reads whole files.
pub const CHOICE_LIMIT: u64 = 256 << 20;

/// The chosen mode and the rates it is based on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Choice {
    pub mode: Mode,
    pub capabilities: Capabilities,
    /// Cold read rate in MB/s of each mode that works, over the sample.
    pub mb_per_s: Vec<(Mode, f64)>,
}

/// Reads the sample with `threads` threads in every mode that works, cold, and picks the fastest.
///
/// A mode must be 5 % faster than a simpler one to be preferred, so that noise does not flip the choice.
///
/// # Errors
/// When the sample is empty, or a file of it cannot be read or is larger than [`CHOICE_LIMIT`].
pub fn choose_mode(sample: &[PathBuf], threads: usize) -> Result<Choice> {
    let probe_file = sample.first().map_or(Path::new("."), PathBuf::as_path);
    let capabilities = Capabilities::probe(probe_file);
    let mut mb_per_s = Vec::new();
    for mode in Mode::ALL.into_iter().filter(|mode| capabilities.allows(*mode)) {
        let mut best = 0.0f64;
        for _ in 0..ROUNDS {
            cache::evict(sample.iter().map(PathBuf::as_path))?;
            best = best.max(rate(&Local::new(mode), sample, threads)?);
        }
        mb_per_s.push((mode, best));
    }
    let mut chosen = (Mode::Buffered, 0.0);
    for (mode, rate) in &mb_per_s {
        if *rate > chosen.1 * 1.05 {
            chosen = (*mode, *rate);
        }
    }
    Ok(Choice { mode: chosen.0, capabilities, mb_per_s })
}

fn rate(storage: &Local, sample: &[PathBuf], threads: usize) -> Result<f64> {
    let next = AtomicUsize::new(0);
    let chunk = storage.read_many_preferred();
    let start = Instant::now();
    let bytes = std::thread::scope(|scope| {
        let read = || read_share(storage, sample, &next, chunk);
        // If no thread can be started, fewer threads read; this one always does.
        let workers: Vec<_> =
            (1..threads).filter_map(|_| std::thread::Builder::new().spawn_scoped(scope, read).ok()).collect();
        let own = read()?;
        workers.into_iter().try_fold(own, |sum, w| Ok(sum + w.join().expect("a reading thread does not panic")?))
    })?;
    Ok(bytes as f64 / 1e6 / start.elapsed().as_secs_f64().max(1e-9))
}

fn read_share(storage: &Local, sample: &[PathBuf], next: &AtomicUsize, chunk: usize) -> Result<u64> {
    let mut buffers: Vec<Buffer> = (0..chunk).map(|_| Buffer::default()).collect();
    let mut bytes = 0;
    loop {
        let first = next.fetch_add(chunk, Ordering::Relaxed);
        if first >= sample.len() {
            return Ok(bytes);
        }
        let paths: Vec<&Path> = sample[first..(first + chunk).min(sample.len())].iter().map(PathBuf::as_path).collect();
        for outcome in storage.read_many(&paths, CHOICE_LIMIT, &mut buffers) {
            outcome?;
        }
        bytes += buffers[..paths.len()].iter().map(|b| b.len() as u64).sum::<u64>();
    }
}
