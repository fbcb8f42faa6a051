//! The live line of a run on stderr; nothing is drawn if stderr is not a terminal.

use std::io::IsTerminal;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anyhow::Result;
use forebay_measure::{EXTRA_REPEATS, Event, Observer};
use forebay_observe::{Options, Sampler};
use forebay_record::{Cell, Record, Series};
use forebay_report::quantity;
use forebay_units::{Bytes, count, escaped_words, format_seconds, group_digits};
use indicatif::{ProgressBar, ProgressDrawTarget};

use crate::output::remark;
use crate::progress::{self, style};
use crate::terminal::Stream;
use crate::{stop, store};

/// The message is cut to the terminal's width, since a wrapped line would not be erased.
const LINE: &str = "{wide_msg}";
const BAR: &str = "{wide_bar} {percent} %  {eta} left\n{wide_msg}";
const CELLS: &str = "{wide_bar} {pos}/{len} cells  {prefix}\n{wide_msg}";

/// An empty record for a run on this data.
pub(crate) fn record<C: Cell>(data: &Path) -> Record<C> {
    let environment = forebay_measure::describe_environment(data, env!("CARGO_PKG_VERSION"));
    let mut record = Record::new(escaped_words(store::arguments()), environment);
    record.notes.extend(unwatched());
    record
}

/// What a record says where nobody watched for other processes.
fn unwatched() -> Option<String> {
    let is_said = std::env::var_os(UNWATCHED).is_some_and(|value| value != "silent");
    is_said
        .then(|| format!("{UNWATCHED} was set: no other process was watched for, and nothing is marked as disturbed."))
}

#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct QuietArgs {
    /// Repeats per row to run again if other processes disturbed them
    #[arg(long, default_value_t = EXTRA_REPEATS, value_name = "N")]
    extra_repeats: usize,
}

impl Default for QuietArgs {
    fn default() -> Self {
        Self { extra_repeats: EXTRA_REPEATS }
    }
}

/// Turns the watch for other processes off; with the value "silent", records do not say so.
const UNWATCHED: &str = "FOREBAY_UNWATCHED";

/// Whether runs watch for other processes. Tests that run experiments in parallel turn it off.
pub(crate) fn is_watched() -> bool {
    std::env::var_os(UNWATCHED).is_none()
}

/// Runs something under a live line, and returns what the machine did meanwhile. Remarks get the prefix.
pub(crate) fn observed<T>(
    name: &str,
    prefix: &'static str,
    cancel: &AtomicBool,
    quiet: QuietArgs,
    run: impl FnOnce(Observer<'_>) -> Result<T>,
) -> Result<(T, Series)> {
    let sampler = Sampler::start(Options::default())?;
    let listing = progress::unknown(name);
    let display = Display::new(ProgressDrawTarget::stderr(), columns, prefix);
    let hear = |event: Event| {
        stop::begun();
        listing.finish_and_clear();
        mark(&sampler, &event);
        display.show(event);
    };
    let extra_repeats = is_watched().then_some(quiet.extra_repeats);
    let ran = run(Observer { extra_repeats, ..Observer::new(&hear, cancel) });
    listing.finish_and_clear();
    drop(display);
    Ok((ran?, sampler.stop()))
}

fn columns() -> usize {
    Stream::Stderr.width()
}

fn mark(sampler: &Sampler, event: &Event) {
    match event {
        Event::Phase { what, percent: None } | Event::Repeat { what } => sampler.mark(what.as_str()),
        Event::Steps { epoch: Some((epoch, _)), .. } => sampler.mark(format!("epoch {epoch}").as_str()),
        _ => {}
    }
}

pub(crate) struct Display {
    bar: ProgressBar,
    columns: fn() -> usize,
    prefix: &'static str,
    /// Whether the bar counts a study's cells.
    counts_cells: bool,
    line: Mutex<Line>,
}

impl Display {
    /// A display for a terminal with this number of columns.
    pub(crate) fn new(target: ProgressDrawTarget, columns: fn() -> usize, prefix: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target(None, target).with_style(style(LINE));
        Self { bar, columns, prefix, counts_cells: false, line: Mutex::default() }
    }

    /// A display of a study's cells; `None` if stderr is not a terminal.
    pub(crate) fn of_cells() -> Option<Self> {
        let bar = ProgressBar::new(0).with_style(style(CELLS));
        let display = Self { bar, columns, prefix: "", counts_cells: true, line: Mutex::default() };
        std::io::stderr().is_terminal().then_some(display)
    }

    pub(crate) fn begin_cell(&self, id: &str) {
        *self.line() = Line { cell: id.to_owned(), since: Some(Instant::now()), ..Line::default() };
    }

    pub(crate) fn show_cells(&self, n_done: usize, n_cells: usize, left: String) {
        self.bar.set_length(n_cells as u64);
        self.bar.set_position(n_done as u64);
        self.bar.set_prefix(left);
    }

    pub(crate) fn say(&self, text: &str) {
        self.bar.suspend(|| remark(text));
    }

    pub(crate) fn show(&self, event: Event) {
        match &event {
            // In a study, a cell's remarks are in its notes.
            Event::Remark { text } if !self.counts_cells => self.say(&format!("{}{text}", self.prefix)),
            Event::Validated { epoch, validation } if !self.counts_cells => {
                let loss = validation.loss.map_or("–".to_owned(), |loss| format!("{loss:.3}"));
                let accuracy = validation.accuracy * 100.0;
                self.say(&format!("epoch {epoch}: validation loss {loss}, accuracy {accuracy:.1} %"));
            }
            Event::Planned { images, bytes } if !self.counts_cells => {
                self.bar.set_style(style(BAR));
                self.bar.set_length(images + bytes);
            }
            Event::Moved { images, bytes } if !self.counts_cells => {
                let counts_images = self.line().counts_images;
                self.bar.inc(if counts_images { *images } else { *bytes });
            }
            _ => {}
        }
        let mut line = self.line();
        line.update(event);
        let seconds = line.since.get_or_insert_with(Instant::now).elapsed().as_secs_f64() - line.validating_s;
        self.bar.set_message(line.text(seconds, (self.columns)()));
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The content of the line.
#[derive(Debug, Clone, Default)]
struct Line {
    cell: String,
    /// The current repeat or phase.
    what: String,
    epoch: Option<(u64, u64)>,
    /// The first step, the current step, and the steps of the run or epoch.
    steps: [u64; 3],
    loss: Option<f32>,
    wait_share: f64,
    /// Since the start of the repeat, or of its steps.
    images: u64,
    bytes: u64,
    since: Option<Instant>,
    validating_s: f64,
    counts_images: bool,
    /// The last checkpoint, in words.
    saved: Option<String>,
}

impl Line {
    fn update(&mut self, event: Event) {
        match event {
            Event::Phase { what, percent: None } | Event::Repeat { what } => self.begin(what),
            Event::Phase { what, percent: Some(percent) } => self.what = format!("{what}, {percent} %"),
            Event::Planned { images, .. } => self.counts_images = images > 0,
            Event::Steps { epoch, first, n_steps } => {
                // With epochs, the epoch replaces the name of the repeat.
                let what = if epoch.is_some() { String::new() } else { std::mem::take(&mut self.what) };
                let saved = self.saved.take();
                self.begin(what);
                (self.epoch, self.steps, self.saved) = (epoch, [first, first, n_steps], saved);
            }
            Event::Moved { images, bytes } => (self.images, self.bytes) = (self.images + images, self.bytes + bytes),
            Event::Step { step, images, bytes, loss, wait_share } => {
                (self.steps[1], self.loss, self.wait_share) = (step, loss, wait_share);
                (self.images, self.bytes) = (self.images + images, self.bytes + bytes);
            }
            Event::Saved { step, bytes, seconds } => {
                let (step, took) = (group_digits(step), format_seconds(seconds));
                self.saved = Some(format!("checkpoint {step} ({}) in {took}", Bytes(bytes)));
            }
            Event::Draining { n_left } => {
                let left = count(n_left as u64, "checkpoint");
                self.begin(format!("draining: {left} left; Ctrl-C leaves them to the next run"));
            }
            Event::Validated { validation, .. } => self.validating_s += validation.seconds,
            Event::Remark { .. } => {}
        }
    }

    fn begin(&mut self, what: String) {
        let (cell, counts_images) = (std::mem::take(&mut self.cell), self.counts_images);
        *self = Self { cell, what, counts_images, since: Some(Instant::now()), ..Self::default() };
    }

    /// The line in `columns` columns: less important parts are left out, and names are shortened.
    fn text(&self, seconds: f64, columns: usize) -> String {
        let n = group_digits;
        let [first, step, n_steps] = self.steps;
        let is_going = step > first;
        let left = seconds / (step - first).max(1) as f64 * n_steps.saturating_sub(step) as f64;
        // Parts with a higher number are left out first.
        let mut parts = vec![
            (0, Some(self.cell.clone()).filter(|cell| !cell.is_empty())),
            (0, Some(self.what.clone()).filter(|what| !what.is_empty())),
            (0, self.epoch.map(|(epoch, of)| format!("epoch {epoch}/{of}"))),
            (0, (n_steps > 0).then(|| format!("step {}/{}", n(step), n(n_steps)))),
            (5, self.loss.map(|loss| format!("loss {loss:.3}"))),
            (2, (self.images > 0).then(|| format!("{} images/s", quantity(self.images as f64 / seconds)))),
            (6, (self.bytes > 0).then(|| format!("{} MB/s", quantity(self.bytes as f64 / 1e6 / seconds)))),
            (3, is_going.then(|| format!("wait {:.1} %", self.wait_share * 100.0))),
            (1, is_going.then(|| format!("{} left", clock(left)))),
            (4, self.saved.clone()),
        ];
        parts.retain(|(_, part)| part.is_some());
        let joined = |parts: &[(u8, Option<String>)]| {
            parts.iter().filter_map(|(_, part)| part.as_deref()).collect::<Vec<_>>().join("  ")
        };
        for spare in (1..=6).rev() {
            if joined(&parts).chars().count() > columns {
                parts.retain(|(rank, _)| *rank != spare);
            }
        }
        let over = joined(&parts).chars().count().saturating_sub(columns);
        if let Some((_, Some(cell))) = parts.first_mut().filter(|_| over > 0) {
            *cell = shortened(cell, cell.chars().count().saturating_sub(over).max(SHORTEST));
        }
        shortened(&joined(&parts), columns)
    }
}

/// Names are not shortened below this number of characters.
const SHORTEST: usize = 16;

/// Shortens a text to `most` characters by replacing its middle with "…".
fn shortened(text: &str, most: usize) -> String {
    let letters: Vec<char> = text.chars().collect();
    if letters.len() <= most {
        return text.to_owned();
    }
    let kept = most.saturating_sub(1);
    let (head, tail) = (kept.div_ceil(2), kept / 2);
    letters[..head].iter().chain(&['…']).chain(&letters[letters.len() - tail..]).collect()
}

/// Seconds in clock format: "0:42", "1:02:03".
fn clock(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    let (hours, minutes, rest) = (whole / 3600, whole / 60 % 60, whole % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{rest:02}") } else { format!("{minutes}:{rest:02}") }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::progress::tests::Screen;

    fn line(events: &[Event], seconds: f64) -> String {
        let mut line = Line::default();
        events.iter().for_each(|event| line.update(event.clone()));
        line.text(seconds, 120)
    }

    fn steps(first: u64, n_steps: u64) -> Event {
        Event::Steps { epoch: None, first, n_steps }
    }

    #[test]
    fn a_line_that_does_not_fit_loses_what_matters_least_and_no_half_words() {
        let mut line = Line { cell: "mini-app/prefetch=1/threads=8/tier=lustre".to_owned(), ..Line::default() };
        line.update(steps(0, 142));
        line.update(Event::Step { step: 37, images: 2_368, bytes: 9_000_000, loss: Some(4.5), wait_share: 0.031 });
        line.update(Event::Saved { step: 20, bytes: 4_000, seconds: 0.25 });
        let rest = "step 37/142  812 images/s";
        assert_eq!(line.text(2.916, 80), format!("{}  {rest}  0:08 left", line.cell));
        assert_eq!(line.text(2.916, 60), format!("{}  step 37/142", line.cell));
        let said = line.text(2.916, 50);
        assert!(said.chars().count() <= 50 && said.contains('…') && said.ends_with("  step 37/142"), "{said}");
    }

    #[test]
    fn the_line_is_cut_to_the_width_of_the_terminal() {
        let terminal = Screen(30, Arc::default());
        let display = Display::new(ProgressDrawTarget::term_like(Box::new(terminal.clone())), || 30, "");
        display.show(steps(0, 100_000));
        display.show(Event::Step { step: 37_000, images: 64, loss: Some(4.5), wait_share: 0.5, bytes: 0 });
        display.bar.tick();
        let written = terminal.1.lock().unwrap();
        assert!(written.iter().any(|text| text.starts_with("step 37,000/100,000")), "{written:?}");
        assert!(written.iter().all(|text| text.chars().count() <= 30), "{written:?}");
    }

    #[test]
    fn a_planned_amount_has_a_bar() {
        let terminal = Screen(60, Arc::default());
        let display = Display::new(ProgressDrawTarget::term_like(Box::new(terminal.clone())), || 30, "");
        display.show(Event::Planned { images: 200, bytes: 0 });
        display.show(Event::Moved { images: 50, bytes: 7_000 });
        display.bar.force_draw();
        let written = terminal.1.lock().unwrap().concat();
        assert!(written.contains("25 %"), "{written}");
    }

    #[test]
    fn the_line_says_step_loss_rate_wait_and_what_is_left() {
        let training = Event::Repeat { what: "training".to_owned() };
        let step = |step, images, loss, wait_share| Event::Step { step, images, bytes: 0, loss, wait_share };
        let said = line(&[training, steps(0, 142), step(37, 2_368, Some(4.512), 0.031)], 2.916);
        assert_eq!(said, "training  step 37/142  loss 4.512  812 images/s  wait 3.1 %  0:08 left");
        let said = line(&[steps(0, 100), step(1, 64, None, 0.5)], 60.0);
        assert_eq!(said, "step 1/100  1.07 images/s  wait 50.0 %  1:39:00 left", "an emulated accelerator has no loss");
        let said = line(&[steps(60, 100), step(80, 20, None, 0.0)], 4.0);
        assert!(said.ends_with("0:04 left"), "the steps of an earlier run took no time of this one: {said}");
    }

    #[test]
    fn the_line_says_epoch_step_wait_and_the_last_checkpoint() {
        let epoch = |epoch, n_steps| Event::Steps { epoch: Some((epoch, 5)), first: 0, n_steps };
        let step = Event::Step { step: 6, images: 0, bytes: 0, loss: None, wait_share: 0.625 };
        let phase = Event::phase("looking at the data");
        assert_eq!(line(&[phase, epoch(1, 24), step], 2.0), "epoch 1/5  step 6/24  wait 62.5 %  0:06 left");
        let saved = Event::Saved { step: 3, bytes: 4_000, seconds: 2.5 };
        assert_eq!(
            line(&[saved, epoch(2, 1_024)], 0.0),
            "epoch 2/5  step 0/1,024  checkpoint 3 (4.0 KB) in 2.50 s",
            "until the next one is saved"
        );
        assert_eq!(line(&[Event::Phase { what: "making".to_owned(), percent: Some(7) }], 1.0), "making, 7 %");
    }

    #[test]
    fn rates_have_three_digits_and_begin_with_the_repeat() {
        let moved = Event::Moved { images: 10, bytes: 3_000_000 };
        let repeat = Event::Repeat { what: "4 threads, repeat 2 of 5".to_owned() };
        let said = line(&[moved.clone(), repeat, moved], 2.0);
        assert_eq!(said, "4 threads, repeat 2 of 5  5.00 images/s  1.50 MB/s");
    }
}
