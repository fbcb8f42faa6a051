//! Live progress of a study on stderr: a bar on a terminal, one line per cell in logs.

use forebay_record::StudyCell;
use forebay_report::visible;
use forebay_study::{At, Event};
use forebay_units::{count, format_seconds};

use super::about;
use crate::live::Display;
use crate::output::remark;

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

/// A finished cell as one line: "[ 3/36] ingest/tier=hdd: 115 images/s, 14.2 MB/s; 4.21 s; about 2 min 5 s left".
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
    forebay_report::in_brief(cell)
}

fn left(at: At) -> String {
    match at.left_s {
        _ if at.n_done == at.n_cells => "all done".to_owned(),
        Some(seconds) => format!("about {} left", about(seconds)),
        None => format!("{} left", count((at.n_cells - at.n_done) as u64, "cell")),
    }
}
