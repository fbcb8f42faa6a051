//! Local time in the format of DLIO's files.

use std::time::{SystemTime, UNIX_EPOCH};

/// Formats a time as Python does without a time zone: "2026-11-16T05:42:10.914314".
pub(crate) fn iso(at: SystemTime) -> String {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = since.as_secs() as libc::time_t;
    let mut parts = std::mem::MaybeUninit::<libc::tm>::zeroed();
    // SAFETY: both point to valid memory; if the call writes nothing, the zeroed structure is valid.
    let parts = unsafe {
        libc::localtime_r(&raw const seconds, parts.as_mut_ptr());
        parts.assume_init()
    };
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}",
        parts.tm_year + 1900,
        parts.tm_mon + 1,
        parts.tm_mday,
        parts.tm_hour,
        parts.tm_min,
        parts.tm_sec,
        since.subsec_micros()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_moment_has_microseconds_and_its_local_day() {
        let text = iso(UNIX_EPOCH + Duration::from_micros(1_800_000_000_123_456));
        assert!(text.starts_with("2027-01-1") && text.ends_with(".123456") && text.len() == 26, "{text}");
    }
}
