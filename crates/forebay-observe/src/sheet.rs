//! The row being assembled: values by column, columns in the order in which they first appeared.

/// A column's name in two parts, as the sources supply it.
#[derive(Debug)]
struct Key {
    subject: String,
    quantity: &'static str,
}

/// The columns known so far and the values of one row.
///
/// Sources add their values in the same order at every tick, so the next column is nearly always the one after the
/// last, and nothing is allocated.
#[derive(Debug, Default)]
pub(crate) struct Sheet {
    keys: Vec<Key>,
    names: Vec<String>,
    values: Vec<Option<f64>>,
    next: usize,
}

impl Sheet {
    /// Starts a row without values.
    pub(crate) fn begin(&mut self) {
        self.values.fill(None);
        self.next = 0;
    }

    pub(crate) fn put(&mut self, subject: &str, quantity: &'static str, value: Option<f64>) {
        let is_it = |key: &Key| key.quantity == quantity && key.subject == subject;
        let guess = self.keys.get(self.next).is_some_and(is_it).then_some(self.next);
        let index = guess.or_else(|| self.keys.iter().position(is_it)).unwrap_or_else(|| {
            self.keys.push(Key { subject: subject.to_owned(), quantity });
            self.names.push(format!("{subject}.{quantity}"));
            self.values.push(None);
            self.keys.len() - 1
        });
        // An unknown value is `None`; NaN and infinities must not enter a record.
        self.values[index] = value.filter(|value| value.is_finite());
        self.next = index + 1;
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    pub(crate) fn values(&self) -> &[Option<f64>] {
        &self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_keeps_its_place_and_what_is_not_put_is_unknown() {
        let mut sheet = Sheet::default();
        sheet.put("a", "x", Some(1.0));
        sheet.put("b", "x", Some(2.0));
        sheet.begin();
        sheet.put("b", "x", Some(3.0));
        sheet.put("c", "x", Some(f64::NAN));
        sheet.put("d", "x", Some(5.0));
        assert_eq!(sheet.names(), ["a.x", "b.x", "c.x", "d.x"]);
        assert_eq!(sheet.values(), [None, Some(3.0), None, Some(5.0)]);
    }
}
