//! Live progress of a study on stderr: a bar for people, a line a cell for logs.

use forebay_record::{Step, StudyCell};
use forebay_report::visible;
use forebay_study::{At, Event};
use forebay_units::{count, format_seconds};

use super::about;
use crate::live::{Display, grouped};
use crate::output::remark;

/// Shows how a study goes on a terminal, or in lines.
pub(super) fn show(display: Option<&Display>, event: Event<'_>) {
    match (event, display) {
        (Event::Started { cell, at }, Some(display)) => {
            display.begin_cell(&visible(&cell.id));
            display.show_cells(at.n_done, at.n_cells, left(at));
        }
        (Event::Within(event), Some(display)) => display.show(event),
        (Event::Finished { cell, at }, Some(display)) => {
            display.show_cells(at.n_done, at.n_cells, left(at));
            if !cell.is_measured() {
                display.say(&line(cell, at));
            }
        }
        (Event::Finished { cell, at }, None) => remark(&line(cell, at)),
        (Event::Started { .. } | Event::Within(_), None) => {}
    }
}

/// A finished cell in a line: "[ 3/36] ingest/tier=hdd: 115 images/s, 14.2 MB/s; 4.21 s; about 2 min 5 s left".
fn line(cell: &StudyCell, at: At) -> String {
    let width = at.n_cells.to_string().len();
    let (done, all, id) = (at.n_done, at.n_cells, visible(&cell.id));
    let took = format_seconds(cell.elapsed_s);
    format!("[{done:>width$}/{all}] {id}: {}; {took}; {}", visible(&said(cell)), left(at))
}

fn said(cell: &StudyCell) -> String {
    if let Some(reason) = &cell.left_out {
        return format!("left out: {reason}");
    }
    if let Some(error) = &cell.error {
        return format!("failed: {error}");
    }
    if let Some(found) = &cell.inspection {
        return format!("{}, {}", count(found.n_samples, "sample"), found.total_bytes);
    }
    let metrics: &[(&str, &str)] = match cell.step {
        Step::Train => &[
            ("wall_s", "s"),
            ("images_per_s", "images/s"),
            ("wait_s", "s waiting"),
            ("stall_s", "a checkpoint"),
            ("drain_after_s", "draining after"),
        ],
        Step::Checkpoint => &[("stall_s", "stalled"), ("save_mb_per_s", "MB/s durable"), ("restore_s", "to restore")],
        Step::Inspect => &[],
        Step::Workload => &[("au_epoch", "% AU"), ("samples_per_s", "samples/s"), ("mb_per_s_moved", "MB/s")],
        Step::Ingest => &[("images_per_s", "images/s"), ("mb_per_s", "MB/s")],
        Step::Probe => &[
            ("read_mb_per_s", "MB/s read"),
            ("write_mb_per_s", "MB/s written"),
            ("random_iops", "random reads/s"),
            ("files_per_s", "files/s"),
        ],
    };
    let one = |(name, unit): &(&str, &str)| {
        let value = cell.metric(name)?.value;
        Some(match *name {
            // What is written directly is not drained, however long the end of it takes.
            "drain_after_s" if is_direct(cell) => return None,
            "stall_s" | "drain_after_s" | "restore_s" => format!("{} {unit}", format_seconds(value)),
            _ => format!("{} {unit}", grouped(value)),
        })
    };
    metrics.iter().filter_map(one).collect::<Vec<_>>().join(", ")
}

/// Whether the cell trained, and waited for its checkpoints until they were where they belong.
fn is_direct(cell: &StudyCell) -> bool {
    let saved = cell.train.as_ref().and_then(|train| train.checkpoints.as_ref());
    saved.is_some_and(|saved| saved.mode == "direct")
}

fn left(at: At) -> String {
    match at.left_s {
        _ if at.n_done == at.n_cells => "all done".to_owned(),
        Some(seconds) => format!("about {} left", about(seconds)),
        None => format!("{} left", count((at.n_cells - at.n_done) as u64, "cell")),
    }
}
