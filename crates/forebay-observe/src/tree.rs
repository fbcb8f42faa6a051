//! A process and its descendants, followed over time.
//!
//! Each tick examines processes that are new since the last one, decides by their parents whether they belong to the
//! tree, and reads the members; processes outside are not read again. A sum over a changing set of processes would
//! decrease when one ends. This sum does not, because the kernel adds a child's counters to its parent when the parent
//! waits for it. If the parent does not wait (it ignores `SIGCHLD`), the last known counters are kept. The parent's
//! count of its children's page faults tells the two cases apart: it grows only by waiting.
//!
//! The tree changes while it is read. Parents are read before their children, so a child is never counted both by
//! itself and in its parent. If a process turns out to be gone, every process that may have waited for it is read
//! again, and then the rest, until no process has gone meanwhile.
//!
//! The I/O of another user's process is unreadable, and for users other than root so is that of a process that has
//! ended and has not been waited for. It becomes known by the wait, which adds it to the counters of the parent.
//!
//! Limits: a process that lives between two ticks is missed if its parent does not wait for it; the I/O delay of a
//! thread is that of its last tick; a child that ends while the tree is being read may appear one tick later.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use crate::handed;
use crate::ledger::{Counters, Standing, TreeReading};
use crate::member::{Member, Reader};
use crate::source::process::Stat;

/// A process that ended, remembered for a while because its children may turn out to have ended too.
#[derive(Debug)]
struct Departed {
    parent: u32,
    /// If this process has waited for it: the faults of its children that are not accounted for.
    buried_faults: Option<u64>,
    at_look: u64,
}

/// Limit on passes over the tree per look if processes keep ending, to bound the time of a look.
const MAX_PASSES: usize = 8;

#[derive(Debug)]
pub(crate) struct Tree {
    reader: Reader,
    root: u32,
    with_root: bool,
    members: BTreeMap<u32, Member>,
    /// Processes that do not belong to the tree.
    outside: HashSet<u32>,
    /// Processes that ended in this look or the one before.
    departed: HashMap<u32, Departed>,
    n_looks: u64,
    /// Sums of processes that ended and that no other process's counters include.
    gone: Counters,
    /// Processes that ended with unread I/O that no other process's counters include.
    n_lost: u64,
    last: Counters,
    peak: Standing,
}

impl Tree {
    /// The tree below `root`, with or without `root` itself.
    pub(crate) fn new(proc: &Path, root: u32, with_root: bool) -> Self {
        let mut tree = Self {
            reader: Reader::new(proc),
            root,
            with_root,
            members: BTreeMap::new(),
            outside: HashSet::new(),
            departed: HashMap::new(),
            n_looks: 0,
            gone: Counters::default(),
            n_lost: 0,
            last: Counters::default(),
            peak: Standing::default(),
        };
        if let (true, Ok(stat)) = (with_root, tree.reader.stat(root)) {
            tree.members.insert(root, Member::new(stat));
        }
        tree
    }

    /// Excludes the I/O of the calling thread from the sums, if it belongs to the tree.
    pub(crate) fn leave_out_this_thread(&mut self) {
        if self.with_root && self.root == std::process::id() {
            self.reader.leave_out_this_thread();
        }
    }

    /// Reads the tree: the totals since its processes began, and the current state.
    pub(crate) fn look(&mut self) -> TreeReading {
        let listed = self.reader.list();
        self.outside.retain(|pid| listed.binary_search(pid).is_ok());
        for pid in listed {
            self.admit(pid);
        }
        self.n_looks += 1;
        for _ in 0..MAX_PASSES {
            let vanished = self.refresh();
            if vanished.is_empty() {
                break;
            }
            self.settle(&vanished);
        }
        let now = self.n_looks;
        self.departed.retain(|_, departed| departed.at_look + 1 >= now);
        let sum = self.members.values().map(Member::counters).fold(self.gone, Counters::plus);
        self.last = sum.less_io(self.reader.left_out_io).or_greater(self.last);
        let standing = self.standing();
        self.peak = self.peak.or_greater(standing);
        TreeReading { counters: self.last, standing, delay: self.reader.delay }
    }

    /// The maximum of each quantity at any tick.
    pub(crate) fn peak(&self) -> Standing {
        self.peak
    }

    /// Number of live processes, as last seen.
    pub(crate) fn n_alive(&self) -> usize {
        self.alive().count()
    }

    /// The live processes, as last seen.
    pub(crate) fn alive(&self) -> impl Iterator<Item = u32> {
        self.members.iter().filter(|(_, member)| !member.stat.is_zombie).map(|(pid, _)| *pid)
    }

    /// Number of processes whose I/O is missing from the sums, at least in part, as last seen.
    pub(crate) fn n_unknown(&self) -> u64 {
        self.n_lost + self.standing().n_hidden
    }

    /// Reads an ended child of this process for the last time and lets the caller wait for it. The child's counters are
    /// kept, because the wait adds them to this process's, which are not part of the tree.
    pub(crate) fn bury(&mut self, pid: u32, wait: impl FnOnce()) {
        let mut member = self.members.remove(&pid).unwrap_or_default();
        let is_read = self.reader.read(pid, &mut member) && !member.hidden;
        let faults = member.stat.minor_faults[1].saturating_sub(member.faults_settled);
        let parent = member.stat.parent;
        self.departed.insert(pid, Departed { parent, buried_faults: Some(faults), at_look: self.n_looks });
        if is_read {
            wait();
        } else {
            match handed::by_waiting(&self.reader.folder(self.root), wait) {
                Some(io) => member.io = io.with(member.io, u64::max),
                None => self.n_lost += 1,
            }
        }
        self.gone = self.gone.plus(member.counters());
        self.peak.n_processes = self.peak.n_processes.max(1);
    }

    /// Decides by its first known ancestor whether a process belongs to the tree.
    fn admit(&mut self, pid: u32) {
        let (mut line, mut at): (Vec<(u32, Stat)>, u32) = (Vec::new(), pid);
        let belongs = loop {
            if at == self.root || self.members.contains_key(&at) {
                break true;
            }
            if at <= 1 || self.outside.contains(&at) || line.iter().any(|(pid, _)| *pid == at) {
                break false;
            }
            match self.reader.stat(at) {
                Ok(stat) => {
                    line.push((at, stat));
                    at = stat.parent;
                }
                // It has already ended.
                Err(_) => return,
            }
        };
        if belongs {
            self.members.extend(line.into_iter().map(|(pid, stat)| (pid, Member::new(stat))));
        } else {
            self.outside.extend(line.into_iter().map(|(pid, _)| pid));
        }
    }

    /// Reads all members in order of their start, because a child never starts before its parent. Returns those that
    /// are gone.
    fn refresh(&mut self) -> BTreeMap<u32, Member> {
        let mut members: Vec<(u32, Member)> = std::mem::take(&mut self.members).into_iter().collect();
        members.sort_by_key(|(pid, member)| (member.stat.started, *pid));
        let mut vanished = BTreeMap::new();
        for (pid, mut member) in members {
            if self.reader.read(pid, &mut member) {
                self.members.insert(pid, member);
            } else {
                let (parent, at_look) = (member.stat.parent, self.n_looks);
                self.departed.insert(pid, Departed { parent, buried_faults: None, at_look });
                vanished.insert(pid, member);
            }
        }
        vanished
    }

    /// Keeps the last counters of processes that nobody waited for, which the kernel adds to no parent.
    fn settle(&mut self, vanished: &BTreeMap<u32, Member>) {
        let mut read_again = HashSet::new();
        for member in vanished.values() {
            let heir = self.heir_of(member.stat.parent);
            if read_again.insert(heir)
                && let Some(mut waiter) = self.members.remove(&heir)
            {
                // The child is gone for sure now, so the heir's counters include it if it was waited for.
                self.reader.read(heir, &mut waiter);
                self.members.insert(heir, waiter);
            }
            let mut kept = member.counters();
            if self.was_waited_for(heir, member) {
                // The kernel passes on everything but the delay.
                kept = Counters { delay_ticks: kept.delay_ticks, ..Counters::default() };
            } else if member.hidden {
                self.n_lost += 1;
            }
            self.gone = self.gone.plus(kept);
        }
    }

    /// The process that inherits the counters of a process that is gone: its nearest living ancestor.
    fn heir_of(&self, mut pid: u32) -> u32 {
        // Reused numbers could form a cycle.
        for _ in 0..self.departed.len() {
            match self.departed.get(&pid) {
                Some(Departed { parent, buried_faults: None, .. }) if !self.members.contains_key(&pid) => pid = *parent,
                _ => break,
            }
        }
        pid
    }

    /// Whether the faults of a process that is gone have been added to its heir.
    fn was_waited_for(&mut self, heir: u32, gone: &Member) -> bool {
        let faults = gone.stat.minor_faults[0] + gone.stat.minor_faults[1];
        if let Some(heir) = self.members.get_mut(&heir) {
            let enough = faults > 0 && heir.faults_settled + faults <= heir.stat.minor_faults[1];
            heir.faults_settled += if enough { faults } else { 0 };
            return enough;
        }
        let Some(left) = self.departed.get_mut(&heir).and_then(|heir| heir.buried_faults.as_mut()) else {
            return false;
        };
        let enough = faults > 0 && faults <= *left;
        *left -= if enough { faults } else { 0 };
        enough
    }

    fn standing(&self) -> Standing {
        let alive = || self.members.values().filter(|member| !member.stat.is_zombie);
        Standing {
            n_processes: alive().count() as u64,
            n_threads: alive().map(|member| member.stat.n_threads).sum(),
            rss_pages: alive().map(|member| member.stat.rss_pages).sum(),
            n_hidden: alive().filter(|member| member.works_unseen()).count() as u64,
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

        /// Writes a process: its parent, its faults and those of its children, and the bytes it wrote.
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
        assert_eq!(written(&mut tree), (101, 1), "the first one stays counted");
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
        assert_eq!(written(&mut tree), (137, 0), "including one that no tick has seen");
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
