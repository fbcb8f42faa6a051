//! The totals of a command, for people.

use std::fmt::Write;
use std::process::Command;

use forebay_observe::{Followed, Totals};
use forebay_record::Series;
use forebay_units::{Bytes, PathText, count, format_seconds, group_digits};

use super::table::busy_percent;

/// The lines after the last row, without a final line end.
pub(super) fn text(command: &Command, followed: &Followed) -> String {
    let (totals, series) = (&followed.totals, &followed.series);
    let mut text = format!("\n{} ended after {}: {}\n", name(command), format_seconds(totals.wall_s), followed.status);
    let mut line =
        |name: &str, value: String| writeln!(text, "  {name:<13}{value}").expect("writing to a string succeeds");
    line("processor", processor(totals));
    line("read", bytes(totals, totals.rchar_bytes, "read calls", totals.read_bytes, "from disks"));
    line("written", bytes(totals, totals.wchar_bytes, "write calls", totals.write_bytes, "to disks"));
    line("major faults", group_digits(totals.major_faults));
    line("memory", format!("at most {}", Bytes(totals.peak_rss_bytes)));
    line("I/O delay", delay(totals));
    line("processes", processes(totals));
    for disk in disks(series) {
        line(&format!("disk {disk}"), disk_totals(series, disk));
    }
    let n_late = (0..series.time_s.len()).filter(|row| series.is_late(*row)).count();
    if n_late > 0 {
        line("late", format!("{n_late} of {}", count(series.time_s.len() as u64, "row")));
    }
    for note in &series.notes {
        line("note", note.clone());
    }
    text.truncate(text.trim_end().len());
    text
}

fn name(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.escaped()).collect::<Vec<_>>().join(" ")
}

fn processor(totals: &Totals) -> String {
    let (user, system) = (totals.user_s, totals.system_s);
    let cores = (user + system) / totals.wall_s;
    format!("{} user, {} system: {cores:.2} cores", format_seconds(user), format_seconds(system))
}

fn bytes(totals: &Totals, by_calls: u64, calls: &str, by_disks: u64, disks: &str) -> String {
    let at_least = if totals.n_hidden > 0 { "at least " } else { "" };
    format!("{at_least}{} by {calls}, {at_least}{} {disks}", Bytes(by_calls), Bytes(by_disks))
}

fn delay(totals: &Totals) -> String {
    match totals.io_delay_s {
        Ok(seconds) => format!("{} over all threads", format_seconds(seconds)),
        Err(why) => format!("– ({why})"),
    }
}

fn processes(totals: &Totals) -> String {
    let mut text = format!("at most {}", group_digits(totals.n_processes));
    if totals.n_threads > 0 {
        text.push_str(&format!(" with {}", count(totals.n_threads, "thread")));
    }
    if totals.n_hidden > 0 {
        text.push_str(&format!("; the I/O of {} is not counted: no permission to read it", totals.n_hidden));
    }
    if totals.n_left > 0 {
        text.push_str(&format!("; {} still running", totals.n_left));
    }
    text
}

fn disks(series: &Series) -> impl Iterator<Item = &str> {
    let disks =
        series.columns.iter().filter_map(|column| column.name.strip_prefix("disk.")?.strip_suffix(".ios_per_s"));
    disks.filter(|disk| series.total(&format!("disk.{disk}.ios_per_s")).is_some_and(|requests| requests > 0.5))
}

/// Totals of the whole machine: disks do not count per process.
fn disk_totals(series: &Series, disk: &str) -> String {
    let total = |quantity: &str| series.total(&format!("disk.{disk}.{quantity}"));
    let some = |quantity: &str| total(quantity).unwrap_or(0.0).round() as u64;
    let time_s = series.time_s.last().copied().unwrap_or(0.0);
    let busy = busy_percent(total("util_percent").map(|percents| percents / time_s), time_s);
    let shown = |value: Option<f64>, digits: usize| value.map_or("–".to_owned(), |value| format!("{value:.digits$}"));
    format!(
        "{} read in {}, {} written in {}; await {} ms, queue {}, busy {} % (whole machine)",
        Bytes(some("read_bytes_per_s")),
        count(some("reads_per_s"), "request"),
        Bytes(some("write_bytes_per_s")),
        count(some("writes_per_s"), "request"),
        shown(mean_wait_ms(series, disk), 2),
        shown(total("queue_mean").map(|sum| sum / time_s), 2),
        shown(busy, 0)
    )
}

fn mean_wait_ms(series: &Series, disk: &str) -> Option<f64> {
    let of = |quantity: &str| series.values(&format!("disk.{disk}.{quantity}"));
    let (waits, rates) = (of("await_ms")?, of("ios_per_s")?);
    let rows = (0..series.time_s.len()).filter_map(|row| {
        let requests = rates[row]? * series.span_s(row)?;
        Some((waits[row]? * requests, requests))
    });
    let (sum, requests) = rows.fold((0.0, 0.0), |(sum, all), (wait, requests)| (sum + wait, all + requests));
    (requests > 0.0).then(|| sum / requests)
}
