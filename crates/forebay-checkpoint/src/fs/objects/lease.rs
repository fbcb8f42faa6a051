//! The lock of a folder on an object store.
//!
//! A store frees no lock when its holder dies. The lock is therefore an object that its holder replaces every few
//! seconds. Who finds one waits until it sees it change, and then reports the holder; if it does not change for six times as
//! long, it takes the lock over, with a write that only one can win. A holder that was killed on this machine is
//! recognised at once. No clocks are compared: each process measures how long it sees no change.
//!
//! A holder that could not renew its lock for that long stops publishing and removing checkpoints.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use forebay_storage::{Bucket, Version};

use super::{failed, new_place};
use crate::fs::Guard;
use crate::{Error, Operation, Result};

pub(super) const RENEWAL: Duration = Duration::from_secs(5);
/// Renewals that may be missed.
const PATIENCE: u32 = 6;

/// What its holder knows of a lock.
#[derive(Debug)]
pub(super) struct Lease {
    patience: Duration,
    state: Mutex<State>,
    change: Condvar,
}

#[derive(Debug)]
struct State {
    renewed: Instant,
    version: Version,
    is_lost: bool,
    is_over: bool,
}

impl Lease {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics")
    }

    /// Whether no one else can have taken it over.
    pub(super) fn is_ours(&self) -> bool {
        let state = self.state();
        !state.is_lost && state.renewed.elapsed() < self.patience
    }
}

pub(super) struct Held {
    lease: Arc<Lease>,
    bucket: Arc<dyn Bucket>,
    path: PathBuf,
    renewing: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Held").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Guard for Held {}

impl Held {
    pub(super) fn lease(&self) -> &Arc<Lease> {
        &self.lease
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.lease.state().is_over = true;
        self.lease.change.notify_all();
        if let Some(thread) = self.renewing.take() {
            thread.join().expect("renewing does not panic");
        }
        if self.lease.is_ours() {
            // If it stays, the next process takes it over.
            let _ = self.bucket.clear(&self.path);
        }
    }
}

/// What the lock object says.
struct Text {
    holder: String,
    process: String,
    /// Distinguishes this lock from all others.
    id: String,
}

impl Text {
    fn of(holder: &str) -> Self {
        Self { holder: holder.to_owned(), process: process_text(std::process::id()), id: new_place() }
    }

    fn bytes(&self, n_renewed: u64) -> Vec<u8> {
        format!("{}\n{}\n{} {n_renewed}\n", self.holder, self.process, self.id).into_bytes()
    }
}

/// Takes the lock, or says who has it.
pub(super) fn take(bucket: &Arc<dyn Bucket>, path: &Path, holder: &str, renewal: Duration) -> Result<Held> {
    let text = Text::of(holder);
    let patience = renewal * PATIENCE;
    let failed = |error| failed(Operation::Lock, path, error);
    let mut seen: Option<(Version, Instant)> = None;
    let (renewed, version) = loop {
        let now = Instant::now();
        if seen.is_none() && bucket.create_once(path, &text.bytes(0)).map_err(failed)? {
            check_conditions(bucket.as_ref(), path)?;
            break (now, bucket.read(path).map_err(failed)?.version);
        }
        let found = match bucket.read(path) {
            Ok(found) => found,
            Err(forebay_storage::Error::NotFound { .. }) => {
                seen = None;
                continue;
            }
            Err(error) => return Err(failed(error)),
        };
        let (holder, state) = examine(&found.bytes);
        let is_known = seen.as_ref().is_some_and(|(version, _)| *version == found.version);
        let is_stale = is_known && seen.as_ref().is_some_and(|(_, since)| since.elapsed() >= patience);
        if state == Holder::Gone || is_stale {
            if let Some(version) = bucket.replace(path, &found.version, &text.bytes(0)).map_err(failed)? {
                break (now, version);
            }
            seen = None;
            continue;
        }
        if state == Holder::Here || (seen.is_some() && !is_known) {
            return Err(Error::Locked { path: path.to_owned(), holder });
        }
        seen.get_or_insert((found.version, Instant::now()));
        std::thread::sleep(renewal / 4);
    };
    let state = Mutex::new(State { renewed, version, is_lost: false, is_over: false });
    let lease = Arc::new(Lease { patience, state, change: Condvar::new() });
    let (theirs, their_bucket, their_path) = (Arc::clone(&lease), Arc::clone(bucket), path.to_owned());
    let renew = move || renew(&theirs, their_bucket.as_ref(), &their_path, &text, renewal);
    let renewing = std::thread::Builder::new().name("forebay:lock".to_owned()).spawn(renew);
    let renewing = renewing.map_err(|source| Error::Thread { name: "forebay:lock", source: Arc::new(source) })?;
    Ok(Held { lease, bucket: Arc::clone(bucket), path: path.to_owned(), renewing: Some(renewing) })
}

/// Refuses a store that ignores conditions, as some older ones do: two writers could both win.
fn check_conditions(bucket: &dyn Bucket, path: &Path) -> Result<()> {
    let failed = |error| failed(Operation::Lock, path, error);
    if !bucket.create_once(path, b"the store ignores conditions\n").map_err(failed)? {
        return Ok(());
    }
    bucket.clear(path).map_err(failed)?;
    let what = "the store replaces objects that are to be created once (If-None-Match), which checkpoints rely on";
    Err(Error::from_io(Operation::Lock, path, std::io::Error::new(std::io::ErrorKind::Unsupported, what)))
}

/// Who has the lock of a folder on an object store; `None` if it is free, or its holder has ended on this machine.
///
/// # Errors
/// When the store could not be asked.
pub fn lock_holder(bucket: &dyn Bucket, path: &Path) -> Result<Option<String>> {
    match bucket.read(path) {
        Ok(found) => {
            let (holder, state) = examine(&found.bytes);
            Ok((state != Holder::Gone).then_some(holder))
        }
        Err(forebay_storage::Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(failed(Operation::Lock, path, error)),
    }
}

fn renew(lease: &Lease, bucket: &dyn Bucket, path: &Path, text: &Text, renewal: Duration) {
    let mut n_renewed = 0;
    let mut state = lease.state();
    loop {
        let due = Instant::now() + renewal;
        while !state.is_over && Instant::now() < due {
            let left = due.saturating_duration_since(Instant::now());
            state = lease.change.wait_timeout(state, left).expect("no holder of this lock panics").0;
        }
        if state.is_over || state.is_lost {
            return;
        }
        let version = state.version.clone();
        drop(state);
        n_renewed += 1;
        let start = Instant::now();
        let replaced = bucket.replace(path, &version, &text.bytes(n_renewed));
        state = lease.state();
        match replaced {
            Ok(Some(version)) => (state.renewed, state.version) = (start, version),
            Ok(None) => state.is_lost = true,
            // Tried again; when it fails for too long, the lock is no longer ours.
            Err(_) => {}
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Holder {
    /// A process of this machine that runs.
    Here,
    /// A process of this machine that has ended.
    Gone,
    Elsewhere,
}

fn examine(bytes: &[u8]) -> (String, Holder) {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.lines();
    let (holder, process) = (lines.next().unwrap_or_default().to_owned(), lines.next().unwrap_or_default());
    let mut words = process.rsplitn(3, ' ');
    let (started, pid, machine) = (words.next(), words.next().and_then(|pid| pid.parse().ok()), words.next());
    let state = match (machine, pid) {
        (Some(found), Some(pid)) if machine_text().is_some_and(|ours| ours == found) => {
            if start_of(pid).as_deref() == started { Holder::Here } else { Holder::Gone }
        }
        _ => Holder::Elsewhere,
    };
    (holder, state)
}

/// Machine, process and when it started; a number of a process is used again.
fn process_text(pid: u32) -> String {
    let machine = machine_text().unwrap_or_else(|| "unknown".to_owned());
    format!("{machine} {pid} {}", start_of(pid).unwrap_or_else(|| "unknown".to_owned()))
}

/// This boot of this machine, and the namespace in which processes have their numbers.
fn machine_text() -> Option<String> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = std::fs::read_link("/proc/self/ns/pid").ok()?;
    Some(format!("{} {}", boot.trim(), namespace.to_str()?))
}

fn start_of(pid: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program, in brackets, may hold anything.
    stat.rsplit_once(')')?.1.split_whitespace().nth(19).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_of_this_machine_is_known_to_run_or_to_have_ended() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let text = format!("the holder\n{}\nid 0\n", process_text(child.id()));
        assert_eq!(examine(text.as_bytes()), ("the holder".to_owned(), Holder::Here));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(examine(text.as_bytes()).1, Holder::Gone);
        let other = text.replacen(&machine_text().unwrap(), "elsewhere pid:[1]", 1);
        assert_eq!(examine(other.as_bytes()).1, Holder::Elsewhere);
        assert_eq!(examine(b"").1, Holder::Elsewhere);
    }
}
