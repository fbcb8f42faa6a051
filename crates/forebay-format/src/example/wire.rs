//! The part of the protobuf wire format that `tf.train.Example` needs.

use forebay_units::varint;

use crate::Error;

const VARINT: u8 = 0;
const FIXED64: u8 = 1;
const LEN: u8 = 2;
const FIXED32: u8 = 5;

/// One field of a message. Fixed64 values occur only in fields we do not know and are skipped.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value<'a> {
    Varint(u64),
    Fixed32([u8; 4]),
    Fixed64,
    Message(Slice<'a>),
}

impl Value<'_> {
    pub(super) fn wire_type(&self) -> &'static str {
        match self {
            Self::Varint(_) => "a varint",
            Self::Fixed32(_) => "four bytes",
            Self::Fixed64 => "eight bytes",
            Self::Message(_) => "a length-delimited field",
        }
    }
}

/// Bytes of a message with their offset in the payload.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Slice<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) offset: u64,
}

impl<'a> Slice<'a> {
    pub(super) fn whole(bytes: &'a [u8]) -> Self {
        Self { bytes, offset: 0 }
    }

    pub(super) fn fields(self) -> Fields<'a> {
        Fields { rest: self }
    }

    fn advance(&mut self, n: usize) -> &'a [u8] {
        let (head, tail) = self.bytes.split_at(n);
        *self = Self { bytes: tail, offset: self.offset + n as u64 };
        head
    }

    fn take(&mut self, n: u64) -> Result<Self, Error> {
        let available = self.bytes.len() as u64;
        if available < n {
            return Err(Error::truncated("example: field", self.offset, n, available));
        }
        let offset = self.offset;
        Ok(Self { bytes: self.advance(n as usize), offset })
    }

    pub(super) fn take_four(&mut self) -> Result<[u8; 4], Error> {
        Ok(self.take(4)?.bytes.try_into().expect("four bytes were taken"))
    }

    pub(super) fn take_varint(&mut self) -> Result<u64, Error> {
        let (mut rest, found) = (self.bytes, self.bytes.len());
        let value = varint::take(&mut rest).map_err(|invalid| match invalid {
            varint::Invalid::Truncated => {
                Error::truncated("example: varint", self.offset, found as u64 + 1, found as u64)
            }
            varint::Invalid::TooLong => Error::invalid("example: varint", self.offset, "at most 64 bits", "more"),
        })?;
        self.advance(found - rest.len());
        Ok(value)
    }

    fn take_field(&mut self) -> Result<(u64, Value<'a>), Error> {
        let offset = self.offset;
        let tag = self.take_varint()?;
        let value = match (tag & 7) as u8 {
            VARINT => Value::Varint(self.take_varint()?),
            FIXED64 => self.take(8).map(|_| Value::Fixed64)?,
            FIXED32 => Value::Fixed32(self.take_four()?),
            LEN => {
                let len = self.take_varint()?;
                Value::Message(self.take(len)?)
            }
            other => return Err(Error::invalid("example: wire type", offset, "0, 1, 2 or 5", other)),
        };
        match tag >> 3 {
            0 => Err(Error::invalid("example: field number", offset, "1 or more", 0)),
            number => Ok((number, value)),
        }
    }
}

/// The fields of a message in order. Ends after an error.
pub(super) struct Fields<'a> {
    rest: Slice<'a>,
}

impl<'a> Fields<'a> {
    /// Offset of the next field.
    pub(super) fn rest(&self) -> Slice<'a> {
        self.rest
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Value<'a>), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.bytes.is_empty() {
            return None;
        }
        let field = self.rest.take_field();
        if field.is_err() {
            self.rest.bytes = &[];
        }
        Some(field)
    }
}

/// Appends a length-delimited field. Our field numbers are below 16, so that the tag is one byte.
pub(super) fn put_message(out: &mut Vec<u8>, number: u8, body: &[u8]) {
    out.push(number << 3 | LEN);
    varint::put(out, body.len() as u64);
    out.extend_from_slice(body);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_varint_of_eleven_bytes_is_refused() {
        assert!(matches!(Slice::whole(&[0xff; 11]).take_varint(), Err(Error::Invalid { .. })));
        assert!(matches!(Slice::whole(&[0xff; 9]).take_varint(), Err(Error::Truncated { .. })));
    }

    #[test]
    fn a_length_beyond_the_message_is_truncation_at_the_field() {
        let error = Slice::whole(&[1 << 3 | LEN, 5, 0, 0]).fields().next().unwrap().unwrap_err();
        assert_eq!(error.to_string(), "example: field at offset 2: truncated: 5 bytes needed, 2 found");
    }

    proptest! {
        #[test]
        fn varints_round_trip(value in any::<u64>()) {
            let mut bytes = Vec::new();
            varint::put(&mut bytes, value);
            prop_assert_eq!(Slice::whole(&bytes).take_varint().unwrap(), value);
        }
    }
}
