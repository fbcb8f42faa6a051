//! Numbers as people read them: three digits that matter, thousands grouped, units where they belong. What is not a finite
//! number, as a rate over no time or a ratio to nothing, is unknown and shown as "–".

use forebay_units::group_digits;

/// What is shown of a number that is not known.
pub(crate) const UNKNOWN: &str = "–";

/// A number as `show` writes it, if it is one.
pub(crate) fn finite(value: f64, show: impl FnOnce(f64) -> String) -> String {
    if value.is_finite() { show(value) } else { UNKNOWN.to_owned() }
}

/// A quantity with three digits that matter: "0.0123", "1.95", "262", "12,345".
pub fn quantity(value: f64) -> String {
    if !value.is_finite() {
        return UNKNOWN.to_owned();
    }
    let size = value.abs();
    let text = if size >= 99.95 {
        group_digits(size.round() as u64)
    } else if size >= 9.995 {
        format!("{size:.1}")
    } else if size >= 0.0995 || size == 0.0 {
        format!("{size:.2}")
    } else if size >= 0.000_995 {
        format!("{size:.4}")
    } else {
        format!("{size:.1e}")
    };
    if value < 0.0 { format!("−{text}") } else { text }
}

/// A share as percent: "0.4 %", "83 %".
pub(crate) fn percent(share: f64) -> String {
    let value = share * 100.0;
    if !value.is_finite() {
        return UNKNOWN.to_owned();
    }
    if value.abs() >= 9.95 {
        return format!("{} %", quantity_of_whole(value.round()));
    }
    // A share that is rounded to nothing has no sign.
    let sign = if value <= -0.05 { "−" } else { "" };
    format!("{sign}{:.1} %", value.abs())
}

/// A ratio: "2.28×".
pub(crate) fn times(ratio: f64) -> String {
    finite(ratio, |ratio| format!("{}×", quantity(ratio)))
}

/// A number as somebody else wrote it: "2.3", "163", "1,968.618".
pub(crate) fn given(value: f64) -> String {
    if !value.is_finite() {
        return UNKNOWN.to_owned();
    }
    let text = trimmed(value.abs());
    let (whole, rest) = text.split_once('.').map_or((text.as_str(), ""), |(whole, rest)| (whole, rest));
    let whole = whole.parse().map_or(whole.to_owned(), group_digits);
    let sign = if value < 0.0 { "−" } else { "" };
    if rest.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{rest}") }
}

/// A number on an axis: as short as it can be.
pub(crate) fn tick(value: f64) -> String {
    if !value.is_finite() {
        return UNKNOWN.to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    if value.abs() >= 1e6 {
        return format!("{} M", trimmed(value / 1e6));
    }
    if value.abs() >= 1.0 && value.fract() == 0.0 {
        return quantity_of_whole(value);
    }
    trimmed(value)
}

fn quantity_of_whole(value: f64) -> String {
    let text = group_digits(value.abs() as u64);
    if value < 0.0 { format!("−{text}") } else { text }
}

fn trimmed(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Bytes with a decimal unit: "32 GB".
pub(crate) fn bytes(bytes: u64) -> String {
    forebay_units::Bytes(bytes).to_string()
}

/// Seconds as people say them: "0.42 s", "48 s", "3 min 20 s".
pub(crate) fn seconds(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 120.0 {
        return brief_seconds(seconds);
    }
    let whole = seconds.round() as u64;
    match (whole / 3600, whole / 60 % 60, whole % 60) {
        (0, minutes, rest) => format!("{minutes} min {rest} s"),
        (hours, minutes, _) => format!("{} h {minutes} min", group_digits(hours)),
    }
}

/// Seconds in a sentence: "0.42 s", "200 s"; less than a tenth in a smaller unit: "74.2 ms", "120 µs".
pub(crate) fn brief_seconds(seconds: f64) -> String {
    let is_small = seconds != 0.0 && seconds.abs() < 0.0995;
    if is_small { microseconds(seconds * 1e6) } else { finite(seconds, |seconds| format!("{} s", quantity(seconds))) }
}

/// Microseconds with a fitting unit: "85 µs", "1.20 ms", "2.31 s".
pub(crate) fn microseconds(us: f64) -> String {
    match us {
        us if !us.is_finite() => UNKNOWN.to_owned(),
        us if us.abs() < 999.5 => format!("{} µs", quantity(us)),
        us if us.abs() < 999_500.0 => format!("{} ms", quantity(us / 1e3)),
        _ => format!("{} s", quantity(us / 1e6)),
    }
}

/// A power of two as people name it: "64 KiB".
pub(crate) fn binary(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..0x10_0000 => format!("{} KiB", bytes >> 10),
        0x10_0000..0x4000_0000 => format!("{} MiB", bytes >> 20),
        _ => format!("{} GiB", bytes >> 30),
    }
}

pub(crate) fn was(n: u64) -> &'static str {
    if n == 1 { "was" } else { "were" }
}

/// Each once, where it is first met.
pub(crate) fn distinct<T: PartialEq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut known = Vec::new();
    for item in all {
        if !known.contains(&item) {
            known.push(item);
        }
    }
    known
}

/// Names in a row: "a", "a and b", "a, b and c".
pub(crate) fn listed<T: AsRef<str>>(words: &[T]) -> String {
    match words {
        [] => String::new(),
        [one] => one.as_ref().to_owned(),
        [first @ .., last] => {
            let first: Vec<&str> = first.iter().map(AsRef::as_ref).collect();
            format!("{} and {}", first.join(", "), last.as_ref())
        }
    }
}

pub(crate) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().collect::<String>() + chars.as_str()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_matter() {
        let written = [0.0, 0.012_34, 0.12, 1.948, 9.996, 26.25, 99.96, 262.4, 12_345.6, -3.0].map(quantity);
        assert_eq!(written, ["0.00", "0.0123", "0.12", "1.95", "10.0", "26.2", "100", "262", "12,346", "−3.00"]);
        assert_eq!(quantity(2.5e-7), "2.5e-7");
    }

    #[test]
    fn units_fit_the_size() {
        assert_eq!([0.004, 0.83, 1.304].map(percent), ["0.4 %", "83 %", "130 %"]);
        assert_eq!([-0.059, -0.0001, -0.2].map(percent), ["−5.9 %", "0.0 %", "−20 %"]);
        assert_eq!([0.5, 100.0, 1_000.0, 2_500_000.0].map(tick), ["0.5", "100", "1,000", "2.5 M"]);
        assert_eq!([0.42, 48.0, 200.0, 7_260.0].map(seconds), ["0.42 s", "48.0 s", "3 min 20 s", "2 h 1 min"]);
        assert_eq!(
            [0.42, 1.2e-4, -1.2e-4, 1.2e-5, 0.0].map(seconds),
            ["0.42 s", "120 µs", "−120 µs", "12.0 µs", "0.00 s"]
        );
        assert_eq!(brief_seconds(200.0), "200 s");
        assert_eq!([85.0, 1_200.0, 2_310_000.0].map(microseconds), ["85.0 µs", "1.20 ms", "2.31 s"]);
    }

    #[test]
    fn what_is_not_finite_is_unknown() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for show in [quantity, percent, times, given, tick, seconds, brief_seconds, microseconds] {
                assert_eq!(show(value), "–");
            }
        }
    }

    #[test]
    fn what_is_given_keeps_its_digits() {
        assert_eq!([2.3, 163.0, 1_968.618, 7.8].map(given), ["2.3", "163", "1,968.618", "7.8"]);
    }

    #[test]
    fn the_last_of_several_names_has_an_and() {
        assert_eq!(listed(&["hdd"]), "hdd");
        assert_eq!(listed(&["hdd", "ssd", "optane"]), "hdd, ssd and optane");
    }
}
