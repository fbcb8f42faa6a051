//! What the values of flags may be, where several commands take them and no experiment declares them.

use forebay_measure::value;
use forebay_record::Level;
use forebay_units::Bytes;

/// How large a sample may be: the flag of every command that reads samples.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct SampleLimit {
    /// Largest sample to read (a file, a record or a tar sample); a larger one counts as failed
    #[arg(long, default_value = "256MiB", value_parser = parse_sample_size, value_name = "SIZE")]
    max_sample_size: Bytes,
}

impl SampleLimit {
    pub(crate) fn bytes(self) -> Bytes {
        self.max_sample_size
    }
}

fn parse_sample_size(text: &str) -> Result<Bytes, String> {
    value::bytes(1..=u64::MAX)(&Level::of_text(text))
}

/// A number above 0.
pub(crate) fn parse_positive(text: &str) -> Result<f64, String> {
    value::number("a number above 0", |number| number > 0.0)(&Level::of_text(text))
}

/// Bytes per second, at least one: `100MB` or `100MB/s`.
pub(crate) fn parse_bytes_per_s(text: &str) -> Result<Bytes, String> {
    value::bytes_per_s(&Level::of_text(text))
}
