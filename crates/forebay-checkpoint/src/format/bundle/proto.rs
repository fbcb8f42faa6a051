//! The small part of protocol buffers that a bundle needs: writing and reading single fields.

use forebay_units::varint;

use crate::format::{Error, Place};

#[derive(Debug, Clone, Default)]
pub(super) struct Message(pub(super) Vec<u8>);

impl Message {
    /// A number. Zero is not written: an absent field means zero.
    pub(super) fn number(mut self, field: u64, value: u64) -> Self {
        if value != 0 {
            varint::put(&mut self.0, field << 3);
            varint::put(&mut self.0, value);
        }
        self
    }

    /// A string, bytes or nested message.
    pub(super) fn bytes(mut self, field: u64, value: impl AsRef<[u8]>) -> Self {
        let value = value.as_ref();
        varint::put(&mut self.0, field << 3 | 2);
        varint::put(&mut self.0, value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }

    /// Four bytes, written even when zero, so the length of the message does not depend on the value.
    pub(super) fn fixed32(mut self, field: u64, value: u32) -> Self {
        varint::put(&mut self.0, field << 3 | 5);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(super) fn message(self, field: u64, value: Self) -> Self {
        self.bytes(field, value.0)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Fixed32(u32),
    Fixed64,
}

/// A message being decoded, with the context for error messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'a> {
    pub(super) place: Place<'a>,
    pub(super) what: &'a str,
    pub(super) offset: u64,
    pub(super) bytes: &'a [u8],
}

impl<'a> Fields<'a> {
    /// The same for a nested message.
    pub(super) fn within(self, bytes: &'a [u8]) -> Self {
        Self { bytes, ..self }
    }

    /// Calls `each` with every field and its number.
    pub(super) fn for_each(self, mut each: impl FnMut(u64, Value<'a>) -> Result<(), Error>) -> Result<(), Error> {
        let mut rest = self.bytes;
        while !rest.is_empty() {
            let found = format!("byte {} of {}", self.bytes.len() - rest.len(), self.bytes.len());
            let (field, value) =
                take_field(&mut rest).ok_or_else(|| self.invalid("a field of a protocol buffer", found))?;
            each(field, value)?;
        }
        Ok(())
    }

    pub(super) fn invalid(self, expected: &str, found: impl ToString) -> Error {
        self.place.invalid(self.what, self.offset, expected, found)
    }
}

fn take_field<'a>(rest: &mut &'a [u8]) -> Option<(u64, Value<'a>)> {
    let tag = varint::take(rest).ok()?;
    let value = match tag & 7 {
        0 => Value::Number(varint::take(rest).ok()?),
        1 => {
            rest.split_off(..8)?;
            Value::Fixed64
        }
        2 => {
            let len = usize::try_from(varint::take(rest).ok()?).ok()?;
            Value::Bytes(rest.split_off(..len)?)
        }
        5 => Value::Fixed32(u32::from_le_bytes(rest.split_off(..4)?.try_into().ok()?)),
        _ => return None,
    };
    (tag >> 3 != 0).then_some((tag >> 3, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back_and_a_cut_message_is_an_error() {
        let message = Message::default().number(1, 300).number(2, 0).bytes(3, "ab").fixed32(6, 0);
        let fields = |bytes| {
            let mut found = Vec::new();
            let fields = Fields { place: Place { file: "f" }, what: "m", offset: 5, bytes };
            fields.for_each(|field, value| {
                found.push((field, value));
                Ok(())
            })?;
            Ok::<_, Error>(found)
        };
        let expected = [(1, Value::Number(300)), (3, Value::Bytes(b"ab")), (6, Value::Fixed32(0))];
        assert_eq!(fields(&message.0).expect("is whole"), expected);
        for cut in [1, 2, 4, 5, 8, 11] {
            let error = fields(&message.0[..cut]).expect_err("is cut");
            assert!(error.to_string().starts_with("f: m at offset 5: expected a field"), "{error}");
        }
    }
}
