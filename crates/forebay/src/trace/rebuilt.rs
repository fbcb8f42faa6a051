//! The record of a trace whose tracer was killed, from its trace file.

use std::path::Path;

use anyhow::{Context, Result};
use forebay_record::{Record, TraceCell};
use forebay_trace::{Chunk, Facts, Head, Reader, Tally, cell, map_trace};
use forebay_units::{Bytes, PathText};

use super::folder::TRACE;
use super::result::record;

/// `None` if the folder has no trace file.
pub(crate) fn rebuilt(out: &Path) -> Option<Result<Record<TraceCell>>> {
    let path = out.join(TRACE);
    path.is_file().then(|| read(out, &path))
}

fn read(out: &Path, path: &Path) -> Result<Record<TraceCell>> {
    let cannot = || format!("cannot read {}", path.escaped());
    let bytes = map_trace(path).with_context(cannot)?;
    let mut reader = Reader::new(&bytes).with_context(cannot)?;
    let (mut head, mut tally, mut kept_every) = (Head::default(), Tally::default(), 1);
    let (mut first_ns, mut last_ns) = (0, 0);
    for chunk in reader.by_ref() {
        match chunk {
            Chunk::Head(found) => {
                tally = Tally::new(found.started_ns);
                first_ns = found.started_ns;
                head = found;
            }
            Chunk::Process(_, note) => drop(tally.process(note)),
            Chunk::Events { process, every, entries } => {
                kept_every = kept_every.max(every);
                for entry in entries {
                    if let forebay_trace::Entry::Event(event) = &entry {
                        last_ns = last_ns.max(event.end_ns());
                    }
                    tally.add(process, entry);
                }
            }
        }
    }
    let n_lost = bytes.len() - reader.at();
    let job = head.command_line.iter().skip_while(|word| *word != "--").skip(1).cloned().collect::<Vec<_>>().join(" ");
    let wall_s = f64::from(u32::try_from(last_ns.saturating_sub(first_ns) / 1_000_000).unwrap_or(u32::MAX)) / 1e3;
    let facts = Facts { job, wall_s, kept_every: u64::from(kept_every), ..Facts::default() };
    let mut record = record(&head, out, cell(&tally, &facts));
    record.notes.push(
        "The tracer did not finish: this record was made from the trace file, and later events are lost.".to_owned(),
    );
    if n_lost > 0 {
        record.notes.push(format!("The last {} of the trace file are incomplete.", Bytes(n_lost as u64)));
    }
    if kept_every > 1 {
        record.notes.push("The later part of the trace file has only some calls, so sums are too small.".to_owned());
    }
    Ok(record)
}
