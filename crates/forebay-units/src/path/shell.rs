//! Words of a command line that can be pasted into a shell.

use std::ffi::OsStr;

use super::PathText;

/// A word as bash reads it: plain where it needs no quotes, in `'…'` where it holds text, and in `$'…'` where it holds
/// control characters or bytes that are not UTF-8, so the script or the hint it stands in stays text.
pub fn shell_word(word: impl AsRef<OsStr>) -> String {
    let word = word.as_ref();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=+,@%".contains(c);
    match word.to_str() {
        Some(text) if !text.is_empty() && text.chars().all(is_plain) => text.to_owned(),
        Some(text) if !text.chars().any(char::is_control) => format!("'{}'", text.replace('\'', r"'\''")),
        _ => format!("$'{}'", word.escaped().replace('\'', r"\'")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;
    use std::process::Command;

    #[test]
    fn a_word_is_quoted_only_where_it_must_be() {
        assert_eq!(shell_word("--data=/d/100%.jpg"), "--data=/d/100%.jpg");
        assert_eq!(shell_word(""), "''");
        assert_eq!(shell_word("/scratch/$USER"), "'/scratch/$USER'");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
        assert_eq!(shell_word(r"a\b"), r"'a\b'");
        assert_eq!(shell_word(OsStr::from_bytes(b"it's\xff\\a")), r"$'it\'s\xff\\a'");
    }

    #[test]
    fn bash_reads_every_word_back() {
        let words: [&[u8]; 6] =
            [b"ph\xffotos", b"two\nlines '\"$(x)`", b"\x1b[31m\\x41", b"\xffab\xfe0", b"-n", b"a\\b ~ *"];
        for word in words {
            let script = format!("printf '%s' {}", shell_word(OsStr::from_bytes(word)));
            let output = Command::new("bash").args(["-c", &script]).output().unwrap();
            assert_eq!(output.stdout, word, "{script}");
        }
    }
}
