//! Reading "number unit" texts, shared by sizes and durations.

/// A text that is not a valid quantity of the expected kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is not a {kind}: {reason}")]
pub struct ParseError {
    pub text: String,
    /// The quantity that was expected ("size", "duration"), completing "is not a …".
    pub kind: &'static str,
    pub reason: String,
}

/// Splits "112 KB" into 112.0 and "KB"; the number must be finite and not negative.
pub(crate) fn split(text: &str, kind: &'static str) -> Result<(f64, String), ParseError> {
    let trimmed = text.trim();
    let end = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(trimmed.len());
    let (digits, unit) = trimmed.split_at(end);
    let number = digits.replace('_', "").parse::<f64>().map_err(|_| ParseError {
        text: text.to_owned(),
        kind,
        reason: "does not start with a number".to_owned(),
    })?;
    Ok((number, unit.trim().to_owned()))
}

pub fn group_digits(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Writes a number with what it counts: "1 sample", "2,000 samples".
pub fn count(n: u64, what: &str) -> String {
    format!("{} {what}{}", group_digits(n), if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_from_the_right() {
        assert_eq!(group_digits(0), "0");
        assert_eq!(group_digits(999), "999");
        assert_eq!(group_digits(1_000), "1,000");
        assert_eq!(group_digits(1_234_567), "1,234,567");
    }

    #[test]
    fn one_is_singular() {
        assert_eq!(count(1, "sample"), "1 sample");
        assert_eq!(count(0, "sample"), "0 samples");
        assert_eq!(count(2_000, "sample"), "2,000 samples");
    }
}
