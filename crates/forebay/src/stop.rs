//! Ctrl-C and other signals: the first one stops the work and keeps its results, the second one ends the program.
//!
//! The work polls [`flag`]. A thread waits for the first signal; if the program still runs shortly after, it prints what the
//! program is [`finishing`] and that a second signal ends it.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Mutex, Once, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::output::remark;

/// Time for the work to end before a message explains the delay.
const PATIENCE: Duration = Duration::from_millis(700);
/// `timeout` and `mpirun` signal both the process and its group: signals within this time count as one.
const SAME_WISH_MS: u64 = 300;

static STOP: AtomicBool = AtomicBool::new(false);
/// Whether there is nothing to keep or to clean up yet.
static IS_IDLE: AtomicBool = AtomicBool::new(false);
/// Time of the first signal, in milliseconds since the program started.
static FIRST_MS: AtomicU64 = AtomicU64::new(0);
/// The descriptor that the handler writes to; -1 until a thread reads it.
static WAKE: AtomicI32 = AtomicI32::new(-1);
static FINISHING: Mutex<&str> = Mutex::new("");
static BEGIN: OnceLock<Instant> = OnceLock::new();

type Callback = Box<dyn FnOnce() + Send>;
static ON_STOP: Mutex<Option<Callback>> = Mutex::new(None);

/// The flag that is set when the user stops the run. The first call installs the handler; until then, a signal ends the
/// program at once.
pub(crate) fn flag() -> &'static AtomicBool {
    static ONCE: Once = Once::new();
    ONCE.call_once(install);
    &STOP
}

/// The same for work that first lists files or plans: until [`begun`] is called, a signal ends the program at once.
pub(crate) fn flag_once_begun() -> &'static AtomicBool {
    IS_IDLE.store(true, Ordering::SeqCst);
    flag()
}

/// From now on there is something to keep. Cheap enough to call on every progress event.
pub(crate) fn begun() {
    IS_IDLE.store(false, Ordering::SeqCst);
}

/// Calls a function once when the user stops the run, for work that blocks and cannot poll the flag.
pub(crate) fn on_stop(call: impl FnOnce() + Send + 'static) {
    *ON_STOP.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(call));
    flag();
}

/// Sets what a stopped run still has to finish, for example "the checkpoint"; "" for nothing in particular.
pub(crate) fn finishing(what: &'static str) {
    *FINISHING.lock().unwrap_or_else(PoisonError::into_inner) = what;
}

/// Makes a write beyond `ulimit -f` fail, as on a full disk, instead of ending the program.
pub(crate) fn survive_size_limit() {
    // SAFETY: ignoring a signal installs no handler.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Handles SIGINT and SIGTERM regardless of inherited settings, and SIGHUP unless `nohup` ignores it.
fn install() {
    BEGIN.get_or_init(Instant::now);
    // Without the thread there is no message, but signals work.
    if let Ok(wake) = eventfd() {
        WAKE.store(wake.as_raw_fd(), Ordering::SeqCst);
        let _ = thread::Builder::new().name("forebay:stop".to_owned()).spawn(move || wait_and_tell(&wake));
    }
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: both structures are valid; zeros mean no flags and an empty mask. The handler only uses atomics, reads the
        // clock, writes to a descriptor and ends the program, which is async-signal-safe.
        unsafe {
            let mut old: libc::sigaction = std::mem::zeroed();
            let mut new: libc::sigaction = std::mem::zeroed();
            new.sa_sigaction = on_signal as *const () as usize;
            new.sa_flags = libc::SA_RESTART;
            libc::sigaction(signal, std::ptr::null(), &raw mut old);
            if signal != libc::SIGHUP || old.sa_sigaction != libc::SIG_IGN {
                libc::sigaction(signal, &raw const new, std::ptr::null_mut());
            }
        }
    }
}

fn eventfd() -> io::Result<OwnedFd> {
    // SAFETY: the call takes integers and returns a new descriptor, which is owned from here on.
    unsafe {
        let fd: RawFd = libc::eventfd(0, libc::EFD_CLOEXEC);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd)) }
    }
}

/// The thread: waits for the first signal, passes it on, and prints a message if the work continues.
fn wait_and_tell(wake: &OwnedFd) {
    let mut n_signals = 0_u64;
    // SAFETY: the buffer has eight valid bytes, the size of an eventfd's value.
    while unsafe { libc::read(wake.as_raw_fd(), (&raw mut n_signals).cast(), 8) } != 8 {
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return;
        }
    }
    if let Some(call) = ON_STOP.lock().unwrap_or_else(PoisonError::into_inner).take() {
        call();
    }
    thread::sleep(PATIENCE);
    let what = *FINISHING.lock().unwrap_or_else(PoisonError::into_inner);
    let doing = if what.is_empty() { "stopping".to_owned() } else { format!("finishing {what}") };
    remark(&format!("forebay: {doing}; press Ctrl-C again to quit at once"));
}

extern "C" fn on_signal(signal: libc::c_int) {
    if IS_IDLE.load(Ordering::SeqCst) {
        // SAFETY: both calls are async-signal-safe; the signal is delivered again with its default action after the handler.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        }
        return;
    }
    let now_ms = BEGIN.get().map_or(0, |begin| begin.elapsed().as_millis() as u64);
    if !STOP.swap(true, Ordering::SeqCst) {
        FIRST_MS.store(now_ms, Ordering::SeqCst);
        let one = 1_u64;
        // SAFETY: the buffer has eight valid bytes; errno of the interrupted code is restored.
        unsafe {
            let errno = *libc::__errno_location();
            libc::write(WAKE.load(Ordering::SeqCst), (&raw const one).cast(), 8);
            *libc::__errno_location() = errno;
        }
    } else if now_ms.saturating_sub(FIRST_MS.load(Ordering::SeqCst)) >= SAME_WISH_MS {
        // SAFETY: ends the process with the status that a shell shows for this signal.
        unsafe { libc::_exit(128 + signal) };
    }
}
