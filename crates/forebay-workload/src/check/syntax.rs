//! Syntax errors of YAML and TOML, with their place and in plain words.

use serde_saphyr::Error as Yaml;

use super::Problem;

/// Messages of the YAML parser, and our wording.
const SAID: [(&str, &str); 4] = [
    ("tabs disallowed", "tab in the indentation; YAML allows only spaces"),
    ("mapping values are not allowed", "unexpected key; all keys of a table need the same indentation"),
    ("unclosed bracket", "unclosed bracket"),
    ("quoted scalar", "unclosed quote"),
];

pub(super) fn of_yaml(error: &Yaml) -> Problem {
    let key = match error.location() {
        Some(place) => format!("line {}, column {}", place.line(), place.column()),
        None => "the text".to_owned(),
    };
    let text = match error.without_snippet() {
        Yaml::DuplicateMappingKey { key: Some(key), .. } => twice(key),
        Yaml::NonFiniteFloat { value, .. } => format!("{value} is not a finite number"),
        Yaml::MultipleDocuments { .. } => "second document; a file may hold only one workload".to_owned(),
        Yaml::UnknownAnchor { .. } => "alias (*name) without an earlier anchor (&name)".to_owned(),
        other => in_our_words(&other.to_string()),
    };
    Problem { key, text }
}

pub(crate) fn of_toml(error: &toml::de::Error, text: &str) -> Problem {
    let start = error.span().map_or(0, |span| span.start.min(text.len()));
    let (before, after) = text.split_at_checked(start).unwrap_or((text, ""));
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    let text = match error.message() {
        "duplicate key" => twice(after.split(['=', ']', '.', '\n']).next().unwrap_or_default().trim()),
        other => first_line(other).to_owned(),
    };
    Problem { key: format!("line {line}, column {column}"), text }
}

fn twice(key: &str) -> String {
    format!("duplicate key \"{key}\"")
}

/// The parser's message without its place, which is in the problem's key.
fn in_our_words(said: &str) -> String {
    let said = first_line(said);
    let said = said.rsplit_once(" at line ").map_or(said, |(before, _)| before);
    SAID.iter().find(|(theirs, _)| said.contains(theirs)).map_or(said, |(_, ours)| ours).to_owned()
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or("invalid syntax")
}
