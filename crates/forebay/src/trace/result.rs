//! What is left of a trace: the record, its page, and a summary on the terminal.

use std::ffi::OsString;
use std::path::Path;

use anyhow::Result;
use forebay_observe::{Followed, Totals};
use forebay_record::{AnyRecord, Column, Disturbed, Record, Series, TraceCell};
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
    (mut unseen, disturbed): (Vec<String>, Option<Disturbed>),
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
    let busy = disk_busy(&series, collected.tally.loop_span_s());
    let mut facts = Facts { disk_busy: busy, ..facts(job, &totals, collected.kept_every) };
    facts.status = Some(i64::from(status(ended)));
    facts.not_seen = unseen;
    let mut record = record(head, folder.out(), cell(&collected.tally, &facts));
    record.notes.extend(disturbed.as_ref().map(doubt));
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
    let notes = record.notes.clone();
    let run = NamedRun { name: out.escaped().into_owned(), record: AnyRecord::Trace(record) };
    // Print the result even if it cannot be saved.
    remark(&format!("\n{}", forebay_report::summary_within(&run, Stream::Stderr.width())));
    notes.iter().for_each(|note| remark(&format!("  note: {note}")));
    replace(&out.join("record.json"), json.as_bytes())?;
    let page = out.join("report.html");
    replace(&page, forebay_report::html(&[run]).as_bytes())?;
    remark(&format!("forebay: report: {}; more with `forebay report {}`", page.escaped(), out.escaped()));
    Ok(())
}

fn facts(job: String, totals: &Totals, kept_every: u32) -> Facts {
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
        kept_every: u64::from(kept_every),
        ..Facts::default()
    }
}

/// Of the busiest disk, over the rows in which the loop ran; over all rows where there was none.
fn disk_busy(series: &Series, span_s: Option<(f64, f64)>) -> Option<f64> {
    let (from, to) = span_s.unwrap_or((0.0, f64::INFINITY));
    let starts = std::iter::once(0.0).chain(series.time_s.iter().copied());
    let weights: Vec<f64> =
        starts.zip(&series.time_s).map(|(start, end)| (end.min(to) - start.max(from)).max(0.0)).collect();
    let whole: f64 = weights.iter().sum();
    let of_disk = |column: &&Column| column.name.starts_with("disk.") && column.name.ends_with(".util_percent");
    let share = |column: &Column| {
        let parts = column.values.iter().zip(&weights).filter_map(|(value, weight)| Some((*value)? * weight));
        parts.sum::<f64>() / whole / 100.0
    };
    series.columns.iter().filter(of_disk).map(share).filter(|share| share.is_finite()).reduce(f64::max)
}

fn doubt(disturbed: &Disturbed) -> String {
    format!("During the job, {}: it may wait less, or for something else, on a quiet machine.", disturbed.cause())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_as_busy_as_it_was_while_the_loop_ran() {
        let column = |name: &str, values: &[f64]| Column {
            name: name.to_owned(),
            values: values.iter().copied().map(Some).collect(),
        };
        let columns =
            vec![column("disk.vda.util_percent", &[0.0, 100.0, 50.0]), column("disk.vdb.util_percent", &[10.0; 3])];
        let series = Series { time_s: vec![1.0, 2.0, 4.0], columns, ..Series::default() };
        assert_eq!(disk_busy(&series, None), Some(0.5));
        assert_eq!(disk_busy(&series, Some((1.5, 2.5))), Some(0.75));
        assert_eq!(disk_busy(&series, Some((0.0, 1.0))), Some(0.1), "the other one");
        assert_eq!(disk_busy(&series, Some((5.0, 6.0))), None, "no row");
    }
}
