//! The table for people: one line per row, with the header repeated on every screen.

use std::fmt::Write;
use std::time::Duration;

use forebay_record::Row;

struct Column {
    name: &'static str,
    unit: &'static str,
    width: usize,
    show: fn(&Shown<'_>) -> String,
}

const fn column(name: &'static str, unit: &'static str, width: usize, show: fn(&Shown<'_>) -> String) -> Column {
    Column { name, unit, width, show }
}

/// Columns that are omitted on a narrow terminal, in this order. CSV has all.
const SPARE: [&str; 11] = ["aqu-sz", "idl", "send", "cache", "used", "recv", "procs", "await", "psi-io", "rss", "gpu0"];

/// `!` after the time marks a late row.
const MACHINE: [Column; 17] = [
    column("time", "s", 9, |s| format!("{:.*}{}", s.time_digits, s.row.time_s, if s.is_late { '!' } else { ' ' })),
    column("usr", "%", 4, |s| whole(s.row.get("cpu.user_percent"))),
    column("sys", "%", 3, |s| whole(s.row.get("cpu.system_percent"))),
    column("iow", "%", 3, |s| whole(s.row.get("cpu.iowait_percent"))),
    column("idl", "%", 3, |s| whole(s.row.get("cpu.idle_percent"))),
    column("disk", "", 8, |s| s.disk.unwrap_or("–").to_owned()),
    column("read", "MB/s", 7, |s| mega(s.of_disk("read_bytes_per_s"))),
    column("write", "MB/s", 7, |s| mega(s.of_disk("write_bytes_per_s"))),
    column("IOPS", "", 7, |s| whole(s.of_disk("ios_per_s"))),
    column("await", "ms", 7, |s| tenths(s.of_disk("await_ms"))),
    column("aqu-sz", "", 6, |s| tenths(s.of_disk("queue_mean"))),
    column("util", "%", 4, |s| whole(busy_percent(s.of_disk("util_percent"), s.span_s))),
    column("used", "GB", 6, |s| giga(s.row.get("memory.used_bytes"))),
    column("cache", "GB", 6, |s| giga(s.row.get("memory.page_cache_bytes"))),
    column("psi-io", "%", 6, |s| whole(s.row.get("psi.io.some_percent"))),
    column("recv", "MB/s", 7, |s| mega(s.network("rx_bytes_per_s"))),
    column("send", "MB/s", 7, |s| mega(s.network("tx_bytes_per_s"))),
];
/// Columns of a followed command.
const COMMAND: [Column; 2] = [
    column("procs", "", 5, |s| whole(s.row.get("process.processes"))),
    column("rss", "GB", 6, |s| giga(s.row.get("process.rss_bytes"))),
];
const GPU: [Column; 1] = [column("gpu0", "%", 4, |s| whole(s.row.get("gpu.0.util_percent")))];

/// A row, and what else the columns need.
struct Shown<'a> {
    row: &'a Row<'a>,
    is_late: bool,
    time_digits: usize,
    span_s: f64,
    disk: Option<&'a str>,
}

impl Shown<'_> {
    fn of_disk(&self, quantity: &str) -> Option<f64> {
        self.row.get(&format!("disk.{}.{quantity}", self.disk?))
    }

    /// The sum over all interfaces except loopback.
    fn network(&self, quantity: &str) -> Option<f64> {
        let of = |name: &str| {
            let interface = name.strip_prefix("net.")?.strip_suffix(quantity)?.strip_suffix('.')?;
            if interface == "lo" { None } else { self.row.get(name) }
        };
        self.row.names.iter().filter_map(|name| of(name)).reduce(|sum, rate| sum + rate)
    }
}

pub(super) struct Table {
    height: Option<usize>,
    width: usize,
    of_command: bool,
    /// Rows later than this are marked.
    late_s: f64,
    n_rows: usize,
    last_disk: Option<String>,
    last_time_s: f64,
}

impl Table {
    /// For a terminal with these lines and columns; without lines, the header is printed once.
    pub(super) fn new(height: Option<usize>, width: usize, of_command: bool, interval: Duration) -> Self {
        Self {
            height,
            width,
            of_command,
            late_s: interval.as_secs_f64() / 2.0,
            n_rows: 0,
            last_disk: None,
            last_time_s: 0.0,
        }
    }

    pub(super) fn row(&mut self, row: &Row<'_>) -> String {
        let has_gpu = row.names.iter().any(|name| name.starts_with("gpu."));
        let of_command: &[Column] = if self.of_command { &COMMAND } else { &[] };
        let of_gpu: &[Column] = if has_gpu { &GPU } else { &[] };
        let columns = fitting(MACHINE.iter().chain(of_command).chain(of_gpu).collect(), self.width);
        let columns = || columns.iter();
        let mut text = String::new();
        if self.header_is_due() {
            push_line(&mut text, columns().map(|column| (column.name.to_owned(), column.width)));
            push_line(&mut text, columns().map(|column| (column.unit.to_owned(), column.width)));
        }
        let disk = busiest(row, self.last_disk.as_deref());
        self.last_disk = disk.map(str::to_owned);
        let span_s = row.time_s - std::mem::replace(&mut self.last_time_s, row.time_s);
        let time_digits = if self.late_s < 0.05 { 2 } else { 1 };
        let shown = Shown { row, is_late: row.late_s > self.late_s, time_digits, span_s, disk };
        push_line(&mut text, columns().map(|column| ((column.show)(&shown), column.width)));
        self.n_rows += 1;
        text
    }

    fn header_is_due(&self) -> bool {
        match self.height {
            // The header takes two lines of the screen.
            Some(height) => self.n_rows.is_multiple_of(height.saturating_sub(3).max(5)),
            None => self.n_rows == 0,
        }
    }
}

/// The columns that a line has space for.
fn fitting(mut columns: Vec<&Column>, width: usize) -> Vec<&Column> {
    // A space precedes each column but the first.
    let taken = |columns: &[&Column]| columns.iter().map(|column| column.width + 1).sum::<usize>() - 1;
    for spare in SPARE {
        if taken(&columns) > width {
            columns.retain(|column| column.name != spare);
        }
    }
    columns
}

/// The busiest disk; while all are idle, the one that was busy last.
fn busiest<'a>(row: &Row<'a>, last: Option<&str>) -> Option<&'a str> {
    let disks = row.names.iter().zip(row.values).filter_map(|(name, util)| {
        let disk = name.strip_prefix("disk.")?.strip_suffix(".util_percent")?;
        let util = util.filter(|util| *util > 0.0).unwrap_or(if last == Some(disk) { 0.0 } else { -1.0 });
        Some((disk, util))
    });
    disks.reduce(|best, next| if next.1 > best.1 { next } else { best }).map(|(disk, _)| disk)
}

fn push_line(text: &mut String, cells: impl Iterator<Item = (String, usize)>) {
    let start = text.len();
    for (cell, width) in cells {
        write!(text, "{cell:>width$} ").expect("writing to a string succeeds");
    }
    text.truncate(start + text[start..].trim_end().len());
    text.push('\n');
}

/// The fraction of a time in which a disk was busy. The kernel counts clock ticks of up to 10 ms: below 100 ms the value says
/// little and is not shown; above, it may exceed 100 % by some ticks and is shown as counted.
pub(super) fn busy_percent(counted: Option<f64>, span_s: f64) -> Option<f64> {
    // Rounding may make an interval slightly too short.
    counted.filter(|_| span_s > 0.0995)
}

fn or_dash(value: Option<f64>, show: impl FnOnce(f64) -> String) -> String {
    value.map_or_else(|| "–".to_owned(), show)
}

fn whole(value: Option<f64>) -> String {
    or_dash(value, |value| format!("{value:.0}"))
}

fn tenths(value: Option<f64>) -> String {
    or_dash(value, |value| format!("{value:.1}"))
}

fn mega(bytes: Option<f64>) -> String {
    tenths(bytes.map(|bytes| bytes * 1e-6))
}

fn giga(bytes: Option<f64>) -> String {
    or_dash(bytes, |bytes| format!("{:.2}", bytes * 1e-9))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 13] = [
        "cpu.user_percent",
        "cpu.system_percent",
        "cpu.iowait_percent",
        "cpu.idle_percent",
        "disk.sda.ios_per_s",
        "disk.sda.util_percent",
        "disk.vdb.read_bytes_per_s",
        "disk.vdb.ios_per_s",
        "disk.vdb.await_ms",
        "disk.vdb.util_percent",
        "net.lo.rx_bytes_per_s",
        "net.eth0.rx_bytes_per_s",
        "net.eth1.rx_bytes_per_s",
    ];

    fn line(table: &mut Table, late_s: f64) -> String {
        let names = NAMES.map(str::to_owned);
        let values = [12.4, 3.0, 0.0, 84.6, 5.0, 1.0, 123_400_000.0, 941.0, 0.86, 73.0, 9e9, 1e6, 2e6].map(Some);
        table.row(&Row { time_s: 2.0, late_s, marks: &[], names: &names, values: &values })
    }

    #[test]
    fn the_busiest_disk_is_named_and_what_is_unknown_is_a_dash() {
        let mut table = Table::new(None, 120, false, Duration::from_secs(1));
        let expected = [
            "     time  usr sys iow idl     disk    read   write    IOPS   await aqu-sz util",
            "   used  cache psi-io    recv    send\n",
            "        s    %   %   %   %             MB/s    MB/s              ms           %",
            "     GB     GB      %    MB/s    MB/s\n",
            "     2.0    12   3   0  85      vdb   123.4       –     941     0.9      –   73",
            "      –      –      –     3.0       –\n",
        ];
        assert_eq!(line(&mut table, 0.4), expected.concat());
        assert!(line(&mut table, 0.51).starts_with("     2.0!   12 "), "late, and no header again");
    }

    #[test]
    fn a_narrow_terminal_has_fewer_columns() {
        for (width, of_command) in [(60, false), (60, true), (80, false), (80, true), (120, true)] {
            let text = line(&mut Table::new(None, width, of_command, Duration::from_secs(1)), 0.0);
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}\n{text}");
            assert!(
                ["time", "usr", "disk", "read", "write", "IOPS", "util"].iter().all(|name| text.contains(name)),
                "{text}"
            );
        }
        let text = line(&mut Table::new(None, 80, true, Duration::from_secs(1)), 0.0);
        assert!(text.contains("psi-io") && text.contains("rss") && !text.contains("recv"), "{text}");
    }

    #[test]
    fn busy_time_is_unknown_in_short_rows_and_otherwise_as_it_was_counted() {
        assert_eq!(busy_percent(Some(120.0), 0.01), None);
        assert_eq!(busy_percent(Some(104.0), 0.1), Some(104.0));
        assert_eq!((busy_percent(Some(30.0), 1.0), busy_percent(None, 1.0)), (Some(30.0), None));
        let names = ["disk.vda.util_percent".to_owned()];
        let mut table = Table::new(None, 120, false, Duration::from_millis(10));
        let mut util = |time_s: f64| {
            let text = table.row(&Row { time_s, late_s: 0.0, marks: &[], names: &names, values: &[Some(120.0)] });
            text.lines().last().unwrap().split_whitespace().nth(11).unwrap().to_owned()
        };
        assert_eq!([util(0.01), util(0.02), util(0.22)], ["–", "–", "120"]);
    }

    #[test]
    fn while_all_disks_are_idle_the_last_busy_one_stays() {
        let names = ["disk.loop0.util_percent".to_owned(), "disk.vda.util_percent".to_owned()];
        let mut table = Table::new(None, 120, false, Duration::from_secs(1));
        let mut disk = |values: [f64; 2]| {
            let values = values.map(Some);
            let text = table.row(&Row { time_s: 1.0, late_s: 0.0, marks: &[], names: &names, values: &values });
            text.lines().last().unwrap().split_whitespace().nth(5).unwrap().to_owned()
        };
        assert_eq!(disk([0.0, 0.0]), "loop0");
        assert_eq!(disk([1.0, 2.0]), "vda");
        assert_eq!(disk([0.0, 0.0]), "vda");
    }

    #[test]
    fn a_terminal_has_the_header_at_every_screenful() {
        let mut table = Table::new(Some(10), 130, true, Duration::from_secs(1));
        let headers: Vec<usize> = (0..16).filter(|_| line(&mut table, 0.0).contains("procs")).collect();
        assert_eq!(headers, [0, 7, 14]);
    }
}
