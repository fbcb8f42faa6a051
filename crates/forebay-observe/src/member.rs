//! A process of a tree, and reading it.

use std::io;
use std::path::{Path, PathBuf};

use crate::delay::{DelayCount, Delays, is_possible, now_ticks};
use crate::files::{ProcFile, read_once};
use crate::ledger::{Counters, Units};
use crate::source::process::{Io, Stat, parse_io, parse_stat};

/// A process as last seen.
#[derive(Debug, Default)]
pub(crate) struct Member {
    pub(crate) stat: Stat,
    pub(crate) io: Io,
    /// Its I/O file could not be read: it belongs to another user, or to root because the process has ended.
    pub(crate) hidden: bool,
    /// Faults of children that are accounted for: children it waited for before it was first seen, and children that
    /// were seen. The rest belongs to children that lived and ended unseen.
    pub(crate) faults_settled: u64,
    delays: Delays,
}

impl Member {
    /// A process seen for the first time.
    pub(crate) fn new(stat: Stat) -> Self {
        Self { stat, faults_settled: stat.minor_faults[1], ..Self::default() }
    }

    /// Whether it is running and its I/O is unreadable. A process that is ending has no memory any more.
    pub(crate) fn works_unseen(&self) -> bool {
        self.hidden && !self.stat.is_zombie && self.stat.rss_pages > 0
    }

    /// Its counters, including the children it waited for.
    pub(crate) fn counters(&self) -> Counters {
        let both = |pair: [u64; 2]| pair[0] + pair[1];
        Counters {
            io: self.io,
            user_ticks: both(self.stat.user_ticks),
            system_ticks: both(self.stat.system_ticks),
            major_faults: both(self.stat.major_faults),
            delay_ticks: self.delays.total(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Reader {
    proc: PathBuf,
    delay_switch: ProcFile,
    pub(crate) delay: DelayCount,
    units: Units,
    /// A process and the I/O file of one of its threads, which is excluded.
    left_out: Option<(u32, ProcFile)>,
    /// The excluded thread's I/O at the last reading of its process.
    pub(crate) left_out_io: Io,
    buffer: Vec<u8>,
}

impl Reader {
    /// Takes the kernel's file system, usually `/proc`.
    pub(crate) fn new(proc: &Path) -> Self {
        Self {
            proc: proc.to_owned(),
            delay_switch: ProcFile::open(proc.join("sys/kernel/task_delayacct")),
            delay: DelayCount::default(),
            units: Units::here(),
            left_out: None,
            left_out_io: Io::default(),
            buffer: Vec::new(),
        }
    }

    /// Excludes the I/O of the calling thread.
    pub(crate) fn leave_out_this_thread(&mut self) {
        let process = std::process::id();
        // SAFETY: no arguments, no memory.
        let thread = unsafe { libc::gettid() };
        self.left_out = Some((process, ProcFile::open(self.proc.join(format!("{process}/task/{thread}/io")))));
    }

    pub(crate) fn folder(&self, pid: u32) -> PathBuf {
        self.proc.join(pid.to_string())
    }

    /// Lists all processes, and checks whether the kernel counts I/O delay.
    pub(crate) fn list(&mut self) -> Vec<u32> {
        self.delay = self.delay.by_switch(self.delay_switch.read());
        let entries = std::fs::read_dir(&self.proc).into_iter().flatten().flatten();
        let mut pids: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        pids.sort_unstable();
        pids
    }

    pub(crate) fn stat(&mut self, pid: u32) -> io::Result<Stat> {
        let text = read_once(&self.proc.join(format!("{pid}/stat")), &mut self.buffer)?;
        parse_stat(&text).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Reads a process; returns false if it is gone or another process has its number.
    pub(crate) fn read(&mut self, pid: u32, member: &mut Member) -> bool {
        let Ok(stat) = self.stat(pid) else { return false };
        if member.stat.started != 0 && member.stat.started != stat.started {
            return false;
        }
        let mut n_bytes = 0;
        let io = read_once(&self.proc.join(format!("{pid}/io")), &mut self.buffer).map(|text| {
            n_bytes = text.len() as u64;
            parse_io(&text)
        });
        self.read_left_out(pid, n_bytes);
        match io {
            Ok(Some(io)) => (member.io, member.hidden) = (io, false),
            Ok(None) => member.hidden = true,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => member.hidden = true,
            Err(_) => return false,
        }
        member.stat = stat;
        self.read_delays(pid, member);
        true
    }

    /// Reads the excluded thread's I/O at the time when its process was read. The thread's count already includes that
    /// read itself; the count of the process did not.
    fn read_left_out(&mut self, pid: u32, n_bytes: u64) {
        if let Some((process, file)) = &mut self.left_out
            && *process == pid
            && let Some(io) = file.read().and_then(parse_io)
        {
            self.left_out_io = Io { rchar: io.rchar.saturating_sub(n_bytes), ..io };
        }
    }

    fn read_delays(&mut self, pid: u32, member: &mut Member) {
        if matches!(self.delay, DelayCount::Off | DelayCount::Wrong) {
            return;
        }
        let threads = if member.stat.n_threads <= 1 { vec![(pid, member.stat)] } else { self.threads(pid) };
        let now = now_ticks(self.units);
        if threads.iter().any(|(_, thread)| !is_possible(thread, now)) {
            self.delay = DelayCount::Wrong;
        }
        member.delays.take(threads.iter().map(|(id, thread)| (*id, thread.delay_ticks.unwrap_or(0))).collect());
    }

    fn threads(&mut self, pid: u32) -> Vec<(u32, Stat)> {
        let tasks = std::fs::read_dir(self.proc.join(format!("{pid}/task"))).into_iter().flatten().flatten();
        let threads = tasks.filter_map(|task| {
            let text = read_once(&task.path().join("stat"), &mut self.buffer).ok()?;
            Some((task.file_name().to_str()?.parse().ok()?, parse_stat(&text)?))
        });
        threads.collect()
    }
}
