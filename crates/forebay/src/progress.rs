//! Progress on stderr, for people only: nothing is drawn when stderr is not a terminal.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar that counts images.
pub(crate) fn images(total: u64) -> ProgressBar {
    bar(total, "{msg:28} {wide_bar} {human_pos}/{human_len} images  {per_sec}  {eta} left")
}

/// A bar that counts bytes, by thousands as the results do.
pub(crate) fn bytes(total: u64) -> ProgressBar {
    bar(total, "{msg:48} {wide_bar} {decimal_bytes}/{decimal_total_bytes}  {decimal_bytes_per_sec}  {eta} left")
}

/// A bar that counts files or shards, and shows bytes in its message.
pub(crate) fn items(total: u64, name: &str) -> ProgressBar {
    let bar = bar(total, "{prefix:10} {wide_bar} {human_pos}/{human_len}  {msg}  {eta} left");
    bar.set_prefix(name.to_owned());
    bar
}

fn bar(total: u64, template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template).expect("the template is one of ours");
    ProgressBar::new(total).with_style(style)
}
