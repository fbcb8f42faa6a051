//! A process and its descendants, followed over time.
//!
//! Each tick looks at processes that are new since the last one, decides by their parents whether they belong to the
//! tree, and reads those that do; processes found to be outside are not read again. A sum over a changing set of
//! processes would go backwards when one ends. It does not, because the kernel adds a child's numbers to its parent when
//! it is waited for; where it was not (a parent that ignores `SIGCHLD`), what was last seen of it is kept. Which of the
//! two it was is told by the parent's count of its children's page faults, which grows by waiting alone.
//!
//! The tree changes while it is read. Parents are read before their children, so that a child is never counted both by
//! itself and in its parent; where a child turns out to be gone, its parent is read again, and then its other children.
//!
//! Limits: a process whose parent does not wait for it and that lives between two ticks is not seen; the I/O delay of a
//! thread is that of its last tick; a child that ends while the tree is being read may show up one tick later.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use crate::files::{ProcFile, read_once};
use crate::ledger::{Counters, Standing, TreeReading};
use crate::source::process::{Io, Stat, parse_io, parse_stat};

/// A process of the tree as it was last seen.
#[derive(Debug, Default)]
struct Member {
    stat: Stat,
    io: Io,
    /// Its own file of I/O could not be read: it belongs to somebody else.
    hidden: bool,
    /// The faults of children it waited for that have been accounted for.
    faults_settled: u64,
    /// I/O delay by thread, those that ended included.
    delays: HashMap<u32, u64>,
}

impl Member {
    fn counters(&self) -> Counters {
        let both = |pair: [u64; 2]| pair[0] + pair[1];
        Counters {
            io: self.io,
            user_ticks: both(self.stat.user_ticks),
            system_ticks: both(self.stat.system_ticks),
            major_faults: both(self.stat.major_faults),
            delay_ticks: self.delays.values().sum(),
        }
    }
}

/// A process and its descendants.
#[derive(Debug)]
pub(crate) struct Tree {
    proc: PathBuf,
    root: u32,
    with_root: bool,
    members: BTreeMap<u32, Member>,
    /// Processes that do not belong to the tree.
    outside: HashSet<u32>,
    /// Processes buried since the last look, with the faults of children that they waited for since then.
    buried: HashMap<u32, u64>,
    /// What ended and is in nobody's numbers.
    gone: Counters,
    last: Counters,
    peak: Standing,
    delay_switch: ProcFile,
    counts_delay: Option<bool>,
    /// The I/O of the thread that reads all this, which is left out.
    own_thread: Option<ProcFile>,
    own_io: Io,
    buffer: Vec<u8>,
}

impl Tree {
    /// The tree below a process, that one included or not.
    pub(crate) fn new(proc: &Path, root: u32, with_root: bool) -> Self {
        let first = with_root.then(|| (root, Member::default()));
        Self {
            proc: proc.to_owned(),
            root,
            with_root,
            members: first.into_iter().collect(),
            outside: HashSet::new(),
            buried: HashMap::new(),
            gone: Counters::default(),
            last: Counters::default(),
            peak: Standing::default(),
            delay_switch: ProcFile::open(proc.join("sys/kernel/task_delayacct")),
            counts_delay: None,
            own_thread: None,
            own_io: Io::default(),
            buffer: Vec::new(),
        }
    }

    /// Leaves the I/O of the calling thread out of the sums, when it belongs to the tree.
    pub(crate) fn leave_out_this_thread(&mut self) {
        if self.with_root && self.root == std::process::id() {
            // SAFETY: no arguments, no memory.
            let thread = unsafe { libc::gettid() };
            self.own_thread = Some(ProcFile::open(self.proc.join(format!("{}/task/{thread}/io", self.root))));
        }
    }

    /// Looks at the tree: the sums since its processes began, and what it is at this moment.
    pub(crate) fn look(&mut self) -> TreeReading {
        self.counts_delay = self.delay_switch.read().map(|text| text.trim() != "0");
        let listed = self.list();
        self.outside.retain(|pid| listed.binary_search(pid).is_ok());
        for pid in listed {
            self.admit(pid);
        }
        for member in self.members.values_mut() {
            member.faults_settled = member.stat.minor_faults[1];
        }
        let mut to_read: Vec<u32> = self.members.keys().copied().collect();
        loop {
            let vanished = self.refresh(to_read);
            if vanished.is_empty() {
                break;
            }
            let heirs = self.settle(&vanished);
            to_read = self.children_of(&heirs);
        }
        self.buried.clear();
        let sum = self.members.values().map(Member::counters).fold(self.gone, Counters::plus);
        self.last = sum.less_io(self.own_io).or_greater(self.last);
        let standing = self.standing();
        self.peak = self.peak.or_greater(standing);
        TreeReading { counters: self.last, standing, counts_delay: self.counts_delay }
    }

    /// The most there was of everything at any one tick.
    pub(crate) fn peak(&self) -> Standing {
        self.peak
    }

    /// How many processes are alive, as last seen.
    pub(crate) fn n_alive(&self) -> usize {
        self.members.values().filter(|member| !member.stat.is_zombie).count()
    }

    /// Reads a child of this process that has ended, for the last time, and lets the caller wait for it. What it did is
    /// kept, since waiting adds it to this process's numbers, which are not among the tree's.
    pub(crate) fn bury(&mut self, pid: u32, wait: impl FnOnce()) {
        let mut member = self.members.remove(&pid).unwrap_or_default();
        let faults_before = member.stat.minor_faults[1];
        self.read_member(pid, &mut member);
        self.buried.insert(pid, member.stat.minor_faults[1].saturating_sub(faults_before));
        self.gone = self.gone.plus(member.counters());
        self.peak.n_processes = self.peak.n_processes.max(1);
        wait();
    }

    fn list(&self) -> Vec<u32> {
        let entries = std::fs::read_dir(&self.proc).into_iter().flatten().flatten();
        let mut pids: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        pids.sort_unstable();
        pids
    }

    /// Decides whether a process belongs to the tree, by the first of its ancestors that is known.
    fn admit(&mut self, pid: u32) {
        let (mut line, mut at): (Vec<(u32, Stat)>, u32) = (Vec::new(), pid);
        let belongs = loop {
            if at == self.root || self.members.contains_key(&at) {
                break true;
            }
            if at <= 1 || self.outside.contains(&at) || line.iter().any(|(pid, _)| *pid == at) {
                break false;
            }
            match self.read_stat(at) {
                Ok(stat) => {
                    line.push((at, stat));
                    at = stat.parent;
                }
                // It is gone already.
                Err(_) => return,
            }
        };
        if belongs {
            self.members.extend(line.into_iter().map(|(pid, stat)| (pid, Member { stat, ..Member::default() })));
        } else {
            self.outside.extend(line.into_iter().map(|(pid, _)| pid));
        }
    }

    /// Reads members, those that began earlier first: a child never began before its parent. Those that are gone.
    fn refresh(&mut self, mut pids: Vec<u32>) -> BTreeMap<u32, Member> {
        pids.sort_unstable_by_key(|pid| self.members.get(pid).map(|member| (member.stat.started, *pid)));
        let mut vanished = BTreeMap::new();
        for pid in pids {
            let Some(mut member) = self.members.remove(&pid) else { continue };
            if self.read_member(pid, &mut member) {
                self.members.insert(pid, member);
            } else {
                vanished.insert(pid, member);
            }
        }
        vanished
    }

    /// Keeps what nobody waited for; those that may have waited, which have been read again.
    fn settle(&mut self, vanished: &BTreeMap<u32, Member>) -> HashSet<u32> {
        let mut heirs = HashSet::new();
        for member in vanished.values() {
            let mut heir = member.stat.parent;
            while let Some(ancestor) = vanished.get(&heir) {
                heir = ancestor.stat.parent;
            }
            if heirs.insert(heir)
                && let Some(mut waiter) = self.members.remove(&heir)
            {
                // Now that the child is gone for sure, what it did is in here if it was waited for.
                self.read_member(heir, &mut waiter);
                self.members.insert(heir, waiter);
            }
            let mut kept = member.counters();
            if self.was_waited_for(heir, member) {
                // The kernel hands on everything but the delay.
                kept = Counters { delay_ticks: kept.delay_ticks, ..Counters::default() };
            }
            self.gone = self.gone.plus(kept);
        }
        heirs
    }

    /// Whether the faults of a process that is gone have been handed to another since the last look.
    fn was_waited_for(&mut self, heir: u32, gone: &Member) -> bool {
        let faults = gone.stat.minor_faults[0] + gone.stat.minor_faults[1];
        if let Some(left) = self.buried.get_mut(&heir) {
            let enough = faults <= *left;
            *left -= if enough { faults } else { 0 };
            return enough;
        }
        let Some(heir) = self.members.get_mut(&heir) else { return false };
        let enough = faults > 0 && heir.faults_settled + faults <= heir.stat.minor_faults[1];
        heir.faults_settled += if enough { faults } else { 0 };
        enough
    }

    fn children_of(&self, parents: &HashSet<u32>) -> Vec<u32> {
        let children = self.members.iter().filter(|(_, member)| parents.contains(&member.stat.parent));
        children.map(|(pid, _)| *pid).collect()
    }

    /// Reads a process anew; false when it is gone, or another has its number.
    fn read_member(&mut self, pid: u32, member: &mut Member) -> bool {
        let Ok(stat) = self.read_stat(pid) else { return false };
        if member.stat.started != 0 && member.stat.started != stat.started {
            return false;
        }
        let mut n_bytes = 0;
        let io = read_once(&self.proc.join(format!("{pid}/io")), &mut self.buffer).map(|text| {
            n_bytes = text.len() as u64;
            parse_io(&text)
        });
        if pid == self.root {
            self.read_own(n_bytes);
        }
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

    /// Reads what this thread did by the time when its process was read, which it has just done: that reading is the
    /// thread's, and not yet among the process's bytes.
    fn read_own(&mut self, n_bytes: u64) {
        let own = self.own_thread.as_mut().and_then(|file| parse_io(file.read()?));
        if let Some(own) = own {
            self.own_io = Io { rchar: own.rchar.saturating_sub(n_bytes), ..own };
        }
    }

    fn read_delays(&mut self, pid: u32, member: &mut Member) {
        if self.counts_delay == Some(false) {
            return;
        }
        if member.stat.n_threads <= 1 {
            member.delays.insert(pid, member.stat.delay_ticks.unwrap_or(0));
            return;
        }
        let tasks = self.proc.join(format!("{pid}/task"));
        for entry in std::fs::read_dir(tasks).into_iter().flatten().flatten() {
            let thread = entry.file_name().to_str().and_then(|name| name.parse().ok());
            let text = read_once(&entry.path().join("stat"), &mut self.buffer);
            let stat = text.ok().and_then(|text| parse_stat(&text));
            if let Some((thread, ticks)) = thread.zip(stat.and_then(|stat| stat.delay_ticks)) {
                member.delays.insert(thread, ticks);
            }
        }
    }

    fn read_stat(&mut self, pid: u32) -> io::Result<Stat> {
        let text = read_once(&self.proc.join(format!("{pid}/stat")), &mut self.buffer)?;
        parse_stat(&text).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn standing(&self) -> Standing {
        let alive = || self.members.values().filter(|member| !member.stat.is_zombie);
        Standing {
            n_processes: alive().count() as u64,
            n_threads: alive().map(|member| member.stat.n_threads).sum(),
            rss_pages: alive().map(|member| member.stat.rss_pages).sum(),
            n_hidden: alive().filter(|member| member.hidden).count() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder like `/proc` with made-up processes.
    struct Proc(tempfile::TempDir);

    impl Proc {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        /// A process: its parent, its faults and those of its children, and the bytes it wrote.
        fn put(&self, pid: u32, parent: u32, faults: [u64; 2], written: u64) {
            let dir = self.0.path().join(pid.to_string());
            std::fs::create_dir_all(&dir).unwrap();
            let stat = format!(
                "{pid} (p {pid}) S {parent} 0 0 0 0 0 {} {} 0 0 0 0 0 0 20 0 1 0 {pid} 0 10 0",
                faults[0], faults[1]
            );
            std::fs::write(dir.join("stat"), stat).unwrap();
            let io = format!("rchar: 0\nwchar: {written}\nsyscr: 0\nsyscw: 0\nread_bytes: 0\nwrite_bytes: 0\n");
            std::fs::write(dir.join("io"), io).unwrap();
        }

        fn end(&self, pid: u32) {
            std::fs::remove_dir_all(self.0.path().join(pid.to_string())).unwrap();
        }

        fn tree(&self, root: u32, with_root: bool) -> Tree {
            Tree::new(self.0.path(), root, with_root)
        }
    }

    fn written(tree: &mut Tree) -> (u64, u64) {
        let reading = tree.look();
        (reading.counters.io.wchar, reading.standing.n_processes)
    }

    #[test]
    fn descendants_belong_and_others_do_not() {
        let proc = Proc::new();
        proc.put(1, 0, [1, 0], 1_000);
        proc.put(10, 1, [1, 0], 1);
        proc.put(11, 10, [1, 0], 2);
        proc.put(12, 11, [1, 0], 4);
        proc.put(20, 1, [1, 0], 500);
        assert_eq!(written(&mut proc.tree(10, true)), (7, 3));
        assert_eq!(written(&mut proc.tree(10, false)), (6, 2));
        let mut tree = proc.tree(10, true);
        written(&mut tree);
        proc.put(5, 12, [1, 0], 8);
        proc.put(21, 20, [1, 0], 600);
        assert_eq!(written(&mut tree), (15, 4), "a number may be lower than the parent's");
    }

    #[test]
    fn a_child_that_was_waited_for_is_in_its_parents_numbers() {
        let proc = Proc::new();
        proc.put(10, 1, [50, 0], 1);
        proc.put(11, 10, [30, 0], 100);
        let mut tree = proc.tree(10, true);
        assert_eq!(written(&mut tree), (101, 2));
        proc.end(11);
        proc.put(10, 1, [50, 35], 1 + 120);
        assert_eq!(written(&mut tree), (121, 1));
    }

    #[test]
    fn a_child_that_nobody_waited_for_is_kept_as_it_was_last_seen() {
        let proc = Proc::new();
        proc.put(10, 1, [50, 7], 1);
        proc.put(11, 10, [30, 0], 100);
        proc.put(12, 11, [30, 0], 1_000);
        let mut tree = proc.tree(10, true);
        assert_eq!(written(&mut tree), (1_101, 3));
        proc.end(11);
        proc.end(12);
        proc.put(10, 1, [90, 7], 6);
        assert_eq!(written(&mut tree), (1_106, 1));
        assert_eq!(written(&mut tree), (1_106, 1));
    }

    #[test]
    fn a_number_that_is_used_again_is_another_process() {
        let proc = Proc::new();
        proc.put(10, 1, [1, 0], 1);
        proc.put(11, 10, [3, 0], 100);
        let mut tree = proc.tree(10, true);
        assert_eq!(written(&mut tree), (101, 2));
        proc.put(11, 10, [3, 0], 5);
        let path = proc.0.path().join("11/stat");
        let text = std::fs::read_to_string(&path).unwrap().replace(" 1 0 11 0 ", " 1 0 99 0 ");
        std::fs::write(path, text).unwrap();
        assert_eq!(written(&mut tree), (101, 1), "the first one is kept");
        assert_eq!(written(&mut tree), (106, 2), "the second one is new");
    }

    #[test]
    fn what_is_buried_stays_in_the_sum() {
        let proc = Proc::new();
        proc.put(11, 10, [3, 0], 100);
        let mut tree = proc.tree(10, false);
        assert_eq!(written(&mut tree), (100, 1));
        proc.put(11, 10, [3, 0], 130);
        tree.bury(11, || proc.end(11));
        assert_eq!(written(&mut tree), (130, 0));
        proc.put(12, 10, [3, 0], 7);
        tree.bury(12, || proc.end(12));
        assert_eq!(written(&mut tree), (137, 0), "also one that no tick has seen");
        assert_eq!(tree.peak().n_processes, 1);
    }

    #[test]
    fn a_child_of_one_that_is_buried_is_counted_once() {
        let proc = Proc::new();
        proc.put(11, 10, [3, 0], 1);
        proc.put(12, 11, [5, 0], 100);
        let mut tree = proc.tree(10, false);
        assert_eq!(written(&mut tree), (101, 2));
        // The child ends and is waited for, and then its parent ends too, all between two ticks.
        proc.end(12);
        proc.put(11, 10, [3, 6], 1 + 120);
        tree.bury(11, || proc.end(11));
        assert_eq!(written(&mut tree), (121, 0));
        assert_eq!(written(&mut tree), (121, 0));
    }
}
