//! Signals while a command is followed: the terminal's go to the command anyway, others are passed on.
//!
//! Ctrl-C reaches every process of the terminal's foreground group, so the command has it already; this process only must
//! not die of it. A signal sent to this process alone is passed on. The handler only notes what came
//! and wakes the waiting thread, also when a child has ended: there is one thing to wait for, and nothing that comes between
//! looking and waiting is missed.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::time::Duration;

/// What is written to in order to wake; -1 when nobody waits.
static WAKE: AtomicI32 = AtomicI32::new(-1);
/// Signals that were sent by a process, a bit for each.
static SENT: AtomicU32 = AtomicU32::new(0);
/// Whether there was an interrupt, from the terminal or from a process.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

const SIGNALS: [libc::c_int; 5] = [libc::SIGCHLD, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP];

/// What a command starts with the default of. `SIGHUP` is not among them: `nohup` is meant for the command too.
const RESET: [libc::c_int; 5] = [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGPIPE, libc::SIGXFSZ];

/// Notes signals for as long as it lives. There is one at a time in a process.
pub(crate) struct Signals {
    before: Vec<(libc::c_int, libc::sigaction)>,
    wake: OwnedFd,
}

impl Signals {
    /// Begins before the command is there, so that no signal is lost on this process. `SIGHUP` stays ignored where it is,
    /// as under `nohup`; the others are handled whatever this process inherited, which is ignored interrupts in a
    /// background job of a script.
    pub(crate) fn begin() -> io::Result<Self> {
        // SAFETY: plain numbers in, a new descriptor out, which is owned from here on.
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
            // SAFETY: both structures are valid; a zeroed one is no flags and an empty mask. The handler does nothing but
            // use atomics and call `write`, which a handler may.
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

    /// Lets a command start with the system's own treatment of signals, whatever this process inherited or set.
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

    /// The signals that processes have sent since this was last asked.
    pub(crate) fn sent(&self) -> impl Iterator<Item = libc::c_int> + use<> {
        let bits = SENT.swap(0, Ordering::SeqCst);
        (1..32).filter(move |signal| bits & (1 << signal) != 0)
    }

    /// Whether there was an interrupt since this was last asked.
    pub(crate) fn was_interrupted(&self) -> bool {
        INTERRUPTED.swap(false, Ordering::SeqCst)
    }

    /// Waits until a signal has come since the last time, or for so long.
    pub(crate) fn wait(&self, at_most: Option<Duration>) {
        let mut poll = libc::pollfd { fd: self.wake.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // Rounded up, so as not to go round in the last millisecond.
        let ms = at_most.map_or(-1, |time| i32::try_from(time.as_millis() + 1).unwrap_or(i32::MAX));
        let mut n_signals = 0_u64;
        // SAFETY: one valid structure, and eight valid bytes. A failure is a signal, or that there is nothing to read.
        unsafe {
            libc::poll(&raw mut poll, 1, ms);
            libc::read(self.wake.as_raw_fd(), (&raw mut n_signals).cast(), 8);
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for (signal, old) in &self.before {
            // SAFETY: what was in force before is put back.
            unsafe { libc::sigaction(*signal, old, std::ptr::null_mut()) };
        }
        WAKE.store(-1, Ordering::SeqCst);
    }
}

extern "C" fn note(signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    if signal != libc::SIGCHLD {
        // SAFETY: the kernel hands a valid structure to a handler with SA_SIGINFO.
        let sent_by_a_process = unsafe { (*info).si_code } <= 0;
        if sent_by_a_process {
            SENT.fetch_or(1 << signal, Ordering::SeqCst);
        }
        if matches!(signal, libc::SIGINT | libc::SIGQUIT) {
            INTERRUPTED.store(true, Ordering::SeqCst);
        }
    }
    let one = 1_u64;
    // SAFETY: eight valid bytes; the error number of what was interrupted is put back.
    unsafe {
        let errno = *libc::__errno_location();
        libc::write(WAKE.load(Ordering::SeqCst), (&raw const one).cast(), 8);
        *libc::__errno_location() = errno;
    }
}
