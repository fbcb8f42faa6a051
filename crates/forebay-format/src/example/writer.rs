//! Building a message, the same bytes for the same features.

use std::collections::BTreeMap;

use super::Feature;
use super::wire::put_message;

/// Collects features and writes them ordered by name, as TensorFlow's deterministic serialisation does.
///
/// ```
/// use forebay_format::example::{ExampleWriter, find};
///
/// let payload = ExampleWriter::new().ints("label", &[3]).bytes("name", &[b"cat"]).finish();
/// assert_eq!(find(&payload, "label")?.expect("was written").first_int()?, Some(3));
/// # Ok::<(), forebay_format::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct ExampleWriter {
    features: BTreeMap<String, Vec<u8>>,
}

impl ExampleWriter {
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a list of byte strings, replacing what was set under this name.
    pub fn bytes(self, name: &str, values: &[&[u8]]) -> Self {
        let mut list = Vec::with_capacity(values.iter().map(|value| value.len() + 11).sum());
        values.iter().for_each(|value| put_message(&mut list, 1, value));
        self.set(name, 1, &list)
    }

    /// Sets a list of floats, replacing what was set under this name.
    pub fn floats(self, name: &str, values: &[f32]) -> Self {
        let packed: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.set(name, 2, &packed_list(&packed))
    }

    /// Sets a list of integers, replacing what was set under this name.
    pub fn ints(self, name: &str, values: &[i64]) -> Self {
        let mut packed = Vec::new();
        values.iter().for_each(|&value| forebay_units::varint::put(&mut packed, value as u64));
        self.set(name, 3, &packed_list(&packed))
    }

    /// Sets a feature of any kind, replacing what was set under this name.
    pub fn feature(mut self, name: &str, feature: &Feature<'_>) -> Self {
        match feature {
            Feature::Bytes(values) => self.bytes(name, values),
            Feature::Floats(values) => self.floats(name, values),
            Feature::Ints(values) => self.ints(name, values),
            Feature::Unset => {
                self.features.insert(name.to_owned(), Vec::new());
                self
            }
        }
    }

    pub fn finish(self) -> Vec<u8> {
        let mut entries = Vec::with_capacity(self.features.values().map(|body| body.len() + 64).sum());
        for (name, body) in &self.features {
            let mut entry = Vec::with_capacity(name.len() + body.len() + 12);
            put_message(&mut entry, 1, name.as_bytes());
            put_message(&mut entry, 2, body);
            put_message(&mut entries, 1, &entry);
        }
        let mut out = Vec::with_capacity(entries.len() + 6);
        put_message(&mut out, 1, &entries);
        out
    }

    fn set(mut self, name: &str, kind: u8, list: &[u8]) -> Self {
        let mut body = Vec::with_capacity(list.len() + 6);
        put_message(&mut body, kind, list);
        self.features.insert(name.to_owned(), body);
        self
    }
}

/// An empty packed field is not written at all.
fn packed_list(packed: &[u8]) -> Vec<u8> {
    let mut list = Vec::with_capacity(packed.len() + 6);
    if !packed.is_empty() {
        put_message(&mut list, 1, packed);
    }
    list
}
