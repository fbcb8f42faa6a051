//! A command followed to its end, with all its descendants.
//!
//! This process becomes the one that orphans fall to, so that a worker whose parent has died stays in the tree. What has
//! ended is read once more before it is waited for: the kernel keeps a process's numbers until then.

use std::io;
use std::mem::MaybeUninit;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use forebay_record::Series;

use crate::ledger::{Counters, Standing, Units};
use crate::sampler::Sampler;
use crate::signals::Passing;
use crate::tree::Tree;
use crate::{Error, Options};

/// A command that has ended.
#[derive(Debug)]
pub struct Followed {
    /// How it ended.
    pub status: ExitStatus,
    /// What the machine and the command did, tick by tick.
    pub series: Series,
    /// What the command and its descendants did in all.
    pub totals: Totals,
}

/// What a command and its descendants did in all.
#[derive(Debug, Clone, PartialEq)]
pub struct Totals {
    /// From the start of the command to its end, in seconds.
    pub wall_s: f64,
    /// Processor time in programs, in seconds, of all that were waited for.
    pub user_s: f64,
    /// Processor time in the kernel, in seconds, of all that were waited for.
    pub system_s: f64,
    /// Page faults that had to wait for I/O.
    pub major_faults: u64,
    /// The greatest memory seen, in bytes: of all processes together at one tick, or of the largest one at any moment.
    pub peak_rss_bytes: u64,
    /// Bytes given by `read` and its like, however they came.
    pub rchar_bytes: u64,
    /// Bytes taken by `write` and its like.
    pub wchar_bytes: u64,
    /// Bytes that had to come from a block device.
    pub read_bytes: u64,
    /// Bytes made to go to a block device.
    pub write_bytes: u64,
    /// Time that threads waited for block I/O, in seconds; or why it is unknown, in words.
    pub io_delay_s: Result<f64, &'static str>,
    /// The most processes at one tick.
    pub n_processes: u64,
    /// The most threads at one tick; 0 when the command ended before the first.
    pub n_threads: u64,
    /// Processes whose I/O is not among the bytes, or not all of it: nobody in the tree waited for them, or they are still
    /// running, and they ran as somebody else. The bytes are at least so many then.
    pub n_hidden: u64,
    /// Descendants that the command left running.
    pub n_left: u64,
}

/// Runs a command and observes the machine until it ends; its descendants that are left then are left alone.
///
/// For the time it takes, signals sent to this process are passed on to the command, and children that this process has
/// besides are waited for too: it must have none that somebody else waits for.
///
/// # Errors
/// When the observation cannot begin or the command cannot be started; nothing has run then.
pub fn follow(command: &mut Command, options: Options) -> Result<Followed, Error> {
    adopt_orphans();
    let tree = Arc::new(Mutex::new(Tree::new(Path::new("/proc"), std::process::id(), false)));
    let sampler = Sampler::start_with(options, Some(Arc::clone(&tree)))?;
    let before = Usage::of_children();
    let passing = Passing::begin();
    let start = Instant::now();
    let child = command.spawn().map_err(|source| {
        let program = command.get_program().to_string_lossy().into_owned();
        Error::Command { program, source }
    })?;
    passing.to(child.id());
    let status = wait_for_all(child, &tree, &passing)?;
    let wall_s = start.elapsed().as_secs_f64();
    let series = sampler.stop();
    drop(passing);
    let totals = totals(&mut lock(&tree), wall_s, before);
    Ok(Followed { status, series, totals })
}

/// Waits for children, adopted ones too, until the command has ended.
fn wait_for_all(mut child: Child, tree: &Mutex<Tree>, passing: &Passing) -> Result<ExitStatus, Error> {
    loop {
        let pid = wait_for_one(libc::WEXITED).map_err(Error::Wait)?.expect("it waits until there is one");
        let mut tree = lock(tree);
        if pid == child.id() {
            passing.to_nobody();
            let mut status = None;
            tree.bury(pid, || status = Some(child.wait()));
            bury_what_has_ended(&mut tree);
            return status.expect("burying waits").map_err(Error::Wait);
        }
        tree.bury(pid, || reap(pid));
    }
}

/// Orphans that have ended along with the command.
fn bury_what_has_ended(tree: &mut Tree) {
    while let Ok(Some(pid)) = wait_for_one(libc::WEXITED | libc::WNOHANG) {
        tree.bury(pid, || reap(pid));
    }
}

/// The number of a child that has ended, which stays to be waited for; `None` when there is none yet and it does not wait.
fn wait_for_one(flags: libc::c_int) -> io::Result<Option<u32>> {
    loop {
        // SAFETY: the structure is valid and written by the call; zeros are what it has when nothing ended.
        let (code, pid) = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let code = libc::waitid(libc::P_ALL, 0, &raw mut info, flags | libc::WNOWAIT);
            (code, info.si_pid())
        };
        if code == 0 {
            return Ok(u32::try_from(pid).ok().filter(|pid| *pid > 0));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

fn reap(pid: u32) {
    // SAFETY: a child that has ended and has not been waited for; its status is not asked for.
    unsafe { libc::waitpid(pid as libc::pid_t, std::ptr::null_mut(), 0) };
}

/// Makes this process the parent of descendants whose own has died. A kernel that refuses loses them from the tree.
fn adopt_orphans() {
    // SAFETY: plain numbers.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
}

fn lock(tree: &Mutex<Tree>) -> MutexGuard<'_, Tree> {
    tree.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What children that were waited for have used.
#[derive(Debug, Clone, Copy)]
struct Usage {
    user_s: f64,
    system_s: f64,
    major_faults: u64,
    max_rss_bytes: u64,
}

impl Usage {
    fn of_children() -> Self {
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the structure is valid; zeros are a valid one should the call fail.
        let usage = unsafe {
            libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr());
            usage.assume_init()
        };
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
        Self {
            user_s: seconds(usage.ru_utime),
            system_s: seconds(usage.ru_stime),
            major_faults: usage.ru_majflt as u64,
            max_rss_bytes: usage.ru_maxrss as u64 * 1024,
        }
    }
}

fn totals(tree: &mut Tree, wall_s: f64, before: Usage) -> Totals {
    let reading = tree.look();
    let (sums, peak, units, after): (Counters, Standing, _, _) =
        (reading.counters, tree.peak(), Units::here(), Usage::of_children());
    Totals {
        wall_s,
        user_s: after.user_s - before.user_s,
        system_s: after.system_s - before.system_s,
        major_faults: sums.major_faults.max(after.major_faults - before.major_faults),
        peak_rss_bytes: ((peak.rss_pages as f64 * units.page_bytes) as u64).max(after.max_rss_bytes),
        rchar_bytes: sums.io.rchar,
        wchar_bytes: sums.io.wchar,
        read_bytes: sums.io.read_bytes,
        write_bytes: sums.io.write_bytes,
        io_delay_s: reading.delay.check(sums.delay_ticks).map(|ticks| ticks as f64 / units.ticks_per_s),
        n_processes: peak.n_processes,
        n_threads: peak.n_threads,
        n_hidden: tree.n_unknown(),
        n_left: tree.n_alive() as u64,
    }
}
