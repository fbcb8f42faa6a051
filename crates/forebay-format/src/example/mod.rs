//! `tf.train.Example`: a map from names to lists, as a protobuf message.
//!
//! ```text
//! message Example   { Features features = 1; }
//! message Features  { map<string, Feature> feature = 1; }
//! message Feature   { oneof kind { BytesList bytes_list = 1; FloatList float_list = 2; Int64List int64_list = 3; } }
//! ```
//!
//! The schema is small and frozen, so the wire format is read and written here directly. [`find`] looks up one feature
//! without allocating, [`Example`] unpacks all, [`ExampleWriter`] builds a message, [`ImageExample`] is the convention
//! that forebay writes, and [`Keys`] finds image and label in records of other conventions.

mod around;
mod feature;
mod image;
mod keys;
mod wire;
mod writer;

use feature::message;
use wire::Slice;

use crate::Error;

pub use around::Around;
pub use feature::{Feature, FeatureKind, FeatureView};
pub use image::{ImageExample, filename};
pub use keys::{ImageRecord, KeyNames, Keys};
pub use writer::ExampleWriter;

/// All features of a message, by name.
#[derive(Debug, Clone, PartialEq)]
pub struct Example<'a> {
    features: Vec<(&'a str, Feature<'a>)>,
}

impl<'a> Example<'a> {
    /// Unpacks every feature. If a name occurs twice, the last value counts, as in protobuf maps.
    ///
    /// # Errors
    /// When the payload is not a `tf.train.Example`; offsets are relative to the payload.
    pub fn parse(payload: &'a [u8]) -> Result<Self, Error> {
        let mut features = Vec::new();
        each_entry(payload, |name, body| {
            let text = std::str::from_utf8(name.bytes)
                .map_err(|error| Error::invalid("example: feature name", name.offset, "UTF-8", error))?;
            features.push((text, FeatureView::new(body)?.to_feature()?));
            Ok(())
        })?;
        // The sort is stable: the last of several equal names stays last and is kept.
        features.sort_by_key(|(name, _)| *name);
        features.reverse();
        features.dedup_by_key(|(name, _)| *name);
        features.reverse();
        Ok(Self { features })
    }

    pub fn get(&self, name: &str) -> Option<&Feature<'a>> {
        let at = self.features.binary_search_by_key(&name, |(name, _)| *name).ok()?;
        Some(&self.features[at].1)
    }

    /// All features, ordered by name.
    pub fn features(&self) -> impl ExactSizeIterator<Item = (&'a str, &Feature<'a>)> {
        self.features.iter().map(|(name, feature)| (*name, feature))
    }
}

/// Looks up one feature without unpacking the others or allocating anything.
///
/// # Errors
/// When the payload is not a `tf.train.Example`. Features other than the one asked for are skipped unread.
pub fn find<'a>(payload: &'a [u8], name: &str) -> Result<Option<FeatureView<'a>>, Error> {
    let mut found = None;
    each_entry(payload, |key, body| {
        if key.bytes == name.as_bytes() {
            found = Some(body);
        }
        Ok(())
    })?;
    found.map(FeatureView::new).transpose()
}

/// Visits the name and the body of every feature in file order.
fn each_entry<'a>(
    payload: &'a [u8],
    mut visit: impl FnMut(Slice<'a>, Slice<'a>) -> Result<(), Error>,
) -> Result<(), Error> {
    for field in Slice::whole(payload).fields() {
        let (1, features) = field? else { continue };
        for entry in message(features, 0)?.fields() {
            let (1, entry) = entry? else { continue };
            let (name, body) = name_and_body(message(entry, 0)?)?;
            visit(name, body)?;
        }
    }
    Ok(())
}

/// The sequence names of a `tf.SequenceExample`, which has its features in the same field as an `Example` and its
/// sequences in a second one; empty for anything else.
fn sequence_names(payload: &[u8]) -> Vec<String> {
    let second = |(number, value)| if number == 2 { message(value, 0).ok() } else { None };
    let entries = Slice::whole(payload).fields().flatten().filter_map(second).flat_map(Slice::fields).flatten();
    let entry = |(number, value)| if number == 1 { message(value, 0).ok() } else { None };
    let names = entries.filter_map(entry).filter_map(|entry| name_and_body(entry).ok());
    names.map(|(name, _)| String::from_utf8_lossy(name.bytes).into_owned()).collect()
}

/// A map entry; a missing key or value is an empty one.
fn name_and_body(entry: Slice<'_>) -> Result<(Slice<'_>, Slice<'_>), Error> {
    let empty = Slice { bytes: &[], offset: entry.offset };
    let (mut name, mut body) = (empty, empty);
    for field in entry.fields() {
        match field? {
            (1, value) => name = message(value, entry.offset)?,
            (2, value) => body = message(value, entry.offset)?,
            _ => {}
        }
    }
    Ok((name, body))
}

#[cfg(test)]
mod keys_tests;
#[cfg(test)]
mod tests;
