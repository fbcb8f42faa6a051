//! Runs a command and observes it with all its descendants until the last one ends.
//!
//! This process becomes the parent of orphans, so a worker whose parent has died stays in the tree. A process that has
//! ended is read once more before it is waited for: the kernel keeps its counters until then.

use std::io;
use std::mem::MaybeUninit;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use forebay_record::Series;
use forebay_units::PathText;

use crate::ledger::{Counters, Standing, Units};
use crate::sampler::Sampler;
use crate::signals::Signals;
use crate::tree::Tree;
use crate::{Error, Options};

#[derive(Debug)]
pub struct Followed {
    pub status: ExitStatus,
    /// The machine and the command, tick by tick.
    pub series: Series,
    /// Totals of the command and its descendants.
    pub totals: Totals,
}

/// Totals of a command and its descendants.
#[derive(Debug, Clone, PartialEq)]
pub struct Totals {
    /// From the start of the command to the end of its last descendant, or until the wait was interrupted, in seconds.
    pub wall_s: f64,
    /// CPU time in user mode of all processes that were waited for, in seconds.
    pub user_s: f64,
    /// CPU time in the kernel of all processes that were waited for, in seconds.
    pub system_s: f64,
    /// Page faults that had to wait for I/O.
    pub major_faults: u64,
    /// Peak memory in bytes: the larger of the processes' sum at any tick and the peak of the largest process.
    pub peak_rss_bytes: u64,
    /// Bytes returned by `read` and similar calls, from any source.
    pub rchar_bytes: u64,
    /// Bytes accepted by `write` and similar calls.
    pub wchar_bytes: u64,
    /// Bytes read from block devices.
    pub read_bytes: u64,
    /// Bytes written, or to be written, to block devices.
    pub write_bytes: u64,
    /// Time that threads waited for block I/O, in seconds; or why it is unknown.
    pub io_delay_s: Result<f64, &'static str>,
    pub n_processes: u64,
    /// Maximum number of threads at a tick; 0 if the command ended before the first tick.
    pub n_threads: u64,
    /// Processes whose I/O is missing from the bytes, at least in part: they ran as another user, and no process in the
    /// tree waited for them or they are still running. The bytes are then a lower bound.
    pub n_hidden: u64,
    /// Descendants that were still running when the wait was interrupted.
    pub n_left: u64,
}

/// Runs a command and observes the machine until it and all its descendants have ended.
///
/// The command starts with the default treatment of `SIGINT`, `SIGQUIT`, `SIGTERM`, `SIGPIPE` and `SIGXFSZ`, whatever this
/// process inherited.
///
/// During the call, signals sent to this process are passed on to the command and its descendants. Once the command has
/// ended, an interrupt (`SIGINT`, `SIGQUIT`) is not passed on to the remaining descendants: it ends the wait and leaves
/// them running. All children of this process are waited for, so no other code may wait for one meanwhile.
///
/// # Errors
/// If the observation or the command cannot be started; then nothing has run.
pub fn follow(command: &mut Command, mut options: Options) -> Result<Followed, Error> {
    adopt_orphans();
    let on_wait = options.on_wait.take();
    let tree = Arc::new(Mutex::new(Tree::new(Path::new("/proc"), std::process::id(), false)));
    let sampler = Sampler::start_with(options, Some(Arc::clone(&tree)))?;
    let before = Usage::of_children();
    let signals = Signals::begin().map_err(Error::Wait)?;
    Signals::reset_in(command);
    let start = Instant::now();
    let child = command.spawn().map_err(|source| {
        let program = command.get_program().escaped().into_owned();
        Error::Command { program, source }
    })?;
    let status = wait_for_command(child, &tree, &signals)?;
    wait_for_the_rest(&tree, &signals, on_wait);
    let wall_s = start.elapsed().as_secs_f64();
    let series = sampler.stop();
    drop(signals);
    let totals = totals(&mut lock(&tree), wall_s, before);
    Ok(Followed { status, series, totals })
}

/// How long descendants may outlive the command before the caller is notified; helpers often end just after it.
const PATIENCE: Duration = Duration::from_millis(500);

/// Waits for children, including adopted ones, until the command has ended.
fn wait_for_command(mut child: Child, tree: &Mutex<Tree>, signals: &Signals) -> Result<ExitStatus, Error> {
    loop {
        pass_on(signals, tree);
        match one_that_ended().map_err(Error::Wait)? {
            Some(pid) if pid == child.id() => {
                let mut status = None;
                lock(tree).bury(pid, || status = Some(child.wait()));
                return status.expect("burying waits").map_err(Error::Wait);
            }
            Some(pid) => lock(tree).bury(pid, || reap(pid)),
            None => signals.wait(None),
        }
    }
}

/// Waits until this process has no children, so the command has no descendants, or until an interrupt.
fn wait_for_the_rest(tree: &Mutex<Tree>, signals: &Signals, mut on_wait: Option<Box<dyn FnOnce(u64) + Send>>) {
    // Earlier interrupts were meant for the command.
    signals.was_interrupted();
    let start = Instant::now();
    loop {
        match one_that_ended() {
            Ok(Some(pid)) => lock(tree).bury(pid, || reap(pid)),
            Ok(None) if signals.was_interrupted() => return,
            Ok(None) => {
                pass_on(signals, tree);
                let patience = PATIENCE.saturating_sub(start.elapsed());
                if patience.is_zero()
                    && let Some(say) = on_wait.take()
                {
                    say(look(tree).n_alive() as u64);
                }
                signals.wait(on_wait.is_some().then_some(patience));
            }
            // There are no children.
            Err(_) => return,
        }
    }
}

/// Passes pending signals on to all processes of the tree.
fn pass_on(signals: &Signals, tree: &Mutex<Tree>) {
    for signal in signals.sent() {
        for pid in look(tree).alive() {
            // SAFETY: plain integers. The process was seen a moment ago, and a child's number is not reused before this
            // thread waits for it.
            unsafe { libc::kill(pid as libc::pid_t, signal) };
        }
    }
}

fn look(tree: &Mutex<Tree>) -> MutexGuard<'_, Tree> {
    let mut tree = lock(tree);
    tree.look();
    tree
}

/// The number of a child that has ended and still has to be waited for; `None` if all children are alive.
fn one_that_ended() -> io::Result<Option<u32>> {
    loop {
        // SAFETY: the structure is valid and written by the call; it stays zero if no child has ended.
        let (code, pid) = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let code = libc::waitid(libc::P_ALL, 0, &raw mut info, libc::WEXITED | libc::WNOHANG | libc::WNOWAIT);
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
    // SAFETY: the child has ended and has not been waited for; its status is not requested.
    unsafe { libc::waitpid(pid as libc::pid_t, std::ptr::null_mut(), 0) };
}

/// Makes this process the parent of orphaned descendants. If the kernel refuses, they are missing from the tree.
fn adopt_orphans() {
    // SAFETY: the call takes only numbers.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
}

fn lock(tree: &Mutex<Tree>) -> MutexGuard<'_, Tree> {
    tree.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Resources used by the children that were waited for.
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
        // SAFETY: the structure is valid; if the call fails, it stays zero, which is valid.
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
