//! Values of settings: each kind read in one place, with what it may be in the message.

use std::ops::RangeInclusive;

use forebay_measure::{Io, ThreadCount};
use forebay_record::Level;
use forebay_units::{Bytes, group_digits};

/// Why a value is refused: "\"x\": give …".
pub(super) type Refused = String;

pub(super) fn flag(level: &Level) -> Result<bool, Refused> {
    match level {
        Level::Flag(value) => Ok(*value),
        other => Err(refuse(other, "true or false")),
    }
}

pub(super) fn integer(level: &Level, range: RangeInclusive<u64>) -> Result<u64, Refused> {
    let wanted = || format!("a whole number from {} to {}", range.start(), group_digits(*range.end()));
    match level {
        Level::Integer(value) => {
            u64::try_from(*value).ok().filter(|n| range.contains(n)).ok_or_else(|| refuse(level, &wanted()))
        }
        other => Err(refuse(other, &wanted())),
    }
}

pub(super) fn text(level: &Level) -> Result<&str, Refused> {
    match level {
        Level::Text(value) if !value.trim().is_empty() => Ok(value),
        other => Err(refuse(other, "a text")),
    }
}

pub(super) fn bytes(level: &Level, range: RangeInclusive<u64>) -> Result<Bytes, Refused> {
    let parsed = match level {
        Level::Integer(value) => u64::try_from(*value).ok().map(Bytes),
        Level::Text(value) => Some(value.parse().map_err(|error: forebay_units::ParseError| error.to_string())?),
        _ => None,
    };
    let wanted = || format!("a size from {} to {}, as \"1MiB\"", Bytes(*range.start()), Bytes(*range.end()));
    parsed.filter(|size| range.contains(&size.0)).ok_or_else(|| refuse(level, &wanted()))
}

/// One value, or several in a text: `8`, `"1,8,32"`.
pub(super) fn list<T>(level: &Level, of: impl Fn(&Level) -> Result<T, Refused>) -> Result<Vec<T>, Refused> {
    let Level::Text(text) = level else { return Ok(vec![of(level)?]) };
    let piece = |piece: &str| {
        let piece = piece.trim();
        of(&piece.parse().map_or_else(|_| Level::Text(piece.to_owned()), Level::Integer))
    };
    text.split(',').map(piece).collect()
}

/// "224x224" or 224.
pub(super) fn pixels(level: &Level) -> Result<(u32, u32), Refused> {
    let side = |n: u64| u32::try_from(n).ok().filter(|n| (1..=16_384).contains(n));
    let size = match level {
        Level::Integer(n) => u64::try_from(*n).ok().and_then(side).map(|n| (n, n)),
        Level::Text(text) => text
            .split_once('x')
            .and_then(|(width, height)| Some((side(width.trim().parse().ok()?)?, side(height.trim().parse().ok()?)?))),
        _ => None,
    };
    size.ok_or_else(|| refuse(level, "\"WIDTHxHEIGHT\" or a side, from 1 to 16,384 pixels"))
}

/// One of these names.
pub(super) fn named(level: &Level, names: impl Iterator<Item = &'static str>) -> Result<String, Refused> {
    let (text, names) = (text(level)?, names.collect::<Vec<_>>());
    match names.contains(&text) {
        true => Ok(text.to_owned()),
        false => Err(refuse(level, &format!("one of {}", names.join(", ")))),
    }
}

/// A number of threads, or `auto`. What stands for the machine's cores is a number by now.
pub(super) fn threads(level: &Level) -> Result<ThreadCount, Refused> {
    match level {
        Level::Text(text) if text == "auto" => Ok(ThreadCount::Auto),
        Level::Text(_) => Err(refuse(level, "a number from 1 to 1,024, \"auto\" or \"cores\"")),
        number => integer(number, 1..=1_024).map(|n| ThreadCount::Fixed(n as usize)),
    }
}

/// How files are read.
pub(super) fn io(level: &Level) -> Result<Io, Refused> {
    match text(level)? {
        "auto" => Ok(Io::Auto),
        text => text.parse().map(Io::Fixed).map_err(|error: String| format!("{error}, auto")),
    }
}

pub(super) fn refuse(level: &Level, wanted: &str) -> Refused {
    match level {
        Level::Text(text) => format!("\"{text}\": give {wanted}"),
        other => format!("{other}: give {wanted}"),
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
        assert_eq!(flag(&word("yes")).unwrap_err(), "\"yes\": give true or false");
        assert_eq!(integer(&Level::Integer(0), 1..=1024).unwrap_err(), "0: give a whole number from 1 to 1,024");
        assert_eq!(integer(&Level::Number(1.5), 1..=8).unwrap_err(), "1.5: give a whole number from 1 to 8");
        assert_eq!(integer(&Level::Integer(-1), 0..=8).unwrap_err(), "-1: give a whole number from 0 to 8");
        assert_eq!(text(&Level::Integer(3)).unwrap_err(), "3: give a text");
        let range = 4_096..=1_000_000;
        assert_eq!(
            bytes(&word("9TB"), range.clone()).unwrap_err(),
            "\"9TB\": give a size from 4.1 KB to 1.0 MB, as \"1MiB\""
        );
        assert!(bytes(&word("2 ells"), range.clone()).unwrap_err().contains("unknown unit \"ells\""));
        assert_eq!(bytes(&word("64 KiB"), range.clone()), Ok(Bytes(65_536)));
        assert_eq!(bytes(&Level::Integer(5_000), range), Ok(Bytes(5_000)));
    }

    #[test]
    fn a_list_is_one_value_or_several() {
        let depth = |level: &Level| integer(level, 1..=64);
        assert_eq!(list(&Level::Integer(8), depth), Ok(vec![8]));
        assert_eq!(list(&word("1, 8,32"), depth), Ok(vec![1, 8, 32]));
        assert_eq!(list(&word("1,x"), depth).unwrap_err(), "\"x\": give a whole number from 1 to 64");
        assert!(list(&word(""), depth).is_err());
    }

    #[test]
    fn pixels_are_a_side_or_two() {
        assert_eq!(pixels(&word("320x240")), Ok((320, 240)));
        assert_eq!(pixels(&Level::Integer(224)), Ok((224, 224)));
        for bad in [word("320"), word("0x4"), word("3x"), Level::Integer(20_000), Level::Flag(true)] {
            assert!(pixels(&bad).unwrap_err().contains("give \"WIDTHxHEIGHT\""), "{bad}");
        }
    }
}
