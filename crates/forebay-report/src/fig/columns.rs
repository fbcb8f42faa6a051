//! The table behind a picture: each column says what it takes from an item.

use forebay_record::{Level, StudyCell};

use crate::data::{Data, Value};
use crate::level;
use crate::table::Align;

type Take<'a, T> = Box<dyn Fn(&T) -> Value + 'a>;

pub(super) struct Columns<'a, T>(Vec<(String, String, Align, Take<'a, T>)>);

impl<'a, T> Columns<'a, T> {
    pub(super) fn new() -> Self {
        Self(Vec::new())
    }

    pub(super) fn value(mut self, key: &str, name: &str, align: Align, take: impl Fn(&T) -> Value + 'a) -> Self {
        self.0.push((key.to_owned(), name.to_owned(), align, Box::new(take)));
        self
    }

    pub(super) fn text<S: Into<String>>(self, key: &str, name: &str, take: impl Fn(&T) -> S + 'a) -> Self {
        self.value(key, name, Align::Left, move |item| Value::text(take(item)))
    }

    /// A number, if there is one, on the right.
    pub(super) fn number<N: Into<Option<f64>>>(
        self,
        key: &str,
        name: &str,
        show: impl Fn(f64) -> String + 'a,
        take: impl Fn(&T) -> N + 'a,
    ) -> Self {
        self.value(key, name, Align::Right, move |item| Value::maybe(take(item).into(), &show))
    }

    pub(super) fn count<N: Into<Option<u64>>>(self, key: &str, name: &str, take: impl Fn(&T) -> N + 'a) -> Self {
        self.value(key, name, Align::Right, move |item| take(item).into().map_or(Value::Unknown, Value::count))
    }

    pub(super) fn factors(self, factors: Vec<&'a str>, cell: impl Fn(&T) -> &StudyCell + Copy + 'a) -> Self {
        factors.into_iter().fold(self, |columns, factor| {
            let value = move |item: &T| cell(item).level(factor).map_or(Value::Unknown, |of| level_value(factor, of));
            columns.value(factor, &level::words(factor), Align::Left, value)
        })
    }

    pub(super) fn of(self, items: impl IntoIterator<Item = T>) -> Data {
        let mut data = Data::default();
        for (key, name, align, _) in &self.0 {
            data.column(key, name, *align);
        }
        for item in items {
            data.row(self.0.iter().map(|(.., take)| take(&item)).collect());
        }
        data
    }
}

/// A level as a value: numbers stay numbers.
fn level_value(factor: &str, of: &Level) -> Value {
    match level::number(of) {
        Some(number) => Value::number(number, |_| level::bare(factor, of)),
        None => Value::text(level::bare(factor, of)),
    }
}

pub(super) fn factors<'a>(cells: &[&'a StudyCell]) -> Vec<&'a str> {
    let mut factors: Vec<&str> = cells.iter().flat_map(|cell| cell.factors.keys().map(String::as_str)).collect();
    factors.sort_unstable();
    factors.dedup();
    factors
}
