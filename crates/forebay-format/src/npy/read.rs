//! Reading an array file's header, of any version NumPy writes.
//!
//! ```text
//! offset  size
//!      0     6  \x93NUMPY
//!      6     2  major and minor version
//!      8   2|4  length n of the text: two bytes in version 1, four in 2 and 3
//!     10|12  n  a Python dictionary: 'descr', 'fortran_order', 'shape', padded with blanks
//! ```
//!
//! The values follow. They have no checksum here; in an npz archive they do.

use crate::Error;

/// Number of bytes that [`header_len`] needs.
pub const PREFIX_LEN: usize = 12;
/// Far above the header of any plain array; a longer one is damage.
const LONGEST: usize = 1 << 20;
const MAGIC: &[u8] = b"\x93NUMPY";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Element {
    /// NumPy's letter: `u` and `i` integers, `f` floats, `c` complex numbers, `b` booleans, `S`, `U` and `V` text and bytes.
    pub kind: char,
    pub bytes: u64,
    /// Whether the most significant byte comes first.
    pub is_big_endian: bool,
}

/// The header of an array file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    pub element: Element,
    /// Whether the first index runs fastest, as in Fortran, instead of the last.
    pub fortran_order: bool,
    /// The sides of the array; none for a single value.
    pub shape: Vec<u64>,
    pub data_offset: u64,
}

impl Header {
    pub fn n_values(&self) -> u64 {
        self.shape.iter().product()
    }

    pub fn n_bytes(&self) -> u64 {
        self.n_values() * self.element.bytes
    }
}

/// The length of the whole header, from the first [`PREFIX_LEN`] bytes of the file.
///
/// # Errors
/// When there are fewer, or they do not begin an array file.
pub fn header_len(prefix: &[u8]) -> Result<usize, Error> {
    let Some(prefix) = prefix.get(..PREFIX_LEN) else {
        return Err(Error::truncated("npy header", 0, PREFIX_LEN as u64, prefix.len() as u64));
    };
    if !prefix.starts_with(MAGIC) {
        let found = format!("{:02x?}", &prefix[..MAGIC.len()]);
        return Err(Error::NotRecognised { expected: "an npy array", found });
    }
    let len = match prefix[6] {
        1 => 10 + usize::from(u16::from_le_bytes([prefix[8], prefix[9]])),
        2 | 3 => (crate::little_endian::u32_at(prefix, 8) as usize).saturating_add(12),
        other => return Err(Error::unsupported(format!("npy version {other}.{}", prefix[7]))),
    };
    if len > LONGEST {
        return Err(Error::TooLarge { what: "npy header".to_owned(), limit: LONGEST as u64, found: len as u64 });
    }
    Ok(len)
}

/// Reads the header at the start of `bytes`; more bytes may follow it.
///
/// # Errors
/// When it is cut off, invalid, or describes unsupported values: objects, records of several fields.
pub fn parse(bytes: &[u8]) -> Result<Header, Error> {
    let len = header_len(bytes)?;
    let Some(header) = bytes.get(..len) else {
        return Err(Error::truncated("npy header", 0, len as u64, bytes.len() as u64));
    };
    let start = if header[6] == 1 { 10 } else { 12 };
    let text = std::str::from_utf8(&header[start..])
        .map_err(|error| Error::invalid("npy header", (start + error.valid_up_to()) as u64, "text", "other bytes"))?;
    let mut literal = Literal { text, at: 0, start };
    let (mut element, mut fortran_order, mut shape) = (None, None, None);
    literal.expect('{')?;
    while !literal.skip('}') {
        let key = literal.string()?;
        literal.expect(':')?;
        match key {
            "descr" => element = Some(element_of(literal.descr()?, start)?),
            "fortran_order" => fortran_order = Some(literal.truth()?),
            "shape" => shape = Some(literal.tuple()?),
            other => return Err(literal.wrong("descr, fortran_order or shape", other)),
        }
        if !literal.skip(',') {
            literal.expect('}')?;
            break;
        }
    }
    literal.end()?;
    let (Some(element), Some(fortran_order), Some(shape)) = (element, fortran_order, shape) else {
        return Err(literal.wrong("descr, fortran_order and shape", "fewer keys"));
    };
    let total = shape.iter().try_fold(element.bytes, |product: u64, side| product.checked_mul(*side));
    if total.is_none() {
        return Err(Error::invalid("npy header: shape", start as u64, "fewer than 2^64 bytes", format!("{shape:?}")));
    }
    Ok(Header { element, fortran_order, shape, data_offset: len as u64 })
}

/// NumPy's text of a type, such as `<f4`.
fn element_of(descr: &str, offset: usize) -> Result<Element, Error> {
    let wrong = || Error::invalid("npy header: descr", offset as u64, "a plain type such as '<f4'", descr);
    let mut letters = descr.chars();
    let order = letters.next().ok_or_else(wrong)?;
    let kind = letters.next().ok_or_else(wrong)?;
    let size: u64 = letters.as_str().parse().map_err(|_| wrong())?;
    if kind == 'O' {
        return Err(Error::unsupported("npy arrays of Python objects"));
    }
    if !"<>|=".contains(order) || !"uifcbSUVmM".contains(kind) || size > 1 << 30 {
        return Err(wrong());
    }
    // A text's length is given in characters, each of four bytes.
    let bytes = if kind == 'U' { size * 4 } else { size };
    Ok(Element { kind, bytes, is_big_endian: order == '>' })
}

/// A parser for the few Python literals that occur in headers.
struct Literal<'a> {
    text: &'a str,
    at: usize,
    /// Where the text begins in the file.
    start: usize,
}

impl<'a> Literal<'a> {
    fn rest(&mut self) -> &'a str {
        let rest = self.text[self.at..].trim_start();
        self.at = self.text.len() - rest.len();
        rest
    }

    fn wrong(&self, expected: &str, found: &str) -> Error {
        let found: String = found.chars().take(20).collect();
        Error::invalid("npy header", (self.start + self.at) as u64, expected, format!("{found:?}"))
    }

    fn skip(&mut self, what: char) -> bool {
        let found = self.rest().starts_with(what);
        self.at += if found { what.len_utf8() } else { 0 };
        found
    }

    fn expect(&mut self, what: char) -> Result<(), Error> {
        let rest = self.rest();
        if self.skip(what) { Ok(()) } else { Err(self.wrong(&format!("{what:?}"), rest)) }
    }

    fn string(&mut self) -> Result<&'a str, Error> {
        let rest = self.rest();
        let quote = rest.chars().next().filter(|c| "'\"".contains(*c)).ok_or_else(|| self.wrong("a string", rest))?;
        let len = rest[1..].find(quote).ok_or_else(|| self.wrong("the end of a string", rest))?;
        self.at += len + 2;
        Ok(&rest[1..=len])
    }

    fn descr(&mut self) -> Result<&'a str, Error> {
        if self.rest().starts_with('[') {
            return Err(Error::unsupported("npy arrays of records with several fields"));
        }
        self.string()
    }

    fn truth(&mut self) -> Result<bool, Error> {
        let rest = self.rest();
        for (word, value) in [("True", true), ("False", false)] {
            if rest.starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.wrong("True or False", rest))
    }

    fn tuple(&mut self) -> Result<Vec<u64>, Error> {
        self.expect('(')?;
        let mut sides = Vec::new();
        while !self.skip(')') {
            let rest = self.rest();
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            sides.push(rest[..digits].parse().map_err(|_| self.wrong("a whole number", rest))?);
            self.at += digits;
            // Python 2 wrote its long numbers with an L.
            self.skip('L');
            if !self.skip(',') {
                self.expect(')')?;
                break;
            }
        }
        Ok(sides)
    }

    fn end(&mut self) -> Result<(), Error> {
        let rest = self.rest();
        if rest.is_empty() { Ok(()) } else { Err(self.wrong("the end of the header", rest)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::npy::write::header;
    use proptest::prelude::*;

    fn file(version: u8, dict: &str) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend([version, 0]);
        match version {
            1 => out.extend((dict.len() as u16).to_le_bytes()),
            _ => out.extend((dict.len() as u32).to_le_bytes()),
        }
        out.extend(dict.as_bytes());
        out
    }

    #[test]
    fn headers_of_all_versions_and_orders_of_keys_are_read() {
        let dict = "{'shape': (3, 4), 'fortran_order': True, 'descr': '>f8'}   \n";
        for version in [1, 2, 3] {
            let found = parse(&file(version, dict)).unwrap();
            let element = Element { kind: 'f', bytes: 8, is_big_endian: true };
            let data_offset = (if version == 1 { 10 } else { 12 } + dict.len()) as u64;
            assert_eq!(found, Header { element, fortran_order: true, shape: vec![3, 4], data_offset });
            assert_eq!((found.n_values(), found.n_bytes()), (12, 96));
        }
    }

    #[test]
    fn a_scalar_has_one_value_and_an_old_number_its_letter() {
        let scalar = parse(&file(1, "{'descr': '|u1', 'fortran_order': False, 'shape': ()}")).unwrap();
        assert_eq!((scalar.shape.len(), scalar.n_values()), (0, 1));
        let old = parse(&file(1, "{'descr': '<U7', 'fortran_order': False, 'shape': (5L,)}")).unwrap();
        assert_eq!((old.shape, old.element.bytes), (vec![5], 28));
    }

    #[test]
    fn what_is_not_plain_is_refused_by_name() {
        let text = |dict: &str| parse(&file(1, dict)).unwrap_err().to_string();
        assert_eq!(
            text("{'descr': '|O8', 'fortran_order': False, 'shape': (1,)}"),
            "not supported: npy arrays of Python objects"
        );
        let records = text("{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (1,)}");
        assert_eq!(records, "not supported: npy arrays of records with several fields");
        assert!(text("{'descr': '<f4', 'shape': (1,)}").contains("fewer keys"));
        assert!(text("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}").contains("a whole number"));
        assert!(text("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 99999999999)}").contains("2^64"));
        assert_eq!(parse(&file(4, "{}")).unwrap_err().to_string(), "not supported: npy version 4.0");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn what_is_written_is_read_and_any_cut_is_an_error(shape in proptest::collection::vec(0_u64..1 << 15, 0..4)) {
            let bytes = header("<i2", &shape);
            let found = parse(&bytes).unwrap();
            prop_assert_eq!(found.shape, shape);
            prop_assert_eq!(found.data_offset, bytes.len() as u64);
            for cut in 0..bytes.len() {
                prop_assert!(matches!(parse(&bytes[..cut]), Err(Error::Truncated { .. })), "cut at {}", cut);
            }
        }

        #[test]
        fn other_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut with_magic = b"\x93NUMPY\x01\x00\x40\x00".to_vec();
            with_magic.extend(&bytes);
            let _ = (parse(&bytes), parse(&with_magic));
        }
    }
}
