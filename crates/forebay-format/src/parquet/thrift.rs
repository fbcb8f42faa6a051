//! Thrift's compact protocol, as much of it as Parquet's metadata needs. A reader never looks past its slice, never
//! recurses deeper than a fixed number of levels, and never allocates by a count that the slice could not hold.

use forebay_units::varint;

use crate::Error;

/// Structures within structures that are passed over; Parquet itself has fewer than ten.
const MAX_DEPTH: u32 = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    True,
    False,
    Byte,
    Int,
    Double,
    Binary,
    List,
    Map,
    Struct,
}

impl Kind {
    fn of(code: u8) -> Option<Self> {
        Some(match code {
            1 => Self::True,
            2 => Self::False,
            3 => Self::Byte,
            4..=6 => Self::Int,
            7 => Self::Double,
            8 => Self::Binary,
            9 | 10 => Self::List,
            11 => Self::Map,
            12 => Self::Struct,
            _ => return None,
        })
    }
}

#[derive(Debug, Clone)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Where the slice begins in the file, for errors.
    base: u64,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8], base: u64) -> Self {
        Self { bytes, at: 0, base }
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    fn offset(&self) -> u64 {
        self.base + self.at as u64
    }

    pub(super) fn wrong(&self, expected: &str, found: impl ToString) -> Error {
        Error::invalid("Parquet metadata", self.offset(), expected, found)
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], Error> {
        let rest = &self.bytes[self.at..];
        if rest.len() < len {
            return Err(Error::truncated("Parquet metadata", self.offset(), len as u64, rest.len() as u64));
        }
        self.at += len;
        Ok(&rest[..len])
    }

    pub(super) fn byte(&mut self) -> Result<u8, Error> {
        Ok(self.take(1)?[0])
    }

    fn varint(&mut self) -> Result<u64, Error> {
        let mut rest = &self.bytes[self.at..];
        match varint::take(&mut rest) {
            Ok(value) => {
                self.at = self.bytes.len() - rest.len();
                Ok(value)
            }
            Err(varint::Invalid::Truncated) => {
                self.at = self.bytes.len();
                Err(Error::truncated("Parquet metadata", self.offset(), 1, 0))
            }
            Err(varint::Invalid::TooLong) => Err(self.wrong("a number of at most 64 bits", "a longer one")),
        }
    }

    pub(super) fn int(&mut self) -> Result<i64, Error> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    pub(super) fn i32(&mut self) -> Result<i32, Error> {
        let value = self.int()?;
        i32::try_from(value).map_err(|_| self.wrong("a number of 32 bits", value))
    }

    /// A number that counts or places something.
    pub(super) fn count(&mut self) -> Result<u64, Error> {
        let value = self.int()?;
        u64::try_from(value).map_err(|_| self.wrong("a number that is not negative", value))
    }

    pub(super) fn binary(&mut self) -> Result<&'a [u8], Error> {
        let len = self.varint()?;
        self.take(usize::try_from(len).unwrap_or(usize::MAX))
    }

    pub(super) fn string(&mut self) -> Result<&'a str, Error> {
        let bytes = self.binary()?;
        std::str::from_utf8(bytes).map_err(|_| self.wrong("a name in UTF-8", "other bytes"))
    }

    /// The length of a list, and what it is of. Every item takes at least a byte, which bounds the length.
    pub(super) fn list(&mut self) -> Result<(usize, Kind), Error> {
        let head = self.byte()?;
        let len = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
        let kind = Kind::of(head & 15).ok_or_else(|| self.wrong("the type of a list", head & 15))?;
        let left = (self.bytes.len() - self.at) as u64;
        if len > left {
            return Err(Error::truncated("Parquet metadata", self.offset(), len, left));
        }
        Ok((len as usize, kind))
    }

    /// Calls `field` with the number and type of every field of a structure; it says whether it has read it.
    pub(super) fn fields(
        &mut self,
        mut field: impl FnMut(&mut Self, i16, Kind) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let mut id = 0_i16;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Ok(());
            }
            let delta = i16::from(head >> 4);
            id = if delta == 0 {
                let given = self.int()?;
                i16::try_from(given).map_err(|_| self.wrong("the number of a field", given))?
            } else {
                id.checked_add(delta).ok_or_else(|| self.wrong("the number of a field", "more than 32767"))?
            };
            let kind = Kind::of(head & 15).ok_or_else(|| self.wrong("the type of a field", head & 15))?;
            if !field(self, id, kind)? {
                self.skip(kind, 0)?;
            }
        }
    }

    pub(super) fn pass_struct(&mut self) -> Result<(), Error> {
        self.skip_struct(0)
    }

    fn skip(&mut self, kind: Kind, depth: u32) -> Result<(), Error> {
        if depth > MAX_DEPTH {
            return Err(self.wrong("a structure of few levels", "more than 32"));
        }
        match kind {
            Kind::True | Kind::False => Ok(()),
            Kind::Byte => self.take(1).map(drop),
            Kind::Int => self.varint().map(drop),
            Kind::Double => self.take(8).map(drop),
            Kind::Binary => self.binary().map(drop),
            Kind::List => self.skip_list(depth),
            Kind::Map => self.skip_map(depth),
            Kind::Struct => self.skip_struct(depth),
        }
    }

    fn skip_list(&mut self, depth: u32) -> Result<(), Error> {
        let (len, kind) = self.list()?;
        for _ in 0..len {
            self.skip_item(kind, depth + 1)?;
        }
        Ok(())
    }

    /// A truth value takes a byte in a list, and none as a field.
    fn skip_item(&mut self, kind: Kind, depth: u32) -> Result<(), Error> {
        match kind {
            Kind::True | Kind::False => self.take(1).map(drop),
            kind => self.skip(kind, depth),
        }
    }

    fn skip_map(&mut self, depth: u32) -> Result<(), Error> {
        let len = self.varint()?;
        if len == 0 {
            return Ok(());
        }
        let kinds = self.byte()?;
        let (Some(key), Some(value)) = (Kind::of(kinds >> 4), Kind::of(kinds & 15)) else {
            return Err(self.wrong("the types of a map", kinds));
        };
        for _ in 0..len {
            self.skip_item(key, depth + 1)?;
            self.skip_item(value, depth + 1)?;
        }
        Ok(())
    }

    fn skip_struct(&mut self, depth: u32) -> Result<(), Error> {
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Ok(());
            }
            if head >> 4 == 0 {
                self.varint()?;
            }
            let kind = Kind::of(head & 15).ok_or_else(|| self.wrong("the type of a field", head & 15))?;
            self.skip(kind, depth + 1)?;
        }
    }
}

/// Writes a structure; structures within it are written by their own and closed.
#[derive(Debug, Default)]
pub(super) struct Sink {
    pub(super) bytes: Vec<u8>,
    /// The last field of every structure that is open.
    last: Vec<i16>,
}

impl Sink {
    pub(super) fn open(&mut self) {
        self.last.push(0);
    }

    pub(super) fn close(&mut self) {
        self.last.pop();
        self.bytes.push(0);
    }

    fn field(&mut self, id: i16, code: u8) {
        let last = self.last.last_mut().expect("a structure is open");
        self.bytes.push(((id - *last) as u8) << 4 | code);
        *last = id;
    }

    fn varint(&mut self, value: u64) {
        varint::put(&mut self.bytes, value);
    }

    fn zigzag(&mut self, value: i64) {
        self.varint((value << 1 ^ value >> 63) as u64);
    }

    pub(super) fn i32(&mut self, id: i16, value: i32) {
        self.field(id, 5);
        self.zigzag(i64::from(value));
    }

    /// A number of 32 bits that always takes five bytes, so that the length of what is written does not depend on it.
    pub(super) fn u32_of_five_bytes(&mut self, id: i16, value: u32) {
        self.field(id, 5);
        let signed = i64::from(value as i32);
        let mut rest = (signed << 1 ^ signed >> 63) as u64;
        for _ in 0..4 {
            self.bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.bytes.push(rest as u8);
    }

    pub(super) fn i64(&mut self, id: i16, value: i64) {
        self.field(id, 6);
        self.zigzag(value);
    }

    pub(super) fn byte(&mut self, id: i16, value: u8) {
        self.field(id, 3);
        self.bytes.push(value);
    }

    pub(super) fn bool(&mut self, id: i16, value: bool) {
        self.field(id, if value { 1 } else { 2 });
    }

    pub(super) fn string(&mut self, id: i16, value: &str) {
        self.field(id, 8);
        self.item(value);
    }

    pub(super) fn item(&mut self, value: &str) {
        self.varint(value.len() as u64);
        self.bytes.extend(value.as_bytes());
    }

    pub(super) fn int_item(&mut self, value: i32) {
        self.zigzag(i64::from(value));
    }

    /// The head of a list; `code` is 5 for numbers, 8 for texts, 12 for structures.
    pub(super) fn list(&mut self, id: i16, code: u8, len: usize) {
        self.field(id, 9);
        if len < 15 {
            self.bytes.push((len as u8) << 4 | code);
        } else {
            self.bytes.push(0xf0 | code);
            self.varint(len as u64);
        }
    }

    /// Opens a structure that is a field.
    pub(super) fn open_field(&mut self, id: i16) {
        self.field(id, 12);
        self.open();
    }
}
