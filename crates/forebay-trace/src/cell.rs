//! Makes the cell of a record from the sums of a trace and what was seen beside it.

use std::collections::{BTreeMap, HashMap};

use forebay_interpose::layout::Class;
use forebay_record::{
    TraceBytes, TraceCell, TraceFetch, TraceFile, TraceOperation, TracePhase, TraceProcess, TraceSize,
};
use forebay_units::{Histogram, PathText};

use crate::classes::FileClass;
use crate::fetches::Spent;
use crate::inside::{Inside, Steady};
use crate::rules::{self, Case};
use crate::tally::{File, Process, Sums, Tally};

const MAX_FILES: usize = 100;
const MAX_FOLDERS: usize = 50;
const MAX_PROCESSES: usize = 100;
/// Command lines are cut to this many characters.
const MAX_COMMAND: usize = 120;

/// What is known of a job beside its events; `None` where nobody measured it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Facts {
    /// The command.
    pub job: String,
    /// Its time, in seconds.
    pub wall_s: f64,
    /// Its exit status.
    pub status: Option<i64>,
    /// Cores of the machine.
    pub n_cores: u64,
    /// Memory of the machine, in bytes.
    pub memory_bytes: Option<u64>,
    /// Processor time of all its processes, in seconds.
    pub cpu_s: Option<f64>,
    /// Bytes as the kernel counts them, by calls and at devices: read, written.
    pub kernel: Option<[(u64, u64); 2]>,
    /// Page faults that waited for a device.
    pub major_faults: Option<u64>,
    /// Share of the time that the busiest disk was busy.
    pub disk_busy: Option<f64>,
    /// Programs that were not seen, with the reason.
    pub not_seen: Vec<String>,
    /// The file keeps every so many calls.
    pub kept_every: u64,
}

/// What the job said that it does, over all processes.
fn phases(tally: &Tally) -> Vec<TracePhase> {
    let mut all = Vec::new();
    tally.processes.iter().for_each(|process| process.phases.add_to(&mut all));
    all
}

/// The cell of a job.
pub fn cell(tally: &Tally, facts: &Facts) -> TraceCell {
    let totals = tally.totals();
    let fetch = fetch(tally);
    let classes = classes(tally);
    let mut cell = TraceCell {
        job: facts.job.clone(),
        wall_s: facts.wall_s,
        status: facts.status,
        totals,
        fetch,
        saves: tally.saves.clone(),
        phases: phases(tally),
        operations: operations(tally),
        classes,
        files: files(tally),
        folders: folders(tally),
        processes: processes(tally),
        sizes: sizes(tally),
        not_seen: facts.not_seen.clone(),
        kept_every: facts.kept_every,
        ..TraceCell::default()
    };
    if let Some([read, written]) = facts.kernel {
        let other = |of: fn(&Process) -> u64| tally.processes.iter().map(of).sum();
        let others = [other(|p| p.counts.other_reads.1), other(|p| p.counts.other_writes.1)];
        let bytes = |calls, other, (kernel, devices): (u64, u64)| Some(TraceBytes { calls, other, kernel, devices });
        cell.read = bytes(cell.totals.bytes_read, others[0], read);
        cell.written = bytes(cell.totals.bytes_written, others[1], written);
    }
    let marks = tally.processes.iter().map(|process| &process.marks);
    let (mut inside, mut steady) = (Inside::default(), Steady::default());
    for process in tally.processes.iter().filter(|process| process.marks.wait_ns > 0) {
        inside.plus(&process.overlap.inside);
        steady.plus(&process.overlap.steady);
    }
    let case = Case {
        facts,
        n_loops: marks.clone().filter(|marks| marks.wait_ns > 0).count() as u64,
        n_epochs: marks.clone().map(|marks| marks.epochs).max().unwrap_or(0),
        workers: marks.filter_map(|marks| marks.workers).max(),
        data_bytes: data_bytes(tally),
        data_files: tally.files.iter().filter(|file| is_read_data(file)).count() as u64,
        mapped_bytes: tally.bytes_mapped,
        inside,
        steady,
    };
    rules::judge(&mut cell, &case);
    cell
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn is_read_data(file: &File) -> bool {
    file.class == FileClass::Data && file.sums.reads > 0 && !file.is_written
}

/// Bytes of the data files that were read.
fn data_bytes(tally: &Tally) -> u64 {
    tally.files.iter().filter(|file| is_read_data(file)).map(|file| file.size).sum()
}

fn fetch(tally: &Tally) -> Option<TraceFetch> {
    let mut all = TraceFetch::default();
    let mut workers = 0;
    let trains = tally.processes.iter().any(|process| process.marks.waits > 0);
    for process in &tally.processes {
        let fetching = process.threads.values().filter(|thread| thread.n_fetches > 0);
        let mut n = 0;
        for thread in fetching {
            let Spent { open_ns, read_ns, meta_ns, meta_calls } = thread.spent;
            n += thread.n_fetches;
            all.samples = thread.n_samples.map(|n| n + all.samples.unwrap_or(0)).or(all.samples);
            all.seconds += seconds(thread.fetch_ns);
            all.open_s += seconds(open_ns);
            all.read_s += seconds(read_ns);
            all.meta_s += seconds(meta_ns);
            all.cpu_s += seconds(thread.cpu_ns);
            all.meta_calls += meta_calls;
        }
        all.batches += n;
        workers += u64::from(n > 0 && trains && process.marks.waits == 0);
    }
    all.workers = workers;
    all.compute_s = all.seconds - all.open_s - all.read_s - all.meta_s;
    (all.batches > 0).then_some(all)
}

fn operations(tally: &Tally) -> Vec<TraceOperation> {
    let mut by_name: BTreeMap<&str, (TraceOperation, Histogram)> = BTreeMap::new();
    for (op, calls) in &tally.calls {
        let (of, durations) = by_name.entry(op.name()).or_default();
        of.calls += calls.n;
        of.errors += calls.errors;
        of.bytes += calls.bytes;
        of.seconds += seconds(calls.ns);
        durations.add(&calls.durations);
    }
    // Calls without room for their event have no duration.
    for (op, calls, bytes) in tally.processes.iter().flat_map(|process| &process.counts.dropped) {
        if op.class().is_some_and(|class| class != Class::Event) {
            let (of, _) = by_name.entry(op.name()).or_default();
            of.calls += calls;
            of.bytes += bytes;
        }
    }
    let us = |durations: &Histogram, q| durations.quantile(q).map_or(0.0, |ns| ns as f64 / 1e3);
    let mut all: Vec<TraceOperation> = by_name
        .into_iter()
        .map(|(name, (of, durations))| TraceOperation {
            name: name.to_owned(),
            p50_us: us(&durations, 0.5),
            p95_us: us(&durations, 0.95),
            p99_us: us(&durations, 0.99),
            ..of
        })
        .collect();
    all.sort_by(|a, b| b.seconds.total_cmp(&a.seconds).then_with(|| a.name.cmp(&b.name)));
    all
}

fn row(name: String, class: &str, files: u64, sums: &Sums) -> TraceFile {
    TraceFile {
        name,
        class: class.to_owned(),
        files,
        opens: sums.opens,
        reads: sums.reads,
        bytes_read: sums.bytes_read,
        writes: sums.writes,
        bytes_written: sums.bytes_written,
        seconds: seconds(sums.ns),
        sequential_reads: sums.sequential_reads,
    }
}

/// Files that the job wrote are its output rather than its data.
fn class_of(file: &File) -> &'static str {
    if file.class == FileClass::Data && file.is_written { "output" } else { file.class.name() }
}

fn classes(tally: &Tally) -> Vec<TraceFile> {
    let mut by_class: BTreeMap<&str, (u64, Sums)> = BTreeMap::new();
    for file in &tally.files {
        let (n, sums) = by_class.entry(class_of(file)).or_default();
        *n += 1;
        sums.plus(&file.sums);
    }
    for (class, more) in &tally.beyond {
        let (_, sums) = by_class.entry(class.name()).or_default();
        sums.plus(more);
    }
    let mut all: Vec<TraceFile> =
        by_class.into_iter().map(|(class, (n, sums))| row(class.to_owned(), "", n, &sums)).collect();
    all.sort_by(|a, b| b.seconds.total_cmp(&a.seconds).then_with(|| a.name.cmp(&b.name)));
    all
}

fn path_text(path: &[u8]) -> String {
    if path.is_empty() {
        return "(unknown)".to_owned();
    }
    let path: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(path);
    path.escaped().into_owned()
}

/// Whether a class is what the job works on, rather than what it is made of.
fn is_own(class: &str) -> bool {
    TraceFile::OWN.contains(&class)
}

/// The first of a sorted list: modules and libraries, of which a Python program opens thousands, take at most a quarter of the room.
fn own_first<T>(all: Vec<T>, most: usize, is_own: impl Fn(&T) -> bool) -> Vec<T> {
    let (mut n_own, mut n_others) = (0, 0);
    let mut keeps = |row: &T| {
        let (n, most) = if is_own(row) { (&mut n_own, most) } else { (&mut n_others, most / 4) };
        *n += 1;
        *n <= most
    };
    all.into_iter().filter(|row| keeps(row)).collect()
}

fn files(tally: &Tally) -> Vec<TraceFile> {
    let mut all: Vec<&File> = tally.files.iter().filter(|file| file.sums.ns > 0).collect();
    all.sort_by(|a, b| b.sums.ns.cmp(&a.sums.ns).then_with(|| a.path.cmp(&b.path)));
    let all = own_first(all, MAX_FILES, |file| is_own(class_of(file)));
    all.into_iter().map(|file| row(path_text(&file.path), class_of(file), 1, &file.sums)).collect()
}

#[derive(Default)]
struct Folder {
    n_files: u64,
    sums: Sums,
    /// Bytes by class; a file counts one more, so that a folder without transfers has a class too.
    classes: HashMap<&'static str, u64>,
}

fn folders(tally: &Tally) -> Vec<TraceFile> {
    let mut by_path: HashMap<&[u8], Folder> = HashMap::new();
    for file in &tally.files {
        let end = file.path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        let of = by_path.entry(&file.path[..end]).or_default();
        of.n_files += 1;
        of.sums.plus(&file.sums);
        *of.classes.entry(class_of(file)).or_default() += file.sums.bytes_read + file.sums.bytes_written + 1;
    }
    let mut all: Vec<_> = by_path.into_iter().filter(|(_, of)| of.sums.ns > 0).collect();
    all.sort_by(|(a, x), (b, y)| y.sums.ns.cmp(&x.sums.ns).then_with(|| a.cmp(b)));
    let class = |of: &Folder| {
        let most = of.classes.iter().max_by_key(|(name, bytes)| (**bytes, std::cmp::Reverse(**name)));
        most.map_or("", |(name, _)| *name)
    };
    let rows = all.iter().map(|(path, of)| row(path_text(path), class(of), of.n_files, &of.sums)).collect();
    own_first(rows, MAX_FOLDERS, |row: &TraceFile| is_own(&row.class))
}

fn processes(tally: &Tally) -> Vec<TraceProcess> {
    let mut all: Vec<TraceProcess> = Vec::new();
    let mut in_order: Vec<&Process> = tally.processes.iter().collect();
    in_order.sort_by_key(|process| process.note.start_ns);
    for next in in_order.into_iter().map(process) {
        match all.iter_mut().find(|known| (known.pid, known.parent) == (next.pid, next.parent)) {
            Some(known) => went_on(known, next),
            None => all.push(next),
        }
    }
    all.sort_by(|a, b| b.io_s.total_cmp(&a.io_s).then_with(|| a.pid.cmp(&b.pid)));
    all.truncate(MAX_PROCESSES);
    all
}

/// A process that ran another program in its own place, as a shell does with `exec`: one row, with the later command.
fn went_on(known: &mut TraceProcess, next: TraceProcess) {
    known.command = next.command;
    if !next.role.is_empty() {
        known.role = next.role;
    }
    known.reads += next.reads;
    known.bytes_read += next.bytes_read;
    known.writes += next.writes;
    known.bytes_written += next.bytes_written;
    known.io_s += next.io_s;
    known.fetches += next.fetches;
    known.fetch_s += next.fetch_s;
}

fn process(of: &Process) -> TraceProcess {
    let (mut fetches, mut fetch_ns) = (0, 0);
    for thread in of.threads.values() {
        fetches += thread.n_fetches;
        fetch_ns += thread.fetch_ns;
    }
    let role = if of.marks.waits > 0 || of.marks.steps > 0 {
        "train"
    } else if fetches > 0 {
        "worker"
    } else {
        ""
    };
    let mut command: String = of.note.command.chars().take(MAX_COMMAND).collect();
    if command.len() < of.note.command.len() {
        command.push('…');
    }
    TraceProcess {
        pid: u64::from(of.note.pid),
        parent: u64::from(of.note.parent),
        command,
        role: role.to_owned(),
        reads: of.sums.reads,
        bytes_read: of.sums.bytes_read,
        writes: of.sums.writes,
        bytes_written: of.sums.bytes_written,
        io_s: seconds(of.sums.ns),
        fetches,
        fetch_s: seconds(fetch_ns),
    }
}

/// One row per power of two.
fn sizes(tally: &Tally) -> Vec<TraceSize> {
    let mut by_power: BTreeMap<u32, u64> = BTreeMap::new();
    for (bound, n) in tally.sizes.buckets() {
        *by_power.entry(bound.max(1).ilog2()).or_default() += n;
    }
    let bytes = |power: u32| tally.size_bytes.get(&power).copied().unwrap_or(0);
    by_power
        .into_iter()
        .map(|(power, reads)| TraceSize { at_most: (2_u64 << power.min(62)) - 1, reads, bytes: bytes(power) })
        .collect()
}
