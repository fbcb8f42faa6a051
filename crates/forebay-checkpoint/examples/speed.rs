//! How fast a state is saved and restored, each beside what the device and the memory can do, in one run.
//!
//! ```text
//! speed DIR [MB] [ROUNDS]
//! ```
//!
//! A round does each thing once, so that a busy moment of the machine meets all of them. Printed are medians over the
//! rounds, the median of the ratios within a round, and what a save takes of memory beyond the state.

#![expect(clippy::print_stdout, reason = "a program")]

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use forebay_checkpoint::format::{self, FORMATS, Layout};
use forebay_checkpoint::{
    Dtype, Header, Keep, Level, LocalFs, Memory, Mode, Options, Region, Snapshot, Store, Tensor, Tier, Wanted,
};

type Error = Box<dyn std::error::Error>;

const CHUNK: usize = 4 << 20;
const IN_FLIGHT: usize = 4;

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let dir = Path::new(arguments.first().ok_or("usage: speed DIR [MB] [ROUNDS]")?);
    let mb: usize = arguments.get(1).map_or(Ok(600), |text| text.parse())?;
    let rounds: usize = arguments.get(2).map_or(Ok(7), |text| text.parse())?;
    std::fs::create_dir_all(dir)?;
    let state = State::new(mb * 1_000_000);
    println!("{} tensors, {} bytes, {rounds} rounds", state.headers.len(), state.snapshot().n_bytes());
    let mut bench = Bench::new(dir, state)?;
    for _ in 0..rounds {
        bench.round()?;
    }
    bench.report();
    Ok(())
}

/// Tensors like those of a network with its moments: a few are most of it.
struct State {
    headers: Vec<Header>,
    values: Vec<Vec<u8>>,
}

impl State {
    fn new(n_bytes: usize) -> Self {
        let mut lens = Vec::new();
        let mut rest = n_bytes / 4 * 4;
        while rest > 0 {
            let len = if lens.len() % 2 == 0 { rest / 5 } else { 16_384 };
            let len = (len / 4 * 4).clamp(4096, rest.max(4096)).min(rest);
            lens.push(if rest < 1 << 20 { rest } else { len });
            rest -= lens[lens.len() - 1];
        }
        let header = |(k, len): (usize, &usize)| Header {
            name: format!("layer{k}.weight"),
            dtype: Dtype::F32,
            shape: vec![*len as u64 / 4],
        };
        let headers = lens.iter().enumerate().map(header).collect();
        let values = lens.iter().map(|len| (0..*len).map(|i| (i * 31 % 251) as u8).collect()).collect();
        Self { headers, values }
    }

    fn snapshot(&self) -> Snapshot<'_> {
        let tensors = self.headers.iter().zip(&self.values).map(|(header, bytes)| Tensor::new(header, bytes));
        Snapshot { tensors: tensors.collect(), ..Snapshot::default() }
    }
}

/// Seconds of wall clock and of all cores.
#[derive(Clone, Copy)]
struct Took {
    wall_s: f64,
    cpu_s: f64,
}

struct Bench<'a> {
    dir: &'a Path,
    state: State,
    aligned: Region,
    copy: Vec<Vec<u8>>,
    memory: Memory,
    took: Vec<(String, Vec<Took>)>,
    beyond: Vec<(String, u64)>,
}

impl<'a> Bench<'a> {
    fn new(dir: &'a Path, state: State) -> Result<Self, Error> {
        let mut aligned = Region::new(state.snapshot().n_bytes() as usize)?;
        aligned.iter_mut().enumerate().for_each(|(i, byte)| *byte = (i * 17 % 251) as u8);
        let copy = state.values.clone();
        Ok(Self { dir, state, aligned, copy, memory: Memory::default(), took: Vec::new(), beyond: Vec::new() })
    }

    fn round(&mut self) -> Result<(), Error> {
        let ceiling = self.dir.join("ceiling");
        let bytes = &self.aligned[..];
        let write = timed(|| write_direct(&ceiling, bytes))?;
        let read = timed(|| read_direct(&ceiling, &mut self.aligned))?;
        std::fs::remove_file(&ceiling)?;
        let copied = timed(|| copy(&self.state.values, &mut self.copy))?;
        self.add("write ceiling", write);
        self.add("read ceiling", read);
        self.add("memory copy", copied);
        for format in FORMATS {
            for mode in [Mode::Direct, Mode::Burst] {
                self.save(format, mode)?;
            }
            self.save_async(format)?;
        }
        Ok(())
    }

    fn add(&mut self, what: &str, took: Took) {
        match self.took.iter_mut().find(|(known, _)| known == what) {
            Some((_, all)) => all.push(took),
            None => self.took.push((what.to_owned(), vec![took])),
        }
    }

    fn open(&self, mode: Mode, n_tiers: usize) -> Result<Store, Error> {
        let tier = |k| Tier { keep: Keep::last(1), ..Tier::new(Arc::new(LocalFs), self.dir.join(format!("tier{k}"))) };
        let options = Options { mode, drains_behind: false, ..Options::default() };
        Ok(Store::open((0..n_tiers).map(tier).collect(), options)?)
    }

    fn save(&mut self, format: &dyn format::Format, mode: Mode) -> Result<(), Error> {
        let what = format!("{mode:?} {}", format.name());
        let store = self.open(mode, if mode == Mode::Burst { 2 } else { 1 })?;
        let layout = format.plan("model", &self.state.snapshot())?;
        let before = reset_peak();
        let saved = timed(|| {
            store.save(1, None, &self.state.snapshot(), &layout)?;
            Ok(())
        })?;
        self.beyond.push((what.clone(), peak().saturating_sub(before)));
        self.add(&format!("save {what}"), saved);
        let mut restored = None;
        let restoring = timed(|| {
            restored = Some(store.restore_with(Wanted::default(), &mut self.memory)?);
            Ok(())
        })?;
        restored.ok_or("was just restored")?.give_back(&mut self.memory);
        self.add(&format!("restore {what}"), restoring);
        let _ = store.close();
        self.clear()
    }

    fn save_async(&mut self, format: &dyn format::Format) -> Result<(), Error> {
        let store = self.open(Mode::Async, 1)?;
        let layout: Layout = format.plan("model", &self.state.snapshot())?;
        store.prepare(&layout)?;
        let mut handle = None;
        let stall = timed(|| {
            handle = Some(store.save(1, None, &self.state.snapshot(), &layout)?);
            Ok(())
        })?;
        self.add(&format!("stall Async {}", format.name()), stall);
        handle.ok_or("was just saved")?.wait(Level::DurableFast)?;
        let _ = store.close();
        self.clear()
    }

    fn clear(&self) -> Result<(), Error> {
        for k in 0..2 {
            let tier = self.dir.join(format!("tier{k}"));
            if tier.exists() {
                std::fs::remove_dir_all(tier)?;
            }
        }
        Ok(())
    }

    fn report(&self) {
        let n_bytes = self.state.snapshot().n_bytes() as f64;
        println!("{:<26} {:>8} {:>8} {:>9} {:>8}", "", "wall ms", "cpu ms", "MB/s", "ratio");
        for (what, all) in &self.took {
            let bound = match what.split(' ').next() {
                Some("save") => Some(("write ceiling", true)),
                Some("restore") => Some(("read ceiling", true)),
                Some("stall") => Some(("memory copy", false)),
                _ => None,
            };
            let ratio = bound.map(|(bound, of_rates)| self.ratio(all, bound, of_rates));
            let ratio = ratio.map_or("–".to_owned(), |ratio| format!("{ratio:.2}"));
            let wall_s = median(all.iter().map(|took| took.wall_s));
            let cpu_s = median(all.iter().map(|took| took.cpu_s));
            let rate = n_bytes / wall_s / 1e6;
            println!("{what:<26} {:>8.1} {:>8.1} {rate:>9.0} {ratio:>8}", wall_s * 1e3, cpu_s * 1e3);
        }
        for mode in ["Direct safetensors", "Burst safetensors", "Direct tensorflow", "Burst tensorflow"] {
            let most = self.beyond.iter().filter(|(what, _)| what == mode).map(|(_, bytes)| *bytes).max();
            println!("memory beyond the state, {mode}: {:.1} MB", most.unwrap_or(0) as f64 / 1e6);
        }
    }

    /// The median over the rounds of how much of the bound was reached; for a stall, how many times the bound it is.
    fn ratio(&self, all: &[Took], bound: &str, of_rates: bool) -> f64 {
        let bounds = self.took.iter().find(|(what, _)| what == bound).map_or(&[][..], |(_, all)| all);
        let ratios = all.iter().zip(bounds).map(|(took, bound)| took.wall_s / bound.wall_s);
        median(ratios.map(|ratio| if of_rates { 1.0 / ratio } else { ratio }))
    }
}

fn timed(work: impl FnOnce() -> Result<(), Error>) -> Result<Took, Error> {
    let (cpu_s, start) = (cpu_s(), Instant::now());
    work()?;
    Ok(Took { wall_s: start.elapsed().as_secs_f64(), cpu_s: self::cpu_s() - cpu_s })
}

fn cpu_s() -> f64 {
    // SAFETY: an all-zero rusage is a valid value of that plain struct.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: a valid place for the answer.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut all: Vec<f64> = values.collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Forgets the greatest resident size so far; returns the present one in bytes.
fn reset_peak() -> u64 {
    // Where the kernel does not allow it, the memory beyond the state is overstated, never understated.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    status("VmRSS:")
}

fn peak() -> u64 {
    status("VmHWM:")
}

fn status(key: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(key)).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) * 1024
}

fn in_parallel<T: Send>(items: Vec<T>, work: impl Fn(T) -> std::io::Result<()> + Sync) -> Result<(), Error> {
    let items: Vec<_> = items.into_iter().map(|item| std::sync::Mutex::new(Some(item))).collect();
    let next = AtomicUsize::new(0);
    let run = || -> std::io::Result<()> {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Some(item) = item.lock().map_err(|_| std::io::Error::other("a thread panicked"))?.take() {
                work(item)?;
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..IN_FLIGHT).map(|_| scope.spawn(run)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread panicked")?.map_err(Error::from))
    })
}

fn write_direct(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let file = OpenOptions::new().write(true).create_new(true).custom_flags(libc::O_DIRECT).open(path)?;
    // SAFETY: a valid descriptor and plain integers.
    let rc = unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, bytes.len() as libc::off_t) };
    if rc != 0 {
        return Err(std::io::Error::last_os_error().into());
    }
    let chunks = bytes.chunks(CHUNK).enumerate().collect();
    in_parallel(chunks, |(k, chunk): (usize, &[u8])| file.write_all_at(chunk, (k * CHUNK) as u64))?;
    Ok(file.sync_all()?)
}

fn read_direct(path: &Path, into: &mut [u8]) -> Result<(), Error> {
    let file: File = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path)?;
    let chunks = into.chunks_mut(CHUNK).enumerate().collect();
    in_parallel(chunks, |(k, chunk): (usize, &mut [u8])| file.read_exact_at(chunk, (k * CHUNK) as u64))
}

/// Copies on as many threads as a save does.
fn copy(from: &[Vec<u8>], into: &mut [Vec<u8>]) -> Result<(), Error> {
    let n_threads = std::thread::available_parallelism().map_or(1, usize::from).min(4);
    let next = AtomicUsize::new(0);
    let parts = from.iter().zip(into).flat_map(|(from, into)| from.chunks(CHUNK).zip(into.chunks_mut(CHUNK)));
    let parts: Vec<_> = parts.map(|part| std::sync::Mutex::new(Some(part))).collect();
    std::thread::scope(|scope| {
        for _ in 0..n_threads {
            scope.spawn(|| {
                while let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Ok(mut part) = part.lock()
                        && let Some((from, into)) = part.take()
                    {
                        into.copy_from_slice(from);
                    }
                }
            });
        }
    });
    Ok(())
}
