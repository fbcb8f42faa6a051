//! Total counters and current state of a set of processes.

use crate::delay::DelayCount;
use crate::sheet::Sheet;
use crate::source::process::Io;
use crate::source::{growth, ratio};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counters {
    pub(crate) io: Io,
    pub(crate) user_ticks: u64,
    pub(crate) system_ticks: u64,
    /// Page faults that had to wait for I/O.
    pub(crate) major_faults: u64,
    /// Time that threads waited for block I/O, in clock ticks; zero if the kernel does not count it.
    pub(crate) delay_ticks: u64,
}

/// A set of processes at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Standing {
    pub(crate) n_processes: u64,
    pub(crate) n_threads: u64,
    /// Resident memory in pages; a shared page counts once per process.
    pub(crate) rss_pages: u64,
    /// Processes whose I/O is unreadable because they run as another user. It becomes known when they are waited for.
    pub(crate) n_hidden: u64,
}

impl Counters {
    pub(crate) fn plus(self, other: Self) -> Self {
        self.with(other, u64::saturating_add)
    }

    /// The greater value of each counter: a sum of counters that only grow cannot decrease.
    pub(crate) fn or_greater(self, other: Self) -> Self {
        self.with(other, u64::max)
    }

    pub(crate) fn less_io(self, io: Io) -> Self {
        self.with(Self { io, ..Self::default() }, u64::saturating_sub)
    }

    fn with(self, other: Self, f: fn(u64, u64) -> u64) -> Self {
        Self {
            io: self.io.with(other.io, f),
            user_ticks: f(self.user_ticks, other.user_ticks),
            system_ticks: f(self.system_ticks, other.system_ticks),
            major_faults: f(self.major_faults, other.major_faults),
            delay_ticks: f(self.delay_ticks, other.delay_ticks),
        }
    }
}

impl Standing {
    pub(crate) fn or_greater(self, other: Self) -> Self {
        Self {
            n_processes: self.n_processes.max(other.n_processes),
            n_threads: self.n_threads.max(other.n_threads),
            rss_pages: self.rss_pages.max(other.rss_pages),
            n_hidden: self.n_hidden.max(other.n_hidden),
        }
    }
}

/// Factors from the kernel's ticks and pages to seconds and bytes; both depend on the machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Units {
    pub(crate) page_bytes: f64,
    pub(crate) ticks_per_s: f64,
}

impl Units {
    pub(crate) fn here() -> Self {
        // SAFETY: plain numbers in and out.
        let ask = |name| unsafe { libc::sysconf(name) } as f64;
        Self { page_bytes: ask(libc::_SC_PAGESIZE), ticks_per_s: ask(libc::_SC_CLK_TCK) }
    }
}

/// A process tree at a tick.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TreeReading {
    pub(crate) counters: Counters,
    pub(crate) standing: Standing,
    pub(crate) delay: DelayCount,
}

/// Adds the columns of a tree. CPU time is in percent of one core. The tree's I/O is unknown while the I/O of one of
/// its processes is unreadable.
pub(crate) fn put(sheet: &mut Sheet, before: &TreeReading, after: &TreeReading, span_s: f64, units: Units) {
    let rate = |of: fn(&Counters) -> u64| ratio(growth(of(&before.counters), of(&after.counters)), Some(span_s));
    let percent = |of| rate(of).map(|ticks| 100.0 * ticks / units.ticks_per_s);
    let io = |of| rate(of).filter(|_| after.standing.n_hidden == 0);
    sheet.put("process", "rchar_bytes_per_s", io(|c| c.io.rchar));
    sheet.put("process", "wchar_bytes_per_s", io(|c| c.io.wchar));
    sheet.put("process", "read_calls_per_s", io(|c| c.io.read_calls));
    sheet.put("process", "write_calls_per_s", io(|c| c.io.write_calls));
    sheet.put("process", "read_bytes_per_s", io(|c| c.io.read_bytes));
    sheet.put("process", "write_bytes_per_s", io(|c| c.io.write_bytes));
    sheet.put("process", "user_percent", percent(|c| c.user_ticks));
    sheet.put("process", "system_percent", percent(|c| c.system_ticks));
    sheet.put("process", "major_faults_per_s", rate(|c| c.major_faults));
    let known = after.delay.check(after.counters.delay_ticks).is_ok();
    sheet.put("process", "io_delay_percent", percent(|c| c.delay_ticks).filter(|_| known));
    sheet.put("process", "rss_bytes", Some(after.standing.rss_pages as f64 * units.page_bytes));
    sheet.put("process", "processes", Some(after.standing.n_processes as f64));
    sheet.put("process", "threads", Some(after.standing.n_threads as f64));
    sheet.put("process", "hidden_processes", Some(after.standing.n_hidden as f64));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn io_delay(delay: DelayCount) -> Option<f64> {
        let counters = Counters { delay_ticks: 50, ..Counters::default() };
        let after = TreeReading { counters, delay, ..TreeReading::default() };
        let mut sheet = Sheet::default();
        let units = Units { page_bytes: 4096.0, ticks_per_s: 100.0 };
        put(&mut sheet, &TreeReading::default(), &after, 2.0, units);
        sheet.values()[sheet.names().iter().position(|name| name == "process.io_delay_percent").unwrap()]
    }

    #[test]
    fn the_io_of_a_tree_with_a_process_that_cannot_be_read_is_unknown_and_not_zero() {
        let written = |n_hidden| {
            let standing = Standing { n_hidden, ..Standing::default() };
            let after = TreeReading { standing, ..TreeReading::default() };
            let mut sheet = Sheet::default();
            let units = Units { page_bytes: 4096.0, ticks_per_s: 100.0 };
            put(&mut sheet, &TreeReading::default(), &after, 1.0, units);
            sheet.values()[sheet.names().iter().position(|name| name == "process.write_bytes_per_s").unwrap()]
        };
        assert_eq!((written(0), written(1)), (Some(0.0), None));
    }

    #[test]
    fn a_delay_that_is_not_counted_is_unknown_and_not_zero() {
        assert_eq!(io_delay(DelayCount::On), Some(25.0));
        assert_eq!(io_delay(DelayCount::Off), None);
        assert_eq!(io_delay(DelayCount::Wrong), None);
    }
}
