//! One section of a file, read key by key; keys left at the end are unknown.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use forebay_units::markdown::code;
use forebay_units::{Bytes, did_you_mean, group_digits, parse_duration, suggest};

use super::keys::{Key, Role};
use super::tree::Tree;
use super::{Note, Problem};
use crate::spec::Element;

/// Upper bound on every count and size of a file. Numbers are read as floats, which are exact up to it.
const MOST: f64 = 1e15;
pub(super) const MOST_COUNT: u64 = MOST as u64;

/// Problems and notes so far.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) problems: Vec<Problem>,
    pub(super) notes: Vec<Note>,
    pub(super) given: BTreeSet<String>,
    known: BTreeSet<String>,
    /// What each key may be, in the order in which keys are read.
    pub(super) keys: Vec<Key>,
    declared: BTreeSet<String>,
}

impl Findings {
    /// Names the other sections in which an unknown key exists.
    pub(super) fn say_where_unknown_keys_belong(&mut self) {
        let is_of_section = |key: &str| key.matches('.').count() < 2;
        for problem in self.problems.iter_mut().filter(|problem| problem.text == UNKNOWN && is_of_section(&problem.key))
        {
            let ending = format!(".{}", problem.key.rsplit('.').next().unwrap_or_default());
            let known = self.known.iter().map(String::as_str);
            let homes: Vec<String> = known
                .filter(|key| key.ends_with(&ending) && is_of_section(key))
                .map(|key| format!("`{key}`"))
                .collect();
            if !homes.is_empty() {
                problem.text = format!("{UNKNOWN}; did you mean {}?", homes.join(" or "));
            }
        }
    }
}

const UNKNOWN: &str = "unknown key";

/// A section: its entries are taken out as they are read.
pub(super) struct Section<'a> {
    path: String,
    entries: Vec<(String, Tree)>,
    known: Vec<&'static str>,
    findings: &'a mut Findings,
}

impl<'a> Section<'a> {
    /// A section of a value, which must be a table.
    pub(super) fn new(path: &str, value: Tree, findings: &'a mut Findings) -> Self {
        let mut section = Section { path: path.to_owned(), entries: Vec::new(), known: Vec::new(), findings };
        match value {
            Tree::Table(entries) => section.entries = entries,
            Tree::Null => {}
            other => section.refuse("", format!("expected a table of keys, found {}", other.kind())),
        }
        section
    }

    /// The full name of one of its keys.
    fn full(&self, key: &str) -> String {
        match (self.path.as_str(), key) {
            ("", "") => "the text".to_owned(),
            (path, "") => path.to_owned(),
            ("", key) => key.to_owned(),
            (path, key) => format!("{path}.{key}"),
        }
    }

    pub(super) fn refuse(&mut self, key: &str, text: impl Into<String>) {
        let key = self.full(key);
        self.findings.problems.push(Problem { key, text: text.into() });
    }

    pub(super) fn note(&mut self, key: &str, text: impl Into<String>) {
        let key = self.full(key);
        self.findings.notes.push(Note { key, text: text.into() });
    }

    /// Says what a key may be, for the list of all keys.
    pub(super) fn declare(&mut self, key: &str, role: Role) {
        let path = self.full(key);
        if self.findings.declared.insert(path.clone()) {
            self.findings.keys.push(Key { path, role });
        }
    }

    fn takes(&mut self, key: &str, value: impl Into<String>) {
        self.declare(key, Role::Honoured { value: value.into() });
    }

    /// Takes out a key's value; null counts as missing.
    pub(super) fn take(&mut self, key: &'static str) -> Option<Tree> {
        self.known.push(key);
        self.findings.known.insert(self.full(key));
        let at = self.entries.iter().position(|(name, _)| name == key)?;
        let value = Some(self.entries.remove(at).1).filter(|value| *value != Tree::Null)?;
        self.findings.given.insert(self.full(key));
        Some(value)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|(name, value)| name == key && *value != Tree::Null)
    }

    /// Whether a key has exactly this value.
    pub(super) fn is(&self, key: &str, value: &Tree) -> bool {
        self.entries.iter().any(|(name, given)| name == key && given == value)
    }

    /// A key without effect here, and why.
    pub(super) fn idle(&mut self, key: &'static str, why: &'static str) {
        self.declare(key, Role::Idle(why));
        if self.take(key).is_some() {
            self.note(key, why);
        }
    }

    /// A key that is not supported here, and why.
    pub(super) fn impossible(&mut self, key: &'static str, why: &'static str) {
        self.declare(key, Role::Refused(why));
        match self.take(key) {
            Some(Tree::Table(entries)) if entries.is_empty() => {}
            Some(_) => self.refuse(key, why),
            None => {}
        }
    }

    /// A section from a value already taken from the key.
    pub(super) fn child(&mut self, key: &str, value: Tree) -> Section<'_> {
        Section::new(&self.full(key), value, self.findings)
    }

    /// A subsection; empty if missing.
    pub(super) fn below(&mut self, key: &'static str) -> Section<'_> {
        let value = self.take(key).unwrap_or(Tree::Null);
        self.child(key, value)
    }

    pub(super) fn text(&mut self, key: &'static str) -> Option<String> {
        self.takes(key, "text");
        match self.take(key)? {
            Tree::Text(text) => Some(text),
            Tree::Int(number) => Some(number.to_string()),
            other => self.wrong(key, "a text", &other),
        }
    }

    pub(super) fn flag(&mut self, key: &'static str, target: &mut bool) {
        self.takes(key, "`true` or `false`");
        let Some(value) = self.take(key) else { return };
        let word = match &value {
            Tree::Bool(value) => Some(*value),
            Tree::Text(text) => match text.to_ascii_lowercase().as_str() {
                "true" | "yes" | "on" => Some(true),
                "false" | "no" | "off" => Some(false),
                _ => None,
            },
            _ => None,
        };
        if let Some(word) = word.or_else(|| self.wrong(key, "true or false", &value)) {
            *target = word;
        }
    }

    /// A number, or a text with a unit that `unit` parses.
    fn number(&mut self, key: &'static str, unit: fn(&str) -> Option<f64>) -> Option<f64> {
        let value = self.take(key)?;
        let number = number_of(&value, unit);
        match number {
            Some(number) if number.is_finite() => Some(number),
            Some(_) => self.wrong_text(key, "must be a finite number"),
            None => self.wrong(key, "a number", &value),
        }
    }

    /// A non-negative number.
    pub(super) fn amount(&mut self, key: &'static str, unit: fn(&str) -> Option<f64>) -> Option<f64> {
        match self.number(key, unit)? {
            number if number < 0.0 => self.wrong_text(key, &format!("must not be negative, is {number}")),
            number if number > MOST => self.wrong_text(key, &format!("must be at most {MOST_COUNT}, is {number:e}")),
            number => Some(number),
        }
    }

    pub(super) fn fraction(&mut self, key: &'static str, target: &mut f64) {
        self.takes(key, "number from 0 to 1");
        match self.amount(key, no_unit) {
            Some(value) if value <= 1.0 => *target = value,
            Some(value) => self.refuse(key, format!("must be at most 1, is {value}; 0.9 means 90 %")),
            None => {}
        }
    }

    /// Bytes, which may be fractional, like DLIO's mean lengths.
    pub(super) fn length(&mut self, key: &'static str, target: &mut f64) {
        self.takes(key, "bytes");
        if let Some(value) = self.amount(key, bytes) {
            *target = value;
        }
    }

    pub(super) fn seconds(&mut self, key: &'static str) -> Option<f64> {
        self.takes(key, "seconds");
        self.amount(key, seconds)
    }

    fn whole(&mut self, key: &'static str, unit: fn(&str) -> Option<f64>) -> Option<u64> {
        match self.amount(key, unit)? {
            number if number.fract() != 0.0 => self.wrong_text(key, &format!("must be a whole number, is {number}")),
            number => Some(number as u64),
        }
    }

    pub(super) fn count(&mut self, key: &'static str, least: u64, target: &mut u64) {
        self.count_within(key, least..=MOST_COUNT, target);
    }

    pub(super) fn count_within(&mut self, key: &'static str, bounds: RangeInclusive<u64>, target: &mut u64) {
        let (least, most) = bounds.into_inner();
        self.takes(key, whole(least, most));
        match self.whole(key, no_unit) {
            Some(value) if value < least => self.refuse(key, format!("must be at least {least}, is {value}")),
            Some(value) if value > most => self.refuse(key, format!("must be at most {most}, is {value}")),
            Some(value) => *target = value,
            None => {}
        }
    }

    pub(super) fn bytes(&mut self, key: &'static str, target: &mut u64) {
        self.takes(key, "whole bytes");
        if let Some(value) = self.whole(key, bytes) {
            *target = value;
        }
    }

    /// A count; -1 means none, as in DLIO.
    pub(super) fn count_or_none(&mut self, key: &'static str, bounds: RangeInclusive<u64>) -> Option<u64> {
        self.takes(key, format!("{}; -1 for none", whole(*bounds.start(), *bounds.end())));
        if self.is(key, &Tree::Int(-1)) {
            self.take(key);
            return None;
        }
        let mut value = u64::MAX;
        self.count_within(key, bounds, &mut value);
        (value != u64::MAX).then_some(value)
    }

    pub(super) fn counts(&mut self, key: &'static str) -> Option<Vec<u64>> {
        self.takes(key, "list of whole numbers");
        let items = match self.take(key)? {
            Tree::List(items) => items,
            other => return self.wrong(key, "a list of whole numbers", &other),
        };
        let whole = |item: &Tree| number_of(item, no_unit).filter(|n| n.fract() == 0.0 && (0.0..=MOST).contains(n));
        if let Some(other) = items.iter().find(|item| whole(item).is_none()) {
            let has = other.shown();
            return self.wrong_text(key, &format!("expected a list of non-negative whole numbers, found {has} in it"));
        }
        Some(items.iter().filter_map(whole).map(|number| number as u64).collect())
    }

    pub(super) fn choice<T: Copy>(&mut self, key: &'static str, words: &[(&str, T)]) -> Option<T> {
        self.takes(key, words.iter().map(|(word, _)| code(word)).collect::<Vec<_>>().join(", "));
        let value = self.take(key)?;
        let word = match &value {
            Tree::Text(text) => text.as_str(),
            // YAML reads DLIO's off as a boolean.
            Tree::Bool(value) => {
                if *value {
                    "on"
                } else {
                    "off"
                }
            }
            other => return self.wrong(key, "a word", other),
        };
        let lower = word.to_ascii_lowercase();
        let found = words.iter().find(|(name, _)| *name == lower).map(|(_, value)| *value);
        found.or_else(|| {
            let hint = suggest(&lower, words.iter().map(|(name, _)| *name)).unwrap_or_default();
            self.wrong_text(key, &format!("unknown value {}; {hint}", value.shown()))
        })
    }

    pub(super) fn element(&mut self, key: &'static str, target: &mut Element) {
        self.takes(key, "[element type](#element-types)");
        if let Some(element) = self.choice(key, &ELEMENTS) {
            *target = element;
        }
    }

    fn wrong<T>(&mut self, key: &str, wanted: &str, found: &Tree) -> Option<T> {
        let shown = if matches!(found, Tree::Text(_)) { found.shown() } else { found.kind().to_owned() };
        self.wrong_text(key, &format!("expected {wanted}, found {shown}"))
    }

    fn wrong_text<T>(&mut self, key: &str, text: &str) -> Option<T> {
        self.refuse(key, text);
        None
    }

    /// Ends the section: keys that were not read are unknown.
    pub(super) fn finish(mut self) {
        for (key, _) in std::mem::take(&mut self.entries) {
            let text = match did_you_mean(&key, self.known.iter().copied()) {
                Some(hint) => format!("{UNKNOWN}; {hint}"),
                None => UNKNOWN.to_owned(),
            };
            self.refuse(&key, text);
        }
    }
}

/// A whole number in words.
fn whole(least: u64, most: u64) -> String {
    match most {
        MOST_COUNT => format!("whole number from {least}"),
        most => format!("whole number from {least} to {}", group_digits(most)),
    }
}

/// A value as a number, including texts that YAML did not parse as one.
pub(super) fn number_of(value: &Tree, unit: fn(&str) -> Option<f64>) -> Option<f64> {
    match value {
        Tree::Int(number) => Some(*number as f64),
        Tree::Float(number) => Some(*number),
        Tree::Text(text) => text.replace('_', "").parse().ok().or_else(|| unit(text)),
        _ => None,
    }
}

pub(super) fn no_unit(_: &str) -> Option<f64> {
    None
}

fn bytes(text: &str) -> Option<f64> {
    text.parse::<Bytes>().ok().map(|Bytes(n)| n as f64)
}

pub(super) fn seconds(text: &str) -> Option<f64> {
    parse_duration(text).ok().map(|duration| duration.as_secs_f64())
}

/// Names of element types: NumPy's, PyTorch's short names, and ours.
pub(super) const ELEMENTS: [(&str, Element); 29] = [
    ("uint8", Element::U8),
    ("int8", Element::I8),
    ("uint16", Element::U16),
    ("int16", Element::I16),
    ("uint32", Element::U32),
    ("int32", Element::I32),
    ("uint64", Element::U64),
    ("int64", Element::I64),
    ("float16", Element::F16),
    ("bfloat16", Element::Bf16),
    ("float32", Element::F32),
    ("float64", Element::F64),
    ("u8", Element::U8),
    ("i8", Element::I8),
    ("u16", Element::U16),
    ("i16", Element::I16),
    ("u32", Element::U32),
    ("i32", Element::I32),
    ("u64", Element::U64),
    ("i64", Element::I64),
    ("f16", Element::F16),
    ("bf16", Element::Bf16),
    ("f32", Element::F32),
    ("f64", Element::F64),
    ("fp16", Element::F16),
    ("fp32", Element::F32),
    ("fp64", Element::F64),
    ("float", Element::F64),
    ("double", Element::F64),
];
