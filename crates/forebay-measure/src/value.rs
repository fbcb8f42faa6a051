//! Parsers of setting values; each error says what is accepted.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use forebay_record::Level;
use forebay_storage::Mode;
use forebay_units::{Bytes, group_digits, parse_duration};

use crate::Refused;
use crate::settings::{Io, ThreadCount};

/// # Errors
/// If the value is neither true nor false.
pub fn flag(level: &Level) -> Result<bool, Refused> {
    match level {
        Level::Flag(value) => Ok(*value),
        _ => Err("give true or false".to_owned()),
    }
}

/// A whole number within the range and that of the type.
pub fn integer<T: TryFrom<i64>>(range: RangeInclusive<i64>) -> impl Fn(&Level) -> Result<T, Refused> {
    move |level| {
        let found = match level {
            Level::Integer(value) if range.contains(value) => T::try_from(*value).ok(),
            _ => None,
        };
        let group = |n: i64| group_digits(n.unsigned_abs());
        found.ok_or_else(|| format!("give a whole number from {} to {}", group(*range.start()), group(*range.end())))
    }
}

/// A seed, limited to the range of integers in TOML and JSON.
///
/// # Errors
/// If the number is out of that range.
pub fn seed(level: &Level) -> Result<u64, Refused> {
    integer(0..=i64::MAX)(level)
}

/// A finite number that passes `is_fine`; `wanted` describes valid numbers in the error.
pub fn number(wanted: &str, is_fine: impl Fn(f64) -> bool) -> impl Fn(&Level) -> Result<f64, Refused> {
    move |level| {
        let found = match level {
            Level::Number(value) => Some(*value),
            Level::Integer(value) => Some(*value as f64),
            Level::Flag(_) | Level::Text(_) => None,
        };
        found.filter(|value| value.is_finite() && is_fine(*value)).ok_or_else(|| format!("give {wanted}"))
    }
}

/// # Errors
/// If the value is a number or an empty text.
pub fn text(level: &Level) -> Result<String, Refused> {
    match level {
        Level::Text(value) if !value.trim().is_empty() => Ok(value.clone()),
        _ => Err("give a text".to_owned()),
    }
}

/// Parses with the type's own parser and error text.
pub fn parsed<T: FromStr<Err: Display>>(level: &Level) -> Result<T, Refused> {
    level.to_string().parse().map_err(|error: T::Err| error.to_string())
}

/// A size; a plain number counts bytes.
pub fn bytes(range: RangeInclusive<u64>) -> impl Fn(&Level) -> Result<Bytes, Refused> {
    move |level| {
        let found = match level {
            Level::Integer(value) => u64::try_from(*value).ok().map(Bytes),
            Level::Text(_) => Some(parsed::<Bytes>(level)?),
            Level::Number(_) | Level::Flag(_) => None,
        };
        let wanted = || format!("give a size from {} to {}, such as 1MiB", Bytes(*range.start()), Bytes(*range.end()));
        found.filter(|size| range.contains(&size.0)).ok_or_else(wanted)
    }
}

/// Bytes per second above 0: `100MB` or `100MB/s`.
///
/// # Errors
/// If the rate is 0 or not a size.
pub fn bytes_per_s(level: &Level) -> Result<Bytes, Refused> {
    let text = level.to_string();
    let rate = Level::of_text(text.strip_suffix("/s").unwrap_or(&text));
    bytes(1..=u64::MAX)(&rate).map_err(|_| "give a rate above 0, such as 100MB/s".to_owned())
}

/// A time within the range, such as `1s` or `250ms`.
pub fn duration(range: RangeInclusive<Duration>) -> impl Fn(&Level) -> Result<Duration, Refused> {
    move |level| {
        let found = parse_duration(&level.to_string()).ok().filter(|time| range.contains(time));
        let (least, most) = (range.start().as_secs_f64(), range.end().as_secs_f64());
        found.ok_or_else(|| format!("give a time from {least} to {most} s with its unit, such as 1s"))
    }
}

/// A share above 0 and at most 1: `5%` or `0.05`.
///
/// # Errors
/// If it is out of that range.
pub fn share(level: &Level) -> Result<f64, Refused> {
    let text = level.to_string();
    let found = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse().map(|n: f64| n / 100.0),
        None => text.parse(),
    };
    let found = found.ok().filter(|share| *share > 0.0 && *share <= 1.0);
    found.ok_or_else(|| "give a share above 0 and at most 100 %, such as 5%".to_owned())
}

/// For settings without a default.
pub fn some<T>(of: impl Fn(&Level) -> Result<T, Refused>) -> impl Fn(&Level) -> Result<Option<T>, Refused> {
    move |level| of(level).map(Some)
}

/// One value, or several in a text: `8`, `"1,8,32"`. Duplicates are removed.
pub fn list<T: PartialEq>(of: impl Fn(&Level) -> Result<T, Refused>) -> impl Fn(&Level) -> Result<Vec<T>, Refused> {
    move |level| {
        let Level::Text(text) = level else { return Ok(vec![of(level)?]) };
        let mut all = Vec::new();
        for piece in text.split(',').map(str::trim) {
            let value = of(&Level::of_text(piece));
            let value =
                value.map_err(|refused| if piece == text { refused } else { format!("\"{piece}\": {refused}") })?;
            if !all.contains(&value) {
                all.push(value);
            }
        }
        Ok(all)
    }
}

/// The value of a word from a fixed list.
pub fn one_of<T: Clone>(words: impl IntoIterator<Item = (&'static str, T)>) -> impl Fn(&Level) -> Result<T, Refused> {
    let words: Vec<_> = words.into_iter().collect();
    move |level| {
        let found = words.iter().find(|(word, _)| matches!(level, Level::Text(text) if text == word));
        found.map(|(_, value)| value.clone()).ok_or_else(|| {
            let all: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            match all.split_last() {
                Some((last, [_, ..])) => format!("give {} or {last}", all[..all.len() - 1].join(", ")),
                _ => format!("give {}", all.concat()),
            }
        })
    }
}

/// Like [`one_of`], for types made from the word itself.
pub fn word<T: From<&'static str> + Clone>(
    words: impl IntoIterator<Item = &'static str>,
) -> impl Fn(&Level) -> Result<T, Refused> {
    one_of(words.into_iter().map(|word| (word, T::from(word))))
}

/// Width and height: `224x224`, or the side of a square.
///
/// # Errors
/// If a side is 0 or longer than 16,384 pixels.
pub fn pixels(level: &Level) -> Result<(u32, u32), Refused> {
    let side = |text: &str| text.trim().parse().ok().filter(|n| (1..=16_384).contains(n));
    let text = level.to_string();
    let size = match text.split_once(['x', 'X', '×']) {
        None if matches!(level, Level::Integer(_)) => side(&text).map(|n| (n, n)),
        None => None,
        Some((width, height)) => side(width).zip(side(height)),
    };
    size.ok_or_else(|| "give WIDTHxHEIGHT or a side, from 1 to 16,384 pixels".to_owned())
}

/// A number of threads, or `auto`. In a study, `cores` has been replaced by a number before.
///
/// # Errors
/// If the number is below 1 or above 1,024.
pub fn threads(level: &Level) -> Result<ThreadCount, Refused> {
    match level {
        Level::Text(text) if text == "auto" => Ok(ThreadCount::Auto),
        number => integer(1..=1_024)(number)
            .map(ThreadCount::Fixed)
            .map_err(|_| "give a number from 1 to 1,024, or auto".to_owned()),
    }
}

/// # Errors
/// Lists the supported modes.
pub fn io(level: &Level) -> Result<Io, Refused> {
    match level {
        Level::Text(text) if text == "auto" => Ok(Io::Auto),
        _ => parsed::<Mode>(level).map(Io::Fixed).map_err(|error| format!("{error}, auto")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(text: &str) -> Level {
        Level::Text(text.to_owned())
    }

    #[test]
    fn every_kind_says_what_it_may_be() {
        assert_eq!(flag(&word("yes")).unwrap_err(), "give true or false");
        let eight = integer::<u64>(1..=1_024);
        for bad in [Level::Integer(0), Level::Number(1.5), Level::Integer(-1), Level::Integer(1_025), word("8")] {
            assert_eq!(eight(&bad).unwrap_err(), "give a whole number from 1 to 1,024", "{bad}");
        }
        assert_eq!(text(&Level::Integer(3)).unwrap_err(), "give a text");
        let size = bytes(4_096..=1_000_000);
        assert_eq!(size(&word("9TB")).unwrap_err(), "give a size from 4.1 KB to 1.0 MB, such as 1MiB");
        assert!(size(&word("2 ells")).unwrap_err().contains("unknown unit \"ells\""));
        assert_eq!(size(&word("64 KiB")), Ok(Bytes(65_536)));
        assert_eq!(size(&Level::Integer(5_000)), Ok(Bytes(5_000)));
        assert_eq!(one_of([("a", 1), ("b", 2), ("c", 3)])(&word("d")).unwrap_err(), "give a, b or c");
        assert_eq!(number("a number above 0", |n| n > 0.0)(&Level::Integer(0)).unwrap_err(), "give a number above 0");
    }

    #[test]
    fn a_rate_is_a_size_above_nothing_with_or_without_its_second() {
        for text in ["100MB/s", "100MB", "100000000", "100000000/s"] {
            assert_eq!(bytes_per_s(&Level::of_text(text)), Ok(Bytes(100_000_000)), "{text}");
        }
        for wrong in ["0", "0/s", "1MB/s/s", "1MB/", "/s", "-1"] {
            assert!(bytes_per_s(&Level::of_text(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_time_has_a_unit_and_a_share_may_be_in_percent() {
        let time = duration(Duration::ZERO..=Duration::from_secs(60));
        assert_eq!(time(&word("250ms")), Ok(Duration::from_millis(250)));
        assert_eq!(time(&word("2min")).unwrap_err(), "give a time from 0 to 60 s with its unit, such as 1s");
        assert_eq!((share(&word("5%")), share(&Level::Number(0.05))), (Ok(0.05), Ok(0.05)));
        for wrong in [word("0%"), word("101%"), Level::Integer(2), word("much")] {
            assert_eq!(share(&wrong).unwrap_err(), "give a share above 0 and at most 100 %, such as 5%", "{wrong}");
        }
    }

    #[test]
    fn a_list_is_one_value_or_several() {
        let depth = list(integer::<u64>(1..=64));
        assert_eq!(depth(&Level::Integer(8)), Ok(vec![8]));
        assert_eq!(depth(&word("1, 8,32,8")), Ok(vec![1, 8, 32]));
        assert_eq!(depth(&word("1,x")).unwrap_err(), "\"x\": give a whole number from 1 to 64");
        assert!(depth(&word("")).is_err());
    }

    #[test]
    fn pixels_are_a_side_or_two() {
        assert_eq!(pixels(&word("320x240")), Ok((320, 240)));
        assert_eq!(pixels(&Level::Integer(224)), Ok((224, 224)));
        for bad in [word("320"), word("0x4"), word("3x"), Level::Integer(20_000), Level::Flag(true)] {
            assert!(pixels(&bad).unwrap_err().contains("give WIDTHxHEIGHT"), "{bad}");
        }
    }
}
