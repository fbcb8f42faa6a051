//! JSON as Python writes it, with `NaN` and `Infinity`, which are not valid JSON.

use serde::de::DeserializeOwned;

/// Parses one of DLIO's files; `NaN` and `Infinity` become null.
///
/// # Errors
/// When it is otherwise not JSON, or not of the expected type.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    serde_json::from_str(&without_nan(text))
}

/// The text with `null` for `NaN`, `Infinity` and `-Infinity` outside of strings.
fn without_nan(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['"', 'N', 'I', '-']) {
        clean.push_str(&rest[..at]);
        rest = &rest[at..];
        let taken = match ["NaN", "-Infinity", "Infinity"].iter().find(|word| rest.starts_with(**word)) {
            Some(word) => {
                clean.push_str("null");
                word.len()
            }
            None => {
                let len = if rest.starts_with('"') { string_len(rest) } else { 1 };
                clean.push_str(&rest[..len]);
                len
            }
        };
        rest = &rest[taken..];
    }
    clean.push_str(rest);
    clean
}

/// Length of the string at the start of a text, including quotes; the whole text if the string does not end.
fn string_len(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_is_no_number_is_nothing_and_strings_stay() {
        let text = r#"{"a": NaN, "b": [-Infinity, 1.5, -2, Infinity], "NaN": "a \"NaN\\\" NaN\\", "c": "é-NaN"}"#;
        let value: Value = parse(text).unwrap();
        let wanted = json!({"a": null, "b": [null, 1.5, -2, null], "NaN": "a \"NaN\\\" NaN\\", "c": "é-NaN"});
        assert_eq!(value, wanted);
        assert!(parse::<Value>("{\"a\": NaN").is_err());
        assert!(parse::<Value>("\"never ends").is_err());
    }
}
