//! A run of the binary that is watched, stopped or measured from outside.

use std::fs;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::dir::{Dir, Ran, UNWATCHED};

/// How long a condition is waited for before the test fails; far more than it takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// The binary at work; killed when the test ends before it.
pub(crate) struct Running(Option<Child>);

impl Running {
    pub(crate) fn start(dir: &Dir, line: &str) -> Self {
        Self::of(dir.command(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    }

    /// One that was started with its outputs piped.
    pub(crate) fn of(child: Child) -> Self {
        Self(Some(child))
    }

    fn id(&self) -> u32 {
        self.0.as_ref().unwrap().id()
    }

    /// Waits until something can be seen; fails when the program ends before.
    pub(crate) fn wait_until(&mut self, what: &str, seen: impl FnMut(&Self) -> bool) {
        let ended = self.end_before(what, seen);
        assert!(ended.is_none(), "the program ended before {what}: {ended:?}");
    }

    /// Waits until something can be seen; the exit status when the program ends before.
    pub(crate) fn end_before(&mut self, what: &str, mut seen: impl FnMut(&Self) -> bool) -> Option<ExitStatus> {
        let start = Instant::now();
        while !seen(self) {
            let ended = self.0.as_mut().unwrap().try_wait().unwrap();
            if ended.is_some() {
                return ended;
            }
            assert!(start.elapsed() < PATIENCE, "{what} was not seen");
            std::thread::sleep(Duration::from_micros(200));
        }
        None
    }

    /// The ids of the threads whose names start so.
    pub(crate) fn threads(&self, name: &str) -> Vec<u32> {
        let Ok(listed) = fs::read_dir(format!("/proc/{}/task", self.id())) else { return Vec::new() };
        let named =
            |path: &std::path::Path| fs::read_to_string(path.join("comm")).is_ok_and(|comm| comm.starts_with(name));
        let tasks = listed.flatten().filter(|task| named(&task.path()));
        tasks.filter_map(|task| task.file_name().to_str()?.parse().ok()).collect()
    }

    /// The bytes it got so far from `read` and its like.
    pub(crate) fn bytes_read(&self) -> u64 {
        let io = fs::read_to_string(format!("/proc/{}/io", self.id())).unwrap_or_default();
        io.lines().find_map(|line| line.strip_prefix("rchar: ")?.parse().ok()).unwrap_or(0)
    }

    /// The most memory it had so far.
    pub(crate) fn peak_bytes(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()).unwrap_or(0) * 1024
    }

    /// The signals that it ignores, a bit for each.
    pub(crate) fn ignored_signals(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id())).unwrap();
        let bits = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap().trim();
        u64::from_str_radix(bits, 16).unwrap()
    }

    /// Bytes of its stdout that nobody has read yet.
    pub(crate) fn bytes_unread(&self) -> u64 {
        let stdout = self.0.as_ref().unwrap().stdout.as_ref().unwrap();
        let mut n_bytes: libc::c_int = 0;
        // SAFETY: a descriptor that is open, and room for the answer.
        let code = unsafe { libc::ioctl(stdout.as_raw_fd(), libc::FIONREAD, &raw mut n_bytes) };
        assert_eq!(code, 0);
        n_bytes as u64
    }

    pub(crate) fn signal(&self, signal: libc::c_int) {
        // SAFETY: plain integers; the child has not been waited for, so its id is still its own.
        let code = unsafe { libc::kill(self.id() as libc::pid_t, signal) };
        assert_eq!(code, 0);
    }

    /// Reads stderr until it says something: all that it said until then.
    pub(crate) fn stderr_until(&mut self, what: &str) -> String {
        let stderr = self.0.as_mut().unwrap().stderr.as_mut().unwrap();
        let (mut said, mut byte) = (String::new(), [0]);
        while !said.contains(what) {
            assert_eq!(stderr.read(&mut byte).unwrap(), 1, "the program ended before {what}: {said}");
            said.push(char::from(byte[0]));
        }
        said
    }

    /// Waits for the end. That a stop takes its time is said only on a busy machine, and is no part of what a test compares.
    pub(crate) fn finish(mut self) -> Ran {
        let ran: Ran = self.0.take().unwrap().wait_with_output().unwrap().into();
        let is_patience = |line: &&str| line.ends_with("; press Ctrl-C again to quit at once\n");
        let stderr = ran.stderr.split_inclusive('\n').filter(|line| !is_patience(line)).collect();
        Ran { stderr, ..ran }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Runs what must end with status 0, and says how many bytes it got from `read` and its like: a map's are not among them.
pub(crate) fn bytes_read(dir: &Dir, line: &str) -> u64 {
    let mut child = dir.command(line).stdout(Stdio::null()).spawn().unwrap();
    let id = child.id();
    // SAFETY: the structure is valid and written by the call alone; the child stays to be waited for.
    let code = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        libc::waitid(libc::P_PID, id, &raw mut info, libc::WEXITED | libc::WNOWAIT)
    };
    assert_eq!(code, 0);
    let io = fs::read_to_string(format!("/proc/{id}/io")).unwrap();
    assert!(child.wait().unwrap().success(), "{line}");
    io.lines().find_map(|line| line.strip_prefix("rchar: ")?.parse().ok()).unwrap()
}

/// Runs to the end, and says how many bytes of memory it had at most. What the test itself has counts too: a process is
/// counted from its fork on.
#[expect(clippy::zombie_processes, reason = "wait4, which also tells the memory, waits for it")]
pub(crate) fn peak_bytes(dir: &Dir, line: &str) -> (Ran, u64) {
    let (out, err) = (dir.path(".stdout"), dir.path(".stderr"));
    let file = |path| fs::File::create(path).unwrap();
    let child = dir.command(line).stdout(file(&out)).stderr(file(&err)).spawn().unwrap();
    let mut status = 0;
    // SAFETY: zeros are a valid structure; both are written by the call alone; nobody else waits for the child.
    let (id, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::wait4(child.id() as libc::pid_t, &raw mut status, 0, &raw mut usage), usage)
    };
    assert_eq!(id, child.id() as libc::pid_t);
    let ended = std::os::unix::process::ExitStatusExt::from_raw(status);
    let ran = Output { status: ended, stdout: fs::read(out).unwrap(), stderr: fs::read(err).unwrap() };
    (ran.into(), usage.ru_maxrss as u64 * 1024)
}

/// Whether a measured time comes out in one of ten tries: a busy machine makes it longer, never shorter.
pub(crate) fn once_in_ten(measure: impl FnMut(i32) -> bool) -> bool {
    (0..10).any(measure)
}

pub(crate) fn is_root() -> bool {
    // SAFETY: the call has no arguments and touches no memory.
    unsafe { libc::geteuid() == 0 }
}

/// A number of threads that is not the default.
pub(crate) fn more_threads_than_cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from) + 2
}

/// Other processes that keep every core busy; ended with the test.
pub(crate) struct Load(Vec<Running>);

impl Load {
    pub(crate) fn start() -> Self {
        // Other tests go first.
        let spin = || Command::new("nice").args(["-n19", "sh", "-c", "while :; do :; done"]).spawn().unwrap();
        let n_cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self((0..n_cores).map(|_| Running::of(spin())).collect())
    }

    /// Runs a line that must end with status 0, and that looks at what others do.
    pub(crate) fn beside(&self, dir: &Dir, line: &str) -> Ran {
        assert!(!self.0.is_empty());
        let ran = Ran::from(dir.command(line).env_remove(UNWATCHED).output().unwrap());
        assert_eq!(ran.code, Some(0), "{line}\n{}{}", ran.stdout, ran.stderr);
        ran
    }

    /// Repeats that a line with `--json -` begins beside it, and those of its first cell that it disturbed.
    pub(crate) fn repeats(&self, dir: &Dir, line: &str) -> (usize, u64) {
        let record: Value = serde_json::from_str(&self.beside(dir, line).stdout).unwrap();
        let marks = record["series"]["marks"].as_array().unwrap().iter().map(|mark| mark["what"].as_str().unwrap());
        let n_disturbed = record["cells"][0]["disturbed"]["repeats"].as_u64().unwrap();
        (marks.filter(|what| what.contains(", repeat ")).count(), n_disturbed)
    }
}
