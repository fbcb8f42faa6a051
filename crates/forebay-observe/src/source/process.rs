//! `/proc/PID/stat` and `/proc/PID/io`: counters of one process.
//!
//! Both include children that have been waited for: times and faults in separate columns, the I/O within the process's
//! own counters (found by experiment on Linux 6.18; in the kernel's source since 2.6.20). A child whose parent ignores
//! `SIGCHLD` is counted nowhere.

use crate::source::field;

/// `/proc/PID/io`: bytes and calls, including children that were waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Io {
    /// Bytes returned by `read` and similar calls, also from the page cache, pipes and terminals.
    pub rchar: u64,
    /// Bytes accepted by `write` and similar calls.
    pub wchar: u64,
    pub read_calls: u64,
    pub write_calls: u64,
    /// Bytes read from block devices.
    pub read_bytes: u64,
    /// Bytes written, or to be written, to block devices.
    pub write_bytes: u64,
}

impl Io {
    /// Combines two of them counter by counter.
    pub(crate) fn with(self, other: Self, f: fn(u64, u64) -> u64) -> Self {
        Self {
            rchar: f(self.rchar, other.rchar),
            wchar: f(self.wchar, other.wchar),
            read_calls: f(self.read_calls, other.read_calls),
            write_calls: f(self.write_calls, other.write_calls),
            read_bytes: f(self.read_bytes, other.read_bytes),
            write_bytes: f(self.write_bytes, other.write_bytes),
        }
    }
}

pub fn parse_io(text: &str) -> Option<Io> {
    Some(Io {
        rchar: field(text, "rchar")?,
        wchar: field(text, "wchar")?,
        read_calls: field(text, "syscr")?,
        write_calls: field(text, "syscw")?,
        read_bytes: field(text, "read_bytes")?,
        write_bytes: field(text, "write_bytes")?,
    })
}

/// `/proc/PID/stat`: identity, times and faults of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stat {
    pub parent: u32,
    /// Whether it has ended and has not been waited for.
    pub is_zombie: bool,
    /// Faults without I/O: its own, and those of children it waited for.
    pub minor_faults: [u64; 2],
    pub major_faults: [u64; 2],
    /// CPU time in user mode in clock ticks, likewise.
    pub user_ticks: [u64; 2],
    /// CPU time in the kernel in clock ticks, likewise.
    pub system_ticks: [u64; 2],
    pub n_threads: u64,
    /// Start time in clock ticks since boot; distinguishes it from other processes with the same number.
    pub started: u64,
    pub rss_pages: u64,
    /// Time that this thread waited for block I/O, in clock ticks; since Linux 2.6.18. For a process, only that of its
    /// first thread.
    pub delay_ticks: Option<u64>,
}

/// Reads `/proc/PID/stat`. The name may contain spaces and brackets; only numbers follow its last bracket.
pub fn parse_stat(text: &str) -> Option<Stat> {
    let mut words = text.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = words.next()?;
    // The manual numbers fields from 1; the parent is the fourth.
    let fields: Vec<i64> = words.map_while(|word| word.parse::<i128>().ok()).map(|n| n as i64).collect();
    let at = |number: usize| fields.get(number - 4).map(|value| (*value).max(0) as u64);
    let both = |number: usize, of_children: usize| Some([at(number)?, at(of_children)?]);
    Some(Stat {
        parent: u32::try_from(at(4)?).ok()?,
        is_zombie: state == "Z",
        minor_faults: both(10, 11)?,
        major_faults: both(12, 13)?,
        user_ticks: both(14, 16)?,
        system_ticks: both(15, 17)?,
        n_threads: at(20)?,
        started: at(22)?,
        rss_pages: at(24)?,
        delay_ticks: at(42),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn io_has_six_of_its_seven_lines_read() {
        let text = "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\ncancelled_write_bytes: 7\n";
        let io = Io { rchar: 1, wchar: 2, read_calls: 3, write_calls: 4, read_bytes: 5, write_bytes: 6 };
        assert_eq!(parse_io(text), Some(io));
        assert_eq!(parse_io("rchar: 1\n"), None);
        assert_eq!(parse_io(""), None);
    }

    #[test]
    fn a_name_may_hold_brackets_and_spaces() {
        let text = "42 (a) b (c) R 7 42 42 34816 42 4194304 100 200 3 4 50 60 70 80 20 0 5 0 9999 1000 250 \
            18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 33 0 0 0 0 0 0 0 0 0 0\n";
        let stat = parse_stat(text).unwrap();
        let expected = Stat {
            parent: 7,
            is_zombie: false,
            minor_faults: [100, 200],
            major_faults: [3, 4],
            user_ticks: [50, 70],
            system_ticks: [60, 80],
            n_threads: 5,
            started: 9_999,
            rss_pages: 250,
            delay_ticks: Some(33),
        };
        assert_eq!(stat, expected);
    }

    #[test]
    fn an_old_kernel_counts_no_delay() {
        let text = "1 (init) Z 0 1 1 0 -1 4 1 2 3 4 5 6 7 8 15 0 1 0 9 10 11 12\n";
        let stat = parse_stat(text).unwrap();
        assert_eq!((stat.parent, stat.is_zombie, stat.delay_ticks, stat.rss_pages), (0, true, None, 11));
        assert_eq!(parse_stat("1 (init) S 0 1\n"), None);
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn this_process_is_read() {
        let stat = parse_stat(&std::fs::read_to_string("/proc/self/stat").unwrap()).unwrap();
        assert_eq!(stat.parent, std::os::unix::process::parent_id());
        assert!(stat.rss_pages > 0 && stat.n_threads > 0);
    }
}
