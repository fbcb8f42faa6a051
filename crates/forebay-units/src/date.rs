//! Points in time as "2026-11-15T17:03:00Z", without a calendar library.

use std::time::Duration;

const DAY_S: u64 = 86_400;

/// Formats the time since 1970 as a date in UTC, with milliseconds unless they are zero.
pub fn format_utc(since_1970: Duration) -> String {
    let (days, rest) = (since_1970.as_secs() / DAY_S, since_1970.as_secs() % DAY_S);
    let (year, month, day) = civil(days);
    let fraction = match since_1970.subsec_millis() {
        0 => String::new(),
        millis => format!(".{millis:03}"),
    };
    let (hours, minutes, seconds) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}{fraction}Z")
}

/// Parses a UTC date into the time since 1970; `None` if the text is not such a date.
pub fn parse_utc(text: &str) -> Option<Duration> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let mut date = date.split('-').map(|part| part.parse::<u64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let mut time = time.split(':');
    let (hours, minutes): (u64, u64) = (time.next()?.parse().ok()?, time.next()?.parse().ok()?);
    let seconds: f64 = time.next()?.parse().ok()?;
    let in_range = (1970..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !in_range || hours > 23 || minutes > 59 || !(0.0..61.0).contains(&seconds) {
        return None;
    }
    let whole = days(year, month, day) * DAY_S + hours * 3_600 + minutes * 60;
    // Our dates have millisecond precision; rounding keeps .123 from becoming .122999.
    Some(Duration::from_secs(whole) + Duration::from_millis((seconds * 1e3).round() as u64))
}

/// Year, month and day of a day since 1970, by the civil-calendar algorithm with eras of 400 years.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

/// The inverse of [`civil`]: days since 1970. The year must not be before 1970.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let year = year - u64::from(month <= 2);
    let month_from_march = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let year_of_era = year % 400;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    year / 400 * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let date = |seconds| format_utc(Duration::from_secs(seconds));
        assert_eq!(date(0), "1970-01-01T00:00:00Z");
        assert_eq!(date(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(date(1_794_761_045), "2026-11-15T16:44:05Z");
        assert_eq!(format_utc(Duration::from_millis(1_794_761_045_007)), "2026-11-15T16:44:05.007Z");
    }

    #[test]
    fn what_is_not_a_date_is_none() {
        for text in ["", "2026-11-15", "2026-11-15T17:03:00", "2026-13-15T17:03:00Z", "1969-11-15T17:03:00Z", "aTbZ"] {
            assert_eq!(parse_utc(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_date_is_read_as_it_was_written(millis in 0u64..253_402_300_800_000) {
            let time = Duration::from_millis(millis);
            prop_assert_eq!(parse_utc(&format_utc(time)), Some(time));
        }
    }
}
