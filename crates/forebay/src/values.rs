//! What the values of flags may be, where several commands take them.

use forebay_bench::ingest::{Io, ThreadCount};

/// A number of threads, or `auto`.
pub(crate) fn parse_threads(text: &str) -> Result<ThreadCount, String> {
    match text {
        "auto" => Ok(ThreadCount::Auto),
        _ => match text.parse() {
            Ok(n @ 1..=1024) => Ok(ThreadCount::Fixed(n)),
            _ => Err("give a number from 1 to 1024, or auto".to_owned()),
        },
    }
}

/// A number above 0.
pub(crate) fn parse_positive(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(number) if number > 0.0 && f64::is_finite(number) => Ok(number),
        _ => Err("give a number above 0".to_owned()),
    }
}

/// A way of reading files, or `auto`.
pub(crate) fn parse_io(text: &str) -> Result<Io, String> {
    match text {
        "auto" => Ok(Io::Auto),
        _ => text.parse().map(Io::Fixed).map_err(|error: String| format!("{error}, auto")),
    }
}
