//! Signals while a command is followed: the terminal's go to the command anyway, others are passed on.
//!
//! Ctrl-C reaches every process of the terminal's foreground group, so the command has it already; this process only must
//! not die of it. A signal that somebody sent to this process alone is passed on to the command.

use std::sync::atomic::{AtomicI32, Ordering};

/// The command that signals are passed on to; 0 when there is none.
static COMMAND: AtomicI32 = AtomicI32::new(0);

const SIGNALS: [libc::c_int; 4] = [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP];

/// Passes signals on for as long as it lives. There is one at a time in a process.
pub(crate) struct Passing {
    before: Vec<(libc::c_int, libc::sigaction)>,
}

impl Passing {
    /// Begins before the command is there, so that no signal is lost on this process. A signal that is ignored stays so,
    /// as under `nohup`. The command starts with the system's own treatment of the others.
    pub(crate) fn begin() -> Self {
        let mut before = Vec::new();
        for signal in SIGNALS {
            // SAFETY: both structures are valid; a zeroed one is no flags and an empty mask. The handler does nothing but
            // load an atomic and call `kill`, which a handler may.
            unsafe {
                let mut old: libc::sigaction = std::mem::zeroed();
                let mut new: libc::sigaction = std::mem::zeroed();
                new.sa_sigaction = pass_on as *const () as usize;
                new.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
                if libc::sigaction(signal, std::ptr::null(), &raw mut old) == 0
                    && old.sa_sigaction != libc::SIG_IGN
                    && libc::sigaction(signal, &raw const new, std::ptr::null_mut()) == 0
                {
                    before.push((signal, old));
                }
            }
        }
        Self { before }
    }

    /// From now on to this process.
    pub(crate) fn to(&self, pid: u32) {
        COMMAND.store(pid as i32, Ordering::SeqCst);
    }
}

impl Passing {
    /// No longer to the command, whose number may be another's once it has been waited for.
    pub(crate) fn to_nobody(&self) {
        COMMAND.store(0, Ordering::SeqCst);
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        self.to_nobody();
        for (signal, old) in &self.before {
            // SAFETY: what was in force before is put back.
            unsafe { libc::sigaction(*signal, old, std::ptr::null_mut()) };
        }
    }
}

extern "C" fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    let command = COMMAND.load(Ordering::SeqCst);
    // SAFETY: the kernel hands a valid structure to a handler with SA_SIGINFO.
    let sent_by_a_process = unsafe { (*info).si_code } <= 0;
    if command > 0 && sent_by_a_process {
        // SAFETY: plain integers; the command has not been waited for, so its number is its own.
        unsafe { libc::kill(command, signal) };
    }
}
