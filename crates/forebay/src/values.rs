//! What the values of flags may be, where several commands take them.

use forebay_units::Bytes;

/// How large a sample may be: the flag of every command that reads samples.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct SampleLimit {
    /// Largest sample to read: a file, a record or a tar sample; a larger one fails
    #[arg(long, default_value = "256MiB", value_parser = parse_sample_size, value_name = "SIZE")]
    max_sample_size: Bytes,
}

impl SampleLimit {
    /// Bytes of the largest sample.
    pub(crate) fn bytes(self) -> Bytes {
        self.max_sample_size
    }
}

fn parse_sample_size(text: &str) -> Result<Bytes, String> {
    match text.parse() {
        Ok(Bytes(0)) => Err("a sample has at least 1 byte".to_owned()),
        other => other.map_err(|error: forebay_units::ParseError| error.to_string()),
    }
}

/// A number above 0.
pub(crate) fn parse_positive(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(number) if number > 0.0 && f64::is_finite(number) => Ok(number),
        _ => Err("give a number above 0".to_owned()),
    }
}

/// Bytes of a state, which has at least one value.
pub(crate) fn parse_state(text: &str) -> Result<Bytes, String> {
    match text.parse() {
        Ok(Bytes(0..4)) => Err("a state has at least 4 bytes".to_owned()),
        other => other.map_err(|error: forebay_units::ParseError| error.to_string()),
    }
}

/// Bytes a second, at least one: `100MB` or `100MB/s`.
pub(crate) fn parse_bytes_per_s(text: &str) -> Result<Bytes, String> {
    match text.strip_suffix("/s").unwrap_or(text).parse() {
        Ok(Bytes(0)) => Err("give a rate above 0".to_owned()),
        other => other.map_err(|error: forebay_units::ParseError| error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_size_above_nothing_with_or_without_its_second() {
        assert_eq!(parse_bytes_per_s("100MB/s"), Ok(Bytes(100_000_000)));
        assert_eq!(parse_bytes_per_s("100MB"), Ok(Bytes(100_000_000)));
        for wrong in ["0", "0/s", "1MB/s/s", "1MB/", "/s"] {
            assert!(parse_bytes_per_s(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_default_limit_of_a_sample_is_the_libraries_and_nothing_is_none() {
        assert_eq!(parse_sample_size("256MiB"), Ok(Bytes(forebay_format::MAX_SAMPLE_SIZE)));
        assert_eq!(parse_sample_size("0"), Err("a sample has at least 1 byte".to_owned()));
    }

    #[test]
    fn a_state_has_at_least_a_value() {
        assert_eq!(parse_state("4"), Ok(Bytes(4)));
        assert_eq!(parse_state("3"), Err("a state has at least 4 bytes".to_owned()));
    }
}
