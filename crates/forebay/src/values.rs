//! Values of flags that no experiment declares, read as those of settings are.

use std::time::Duration;

use forebay_bench::ingest::IngestSettings;
use forebay_record::Level;
use forebay_units::parse_duration;

use crate::flags::{Flags, Pick};

/// A reader of `forebay_measure::value` as clap wants it.
pub(crate) fn of<T>(read: fn(&Level) -> Result<T, String>) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| read(&Level::of_text(text))
}

/// A time within bounds; `wanted` names them.
pub(crate) fn time(
    wanted: &'static str,
    is_fine: fn(Duration) -> bool,
) -> impl Fn(&str) -> Result<Duration, String> + Clone {
    move |text| match parse_duration(text) {
        Ok(time) if !is_fine(time) => Err(format!("give a time {wanted}")),
        other => other.map_err(|error| error.to_string()),
    }
}

/// The flag of every command that reads samples and runs no experiment.
pub(crate) type SampleLimit = Flags<IngestSettings, OfSamples>;

#[derive(Debug)]
pub(crate) struct OfSamples;

impl Pick for OfSamples {
    fn has(name: &str) -> bool {
        name == "max_sample_size"
    }
}
