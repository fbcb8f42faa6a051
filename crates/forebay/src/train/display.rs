//! The live line of a training run on stderr: nothing is drawn where that is no terminal.

use std::time::Instant;

use forebay_bench::train::Event;
use forebay_units::{count, group_digits};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::remark;

/// Shows how a run goes.
pub(super) struct Display {
    bar: ProgressBar,
    /// Steps of the run at work, images so far, when it began, and seconds of it that went to validation.
    n_steps: u64,
    images: u64,
    since: Instant,
    judging_s: f64,
    /// Steps made before.
    first: u64,
    /// The last checkpoint, in words.
    saved: String,
}

impl Display {
    pub(super) fn new() -> Self {
        Self::on(ProgressDrawTarget::stderr())
    }

    /// A message is cut to the terminal's width: one that wraps would leave rows behind.
    fn on(target: ProgressDrawTarget) -> Self {
        let style = ProgressStyle::with_template("{wide_msg}").expect("the template is one of ours");
        let bar = ProgressBar::with_draw_target(None, target).with_style(style);
        let saved = String::new();
        Self { bar, n_steps: 0, images: 0, since: Instant::now(), judging_s: 0.0, first: 0, saved }
    }

    pub(super) fn show(&mut self, event: Event) {
        match event {
            Event::Preparing { what } => self.bar.set_message(what),
            Event::Started { what, first, n_steps } => {
                (self.first, self.saved) = (first, String::new());
                (self.n_steps, self.images, self.since, self.judging_s) = (n_steps, 0, Instant::now(), 0.0);
                self.bar.set_message(what);
            }
            Event::Step { step, images, loss, wait_share, .. } => {
                self.images += images;
                let seconds = self.since.elapsed().as_secs_f64() - self.judging_s;
                let steps = [self.first, step, self.n_steps];
                self.bar.set_message(line(steps, loss, self.images, wait_share, seconds) + &self.saved);
            }
            Event::Saved { step, stall_s } => {
                self.saved = format!("  checkpoint {} in {stall_s:.2} s", group_digits(step));
            }
            Event::Draining { n_left } => {
                let left = count(n_left as u64, "checkpoint");
                self.bar.set_message(format!("draining: {left} left; Ctrl-C leaves the rest to the next start"));
            }
            Event::Remark { text } => self.bar.suspend(|| remark(&text)),
            Event::Failed { error } => self.bar.suspend(|| remark(&format!("forebay: {error}"))),
            Event::Validated { epoch, validation } => {
                self.judging_s += validation.seconds;
                let loss = validation.loss.map_or("–".to_owned(), |loss| format!("{loss:.3}"));
                let accuracy = validation.accuracy * 100.0;
                let text = format!("epoch {epoch}: validation loss {loss}, accuracy {accuracy:.1} %");
                self.bar.suspend(|| remark(&text));
            }
        }
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

fn line([first, step, n_steps]: [u64; 3], loss: Option<f32>, images: u64, wait_share: f64, seconds: f64) -> String {
    let n = group_digits;
    let loss = loss.map(|loss| format!("  loss {loss:.3}")).unwrap_or_default();
    let rate = n((images as f64 / seconds).round() as u64);
    let left = seconds / (step - first).max(1) as f64 * n_steps.saturating_sub(step) as f64;
    let wait = wait_share * 100.0;
    format!("step {}/{}{loss}  {rate} images/s  wait {wait:.1} %  {} left", n(step), n(n_steps), hands(left))
}

/// Seconds as a clock shows them: "0:42", "1:02:03".
fn hands(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    let (hours, minutes, rest) = (whole / 3600, whole / 60 % 60, whole % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{rest:02}") } else { format!("{minutes}:{rest:02}") }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::progress::tests::Screen;

    #[test]
    fn the_line_is_cut_to_the_width_of_the_terminal() {
        let terminal = Screen(30, Arc::default());
        let mut display = Display::on(ProgressDrawTarget::term_like(Box::new(terminal.clone())));
        display.show(Event::Started { what: "training".to_owned(), first: 0, n_steps: 100_000 });
        display.show(Event::Step { step: 37_000, images: 64, loss: Some(4.5), wait_share: 0.5, bytes: 0 });
        display.bar.tick();
        let written = terminal.1.lock().unwrap();
        assert!(written.iter().any(|text| text.starts_with("step 37,000/100,000")), "{written:?}");
        assert!(written.iter().all(|text| text.chars().count() <= 30), "{written:?}");
    }

    #[test]
    fn the_line_says_step_loss_rate_wait_and_what_is_left() {
        let said = line([0, 37, 142], Some(4.512), 2_368, 0.031, 2.916);
        assert_eq!(said, "step 37/142  loss 4.512  812 images/s  wait 3.1 %  0:08 left");
        let said = line([0, 1, 100], None, 64, 0.5, 60.0);
        assert_eq!(said, "step 1/100  1 images/s  wait 50.0 %  1:39:00 left", "an emulated accelerator has no loss");
        let said = line([60, 80, 100], None, 20, 0.0, 4.0);
        assert!(said.ends_with("0:04 left"), "the steps of an earlier run took no time of this one: {said}");
    }
}
