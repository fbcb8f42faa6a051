//! Progress on stderr; nothing is drawn if stderr is not a terminal.

use std::fmt::Write;
use std::time::Duration;

use forebay_dataset::Progress;
use forebay_report::quantity;
use forebay_units::{Bytes, group_digits};
use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};

use crate::stop;

/// How often the line is redrawn while the total is unknown.
const TICK: Duration = Duration::from_millis(100);

const ITEMS: &str = "{prefix:10} {wide_bar} {human_pos}/{human_len}  {msg}{left}";
const IMAGES: &str = "{wide_bar} {human_pos}/{human_len} images  {rate}/s{left}";
/// The current item has its own line, since a path may be long.
const BYTES: &str = "{wide_bar} {moved}  {mega} MB/s{left}\n{wide_msg}";

pub(crate) fn images(total: u64) -> ProgressBar {
    bar(total, IMAGES)
}

pub(crate) fn bytes(total: u64) -> ProgressBar {
    bar(total, BYTES)
}

/// A spinner with the activity and the number of files found so far, used until the total is known.
pub(crate) fn unknown(name: &str) -> ProgressBar {
    let line =
        ProgressBar::new_spinner().with_style(style("{prefix:10} {spinner} {found}")).with_prefix(name.to_owned());
    // The spinner needs a thread, which is not started if nothing is drawn.
    if !line.is_hidden() {
        line.enable_steady_tick(TICK);
    }
    line
}

/// Shows the progress of an operation on a line of [`unknown`], which becomes a bar once the total is known.
pub(crate) fn show(line: &ProgressBar, now: Progress) {
    stop::begun();
    if now.total > 0 && line.length() != Some(now.total) {
        line.disable_steady_tick();
        line.set_style(style(ITEMS));
        line.set_length(now.total);
        // The time spent listing says nothing about the remaining time.
        line.reset_elapsed();
        line.reset_eta();
    }
    line.set_position(now.done);
    line.set_message(Bytes(now.bytes).to_string());
}

fn bar(total: u64, template: &str) -> ProgressBar {
    ProgressBar::new(total).with_style(style(template))
}

pub(crate) fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).expect("the template is valid");
    let style = keyed(style, "found", |_| found(forebay_storage::n_listed()));
    // Before the first item, nothing is known of the rest.
    let style = keyed(style, "left", |state| match state.pos() {
        0 => String::new(),
        _ => format!("  {:#} left", HumanDuration(state.eta())),
    });
    let style = keyed(style, "rate", |state| quantity(state.per_sec()));
    let style = keyed(style, "mega", |state| quantity(state.per_sec() / 1e6));
    keyed(style, "moved", |state| format!("{} of {}", Bytes(state.pos()), Bytes(state.len().unwrap_or(0))))
}

fn keyed(style: ProgressStyle, key: &'static str, text: fn(&ProgressState) -> String) -> ProgressStyle {
    style.with_key(key, move |state: &ProgressState, out: &mut dyn Write| {
        // Errors of drawing are ignored.
        let _ = out.write_str(&text(state));
    })
}

fn found(n_files: u64) -> String {
    match n_files {
        0 => "starting".to_owned(),
        n => format!("{} files found", group_digits(n)),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use indicatif::{ProgressDrawTarget, TermLike};

    use super::*;

    /// A terminal of so many columns, and what was written to it.
    #[derive(Debug, Clone)]
    pub(crate) struct Screen(pub(crate) u16, pub(crate) Arc<Mutex<Vec<String>>>);

    impl TermLike for Screen {
        fn width(&self) -> u16 {
            self.0
        }

        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }

        fn write_str(&self, text: &str) -> io::Result<()> {
            self.1.lock().unwrap().push(text.to_owned());
            Ok(())
        }

        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }

        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_without_a_total_moves_and_becomes_a_bar_when_there_is_one() {
        let screen = Screen(80, Arc::default());
        let line = unknown("inspect");
        line.set_draw_target(ProgressDrawTarget::term_like(Box::new(screen.clone())));
        let drawn = || {
            screen.1.lock().unwrap().clear();
            line.force_draw();
            screen.1.lock().unwrap().concat()
        };
        let before = drawn();
        assert!(before.starts_with("inspect    "), "{before}");
        assert!(!before.contains("0/0") && !before.contains(" left"), "{before}");
        show(&line, Progress { done: 3, total: 12, bytes: 4_000 });
        let after = drawn();
        assert!(after.contains(" 3/12  4.0 KB  ") && after.contains(" left"), "{after}");
    }

    #[test]
    fn bars_fit_the_terminal() {
        for template in [IMAGES, BYTES, ITEMS] {
            let screen = Screen(60, Arc::default());
            let line = bar(12_345_678_901, template);
            line.set_draw_target(ProgressDrawTarget::term_like(Box::new(screen.clone())));
            line.set_message(format!("{}/step-000000000010", "long/".repeat(20)));
            if template == ITEMS {
                line.set_message("12.35 GB");
                line.set_length(1_281_167);
            }
            screen.1.lock().unwrap().clear();
            line.force_draw();
            let drawn = screen.1.lock().unwrap().clone();
            assert!(drawn.iter().all(|text| text.trim_end().chars().count() <= 60), "{drawn:?}");
        }
    }

    #[test]
    fn files_are_counted_as_they_are_found() {
        assert_eq!((found(0).as_str(), found(1_234_567).as_str()), ("starting", "1,234,567 files found"));
    }
}
