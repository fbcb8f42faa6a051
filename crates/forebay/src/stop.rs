//! Ctrl-C and its like: the first signal asks the work to stop and keep what it has, the second ends the program.
//!
//! The work looks at [`flag`]. What cannot end at once says so: a thread waits for the first signal and, if the program is
//! still there shortly after, prints what it is [`finishing`] and that a second signal ends it.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Mutex, Once, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::output::remark;

/// How long the work may take to end before the user reads why it has not.
const PATIENCE: Duration = Duration::from_millis(700);
/// `timeout` and `mpirun` signal the process and its group: what comes within this time is the same wish.
const SAME_WISH_MS: u64 = 300;

static STOP: AtomicBool = AtomicBool::new(false);
/// Whether there is nothing yet that a stopped run would keep or clear away.
static IS_IDLE: AtomicBool = AtomicBool::new(false);
/// When the first signal came, in milliseconds since the program began.
static FIRST_MS: AtomicU64 = AtomicU64::new(0);
/// What the handler writes to; -1 until there is a thread that reads.
static WAKE: AtomicI32 = AtomicI32::new(-1);
static FINISHING: Mutex<&str> = Mutex::new("");
static BEGIN: OnceLock<Instant> = OnceLock::new();

type Callback = Box<dyn FnOnce() + Send>;
static ON_STOP: Mutex<Option<Callback>> = Mutex::new(None);

/// The flag that is set when the user wants to stop. Installs the handler the first time; until then a signal ends the
/// program at once.
pub(crate) fn flag() -> &'static AtomicBool {
    static ONCE: Once = Once::new();
    ONCE.call_once(install);
    &STOP
}

/// The same, for work that first lists files or plans: until [`begun`] is called, a signal still ends the program at once.
pub(crate) fn flag_once_begun() -> &'static AtomicBool {
    IS_IDLE.store(true, Ordering::SeqCst);
    flag()
}

/// From here on there is something to keep. Cheap enough to be called at every sign of progress.
pub(crate) fn begun() {
    IS_IDLE.store(false, Ordering::SeqCst);
}

/// Calls this once when the user wants to stop, for work that waits and cannot look at the flag.
pub(crate) fn on_stop(call: impl FnOnce() + Send + 'static) {
    *ON_STOP.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(call));
    flag();
}

/// Says what a stopped run still has to do, such as "the checkpoint"; "" when there is nothing in particular.
pub(crate) fn finishing(what: &'static str) {
    *FINISHING.lock().unwrap_or_else(PoisonError::into_inner) = what;
}

/// Makes a file that grows beyond `ulimit -f` an error of the write, as on a full disk, rather than the end of the program.
pub(crate) fn survive_size_limit() {
    // SAFETY: no handler of ours runs.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Handles SIGINT and SIGTERM whatever was inherited; SIGHUP only where `nohup` did not turn it off.
fn install() {
    BEGIN.get_or_init(Instant::now);
    // Without the thread there is no message, and signals work all the same.
    if let Ok(wake) = eventfd() {
        WAKE.store(wake.as_raw_fd(), Ordering::SeqCst);
        let _ = thread::Builder::new().name("forebay:stop".to_owned()).spawn(move || wait_and_tell(&wake));
    }
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: both structures are valid; a zeroed one is no flags and an empty mask. The handler does nothing but use
        // atomics, read the clock, write to a descriptor and end the program, all of which a handler may.
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
    // SAFETY: plain numbers in, a new descriptor out, which is owned from here on.
    unsafe {
        let fd: RawFd = libc::eventfd(0, libc::EFD_CLOEXEC);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd)) }
    }
}

/// What the thread does: waits for the first signal, passes it on, and speaks up where the work goes on.
fn wait_and_tell(wake: &OwnedFd) {
    let mut n_signals = 0_u64;
    // SAFETY: eight valid bytes, which is what an eventfd gives.
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
        // SAFETY: both calls are allowed in a handler; the signal comes again with its default, the end, after it.
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
        // SAFETY: eight valid bytes; the error number of what was interrupted is put back.
        unsafe {
            let errno = *libc::__errno_location();
            libc::write(WAKE.load(Ordering::SeqCst), (&raw const one).cast(), 8);
            *libc::__errno_location() = errno;
        }
    } else if now_ms.saturating_sub(FIRST_MS.load(Ordering::SeqCst)) >= SAME_WISH_MS {
        // SAFETY: ends the process; what a shell shows for an end by this signal.
        unsafe { libc::_exit(128 + signal) };
    }
}
