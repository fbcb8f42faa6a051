//! One named feature: a list of byte strings, floats or integers.
//!
//! A feature is a protobuf `oneof`: if a message has several lists, the last kind counts, and consecutive lists of that
//! kind are one list. Numbers may be packed (as TensorFlow writes them) or not.

use super::wire::{Slice, Value};
use crate::Error;

#[derive(Debug, Clone, PartialEq)]
pub enum Feature<'a> {
    /// Byte strings, such as an encoded image.
    Bytes(Vec<&'a [u8]>),
    Floats(Vec<f32>),
    Ints(Vec<i64>),
    /// No list at all, which TensorFlow treats as a missing feature.
    Unset,
}

/// Which of the lists a feature holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeatureKind {
    Bytes,
    Floats,
    Ints,
}

/// A feature that was found but not unpacked: reading a value from it does not allocate.
#[derive(Debug, Clone, Copy)]
pub struct FeatureView<'a> {
    kind: Option<FeatureKind>,
    /// The feature's fields from the first list of the kind that counts.
    lists: Slice<'a>,
}

impl<'a> FeatureView<'a> {
    pub(super) fn new(body: Slice<'a>) -> Result<Self, Error> {
        let mut view = Self { kind: None, lists: body };
        let mut fields = body.fields();
        loop {
            let here = fields.rest();
            let Some(field) = fields.next() else { return Ok(view) };
            let kind = kind_of(field?.0);
            if kind.is_some() && kind != view.kind {
                view = Self { kind, lists: here };
            }
        }
    }

    pub fn kind(&self) -> Option<FeatureKind> {
        self.kind
    }

    /// The first byte string, if it holds byte strings.
    ///
    /// # Errors
    /// When the list is not valid protobuf.
    pub fn first_bytes(&self) -> Result<Option<&'a [u8]>, Error> {
        let mut first = None;
        self.each(FeatureKind::Bytes, |value| {
            if let Item::Bytes(bytes) = value {
                first = first.or(Some(bytes));
            }
        })?;
        Ok(first)
    }

    /// The first integer, if it holds integers.
    ///
    /// # Errors
    /// When the list is not valid protobuf.
    pub fn first_int(&self) -> Result<Option<i64>, Error> {
        let mut first = None;
        self.each(FeatureKind::Ints, |value| {
            if let Item::Int(int) = value {
                first = first.or(Some(int));
            }
        })?;
        Ok(first)
    }

    /// The integer, if it holds one and no more.
    ///
    /// # Errors
    /// When the list is not valid protobuf.
    pub fn one_int(&self) -> Result<Option<i64>, Error> {
        let (mut first, mut n) = (None, 0);
        self.each(FeatureKind::Ints, |value| {
            if let Item::Int(int) = value {
                (first, n) = (Some(int), n + 1);
            }
        })?;
        Ok(first.filter(|_| n == 1))
    }

    /// Unpacks all values.
    ///
    /// # Errors
    /// When the list is not valid protobuf.
    pub fn to_feature(&self) -> Result<Feature<'a>, Error> {
        let (mut bytes, mut floats, mut ints) = (Vec::new(), Vec::new(), Vec::new());
        let Some(kind) = self.kind else { return Ok(Feature::Unset) };
        self.each(kind, |value| match value {
            Item::Bytes(value) => bytes.push(value),
            Item::Float(value) => floats.push(value),
            Item::Int(value) => ints.push(value),
        })?;
        Ok(match kind {
            FeatureKind::Bytes => Feature::Bytes(bytes),
            FeatureKind::Floats => Feature::Floats(floats),
            FeatureKind::Ints => Feature::Ints(ints),
        })
    }

    fn each(&self, kind: FeatureKind, mut visit: impl FnMut(Item<'a>)) -> Result<(), Error> {
        if self.kind != Some(kind) {
            return Ok(());
        }
        for list in self.lists.fields() {
            let (number, value) = list?;
            if kind_of(number) == Some(kind) {
                each_in_list(kind, message(value, self.lists.offset)?, &mut visit)?;
            }
        }
        Ok(())
    }
}

enum Item<'a> {
    Bytes(&'a [u8]),
    Float(f32),
    Int(i64),
}

fn kind_of(number: u64) -> Option<FeatureKind> {
    match number {
        1 => Some(FeatureKind::Bytes),
        2 => Some(FeatureKind::Floats),
        3 => Some(FeatureKind::Ints),
        _ => None,
    }
}

fn each_in_list<'a>(kind: FeatureKind, list: Slice<'a>, visit: &mut impl FnMut(Item<'a>)) -> Result<(), Error> {
    for field in list.fields() {
        match (kind, field?) {
            (FeatureKind::Bytes, (1, Value::Message(bytes))) => visit(Item::Bytes(bytes.bytes)),
            (FeatureKind::Floats, (1, Value::Fixed32(bits))) => visit(Item::Float(f32::from_le_bytes(bits))),
            (FeatureKind::Floats, (1, Value::Message(mut packed))) => {
                while !packed.bytes.is_empty() {
                    visit(Item::Float(f32::from_le_bytes(packed.take_four()?)));
                }
            }
            (FeatureKind::Ints, (1, Value::Varint(value))) => visit(Item::Int(value as i64)),
            (FeatureKind::Ints, (1, Value::Message(mut packed))) => {
                while !packed.bytes.is_empty() {
                    visit(Item::Int(packed.take_varint()? as i64));
                }
            }
            (_, (1, value)) => return Err(wrong_type(value, list.offset)),
            _ => {}
        }
    }
    Ok(())
}

/// The body of a field that must be length-delimited.
pub(super) fn message(value: Value<'_>, offset: u64) -> Result<Slice<'_>, Error> {
    match value {
        Value::Message(body) => Ok(body),
        other => Err(Error::invalid("example: message", offset, "a length-delimited field", other.wire_type())),
    }
}

fn wrong_type(value: Value<'_>, offset: u64) -> Error {
    Error::invalid("example: list", offset, "values of the list's own type", value.wire_type())
}
