//! Reading tables of numbers in pieces, as pandas writes them: with a row of names or without, with a column of row
//! numbers in front or without.
//!
//! A first row that does not begin with a number is a header; if its first name is empty, the first column holds row
//! numbers, not values. All rows must have the same length.

use std::io::Write;

use flate2::write::MultiGzDecoder;

use crate::Error;

/// One value of a table. An empty field is NaN.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// A whole number that is not negative.
    Natural(u64),
    Negative(i64),
    /// A fraction, an exponent, an integer beyond 64 bits, or NaN for an empty field.
    Float(f64),
}

/// Counts neither the row of names nor the column of row numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Size {
    pub n_rows: u64,
    pub n_columns: u64,
}

/// Splits a table into values, piece by piece, so a table of any size takes a small buffer.
#[derive(Debug, Default)]
pub struct Parser {
    /// A field that continues in the next piece.
    partial: Vec<u8>,
    in_quotes: bool,
    /// Bytes of the text before this piece, for the offsets in errors.
    offset: u64,
    line: u64,
    field: u64,
    /// Number of fields in the first line, which every other line must have.
    n_fields: Option<u64>,
    has_names: bool,
    has_numbers: bool,
}

/// Far longer than any number: a longer field means that this is not a table of numbers, and it must not fill memory.
const LONGEST_FIELD: usize = 4096;

impl Parser {
    /// Takes the next piece of text and passes its values to `each`, with row and column.
    ///
    /// # Errors
    /// When a field is not a number, or a row is longer or shorter than the first.
    pub fn feed(&mut self, bytes: &[u8], mut each: impl FnMut(u64, u64, Number)) -> Result<(), Error> {
        let mut start = 0;
        for (at, byte) in bytes.iter().enumerate() {
            match byte {
                b'"' => self.in_quotes = !self.in_quotes,
                b',' | b'\n' if !self.in_quotes => {
                    self.end_of_field(&bytes[start..at], start, &mut each)?;
                    start = at + 1;
                    if *byte == b'\n' {
                        self.end_of_line(at)?;
                    }
                }
                _ => {}
            }
        }
        self.partial.extend_from_slice(&bytes[start..]);
        if self.partial.len() > LONGEST_FIELD {
            let found = self.partial.len() as u64;
            return Err(Error::TooLarge { what: "field of a table".to_owned(), limit: LONGEST_FIELD as u64, found });
        }
        self.offset += bytes.len() as u64;
        Ok(())
    }

    /// Ends the text.
    ///
    /// # Errors
    /// When it ended inside a row or a quoted field.
    pub fn finish(mut self, mut each: impl FnMut(u64, u64, Number)) -> Result<Size, Error> {
        if self.in_quotes {
            return Err(Error::truncated("quoted field", self.offset, 1, 0));
        }
        if self.field > 0 || !self.partial.is_empty() {
            self.end_of_field(&[], 0, &mut each)?;
            self.end_of_line(0)?;
        }
        let n_columns = self.n_fields.unwrap_or(0) - u64::from(self.has_numbers);
        Ok(Size { n_rows: self.line - u64::from(self.has_names), n_columns })
    }

    #[inline]
    fn end_of_field(
        &mut self,
        rest: &[u8],
        start: usize,
        each: &mut impl FnMut(u64, u64, Number),
    ) -> Result<(), Error> {
        let number = if self.partial.is_empty() {
            number(rest)
        } else {
            self.partial.extend_from_slice(rest);
            number(&self.partial)
        };
        if self.line == 0 && self.field == 0 {
            let is_empty = self.partial.is_empty() && rest.is_empty() || matches!(&self.partial[..], b"\"\"");
            self.has_numbers = is_empty || rest == b"\"\"";
            self.has_names = self.has_numbers || number.is_none();
        }
        let is_name = self.has_names && self.line == 0;
        let is_row_number = self.has_numbers && self.field == 0;
        if !is_name && !is_row_number {
            let Some(number) = number else { return Err(self.not_a_number(rest, start)) };
            each(self.line - u64::from(self.has_names), self.field - u64::from(self.has_numbers), number);
        }
        self.partial.clear();
        self.field += 1;
        Ok(())
    }

    fn end_of_line(&mut self, at: usize) -> Result<(), Error> {
        let expected = *self.n_fields.get_or_insert(self.field);
        if self.field != expected {
            let offset = self.offset + at as u64;
            return Err(Error::invalid(
                format!("end of line {}", self.line + 1),
                offset,
                format!("{expected} fields, as in the first line"),
                self.field,
            ));
        }
        self.line += 1;
        self.field = 0;
        Ok(())
    }

    fn not_a_number(&self, rest: &[u8], start: usize) -> Error {
        let field = if self.partial.is_empty() { rest } else { &self.partial };
        let found: String = String::from_utf8_lossy(field).chars().take(20).collect();
        let what = format!("line {}, field {}", self.line + 1, self.field + 1);
        Error::invalid(what, self.offset + start as u64, "a number", format!("{found:?}"))
    }
}

#[inline]
fn number(field: &[u8]) -> Option<Number> {
    let field = field.strip_suffix(b"\r").unwrap_or(field);
    // Up to 19 digits cannot overflow.
    if (1..=19).contains(&field.len()) && field.iter().all(u8::is_ascii_digit) {
        return Some(Number::Natural(field.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'))));
    }
    other_number(field)
}

fn other_number(field: &[u8]) -> Option<Number> {
    let text = std::str::from_utf8(field).ok()?.trim();
    let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    match text {
        "" => Some(Number::Float(f64::NAN)),
        "True" => Some(Number::Natural(1)),
        "False" => Some(Number::Natural(0)),
        _ => {
            let natural = text.parse().map(Number::Natural).ok();
            let negative = || text.parse().map(Number::Negative).ok();
            natural.or_else(negative).or_else(|| text.parse().map(Number::Float).ok())
        }
    }
}

/// Expands text that may be compressed by gzip, piece by piece; the checksum is verified at the end.
pub enum Expand {
    Plain,
    Gzip(Box<MultiGzDecoder<Vec<u8>>>),
}

impl Expand {
    pub fn gzip() -> Self {
        Self::Gzip(Box::new(MultiGzDecoder::new(Vec::new())))
    }

    /// Takes the next bytes of the file and passes the text to `each`.
    ///
    /// # Errors
    /// When they cannot be expanded, or `each` fails.
    pub fn feed(&mut self, bytes: &[u8], mut each: impl FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        let Self::Gzip(decoder) = self else { return each(bytes) };
        // A piece expands to at most about a thousand times its size.
        for piece in bytes.chunks(64 << 10) {
            decoder.write_all(piece).map_err(damaged)?;
            each(decoder.get_ref())?;
            decoder.get_mut().clear();
        }
        Ok(())
    }

    /// Ends the file.
    ///
    /// # Errors
    /// When the compressed text is incomplete, or its checksum differs.
    pub fn finish(self, mut each: impl FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        let Self::Gzip(decoder) = self else { return Ok(()) };
        each(&decoder.finish().map_err(damaged)?)
    }
}

impl std::fmt::Debug for Expand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if matches!(self, Self::Plain) { "Plain" } else { "Gzip" })
    }
}

fn damaged(error: std::io::Error) -> Error {
    Error::invalid("gzip", 0, "a whole, undamaged gzip file", error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csv::write;
    use proptest::prelude::*;

    /// The table's size, and every number with its row and column.
    type Found = (Size, Vec<(u64, u64, Number)>);

    fn parse(text: &[u8], piece: usize) -> Result<Found, Error> {
        let (mut parser, mut found) = (Parser::default(), Vec::new());
        for piece in text.chunks(piece) {
            parser.feed(piece, |row, column, number| found.push((row, column, number)))?;
        }
        let size = parser.finish(|row, column, number| found.push((row, column, number)))?;
        Ok((size, found))
    }

    #[test]
    fn a_table_is_read_with_and_without_names_and_row_numbers() {
        let expected = [(0, 0, 7), (0, 1, 8), (1, 0, 9), (1, 1, 10)].map(|(r, c, n)| (r, c, Number::Natural(n)));
        for text in [
            "7,8\n9,10\n",
            "7,8\r\n9,10",
            "a,b\n7,8\n9,10\n",
            ",0,1\n0,7,8\n1,9,10\n",
            "\"\",\"x, y\",\"z\"\n0,7,8\n1,9,10\n",
        ] {
            for piece in [1, 3, 100] {
                let (size, found) = parse(text.as_bytes(), piece).unwrap();
                assert_eq!(
                    (size, &found[..]),
                    (Size { n_rows: 2, n_columns: 2 }, &expected[..]),
                    "{text:?} by {piece}"
                );
            }
        }
    }

    #[test]
    fn numbers_keep_their_kind() {
        let (_, found) = parse(b"-3,0.5,1e3,18446744073709551615,True,inf\n", 100).unwrap();
        let numbers: Vec<Number> = found.into_iter().map(|(_, _, number)| number).collect();
        let (natural, float) = (Number::Natural, Number::Float);
        assert_eq!(
            numbers,
            [Number::Negative(-3), float(0.5), float(1000.0), natural(u64::MAX), natural(1), float(f64::INFINITY)]
        );
        let (_, found) = parse(b"1,\n", 100).unwrap();
        assert!(matches!(found[1].2, Number::Float(x) if x.is_nan()));
    }

    #[test]
    fn a_ragged_row_and_a_word_are_named_with_their_place() {
        let text = |bytes: &[u8]| parse(bytes, 2).unwrap_err().to_string();
        assert_eq!(text(b"1,2\n3\n"), "end of line 2 at offset 5: expected 2 fields, as in the first line, found 1");
        assert!(text(b"1,2\n3,x\n").starts_with("line 2, field 2 at offset "), "{}", text(b"1,2\n3,x\n"));
        assert!(matches!(parse(b"\"a,b\n", 9), Err(Error::Truncated { .. })));
        assert!(matches!(parse(&[b'1'; 10_000], 100), Err(Error::TooLarge { .. })));
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(4));
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn gunzip(packed: &[u8], piece: usize) -> Result<Vec<u8>, Error> {
        let (mut expand, mut out) = (Expand::gzip(), Vec::new());
        for piece in packed.chunks(piece) {
            expand.feed(piece, |bytes| {
                out.extend_from_slice(bytes);
                Ok(())
            })?;
        }
        expand.finish(|bytes| {
            out.extend_from_slice(bytes);
            Ok(())
        })?;
        Ok(out)
    }

    #[test]
    fn compressed_text_is_expanded_and_any_cut_or_flipped_bit_of_its_sum_is_an_error() {
        let text: Vec<u8> = (0..20_000_u32).flat_map(|i| format!("{},", i * i % 997).into_bytes()).collect();
        let mut packed = gzip(&text);
        for piece in [1, 777, 1 << 20] {
            assert_eq!(gunzip(&packed, piece).unwrap(), text);
        }
        for cut in [1, 5, 20, packed.len() / 2, packed.len() - 1] {
            assert!(gunzip(&packed[..cut], 100).is_err(), "cut at {cut}");
        }
        let at = packed.len() - 6;
        packed[at] ^= 1;
        assert!(gunzip(&packed, 100).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn what_is_written_is_read(rows in proptest::collection::vec(any::<[u8; 5]>(), 1..6), piece in 1_usize..40) {
            let mut text = Vec::new();
            write::header(0, 5, 5, &mut text);
            for (number, row) in rows.iter().enumerate() {
                write::begin_row(number as u64, &mut text);
                write::values(crate::Element::U8, row, &mut text);
                write::end_row(&mut text);
            }
            let (size, found) = parse(&text, piece).unwrap();
            prop_assert_eq!(size, Size { n_rows: rows.len() as u64, n_columns: 5 });
            let numbers: Vec<Number> = rows.concat().into_iter().map(|byte| Number::Natural(byte.into())).collect();
            prop_assert_eq!(found.into_iter().map(|(_, _, number)| number).collect::<Vec<_>>(), numbers);
        }

        #[test]
        fn other_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100), piece in 1_usize..20) {
            let _ = (parse(&bytes, piece), gunzip(&bytes, piece));
        }
    }
}
