//! One process of a tree, and how it is read.

use std::io;
use std::path::{Path, PathBuf};

use crate::delay::{DelayCount, Delays, is_possible, now_ticks};
use crate::files::{ProcFile, read_once};
use crate::ledger::{Counters, Units};
use crate::source::process::{Io, Stat, parse_io, parse_stat};

/// A process as it was last seen.
#[derive(Debug, Default)]
pub(crate) struct Member {
    pub(crate) stat: Stat,
    pub(crate) io: Io,
    /// Its own file of I/O could not be read: it belongs to another user, or to root since it has ended.
    pub(crate) hidden: bool,
    /// The faults of children it waited for that are accounted for: those before it was first seen, and those of children
    /// that were seen. What is beyond is of children that came and went unseen.
    pub(crate) faults_settled: u64,
    delays: Delays,
}

impl Member {
    /// A process that is seen for the first time.
    pub(crate) fn new(stat: Stat) -> Self {
        Self { stat, faults_settled: stat.minor_faults[1], ..Self::default() }
    }

    /// Whether it is at work and its I/O cannot be read. One that is ending has no memory any more.
    pub(crate) fn works_unseen(&self) -> bool {
        self.hidden && !self.stat.is_zombie && self.stat.rss_pages > 0
    }

    /// What it did, with the children it waited for.
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
    /// A process and the file of the I/O of one of its threads, which is left out.
    left_out: Option<(u32, ProcFile)>,
    /// What that thread did by the time when its process was last read.
    pub(crate) left_out_io: Io,
    buffer: Vec<u8>,
}

impl Reader {
    /// With the kernel's file system, usually `/proc`.
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

    /// Reads what the calling thread does as well, so that it can be left out.
    pub(crate) fn leave_out_this_thread(&mut self) {
        let process = std::process::id();
        // SAFETY: no arguments, no memory.
        let thread = unsafe { libc::gettid() };
        self.left_out = Some((process, ProcFile::open(self.proc.join(format!("{process}/task/{thread}/io")))));
    }

    pub(crate) fn folder(&self, pid: u32) -> PathBuf {
        self.proc.join(pid.to_string())
    }

    /// The processes there are, and whether the kernel counts their I/O delay.
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

    /// Reads a process anew; false when it is gone, or another has its number.
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

    /// Reads what the thread that is left out did by the time when its process was read. That very reading is among the
    /// thread's bytes by now, and was not yet among the process's.
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
