//! A wrapper that makes storage behave like another device: bandwidth, latency per request, number of servers.
//!
//! A request occupies one of the device's servers for its positioning time plus its transfer at the rate of one
//! stream, and all transfers share one pipe. This is enough to distinguish the devices:
//! - a disk has one server; its positioning time shrinks as the queue grows, because it may pick the nearest request,
//!   and a request that continues the previous one needs none;
//! - a flash drive has many servers and a short latency, so two threads nearly fill its pipe;
//! - a parallel file system has many servers and a long latency, so every thread adds its full rate;
//! - an object store has more of both, little per connection, and now and then a request that takes far longer.
//!
//! The schedule is kept in absolute time: a thread that wakes late does not slow the device down. For a sequential
//! stream the device may be up to a megabyte ahead, because drives read ahead and cache writes; the time between two
//! requests is then not lost.

mod profile;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use forebay_units::random::Random;
use forebay_units::{Clock, ManualClock, SystemClock};

use crate::{Buffer, Entry, Object, Result, Storage, Writer};

pub use profile::{Profile, Tail};

/// How far a device reads ahead of a sequential stream, or caches its writes.
const AHEAD_BYTES: u64 = 1 << 20;

/// Until when each server and each direction's pipe is booked, in nanoseconds of the device's clock.
struct Schedule {
    servers_free_ns: Vec<u64>,
    /// Where the last request of each server ended, to recognise one that continues it.
    last_end: Vec<(u64, u64)>,
    read_pipe_free_ns: u64,
    write_pipe_free_ns: u64,
    in_flight: usize,
    /// Draws the requests of the tail: the same ones in each run.
    chance: Random,
}

/// The device itself: schedules the requests of all threads in the order of their arrival.
pub struct Device {
    profile: Profile,
    clock: Arc<dyn Clock>,
    schedule: Mutex<Schedule>,
}

#[derive(Clone, Copy)]
enum Direction {
    Read,
    Write,
}

/// A place on the device: which object, and where in it.
#[derive(Clone, Copy)]
struct Place {
    object: u64,
    offset: u64,
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Device").field("profile", &self.profile).finish_non_exhaustive()
    }
}

impl Device {
    pub fn new(profile: Profile, clock: Arc<dyn Clock>) -> Self {
        let schedule = Schedule {
            servers_free_ns: vec![0; profile.servers.max(1)],
            last_end: vec![(u64::MAX, 0); profile.servers.max(1)],
            read_pipe_free_ns: 0,
            write_pipe_free_ns: 0,
            in_flight: 0,
            chance: Random::new(0),
        };
        Self { profile, clock, schedule: Mutex::new(schedule) }
    }

    /// By the system's clock.
    pub fn of(profile: Profile) -> Arc<Self> {
        Arc::new(Self::new(profile, Arc::new(SystemClock::default())))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Schedule> {
        self.schedule.lock().expect("no holder of this lock panics")
    }

    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Runs a read of `path` from `offset` on, which returns the number of bytes read, and returns when the device would
    /// have.
    ///
    /// # Errors
    /// Those of `run`, at once.
    pub fn read<E>(
        &self,
        path: &Path,
        offset: u64,
        run: impl FnOnce() -> std::result::Result<usize, E>,
    ) -> std::result::Result<usize, E> {
        let place = Place { object: identity(path), offset };
        self.serve(Direction::Read, || run().map(|n| (n, place, n as u64)))
    }

    /// Runs a write of `bytes` bytes to `path` from `offset` on, and returns when the device would have.
    ///
    /// # Errors
    /// Those of `run`, at once.
    pub fn write<E>(
        &self,
        path: &Path,
        offset: u64,
        bytes: u64,
        run: impl FnOnce() -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let place = Place { object: identity(path), offset };
        self.serve(Direction::Write, || run().map(|()| ((), place, bytes)))
    }

    /// Runs `run` and returns when the device would have. `bytes` and `place` are known before a write and after a
    /// read of a whole object, so the request is booked at its arrival time once `run` is done.
    fn serve<T, E>(
        &self,
        direction: Direction,
        run: impl FnOnce() -> std::result::Result<(T, Place, u64), E>,
    ) -> std::result::Result<T, E> {
        sharpen_sleep();
        let arrival = self.clock.now_ns();
        self.lock().in_flight += 1;
        let outcome = run();
        let finish = match &outcome {
            Ok((_, place, bytes)) => self.book(direction, arrival, *place, *bytes),
            Err(_) => arrival,
        };
        self.clock.sleep_until_ns(finish);
        self.lock().in_flight -= 1;
        outcome.map(|(value, _, _)| value)
    }

    fn book(&self, direction: Direction, arrival: u64, place: Place, bytes: u64) -> u64 {
        let profile = &self.profile;
        let mut schedule = self.lock();
        let may_go_on = matches!(direction, Direction::Write) || !profile.asks_each_time;
        let is_next = |end: &(u64, u64)| may_go_on && *end == (place.object, place.offset);
        let goes_on = schedule.last_end.iter().position(is_next);
        let server = goes_on.unwrap_or_else(|| earliest(&schedule.servers_free_ns));
        let latency = match goes_on {
            Some(_) => 0,
            None => {
                let mut is_slow = |tail: &&Tail| schedule.chance.below(tail.one_in) == 0;
                let slow = profile.tail.iter().find(|tail| is_slow(tail));
                slow.map_or_else(|| profile.latency_at(schedule.in_flight), |tail| tail.latency_ns)
            }
        };
        let (pipe_rate, stream_rate) = match direction {
            Direction::Read => (profile.read_bytes_per_s, profile.stream_bytes_per_s),
            // A client hands its writes to all servers at once and waits at the end; a read waits for each answer.
            Direction::Write => (profile.write_bytes_per_s, profile.write_bytes_per_s),
        };
        // The device was free only from then on, so being ahead never makes it faster than its profile.
        let ahead = if goes_on.is_some() { transfer_ns(AHEAD_BYTES, stream_rate) } else { 0 };
        let start = arrival.saturating_sub(ahead).max(schedule.servers_free_ns[server]);
        let ready = start + latency;
        let pipe_free = match direction {
            Direction::Read => &mut schedule.read_pipe_free_ns,
            Direction::Write => &mut schedule.write_pipe_free_ns,
        };
        *pipe_free = ready.max(*pipe_free) + transfer_ns(bytes, pipe_rate);
        let finish = (*pipe_free).max(ready + transfer_ns(bytes, stream_rate));
        schedule.servers_free_ns[server] = finish;
        schedule.last_end[server] = (place.object, place.offset + bytes);
        finish
    }
}

/// Requests that a rate is taken over: the start weighs little.
const RATE_REQUESTS: u64 = 512;

impl Profile {
    /// Whole files of this size that such a device delivers per second to so many readers, by its schedule alone.
    pub fn files_per_s(&self, bytes: u64, readers: usize) -> f64 {
        let readers = readers.max(1);
        let device = Device::new(self.clone(), Arc::new(ManualClock::default()));
        let mut free_ns = vec![0_u64; readers];
        device.lock().in_flight = readers;
        let n_files = RATE_REQUESTS.max(8 * readers as u64);
        for file in 0..n_files {
            let reader = earliest(&free_ns);
            free_ns[reader] = device.book(Direction::Read, free_ns[reader], Place { object: file, offset: 0 }, bytes);
        }
        let last_ns = free_ns.into_iter().max().unwrap_or(0).max(1);
        n_files as f64 / (last_ns as f64 / 1e9)
    }
}

fn earliest(free_ns: &[u64]) -> usize {
    (0..free_ns.len()).min_by_key(|i| free_ns[*i]).expect("a device has at least one server")
}

fn transfer_ns(bytes: u64, bytes_per_s: u64) -> u64 {
    (u128::from(bytes) * 1_000_000_000 / u128::from(bytes_per_s.max(1))) as u64
}

/// Asks the kernel for precise wake-ups on this thread: its default slack of 50 µs is four times Optane's latency.
fn sharpen_sleep() {
    thread_local! {
        static DONE: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
    }
    if !DONE.replace(true) {
        // SAFETY: plain prctl with integer arguments; it concerns the calling thread alone.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong, 0, 0, 0) };
    }
}

/// A storage that is as slow as another device.
#[derive(Clone)]
pub struct Shaped<S> {
    inner: S,
    device: Arc<Device>,
}

impl<S: Storage> Shaped<S> {
    /// Shapes `inner` after the profile, by the system's clock.
    pub fn new(inner: S, profile: Profile) -> Self {
        Self::on(inner, Device::of(profile))
    }

    pub fn with_clock(inner: S, profile: Profile, clock: Arc<dyn Clock>) -> Self {
        Self::on(inner, Arc::new(Device::new(profile, clock)))
    }

    /// On a device that others may use too.
    pub fn on(inner: S, device: Arc<Device>) -> Self {
        Self { inner, device }
    }
}

impl<S: Storage> Storage for Shaped<S> {
    fn description(&self) -> String {
        format!("{} (shaped in process) over {}", self.device.profile.name, self.inner.description())
    }

    fn list(&self, dir: &Path) -> Result<Vec<Entry>> {
        self.inner.list(dir)
    }

    fn size(&self, path: &Path) -> Result<u64> {
        self.inner.size(path)
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Object>> {
        let inner = self.inner.open(path)?;
        Ok(Box::new(ShapedObject { inner, object: identity(path), device: Arc::clone(&self.device) }))
    }

    fn create(&self, path: &Path) -> Result<Box<dyn Writer>> {
        let inner = self.inner.create(path)?;
        let place = Place { object: identity(path), offset: 0 };
        Ok(Box::new(ShapedWriter { inner, place, device: Arc::clone(&self.device), finish_ns: 0 }))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.inner.remove(path)
    }
}

fn identity(path: &Path) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    PathBuf::from(path).hash(&mut hasher);
    hasher.finish()
}

struct ShapedObject {
    inner: Box<dyn Object>,
    object: u64,
    device: Arc<Device>,
}

impl Object for ShapedObject {
    fn len(&self) -> Result<u64> {
        self.inner.len()
    }

    fn read_within(&self, limit: u64, into: &mut Buffer) -> Result<()> {
        let place = Place { object: self.object, offset: 0 };
        self.device.serve(Direction::Read, || {
            self.inner.read_within(limit, into)?;
            Ok(((), place, into.len() as u64))
        })
    }

    fn read_at(&self, offset: u64, len: usize, into: &mut Buffer) -> Result<()> {
        let place = Place { object: self.object, offset };
        self.device.serve(Direction::Read, || {
            self.inner.read_at(offset, len, into)?;
            Ok(((), place, len as u64))
        })
    }

    fn moved_for(&self, offset: u64, len: u64) -> u64 {
        self.inner.moved_for(offset, len)
    }
}

/// How far ahead of the device a writer may be before it has to wait, as with a drive's cache. `commit` waits for the
/// rest, while the real disk makes the file durable.
const WRITE_BEHIND_NS: u64 = 250_000_000;

struct ShapedWriter {
    inner: Box<dyn Writer>,
    place: Place,
    device: Arc<Device>,
    /// When the device will have written everything.
    finish_ns: u64,
}

impl Writer for ShapedWriter {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let n = bytes.len() as u64;
        let arrival = self.device.clock.now_ns();
        self.inner.write(bytes)?;
        self.finish_ns = self.device.book(Direction::Write, arrival, self.place, n);
        self.device.clock.sleep_until_ns(self.finish_ns.saturating_sub(WRITE_BEHIND_NS));
        self.place.offset += n;
        Ok(())
    }

    fn commit(self: Box<Self>) -> Result<()> {
        let committed = self.inner.commit();
        self.device.clock.sleep_until_ns(self.finish_ns);
        committed
    }
}
