//! Live progress of a study on stderr: a bar for people, a line a cell for logs.

use std::io::IsTerminal;
use std::time::Instant;

use forebay_record::StudyCell;
use forebay_report::visible;
use forebay_study::{At, Event, Progress};
use forebay_units::{count, format_seconds, group_digits};
use indicatif::{ProgressBar, ProgressStyle};

use super::about;
use crate::output::remark;

/// Shows how a study goes.
pub(super) struct Display {
    /// Where stderr is a terminal.
    bar: Option<ProgressBar>,
    /// The cell at work, and what of it.
    cell: String,
    what: String,
    /// Since the repeat began: images, bytes, and when that was.
    images: u64,
    bytes: u64,
    since: Instant,
}

impl Display {
    pub(super) fn new() -> Self {
        let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} cells  {prefix}\n{msg}")
            .expect("the template is one of ours");
        let bar = std::io::stderr().is_terminal().then(|| ProgressBar::new(0).with_style(style));
        let (cell, what) = (String::new(), String::new());
        Self { bar, cell, what, images: 0, bytes: 0, since: Instant::now() }
    }

    pub(super) fn show(&mut self, event: Event<'_>) {
        match event {
            Event::Started { cell, at } => {
                self.cell = visible(&cell.id).into_owned();
                self.begin(String::new());
                self.show_bar(at);
            }
            Event::Progress(Progress::Repeat { what }) => {
                self.begin(what);
                self.show_rates();
            }
            Event::Progress(Progress::Moved { images, bytes }) => {
                self.images += images;
                self.bytes += bytes;
                self.show_rates();
            }
            Event::Finished { cell, at } => {
                self.show_bar(at);
                match &self.bar {
                    Some(bar) if !cell.is_measured() => bar.println(line(cell, at)),
                    Some(_) => {}
                    None => remark(&line(cell, at)),
                }
            }
        }
    }

    fn begin(&mut self, what: String) {
        (self.what, self.images, self.bytes, self.since) = (what, 0, 0, Instant::now());
    }

    fn show_bar(&self, at: At) {
        let Some(bar) = &self.bar else { return };
        bar.set_length(at.n_cells as u64);
        bar.set_position(at.n_done as u64);
        bar.set_prefix(left(at));
    }

    fn show_rates(&self) {
        let Some(bar) = &self.bar else { return };
        let seconds = self.since.elapsed().as_secs_f64();
        let mut rates = String::new();
        if self.images > 0 {
            rates = format!("  {} images/s", group_digits((self.images as f64 / seconds).round() as u64));
        }
        if self.bytes > 0 {
            rates.push_str(&format!("  {} MB/s", group_digits((self.bytes as f64 / 1e6 / seconds).round() as u64)));
        }
        bar.set_message(format!("{}  {}{rates}", self.cell, self.what));
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
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
    forebay_report::in_brief(cell)
}

fn left(at: At) -> String {
    match at.left_s {
        _ if at.n_done == at.n_cells => "all done".to_owned(),
        Some(seconds) => format!("about {} left", about(seconds)),
        None => format!("{} left", count((at.n_cells - at.n_done) as u64, "cell")),
    }
}
