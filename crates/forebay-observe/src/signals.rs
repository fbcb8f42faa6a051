//! Signals while a command is followed: the command gets the terminal's signals by itself; others are passed on.
//!
//! Ctrl-C reaches every process of the terminal's foreground group, including the command; this process only must not
//! die of it. A signal sent to this process alone is passed on. The handler only notes the signal and wakes the waiting
//! thread, also when a child has ended. So there is a single event to wait for, and nothing is missed between a check
//! and the wait.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::time::Duration;

/// Writing to it wakes the waiting thread; -1 if no thread waits.
static WAKE: AtomicI32 = AtomicI32::new(-1);
/// Signals that were sent by a process, one bit per signal.
static SENT: AtomicU32 = AtomicU32::new(0);
/// Whether there was an interrupt, from the terminal or from a process.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

const SIGNALS: [libc::c_int; 5] = [libc::SIGCHLD, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP];

/// Signals that the command starts with the default treatment of. Not `SIGHUP`: `nohup` applies to the command too.
const RESET: [libc::c_int; 5] = [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGPIPE, libc::SIGXFSZ];

/// Notes signals as long as it lives. At most one exists per process.
pub(crate) struct Signals {
    before: Vec<(libc::c_int, libc::sigaction)>,
    wake: OwnedFd,
}

impl Signals {
    /// Call it before the command starts, to miss no signal to this process. An ignored `SIGHUP` stays ignored, as
    /// under `nohup`; the other signals are handled even if this process inherited them as ignored, like interrupts in
    /// a background job of a script.
    pub(crate) fn begin() -> io::Result<Self> {
        // SAFETY: plain numbers in, a new descriptor out, owned from here on.
        let wake = unsafe {
            let fd = libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        SENT.store(0, Ordering::SeqCst);
        INTERRUPTED.store(false, Ordering::SeqCst);
        WAKE.store(wake.as_raw_fd(), Ordering::SeqCst);
        let mut before = Vec::new();
        for signal in SIGNALS {
            // SAFETY: both structures are valid; zeros mean no flags and an empty mask. The handler only uses atomics
            // and calls `write`, which is allowed in a handler.
            unsafe {
                let mut old: libc::sigaction = std::mem::zeroed();
                let mut new: libc::sigaction = std::mem::zeroed();
                new.sa_sigaction = note as *const () as usize;
                new.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_NOCLDSTOP;
                if libc::sigaction(signal, std::ptr::null(), &raw mut old) == 0
                    && (old.sa_sigaction != libc::SIG_IGN || signal != libc::SIGHUP)
                    && libc::sigaction(signal, &raw const new, std::ptr::null_mut()) == 0
                {
                    before.push((signal, old));
                }
            }
        }
        Ok(Self { before, wake })
    }

    /// Makes a command start with the default treatment of signals, whatever this process inherited or set.
    pub(crate) fn reset_in(command: &mut Command) {
        let reset = || {
            for signal in RESET {
                // SAFETY: a plain number and the default; `signal` may be called between fork and exec.
                if unsafe { libc::signal(signal, libc::SIG_DFL) } == libc::SIG_ERR {
                    return Err(io::Error::last_os_error());
                }
            }
            Ok(())
        };
        // SAFETY: the closure makes one kind of system call, allocates nothing and takes no lock.
        unsafe { command.pre_exec(reset) };
    }

    /// The signals that processes have sent since the last call.
    pub(crate) fn sent(&self) -> impl Iterator<Item = libc::c_int> + use<> {
        let bits = SENT.swap(0, Ordering::SeqCst);
        (1..32).filter(move |signal| bits & (1 << signal) != 0)
    }

    /// Whether there was an interrupt since the last call.
    pub(crate) fn was_interrupted(&self) -> bool {
        INTERRUPTED.swap(false, Ordering::SeqCst)
    }

    /// Waits until a signal arrives or has arrived since the last wait, or until the time is over.
    pub(crate) fn wait(&self, at_most: Option<Duration>) {
        let mut poll = libc::pollfd { fd: self.wake.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // Rounded up, to avoid busy waiting in the last millisecond.
        let ms = at_most.map_or(-1, |time| i32::try_from(time.as_millis() + 1).unwrap_or(i32::MAX));
        let mut n_signals = 0_u64;
        // SAFETY: one valid structure, and eight valid bytes. A failure means a signal, or that there is nothing to
        // read.
        unsafe {
            libc::poll(&raw mut poll, 1, ms);
            libc::read(self.wake.as_raw_fd(), (&raw mut n_signals).cast(), 8);
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for (signal, old) in &self.before {
            // SAFETY: restores the previous action.
            unsafe { libc::sigaction(*signal, old, std::ptr::null_mut()) };
        }
        WAKE.store(-1, Ordering::SeqCst);
    }
}

extern "C" fn note(signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    if signal != libc::SIGCHLD {
        // SAFETY: the kernel passes a valid structure to a handler with SA_SIGINFO.
        let sent_by_a_process = unsafe { (*info).si_code } <= 0;
        if sent_by_a_process {
            SENT.fetch_or(1 << signal, Ordering::SeqCst);
        }
        if matches!(signal, libc::SIGINT | libc::SIGQUIT) {
            INTERRUPTED.store(true, Ordering::SeqCst);
        }
    }
    let one = 1_u64;
    // SAFETY: eight valid bytes; the error number of the interrupted code is restored.
    unsafe {
        let errno = *libc::__errno_location();
        libc::write(WAKE.load(Ordering::SeqCst), (&raw const one).cast(), 8);
        *libc::__errno_location() = errno;
    }
}
