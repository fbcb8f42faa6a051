//! Entries of a bundle's table: the header under the empty key, and the location of each tensor.

use super::proto::{Fields, Message, Value};
use super::unmask;
use crate::Dtype;
use crate::format::Error;

/// TensorFlow's type number for string tensors.
pub(super) const DT_STRING: u64 = 7;
/// TensorFlow's limit on the number of dimensions.
pub(super) const RANK_MAX: usize = 254;
/// The bundle version written and read here; no other version exists.
const VERSION: u64 = 1;

/// Our types with TensorFlow's numbers for them.
const DTYPES: [(Dtype, u64); 19] = [
    (Dtype::F32, 1),
    (Dtype::F64, 2),
    (Dtype::I32, 3),
    (Dtype::U8, 4),
    (Dtype::I16, 5),
    (Dtype::I8, 6),
    (Dtype::C64, 8),
    (Dtype::I64, 9),
    (Dtype::Bool, 10),
    (Dtype::Bf16, 14),
    (Dtype::U16, 17),
    (Dtype::C128, 18),
    (Dtype::F16, 19),
    (Dtype::U32, 22),
    (Dtype::U64, 23),
    (Dtype::F8E5m2, 24),
    (Dtype::F8E4m3, 25),
    (Dtype::F8E4m3Fnuz, 26),
    (Dtype::F8E5m2Fnuz, 28),
];

pub(super) fn dtype_numbered(number: u64) -> Option<Dtype> {
    DTYPES.into_iter().find(|(_, known)| *known == number).map(|(dtype, _)| dtype)
}

pub(super) fn number_of(dtype: Dtype) -> Option<u64> {
    DTYPES.into_iter().find(|(known, _)| *known == dtype).map(|(_, number)| number)
}

/// The header of a little-endian bundle with one shard.
pub(super) fn encode_header() -> Vec<u8> {
    Message::default().number(1, 1).message(3, Message::default().number(1, VERSION)).0
}

/// The number of shards of a bundle that this library can read.
pub(super) fn decode_header(fields: Fields<'_>) -> Result<u32, Error> {
    let (mut n_shards, mut endianness, mut min_consumer) = (0, 0, 0);
    fields.for_each(|field, value| {
        match (field, value) {
            (1, Value::Number(n)) => n_shards = n,
            (2, Value::Number(n)) => endianness = n,
            (3, Value::Bytes(version)) => fields.within(version).for_each(|field, value| {
                if let (2, Value::Number(n)) = (field, value) {
                    min_consumer = n;
                }
                Ok(())
            })?,
            _ => {}
        }
        Ok(())
    })?;
    if endianness != 0 {
        return Err(fields.place.unsupported("a big-endian bundle"));
    }
    if min_consumer > VERSION {
        return Err(fields.place.unsupported(format!("a bundle that needs a reader of version {min_consumer}")));
    }
    match i32::try_from(n_shards) {
        Ok(n @ 1..) => Ok(n.unsigned_abs()),
        _ => Err(fields.invalid("a number of shards", n_shards)),
    }
}

/// Location, type and shape of a tensor.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct TensorEntry {
    pub(super) dtype: u64,
    pub(super) shape: Vec<u64>,
    pub(super) shard: u64,
    pub(super) offset: u64,
    pub(super) n_bytes: u64,
    /// Masked, as stored; [`plain_crc32c`](Self::plain_crc32c) unmasks it.
    pub(super) crc32c: u32,
    pub(super) n_slices: u64,
}

impl TensorEntry {
    pub(super) fn encode(&self) -> Vec<u8> {
        Message::default()
            .number(1, self.dtype)
            .message(2, encode_shape(&self.shape))
            .number(3, self.shard)
            .number(4, self.offset)
            .number(5, self.n_bytes)
            .fixed32(6, self.crc32c)
            .0
    }

    pub(super) fn decode(fields: Fields<'_>) -> Result<Self, Error> {
        let mut entry = Self::default();
        fields.for_each(|field, value| {
            match (field, value) {
                (1, Value::Number(n)) => entry.dtype = n,
                (2, Value::Bytes(shape)) => decode_shape(fields.within(shape), &mut entry.shape)?,
                (3, Value::Number(n)) => entry.shard = n,
                (4, Value::Number(n)) => entry.offset = n,
                (5, Value::Number(n)) => entry.n_bytes = n,
                (6, Value::Fixed32(n)) => entry.crc32c = n,
                (7, Value::Bytes(_)) => entry.n_slices += 1,
                (1..=7, _) => return Err(fields.invalid("an entry of a tensor", format!("field {field} as {value:?}"))),
                _ => {}
            }
            Ok(())
        })?;
        Ok(entry)
    }

    pub(super) fn plain_crc32c(&self) -> u32 {
        unmask(self.crc32c)
    }
}

pub(super) fn encode_shape(shape: &[u64]) -> Message {
    shape.iter().fold(Message::default(), |message, &n| message.message(2, Message::default().number(1, n)))
}

fn decode_shape(fields: Fields<'_>, shape: &mut Vec<u64>) -> Result<(), Error> {
    fields.for_each(|field, value| match (field, value) {
        (2, Value::Bytes(_)) if shape.len() == RANK_MAX => Err(fields.invalid("at most 254 dimensions", "more")),
        (2, Value::Bytes(dim)) => {
            shape.push(decode_dim(fields.within(dim))?);
            Ok(())
        }
        (3, Value::Number(1..)) => Err(fields.invalid("a shape", "an unknown rank")),
        _ => Ok(()),
    })
}

fn decode_dim(fields: Fields<'_>) -> Result<u64, Error> {
    let mut size = 0;
    fields.for_each(|field, value| {
        if let (1, Value::Number(n)) = (field, value) {
            size = n;
        }
        Ok(())
    })?;
    match i64::try_from(size) {
        Ok(_) => Ok(size),
        Err(_) => Err(fields.invalid("a size of a dimension", size.cast_signed())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Place;

    fn fields(bytes: &[u8]) -> Fields<'_> {
        Fields { place: Place { file: "f" }, what: "entry", offset: 0, bytes }
    }

    #[test]
    fn the_header_has_the_bytes_that_tensorflow_writes() {
        assert_eq!(encode_header(), [0x08, 0x01, 0x1a, 0x02, 0x08, 0x01]);
        assert_eq!(decode_header(fields(&encode_header())).expect("was just written"), 1);
    }

    #[test]
    fn headers_that_we_cannot_read_say_why() {
        let said = |bytes: &[u8]| decode_header(fields(bytes)).expect_err("must be refused").to_string();
        assert_eq!(said(&[0x08, 1, 0x10, 1]), "f: not supported: a big-endian bundle");
        assert_eq!(said(&[0x08, 1, 0x1a, 2, 0x10, 2]), "f: not supported: a bundle that needs a reader of version 2");
        assert_eq!(said(&[]), "f: entry at offset 0: expected a number of shards, found 0");
    }

    #[test]
    fn an_entry_goes_there_and_back() {
        let entry = TensorEntry {
            dtype: 1,
            shape: vec![3, 0, 1 << 40],
            shard: 2,
            offset: 77,
            n_bytes: 99,
            crc32c: 0,
            n_slices: 0,
        };
        assert_eq!(TensorEntry::decode(fields(&entry.encode())).expect("was just written"), entry);
        // A single value has a shape without dimensions, and that is written.
        let scalar = TensorEntry { dtype: 1, ..TensorEntry::default() };
        assert_eq!(scalar.encode()[..4], [0x08, 1, 0x12, 0]);
    }

    #[test]
    fn odd_shapes_are_refused() {
        let said = |bytes: &[u8]| TensorEntry::decode(fields(bytes)).expect_err("must be refused").to_string();
        let negative = [0x12, 13, 0x12, 11, 0x08, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1];
        assert_eq!(said(&negative), "f: entry at offset 0: expected a size of a dimension, found -1");
        assert_eq!(said(&[0x12, 2, 0x18, 1]), "f: entry at offset 0: expected a shape, found an unknown rank");
        let flat = Message::default().message(2, encode_shape(&[1; 255])).0;
        assert_eq!(said(&flat), "f: entry at offset 0: expected at most 254 dimensions, found more");
    }
}
