//! The cell of `forebay trace`: what a job did, seen from outside, and why it waited.

use serde::{Deserialize, Serialize};

use crate::cell::Remarks;
use crate::check::Checked;
use crate::metric::{Measurement, Metric, Unit};
use crate::{ByCause, Cell, Levels, Lever, Limit, Step};

/// Totals of a traced job. Calls on pipes, sockets and terminals are not among them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TraceTotals {
    /// Calls that read from files; reads of C streams count once, as the calls of the program.
    pub reads: u64,
    /// Bytes that these calls returned.
    pub bytes_read: u64,
    /// Calls that wrote to files.
    pub writes: u64,
    /// Bytes that these calls accepted.
    pub bytes_written: u64,
    /// Successful opens of files and folders.
    pub opens: u64,
    /// Calls that wait for durability: fsync, fdatasync, sync, msync.
    pub fsyncs: u64,
    /// Other calls on names, attributes and positions: stat, access, readdir, lseek, close.
    pub meta_calls: u64,
    /// Bytes of files mapped into memory; how many of them were touched is not known.
    pub bytes_mapped: u64,
    /// Processes that were seen.
    pub processes: u64,
    /// Events for which there was no room; their calls and bytes are in the totals above.
    pub lost_events: u64,
    /// Training steps; `None` where nothing marked them.
    #[serde(default)]
    pub steps: Option<u64>,
    /// Time that the training loop waited for batches, in seconds; `None` where nothing marked it.
    #[serde(default)]
    pub wait_s: Option<f64>,
    /// Time of the training loops, from the first wait to the last mark, in seconds; with several ranks, their sum.
    #[serde(default)]
    pub loop_s: Option<f64>,
}

/// A rule of the verdict.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TraceRule {
    /// Short name, such as "R1".
    pub id: String,
    /// What it looks for.
    pub name: String,
    /// Whether it found it; `None` where it could not look, for the reason in `evidence`.
    #[serde(default)]
    pub applies: Option<bool>,
    /// Measured facts it rests on, or why it could not look.
    pub evidence: String,
    /// What to change, where it applies.
    #[serde(default)]
    pub advice: String,
    /// Seconds of the run that the change would save at most; `None` where that is not known.
    #[serde(default)]
    pub gain_s: Option<f64>,
}

/// All calls of a kind.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TraceOperation {
    /// Name of the call; its variants count together.
    pub name: String,
    /// Number of calls.
    pub calls: u64,
    /// Calls that failed.
    pub errors: u64,
    /// Bytes that were moved or mapped.
    pub bytes: u64,
    /// Time inside the calls, over all threads, in seconds.
    pub seconds: f64,
    /// Median duration, in microseconds, to a sixteenth.
    pub p50_us: f64,
    /// 95th percentile, in microseconds.
    pub p95_us: f64,
    /// 99th percentile, in microseconds.
    pub p99_us: f64,
}

/// What was done to a file, a folder or a class of files.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TraceFile {
    /// Path, or name of the class: `data`, `checkpoint`, `output`, `python`, `shared memory`, `system`.
    pub name: String,
    /// Class of a file or of most bytes of a folder; empty for a class.
    #[serde(default)]
    pub class: String,
    /// Files in it.
    pub files: u64,
    /// Successful opens.
    pub opens: u64,
    /// Calls that read.
    pub reads: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Calls that wrote.
    pub writes: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Time inside calls on it, in seconds.
    pub seconds: f64,
    /// Reads that went on where the one before ended; the others jumped.
    pub sequential_reads: u64,
}

impl TraceFile {
    /// Classes of what the job works on, rather than what it is made of.
    pub const OWN: [&'static str; 3] = ["data", "output", "checkpoint"];

    /// Whether a file, a folder or a class is what the job works on.
    pub fn is_own(&self) -> bool {
        let class = if self.class.is_empty() { &self.name } else { &self.class };
        Self::OWN.contains(&class.as_str())
    }
}

/// A process of the job.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TraceProcess {
    /// Number of the process.
    pub pid: u64,
    /// Its parent when it began.
    pub parent: u64,
    /// Command line, cut if long.
    pub command: String,
    /// Whether it trained (`train`), fetched batches (`worker`) or neither (empty).
    #[serde(default)]
    pub role: String,
    /// Calls that read from files.
    pub reads: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Calls that wrote to files.
    pub writes: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Time inside calls on files, in seconds.
    pub io_s: f64,
    /// Batches that it fetched.
    pub fetches: u64,
    /// Time of these fetches, in seconds.
    pub fetch_s: f64,
}

/// Where the time of the fetches of all workers went, in seconds.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TraceFetch {
    /// Batches fetched.
    pub batches: u64,
    /// Samples in them; `None` where the loader does not say.
    #[serde(default)]
    pub samples: Option<u64>,
    /// Whole time of the fetches.
    pub seconds: f64,
    /// Opening files.
    pub open_s: f64,
    /// Reading.
    pub read_s: f64,
    /// Stat, seek, listing, closing.
    pub meta_s: f64,
    /// The rest: decoding and other computation.
    pub compute_s: f64,
    /// Processor time of the fetching threads, which includes that of their calls.
    pub cpu_s: f64,
    /// Opens and metadata calls inside fetches.
    pub meta_calls: u64,
    /// Worker processes; 0 if the training loop fetched itself.
    pub workers: u64,
}

/// Bytes as the calls, the kernel and the disks count them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TraceBytes {
    /// By calls on files that were seen.
    pub calls: u64,
    /// By calls on pipes, sockets and terminals that were seen.
    pub other: u64,
    /// By all calls of the job, as the kernel counts them.
    pub kernel: u64,
    /// Moved between block devices and the job's memory, as the kernel counts it.
    pub devices: u64,
}

/// A checkpoint that the job wrote or read.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TraceSave {
    /// Start, in seconds since the job began.
    pub at_s: f64,
    /// Duration of the call, in seconds.
    pub seconds: f64,
    /// Bytes that the process wrote meanwhile (saves), or that this thread and readers of checkpoints read (restores).
    pub bytes: u64,
    /// Whether it restored rather than saved.
    #[serde(default)]
    pub is_restore: bool,
}

/// A phase that the job marked by `forebay.phase()` or `forebay_phase()`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TracePhase {
    /// As the job names it.
    pub name: String,
    /// Its time, in seconds, until the next phase or the last event; summed over processes.
    pub seconds: f64,
    /// Of it, time that training loops waited for batches.
    pub wait_s: f64,
    /// Training steps that ended in it.
    pub steps: u64,
}

/// Read requests of a size.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TraceSize {
    /// Bytes returned, at most; the row before says above what.
    pub at_most: u64,
    /// Reads of data files.
    pub reads: u64,
    /// Bytes of these reads.
    pub bytes: u64,
}

/// A traced job.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TraceCell {
    /// The command.
    pub job: String,
    /// Time of the command, in seconds.
    pub wall_s: f64,
    /// Its exit status as a shell reports it; `None` if the tracer ended first.
    #[serde(default)]
    pub status: Option<i64>,
    /// Sums over all processes.
    pub totals: TraceTotals,
    /// The answer in a sentence.
    pub verdict: String,
    /// What limited the job.
    #[serde(default)]
    pub limit: Limit,
    /// What would help most.
    #[serde(default)]
    pub lever: Lever,
    /// Seconds of waiting by cause.
    #[serde(default)]
    pub stall_by_cause: ByCause,
    /// Every rule, with its evidence.
    #[serde(default)]
    pub rules: Vec<TraceRule>,
    /// Fetches of batches; `None` where no loader was seen.
    #[serde(default)]
    pub fetch: Option<TraceFetch>,
    /// Checkpoints in order.
    #[serde(default)]
    pub saves: Vec<TraceSave>,
    /// Phases that the job marked, in the order of their first mark.
    #[serde(default)]
    pub phases: Vec<TracePhase>,
    /// Kinds of calls, the longest first.
    #[serde(default)]
    pub operations: Vec<TraceOperation>,
    /// Classes of files.
    #[serde(default)]
    pub classes: Vec<TraceFile>,
    /// Files, the longest first; at most 100 of the job's own and 25 of programs and libraries.
    #[serde(default)]
    pub files: Vec<TraceFile>,
    /// Folders, the longest first; at most 50 of the job's own and 12 of others.
    #[serde(default)]
    pub folders: Vec<TraceFile>,
    /// Processes, the longest I/O first; at most 100.
    #[serde(default)]
    pub processes: Vec<TraceProcess>,
    /// Sizes of the reads of data files.
    #[serde(default)]
    pub sizes: Vec<TraceSize>,
    /// Bytes read; `None` where the kernel's counts are missing.
    #[serde(default)]
    pub read: Option<TraceBytes>,
    /// Bytes written.
    #[serde(default)]
    pub written: Option<TraceBytes>,
    /// Programs that ran but could not be seen, with the reason.
    #[serde(default)]
    pub not_seen: Vec<String>,
    /// The trace file keeps every so many calls once it nears its limit: the largest such number; 1 if it has all.
    pub kept_every: u64,
}

impl TraceCell {
    /// Share of the training loop spent waiting for batches.
    pub fn wait_share(&self) -> Option<f64> {
        let share = self.totals.wait_s? / self.totals.loop_s?;
        share.is_finite().then_some(share)
    }
}

fn count(value: u64) -> Option<Measurement> {
    Some(Measurement::single(value as f64))
}

impl Cell for TraceCell {
    const STEP: Step = Step::Trace;
    const METRICS: &'static [Metric<Self>] = &[
        Metric::lower("wall_s", "wall clock", Unit::Seconds, |cell: &Self| Some(Measurement::single(cell.wall_s)))
            .compared(),
        Metric::lower("wait_share", "waiting, of the loop", Unit::Share, |cell: &Self| {
            cell.wait_share().map(Measurement::single)
        })
        .headline()
        .compared(),
        Metric::lower("wait_s", "waiting for data", Unit::Seconds, |cell: &Self| {
            cell.totals.wait_s.map(Measurement::single)
        })
        .compared(),
        Metric::fact("loop_s", "training loop", Unit::Seconds, |cell: &Self| {
            cell.totals.loop_s.map(Measurement::single)
        }),
        Metric::fact("steps", "steps", Unit::Count("steps"), |cell: &Self| count(cell.totals.steps?)),
        Metric::fact("reads", "reads", Unit::Count("calls"), |cell: &Self| count(cell.totals.reads)),
        Metric::fact("bytes_read", "read", Unit::Bytes, |cell: &Self| count(cell.totals.bytes_read)).headline(),
        Metric::fact("writes", "writes", Unit::Count("calls"), |cell: &Self| count(cell.totals.writes)),
        Metric::fact("bytes_written", "written", Unit::Bytes, |cell: &Self| count(cell.totals.bytes_written)),
        Metric::fact("opens", "opens", Unit::Count("calls"), |cell: &Self| count(cell.totals.opens)),
        Metric::fact("fsyncs", "syncs", Unit::Count("calls"), |cell: &Self| count(cell.totals.fsyncs)),
        Metric::fact("processes", "processes", Unit::Count("processes"), |cell: &Self| count(cell.totals.processes)),
        Metric::lower("lost_events", "lost events", Unit::Count("events"), |cell: &Self| {
            count(cell.totals.lost_events)
        }),
    ];

    fn levels(&self) -> Levels {
        // Traces of one job with other flags are to be compared, so the command does not tell cells apart.
        Levels::new()
    }

    fn remarks(&self) -> Remarks {
        vec![("verdict", "limit", self.limit.name.clone()), ("lever", "what would help", self.lever.name.clone())]
    }

    fn check(&self) -> Checked {
        crate::check::trace::check(self)
    }
}
