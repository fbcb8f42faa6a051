//! Types of the JSON Schema in words, and as tables.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde_json::{Map, Value};

/// The definitions of a schema, by name.
pub(crate) struct Types<'a>(pub(crate) &'a Map<String, Value>);

impl<'a> Types<'a> {
    /// The types that can be reached from one, itself included, in the order in which they are met.
    pub(crate) fn below(&self, name: &'a str) -> Vec<&'a str> {
        let mut found = Vec::new();
        self.reach(name, &mut BTreeSet::new(), &mut found);
        found
    }

    fn reach(&self, name: &'a str, seen: &mut BTreeSet<&'a str>, found: &mut Vec<&'a str>) {
        if seen.insert(name) {
            found.push(name);
            refs(&self.0[name]).into_iter().for_each(|next| self.reach(next, seen, found));
        }
    }

    /// The section of a type: its heading, what it is, and its fields or values.
    pub(crate) fn section(&self, name: &str, out: &mut String) {
        let schema = &self.0[name];
        write!(out, "\n### {name}\n\n{}\n", wrapped(said(schema))).expect("a string takes every write");
        match schema["oneOf"].as_array().or(schema["anyOf"].as_array()) {
            Some(choices) if name != "Measured" => self.choices(choices, out),
            Some(choices) => measured(choices, out),
            None => fields(schema, out),
        }
    }

    fn choices(&self, choices: &[Value], out: &mut String) {
        let head = if choices[0].get("const").is_some() { "value" } else { "type" };
        write!(out, "\n| {head} | meaning |\n|---|---|\n").expect("a string takes every write");
        for choice in choices {
            let value = match (&choice["const"], &choice["properties"]["line"]["const"]) {
                (Value::String(value), _) => format!("`{value}`"),
                (_, Value::String(line)) => format!("`\"line\": \"{line}\"` and the fields of {}", type_of(choice)),
                _ => type_of(choice),
            };
            row(out, &[&value, said(choice)]);
        }
    }
}

/// A table of the fields of a struct, in their order in the record.
fn fields(schema: &Value, out: &mut String) {
    out.push_str("\n| field | type | meaning |\n|---|---|---|\n");
    let required: Vec<&str> = words(&schema["required"]);
    let properties = schema["properties"].as_object().expect("a struct has fields");
    let optional = properties.keys().map(String::as_str).filter(|name| !required.contains(name));
    for name in required.iter().copied().chain(optional) {
        let field = &properties[name];
        let optional = if required.contains(&name) { "" } else { "; may be missing" };
        row(out, &[&format!("`{name}`"), &(type_of(field) + optional), said(field)]);
    }
}

/// One field of these is there.
fn measured(choices: &[Value], out: &mut String) {
    out.push_str("\n| the one field | type | meaning |\n|---|---|---|\n");
    for choice in choices {
        let (name, field) = choice["properties"].as_object().and_then(|one| one.iter().next()).expect("it has a field");
        row(out, &[&format!("`{name}`"), &type_of(field), said(choice)]);
    }
}

/// A type in words, with links to the sections of others.
pub(crate) fn type_of(schema: &Value) -> String {
    if let Some(value) = schema["const"].as_str() {
        return format!("`\"{value}\"`");
    }
    if let Some(name) = reference(schema) {
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        return choices.iter().map(type_of).collect::<Vec<_>>().join(" or ");
    }
    let kinds = words(&schema["type"]);
    kinds.iter().map(|kind| simple(kind, schema)).collect::<Vec<_>>().join(" or ")
}

fn simple(kind: &str, schema: &Value) -> String {
    match kind {
        "array" => format!("list of {}", type_of(&schema["items"])),
        "object" if schema.get("additionalProperties").is_some() => {
            let key =
                reference(&schema["propertyNames"]).map_or("name".to_owned(), |_| type_of(&schema["propertyNames"]));
            format!("object: {key} to {}", type_of(&schema["additionalProperties"]))
        }
        "object" => {
            let properties = schema["properties"].as_object().into_iter().flatten();
            let inside: Vec<String> = properties.map(|(name, field)| format!("`{name}`: {}", type_of(field))).collect();
            format!("{{ {} }}", inside.join(", "))
        }
        "boolean" => "true or false".to_owned(),
        other => other.to_owned(),
    }
}

/// The words of a keyword that has one or several.
fn words(value: &Value) -> Vec<&str> {
    match value {
        Value::Array(values) => values.iter().filter_map(Value::as_str).collect(),
        one => one.as_str().into_iter().collect(),
    }
}

fn reference(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.rsplit('/').next()
}

/// The types that a schema names, in the order of its fields.
fn refs(schema: &Value) -> Vec<&str> {
    let own = reference(schema).into_iter();
    let ordered = words(&schema["required"]).into_iter().filter_map(|name| schema["properties"].get(name));
    let nested =
        schema.as_object().into_iter().flatten().map(|(_, value)| value).chain(schema.as_array().into_iter().flatten());
    own.chain(ordered.flat_map(refs)).chain(nested.flat_map(refs)).collect()
}

fn said(schema: &Value) -> &str {
    schema["description"].as_str().unwrap_or_default()
}

/// A row of a table, in which a bar would end a cell.
pub(crate) fn row(out: &mut String, cells: &[&str]) {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|").replace("\n\n", " ")).collect();
    writeln!(out, "| {} |", cells.join(" | ").trim_end()).expect("a string takes every write");
}

/// Text in lines of at most 120 columns.
pub(crate) fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ').flat_map(|word| word.split_inclusive("\n\n")) {
        let line = lines.last_mut().expect("there is a first line");
        match line.chars().count() + word.chars().count() {
            0..120 if line.is_empty() => line.push_str(word),
            0..120 => *line += &format!(" {word}"),
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}
