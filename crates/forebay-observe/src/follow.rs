//! A command followed to the end, with all its descendants.
//!
//! This process becomes the one that orphans fall to, so that a worker whose parent has died stays in the tree. What has
//! ended is read once more before it is waited for: the kernel keeps a process's numbers until then.

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
    /// What the machine and the command did, tick by tick.
    pub series: Series,
    /// What the command and its descendants did in all.
    pub totals: Totals,
}

/// What a command and its descendants did in all.
#[derive(Debug, Clone, PartialEq)]
pub struct Totals {
    /// From the start of the command to the end of its last descendant, or until that was no longer waited for, in seconds.
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
    pub n_processes: u64,
    /// The most threads at one tick; 0 when the command ended before the first.
    pub n_threads: u64,
    /// Processes whose I/O is not among the bytes, or not all of it: no process in the tree waited for them, or they are still
    /// running, and they ran as another user. The bytes are then a lower bound.
    pub n_hidden: u64,
    /// Descendants that are still running, since they were no longer waited for.
    pub n_left: u64,
}

/// Runs a command and observes the machine until it and all its descendants have ended.
///
/// The command starts with the default treatment of `SIGINT`, `SIGQUIT`, `SIGTERM`, `SIGPIPE` and `SIGXFSZ`, whatever this
/// process inherited.
///
/// For the time it takes, signals sent to this process are passed on to the command and its descendants. When the command
/// has ended and descendants have not, an interrupt (`SIGINT`, `SIGQUIT`) is not: it ends the waiting and leaves them alone.
/// Children that this process has besides are waited for too: it must have none that other code waits for.
///
/// # Errors
/// When the observation cannot begin or the command cannot be started; nothing has run then.
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

/// How long descendants may outlive the command before the caller is told: helpers that end just after it are common.
const PATIENCE: Duration = Duration::from_millis(500);

/// Waits for children, adopted ones too, until the command has ended.
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

/// Waits until this process has no children any more, and so the command no descendants, or until it is interrupted.
fn wait_for_the_rest(tree: &Mutex<Tree>, signals: &Signals, mut on_wait: Option<Box<dyn FnOnce(u64) + Send>>) {
    // What came before was for the command.
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
            // There are none.
            Err(_) => return,
        }
    }
}

/// Passes signals on to all that there are.
fn pass_on(signals: &Signals, tree: &Mutex<Tree>) {
    for signal in signals.sent() {
        for pid in look(tree).alive() {
            // SAFETY: plain integers. It was seen a moment ago, and a child of this process keeps its number until it has
            // been waited for, which is done by this thread.
            unsafe { libc::kill(pid as libc::pid_t, signal) };
        }
    }
}

fn look(tree: &Mutex<Tree>) -> MutexGuard<'_, Tree> {
    let mut tree = lock(tree);
    tree.look();
    tree
}

/// The number of a child that has ended, which stays to be waited for; `None` when all are alive.
fn one_that_ended() -> io::Result<Option<u32>> {
    loop {
        // SAFETY: the structure is valid and written by the call; zeros are what it has when nothing ended.
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
