//! Empties the rings of a job into a trace file and sums, in a thread of its own.
//!
//! Rings are files that processes of the job make in a folder. A ring is removed when its process is gone and everything was read.
//! Whatever goes wrong with the file, the job goes on and the sums stay complete.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use forebay_interpose::layout::Class;
use memmap2::{MmapOptions, MmapRaw};

use crate::event::Entry;
use crate::file::{Head, ProcessNote, Writer};
use crate::ring::{Memory, Ring};
use crate::tally::Tally;

/// Between two looks while the job does little; while it does much, there is no pause.
const PAUSE: Duration = Duration::from_millis(20);
/// Entries of one look after which the next follows at once.
const MANY: u64 = 5_000;
const FLUSH: Duration = Duration::from_secs(1);
/// A slot that is incomplete for so long while later ones are complete belongs to a thread that was ended.
const STUCK: Duration = Duration::from_secs(2);

/// What a collection needs to know.
#[derive(Debug, Clone)]
pub struct Options {
    /// Folder in which rings appear.
    pub rings: PathBuf,
    /// Begins the trace file.
    pub head: Head,
    /// Largest length of the trace file.
    pub max_bytes: u64,
}

/// What was collected.
#[derive(Debug)]
pub struct Collected {
    /// Sums over all events.
    pub tally: Tally,
    /// The file keeps every so many calls at its end; 1 if it has all.
    pub kept_every: u32,
    /// Length of the trace file.
    pub n_bytes: u64,
    /// Why the file ends early.
    pub error: Option<io::Error>,
}

/// A running collection.
#[derive(Debug)]
pub struct Collector {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Collected>,
}

impl Collector {
    /// # Errors
    /// If the trace file cannot be begun or no thread started.
    pub fn start(options: Options, file: File) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let writer = Writer::new(file, &options.head)?;
        let tally = Tally::new(options.head.started_ns);
        let budget = Budget { max_bytes: options.max_bytes, every: 1, n: 0 };
        let work = Work { options, writer: Some(writer), tally, rings: Vec::new(), budget, error: None, n_bytes: 0 };
        let flag = Arc::clone(&stop);
        let thread = thread::Builder::new().name("forebay:trace".to_owned()).spawn(move || work.run(&flag))?;
        Ok(Self { stop, thread })
    }

    /// Reads what is left and ends. All processes of the job should be gone: what is incomplete in their rings is skipped.
    pub fn finish(self) -> Option<Collected> {
        self.stop.store(true, Ordering::Release);
        self.thread.thread().unpark();
        self.thread.join().ok()
    }
}

struct Work {
    options: Options,
    /// `None` after an error.
    writer: Option<Writer<File>>,
    tally: Tally,
    rings: Vec<Open>,
    budget: Budget,
    error: Option<io::Error>,
    n_bytes: u64,
}

/// A ring that is being read.
struct Open {
    path: PathBuf,
    ring: Ring,
    process: u32,
    pid: u32,
    is_here: bool,
    /// When and where it last was without progress.
    stuck: Option<(Instant, (u64, usize))>,
    /// Keeps the memory of the ring mapped.
    _memory: MmapRaw,
}

impl Work {
    fn run(mut self, stop: &AtomicBool) -> Collected {
        let mut flushed = Instant::now();
        loop {
            let is_last = stop.load(Ordering::Acquire);
            self.find();
            let n = self.drain(is_last);
            if is_last {
                break;
            }
            if flushed.elapsed() >= FLUSH {
                flushed = Instant::now();
                self.write(|writer| writer.flush());
                self.bury();
            }
            if n < MANY {
                thread::park_timeout(PAUSE);
            }
        }
        self.rings.drain(..).for_each(|open| close(&open, &mut self.tally));
        self.write(|writer| writer.flush());
        let n_bytes = self.writer.as_ref().map_or(self.n_bytes, Writer::n_written);
        Collected { tally: self.tally, kept_every: self.budget.every, n_bytes, error: self.error }
    }

    /// Opens rings that are new since the last look.
    fn find(&mut self) {
        for entry in fs::read_dir(&self.options.rings).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_ring = path.extension().is_some_and(|extension| extension == "ring");
            if is_ring && !self.rings.iter().any(|open| open.path == path) {
                self.open(path);
            }
        }
    }

    fn open(&mut self, path: PathBuf) {
        let Some((ring, memory)) = map(&path) else { return };
        let origin = ring.origin();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let words: Vec<String> =
            origin.command.split(|byte| *byte == 0).map(text).filter(|word| !word.is_empty()).collect();
        let note = ProcessNote {
            pid: origin.pid,
            parent: origin.parent,
            start_ns: origin.start_ns,
            exe: text(&origin.exe),
            command: words.join(" "),
        };
        let process = self.tally.process(note.clone());
        self.write(|writer| writer.process(&note).map(drop));
        let own = fs::metadata("/proc/self/ns/pid").map_or(0, |found| found.ino());
        let is_here = origin.pid_namespace == own;
        self.rings.push(Open { path, ring, process, pid: origin.pid, is_here, stuck: None, _memory: memory });
    }

    /// Reads all rings; returns the number of entries of the busiest.
    fn drain(&mut self, is_last: bool) -> u64 {
        let mut most = 0;
        let mut rings = std::mem::take(&mut self.rings);
        for open in &mut rings {
            let process = open.process;
            let n = open.ring.drain(is_last, |entry| self.take(process, entry));
            most = most.max(n);
            if n == 0 && !is_last {
                open.look_for_torn();
            } else {
                open.stuck = None;
            }
        }
        self.rings = rings;
        self.fit();
        most
    }

    fn take(&mut self, process: u32, entry: Entry) {
        if self.budget.keeps(&entry) {
            self.write(|writer| writer.push(process, &entry));
        }
        self.tally.add(process, entry);
    }

    /// Thins the trace as it nears its limit.
    fn fit(&mut self) {
        let written = self.writer.as_ref().map_or(0, Writer::n_written);
        let wanted = self.budget.every_at(written);
        if wanted != self.budget.every {
            self.budget.every = wanted;
            self.write(|writer| writer.keep_every(wanted));
        }
    }

    /// Removes rings whose processes are gone, after everything was read.
    fn bury(&mut self) {
        let mut rings = std::mem::take(&mut self.rings);
        rings.retain_mut(|open| {
            let is_gone = open.is_here && !Path::new("/proc").join(open.pid.to_string()).exists();
            if is_gone {
                let process = open.process;
                open.ring.drain(true, |entry| self.take(process, entry));
                close(open, &mut self.tally);
            }
            !is_gone
        });
        self.rings = rings;
    }

    /// Writes unless an earlier write failed.
    fn write(&mut self, what: impl FnOnce(&mut Writer<File>) -> io::Result<()>) {
        let Some(writer) = &mut self.writer else { return };
        if let Err(error) = what(writer) {
            self.n_bytes = writer.n_written();
            self.writer = None;
            self.error = Some(error);
        }
    }
}

impl Open {
    fn look_for_torn(&mut self) {
        if !self.ring.has_more() {
            self.stuck = None;
            return;
        }
        let place = self.ring.place();
        match self.stuck {
            Some((since, at)) if at == place && since.elapsed() >= STUCK => {
                self.ring.skip_torn();
                self.stuck = None;
            }
            Some((_, at)) if at == place => {}
            _ => self.stuck = Some((Instant::now(), place)),
        }
    }
}

fn close(open: &Open, tally: &mut Tally) {
    tally.counts(open.process, open.ring.counts(), open.ring.n_torn);
    // A ring that stays only takes memory, and its folder is removed at the end.
    let _ = fs::remove_file(&open.path);
}

/// `None` while the ring is being made.
fn map(path: &Path) -> Option<(Ring, MmapRaw)> {
    let file = File::options().read(true).write(true).open(path).ok()?;
    let memory = MmapOptions::new().map_raw(&file).ok()?;
    // SAFETY: the mapping is kept beside the ring, and dropped with it.
    let ring = Ring::open(unsafe { Memory::new(memory.as_ptr(), memory.len()) })?;
    Some((ring, memory))
}

/// Which entries the file has room for.
#[derive(Debug)]
struct Budget {
    max_bytes: u64,
    every: u32,
    n: u64,
}

/// Beyond this, nothing more is stored: the rest is left for what is collected.
const NONE: u32 = u32::MAX;

impl Budget {
    /// The first half of the file has every call; the rest covers ever longer times.
    fn every_at(&self, written: u64) -> u32 {
        let left = self.max_bytes.saturating_sub(written);
        match self.max_bytes {
            max if left > max / 2 => 1,
            max if left > max / 4 => 10,
            max if left > max / 8 => 100,
            max if left > max / 16 => 1_000,
            _ => NONE,
        }
    }

    /// Marks, programs and texts are always kept, until there is no room for anything.
    fn keeps(&mut self, entry: &Entry) -> bool {
        if self.every == NONE {
            return false;
        }
        let Entry::Event(event) = entry else { return true };
        let is_call = event.op.class().is_some_and(|class| !matches!(class, Class::Event | Class::Open));
        self.n += u64::from(is_call);
        !is_call || self.n.is_multiple_of(u64::from(self.every))
    }
}

/// A folder for rings: in shared memory where there is room, otherwise in the run's folder, whose disk they then use.
///
/// # Errors
/// If neither can be made.
pub fn ring_folder(run: &Path) -> io::Result<(PathBuf, bool)> {
    let shared = PathBuf::from(format!("/dev/shm/forebay-trace-{}", std::process::id()));
    remove_old(Path::new("/dev/shm"));
    if free_bytes(Path::new("/dev/shm")).is_some_and(|free| free >= 256 << 20) && fs::create_dir(&shared).is_ok() {
        return Ok((shared, true));
    }
    let own = std::path::absolute(run)?.join("rings");
    fs::create_dir(&own)?;
    Ok((own, false))
}

/// Removes folders of tracers that were killed.
fn remove_old(shared: &Path) {
    for entry in fs::read_dir(shared).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix("forebay-trace-")?.parse::<u32>().ok());
        let Some(pid) = pid else { continue };
        let is_ours = entry.metadata().is_ok_and(|found| {
            // SAFETY: the call has no arguments and always succeeds.
            found.is_dir() && found.uid() == unsafe { libc::geteuid() }
        });
        if is_ours && !Path::new("/proc").join(pid.to_string()).exists() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn free_bytes(path: &Path) -> Option<u64> {
    let path = std::ffi::CString::new(path.as_os_str().as_encoded_bytes()).ok()?;
    let mut found = std::mem::MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: the path ends with a zero byte; zeros are a valid structure, which the call fills.
    unsafe { (libc::statvfs(path.as_ptr(), found.as_mut_ptr()) == 0).then(|| found.assume_init()) }
        .map(|found| found.f_bavail.saturating_mul(found.f_frsize))
}

/// Maps a trace file, which may be larger than memory.
///
/// # Errors
/// If it cannot be opened or mapped.
pub fn map_trace(path: &Path) -> io::Result<impl std::ops::Deref<Target = [u8]> + use<>> {
    let file = File::open(path)?;
    // SAFETY: trace files are only appended to, and what is mapped is what was there.
    unsafe { memmap2::Mmap::map(&file) }
}

/// Writes bytes to a new file that programs may execute or load.
///
/// # Errors
/// If the file exists or cannot be written.
pub fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    File::create_new(path)?.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Event, MarkKind, Op};

    #[test]
    fn the_nearer_the_limit_the_fewer_calls_are_kept_and_every_mark_is() {
        let mut budget = Budget { max_bytes: 1600, every: 1, n: 0 };
        let every = [0, 799, 800, 1200, 1400, 1500, 9000].map(|written| budget.every_at(written));
        assert_eq!(every, [1, 1, 10, 100, 1_000, NONE, NONE]);
        budget.every = 10;
        let call = Entry::Event(Event { op: Op::READ, ..Event::default() });
        assert_eq!((0..100).filter(|_| budget.keeps(&call)).count(), 10);
        let mark = Entry::Event(Event { mark: MarkKind::STEP, ..Event::default() });
        assert!((0..100).all(|_| budget.keeps(&mark)));
        budget.every = NONE;
        assert!(!budget.keeps(&mark));
    }
}
