//! What is left of a trace: the record, its page, and a summary on the terminal.

use std::ffi::OsString;
use std::path::Path;

use anyhow::Result;
use forebay_observe::{Followed, Totals};
use forebay_record::{AnyRecord, Record, Series, TraceCell};
use forebay_report::NamedRun;
use forebay_trace::{Collected, Facts, Head, add_job, cell, why_not_seen};
use forebay_units::{Bytes, PathText, escaped_words};

use super::folder::Folder;
use crate::output::{remark, replace};
use crate::terminal::Stream;
use crate::watch::status;

pub(super) fn finish(
    folder: &Folder,
    command: &[OsString],
    head: &Head,
    followed: Followed,
    collected: Collected,
    mut unseen: Vec<String>,
) -> Result<()> {
    folder.tidy();
    let Followed { status: ended, mut series, totals } = followed;
    for started in collected.tally.without_ring() {
        let said = why_not_seen(&started.path);
        if !unseen.contains(&said) {
            unseen.push(said);
        }
    }
    let job = escaped_words(command.iter().cloned()).join(" ");
    let mut facts = facts(job, &totals, &series, collected.kept_every);
    facts.status = Some(i64::from(status(ended)));
    facts.not_seen = unseen;
    let mut record = record(head, folder.out(), cell(&collected.tally, &facts));
    record.notes.extend(notes(&collected, &totals));
    add_job(&mut series, &collected.tally);
    record.series = Some(series);
    write(folder.out(), record)
}

/// The record of a trace with its machine.
pub(super) fn record(head: &Head, out: &Path, cell: TraceCell) -> Record<TraceCell> {
    let mut environment = forebay_measure::describe_environment(out, env!("CARGO_PKG_VERSION"));
    environment.started_at.clone_from(&head.started_at);
    let mut record = Record::new(head.command_line.clone(), environment);
    record.cells.push(cell);
    record
}

/// Writes record and page, and prints what they say.
fn write(out: &Path, record: Record<TraceCell>) -> Result<()> {
    let json = format!("{}\n", record.to_json());
    let run = NamedRun { name: out.escaped().into_owned(), record: AnyRecord::Trace(record) };
    // Print the result even if it cannot be saved.
    remark(&format!("\n{}", forebay_report::summary_within(&run, Stream::Stderr.width())));
    replace(&out.join("record.json"), json.as_bytes())?;
    let page = out.join("report.html");
    replace(&page, forebay_report::html(&[run]).as_bytes())?;
    remark(&format!("forebay: report: {}; more with `forebay report {}`", page.escaped(), out.escaped()));
    Ok(())
}

fn facts(job: String, totals: &Totals, series: &Series, kept_every: u32) -> Facts {
    // A process whose counts could not be read makes the sums a lower bound, which would look like a lack of bytes.
    let kernel = (totals.n_hidden == 0)
        .then_some([(totals.rchar_bytes, totals.read_bytes), (totals.wchar_bytes, totals.write_bytes)]);
    Facts {
        job,
        wall_s: totals.wall_s,
        n_cores: std::thread::available_parallelism().map_or(0, |n| n.get() as u64),
        memory_bytes: forebay_measure::memory().map(|bytes| bytes.0),
        cpu_s: Some(totals.user_s + totals.system_s),
        kernel,
        major_faults: Some(totals.major_faults),
        disk_busy: disk_busy(series),
        kept_every: u64::from(kept_every),
        ..Facts::default()
    }
}

/// Of the busiest disk, over the whole time.
fn disk_busy(series: &Series) -> Option<f64> {
    let time_s = series.time_s.last().copied().filter(|time| *time > 0.0)?;
    let disks = series
        .columns
        .iter()
        .filter(|column| column.name.starts_with("disk.") && column.name.ends_with(".util_percent"));
    disks.filter_map(|column| Some(series.total(&column.name)? / time_s / 100.0)).reduce(f64::max)
}

fn notes(collected: &Collected, totals: &Totals) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(error) = &collected.error {
        let n = Bytes(collected.n_bytes);
        notes.push(format!("The trace file ends after {n}: {error}. Totals and tables have all events."));
    }
    if collected.kept_every > 1 {
        notes.push(
            "The trace file reached its limit (--max-trace): its later part has only some calls. Totals have all."
                .to_owned(),
        );
    }
    if totals.n_left > 0 {
        notes.push(format!("{} processes were still running when the trace ended.", totals.n_left));
    }
    notes.extend(totals.io_delay_s.as_ref().err().map(|why| format!("Time blocked on I/O is not known: {why}.")));
    notes
}
