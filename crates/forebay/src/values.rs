//! Values of flags that are not settings, parsed as settings are.

use std::time::Duration;

use forebay_bench::ingest::IngestSettings;
use forebay_record::Level;
use forebay_units::parse_duration;

use crate::flags::{Flags, Pick};

/// Adapts a parser of `forebay_measure::value` to clap.
pub(crate) fn of<T>(read: fn(&Level) -> Result<T, String>) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| read(&Level::of_text(text))
}

/// A time within bounds, which `wanted` describes.
pub(crate) fn time(
    wanted: &'static str,
    is_fine: fn(Duration) -> bool,
) -> impl Fn(&str) -> Result<Duration, String> + Clone {
    move |text| match parse_duration(text) {
        Ok(time) if !is_fine(time) => Err(format!("give a time {wanted}")),
        other => other.map_err(|error| error.to_string()),
    }
}

/// The size limit of commands that read samples without an experiment.
pub(crate) type SampleLimit = Flags<IngestSettings, OfSamples>;

#[derive(Debug)]
pub(crate) struct OfSamples;

impl Pick for OfSamples {
    fn has(name: &str) -> bool {
        name == "max_sample_size"
    }
}
