//! Durations as people write and read them: "224 ms", "1.5s", "2 min".

use std::time::Duration;

use crate::text::{ParseError, split};

/// Parses "224 ms", "1.5s", "250us", "2 min". A bare number is an error: its unit would be a guess.
///
/// # Errors
/// When the number or the unit is missing, or the unit is unknown.
pub fn parse_duration(text: &str) -> Result<Duration, ParseError> {
    let (number, unit) = split(text, "duration")?;
    let seconds = match unit.as_str() {
        "ns" => 1e-9,
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "min" | "m" => 60.0,
        "h" => 3600.0,
        unit => {
            let wrong = if unit.is_empty() { "missing unit".to_owned() } else { format!("unknown unit \"{unit}\"") };
            return Err(ParseError {
                text: text.to_owned(),
                kind: "duration",
                reason: format!("{wrong}; use ns, us, ms, s, min or h"),
            });
        }
    };
    Duration::try_from_secs_f64(number * seconds).map_err(|error| ParseError {
        text: text.to_owned(),
        kind: "duration",
        reason: error.to_string(),
    })
}

/// Writes seconds with the unit that leaves one to three digits before the point: "1.25 s", "830 µs".
pub fn format_seconds(seconds: f64) -> String {
    match seconds.abs() {
        s if s >= 120.0 => format!("{:.0} min {:.0} s", (seconds / 60.0).floor(), seconds % 60.0),
        s if s >= 1.0 => format!("{seconds:.2} s"),
        s if s >= 1e-3 => format!("{:.1} ms", seconds * 1e3),
        s if s >= 1e-6 => format!("{:.1} µs", seconds * 1e6),
        0.0 => "0 s".to_owned(),
        _ => format!("{:.0} ns", seconds * 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_needs_its_unit() {
        assert_eq!(parse_duration("224 ms"), Ok(Duration::from_millis(224)));
        assert_eq!(parse_duration("1.5s"), Ok(Duration::from_millis(1_500)));
        assert_eq!(parse_duration("2 min"), Ok(Duration::from_secs(120)));
        assert_eq!(parse_duration("5m"), Ok(Duration::from_secs(300)));
        let error = |text: &str| parse_duration(text).unwrap_err().to_string();
        assert_eq!(error("224"), "\"224\" is not a duration: missing unit; use ns, us, ms, s, min or h");
        let unknown = "\"3 weeks\" is not a duration: unknown unit \"weeks\"; use ns, us, ms, s, min or h";
        assert_eq!(error("3 weeks"), unknown);
    }

    #[test]
    fn seconds_are_written_with_a_fitting_unit() {
        assert_eq!(format_seconds(0.00083), "830.0 µs");
        assert_eq!(format_seconds(1.25), "1.25 s");
        assert_eq!(format_seconds(185.0), "3 min 5 s");
    }
}
