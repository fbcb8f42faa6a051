//! The escape on known paths, on any bytes and on any text.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use super::*;

/// Bytes of a path, and its text.
const VECTORS: &[(&[u8], &str)] = &[
    (b"", ""),
    (b"/data/cats/1.jpg", "/data/cats/1.jpg"),
    (b"-leading dash and spaces ", "-leading dash and spaces "),
    (b"100%'\"`$HOME", "100%'\"`$HOME"),
    ("ä/猫.jpg".as_bytes(), "ä/猫.jpg"),
    (b"a\\b", r"a\\b"),
    (br"a\xffb", r"a\\xffb"),
    (b"ph\xffotos", r"ph\xffotos"),
    (b"\xff\xfe\\\n", r"\xff\xfe\\\x0a"),
    (b"two\nlines", r"two\x0alines"),
    (b"\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
    (b"\x01\t\r\x7f", r"\x01\x09\x0d\x7f"),
    // A truncated character, an overlong one, a surrogate, and a control character of two bytes.
    (b"\xc3", r"\xc3"),
    (b"\xc0\xaf", r"\xc0\xaf"),
    (b"\xed\xa0\x80", r"\xed\xa0\x80"),
    (b"\xc2\x9b0m", r"\xc2\x9b0m"),
    // U+FFFD itself is valid and is not what an invalid byte becomes.
    (b"\xef\xbf\xbd\xff", "\u{fffd}\\xff"),
];

#[test]
fn every_vector_is_written_as_listed_and_read_back() {
    for (bytes, text) in VECTORS {
        assert_eq!(OsStr::from_bytes(bytes).escaped(), *text);
        assert_eq!(unescape(text).unwrap().as_bytes(), *bytes, "{text}");
    }
}

#[test]
fn an_ordinary_path_is_borrowed_as_it_is() {
    assert!(matches!(Path::new("/data/ä 1.jpg").escaped(), Cow::Borrowed("/data/ä 1.jpg")));
}

#[test]
fn a_text_with_control_characters_of_its_own_and_upper_case_digits_is_read() {
    assert_eq!(unescape("a\nb").unwrap(), "a\nb");
    assert_eq!(unescape(r"\xFF").unwrap().as_bytes(), b"\xff");
}

#[test]
fn a_backslash_that_escapes_nothing_is_refused_with_what_was_expected() {
    for text in [r"a\", r"\n", r"\x", r"\x1", r"\xg0", r"C:\data", "\\xä"] {
        let error = unescape(text).unwrap_err().to_string();
        assert_eq!(error, format!(r#""{text}" is not a path: expected \\ or \xNN after a backslash"#));
    }
    assert_eq!(unescape(r"a\x00").unwrap_err().reason, r"a path cannot contain \x00");
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_written_printably_and_read_back(bytes in proptest::collection::vec(1u8..=255, 0..40)) {
        let path = OsString::from_vec(bytes);
        let text = path.escaped().into_owned();
        proptest::prop_assert!(!text.chars().any(char::is_control), "{:?}", text);
        proptest::prop_assert_eq!(unescape(&text).unwrap(), path);
    }

    #[test]
    fn any_text_is_read_or_refused_without_a_panic(text in "(\\PC|\\\\|x|[0-9a-f])*") {
        let _ = unescape(&text);
    }
}
