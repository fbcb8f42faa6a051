//! The live line of a workload's run on stderr: nothing is drawn where that is no terminal.

use std::time::Instant;

use forebay_emulation::Event;
use forebay_units::{Bytes, format_seconds, group_digits};
use indicatif::{ProgressBar, ProgressStyle};

/// Shows how a run goes.
pub(super) struct Display {
    bar: ProgressBar,
    /// Which epoch, of how many, its steps, and when it began.
    epoch: [u64; 3],
    since: Instant,
    /// The last checkpoint, in words.
    saved: String,
}

impl Display {
    /// One that draws, or one that is silent: only the first rank has a terminal to itself.
    pub(super) fn new(is_drawn: bool) -> Self {
        let style = ProgressStyle::with_template("{wide_msg}").expect("the template is one of ours");
        let bar = if is_drawn { ProgressBar::no_length() } else { ProgressBar::hidden() };
        Self { bar: bar.with_style(style), epoch: [0; 3], since: Instant::now(), saved: String::new() }
    }

    pub(super) fn show(&mut self, event: &Event) {
        match event {
            Event::Preparing { what } => self.bar.set_message(what.clone()),
            Event::Epoch { epoch, of, n_steps } => {
                (self.epoch, self.since) = ([*epoch, *of, *n_steps], Instant::now());
                self.bar.set_message(line(self.epoch, 0, 0.0, 0.0));
            }
            Event::Step { done, wait_share } => {
                let seconds = self.since.elapsed().as_secs_f64();
                self.bar.set_message(line(self.epoch, *done, *wait_share, seconds) + &self.saved);
            }
            Event::Saved { bytes, seconds } => {
                self.saved = format!("  checkpoint of {} in {}", Bytes(*bytes), format_seconds(*seconds));
                // In a run that only saves, no step follows to show it.
                self.bar.set_message(self.saved.trim_start().to_owned());
            }
            Event::Evaluating { epoch } => self.bar.set_message(format!("epoch {epoch}: evaluating")),
            _ => {}
        }
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

fn line([epoch, of, n_steps]: [u64; 3], done: u64, wait_share: f64, seconds: f64) -> String {
    let left = seconds / done.max(1) as f64 * n_steps.saturating_sub(done) as f64;
    let left = if done > 0 { format!("  {left:.0} s left of it") } else { String::new() };
    let wait = wait_share * 100.0;
    format!("epoch {epoch}/{of}  step {}/{}  wait {wait:.1} %{left}", group_digits(done), group_digits(n_steps))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_epoch_step_wait_and_what_is_left() {
        assert_eq!(line([1, 5, 24], 6, 0.625, 2.0), "epoch 1/5  step 6/24  wait 62.5 %  6 s left of it");
        assert_eq!(line([2, 5, 1_024], 0, 0.0, 0.0), "epoch 2/5  step 0/1,024  wait 0.0 %");
    }
}
