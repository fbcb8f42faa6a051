//! Values of files that another program wrote: used if valid, noted if not.

use std::cell::RefCell;

use serde_json::Value;

static NOTHING: Value = Value::Null;

/// Oddities so far, in order.
#[derive(Debug, Default)]
pub(super) struct Odd(RefCell<Vec<String>>);

impl Odd {
    pub(super) fn note(&self, text: impl Into<String>) {
        let text = text.into();
        let mut notes = self.0.borrow_mut();
        if !notes.contains(&text) {
            notes.push(text);
        }
    }

    pub(super) fn into_notes(self) -> Vec<String> {
        self.0.into_inner()
    }
}

/// A value with its place. A missing value counts as `null`, and so does `NaN`.
#[derive(Clone)]
pub(super) struct Found<'a> {
    at: String,
    value: &'a Value,
    odd: &'a Odd,
}

impl<'a> Found<'a> {
    pub(super) fn new(file: &str, value: &'a Value, odd: &'a Odd) -> Self {
        Self { at: file.to_owned(), value, odd }
    }

    pub(super) fn get(&self, key: &str) -> Self {
        let value = self.value.get(key).unwrap_or(&NOTHING);
        Self { at: format!("{}: {key}", self.at), value, odd: self.odd }
    }

    fn wrong(&self, expected: &str) {
        let shown: String = self.value.to_string().chars().take(40).collect();
        self.odd.note(format!("{}: expected {expected}, found {shown}", self.at));
    }

    pub(super) fn entries(&self) -> Vec<(&'a str, Self)> {
        match self.value {
            Value::Object(entries) => entries.keys().map(|key| (key.as_str(), self.get(key))).collect(),
            Value::Null => Vec::new(),
            _ => {
                self.wrong("a table");
                Vec::new()
            }
        }
    }

    /// A number, possibly written as a text or a boolean.
    pub(super) fn number(&self) -> Option<f64> {
        let number = number_of(self.value);
        let is_unset = self.value.is_null() || self.value.as_array().is_some_and(Vec::is_empty);
        if number.is_none() && !is_unset {
            self.wrong("a number");
        }
        number
    }

    /// A whole number that is not negative.
    pub(super) fn count(&self) -> Option<u64> {
        let number = self.number()?;
        let is_count = number >= 0.0 && number.fract() == 0.0 && number < 1e18;
        if !is_count {
            self.wrong("a count");
        }
        is_count.then_some(number as u64)
    }

    pub(super) fn text(&self) -> Option<String> {
        match self.value {
            Value::String(text) => Some(text.clone()),
            Value::Null => None,
            _ => {
                self.wrong("a text");
                None
            }
        }
    }

    /// The values of a list, or a single one.
    pub(super) fn numbers(&self) -> Vec<Option<f64>> {
        match self.value {
            Value::Null => Vec::new(),
            Value::Array(values) => {
                let numbers: Vec<Option<f64>> = values.iter().map(number_of).collect();
                let n_odd = numbers.iter().filter(|number| number.is_none()).count();
                if n_odd > 0 {
                    self.odd.note(format!("{}: {n_odd} of {} values are not numbers", self.at, values.len()));
                }
                numbers
            }
            _ => vec![self.number()],
        }
    }

    /// The first value of a list, or a single value.
    pub(super) fn first(&self) -> Option<f64> {
        self.numbers().first().copied().flatten()
    }
}

fn number_of(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        Value::Bool(is) => Some(f64::from(u8::from(*is))),
        _ => None,
    };
    number.filter(|number| number.is_finite())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_what_it_should_be_is_taken_and_the_rest_is_named() {
        let (file, odd) =
            (json!({"a": "0.25", "b": 3, "c": true, "d": [1, null, "x"], "e": {}, "f": 1.5}), Odd::default());
        let found = Found::new("x.json", &file, &odd);
        assert_eq!(
            (found.get("a").number(), found.get("b").count(), found.get("c").number()),
            (Some(0.25), Some(3), Some(1.0))
        );
        assert_eq!(found.get("d").numbers(), [Some(1.0), None, None]);
        assert_eq!((found.get("e").number(), found.get("f").count(), found.get("b").text()), (None, None, None));
        assert_eq!((found.get("none").number(), found.get("none").entries().len()), (None, 0));
        assert_eq!(
            odd.into_notes(),
            [
                "x.json: d: 2 of 3 values are not numbers",
                "x.json: e: expected a number, found {}",
                "x.json: f: expected a count, found 1.5",
                "x.json: b: expected a text, found 3",
            ]
        );
    }
}
