//! Reads and validates a safetensors header.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};

use super::{HEADER_MAX, METADATA, PREFIX, dtype_named};
use crate::Header;
use crate::format::catalog::{len_of, read};
use crate::format::{Catalog, Entry, Error, Place, Source};

pub(super) fn open(file: String, source: &dyn Source) -> Result<Catalog, Error> {
    let place = Place { file: &file };
    let n_file = len_of(place, source)?;
    let header = header_bytes(place, source, n_file)?;
    let begin = PREFIX + header.len() as u64;
    let Parsed { tensors, notes } = parse(place, &header)?;
    let tensors = locate(place, tensors, begin, n_file - begin)?;
    Ok(Catalog { files: vec![file], tensors, strings: Vec::new(), notes })
}

fn header_bytes(place: Place<'_>, source: &dyn Source, n_file: u64) -> Result<Vec<u8>, Error> {
    if n_file < PREFIX {
        return Err(place.truncated("length of the header", 0, PREFIX, n_file));
    }
    let prefix = read(place, source, 0, PREFIX)?;
    let n_header = u64::from_le_bytes(prefix.try_into().expect("eight bytes were read"));
    if n_header > HEADER_MAX {
        return Err(place.invalid("length of the header", 0, format!("at most {HEADER_MAX}"), n_header));
    }
    if n_header > n_file - PREFIX {
        return Err(place.truncated("header", PREFIX, n_header, n_file - PREFIX));
    }
    read(place, source, PREFIX, n_header)
}

/// The header as written: all keys in their original order.
struct Parsed {
    tensors: Vec<(String, Info)>,
    notes: BTreeMap<String, String>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Info {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: [u64; 2],
}

fn parse(place: Place<'_>, header: &[u8]) -> Result<Parsed, Error> {
    if header.first() != Some(&b'{') {
        let found = header.first().map_or("nothing".to_owned(), |byte| format!("byte {byte:#04x}"));
        return Err(place.invalid("header", PREFIX, "\"{\"", found));
    }
    let text = std::str::from_utf8(header)
        .map_err(|error| place.invalid("header", PREFIX + error.valid_up_to() as u64, "UTF-8", "invalid bytes"))?;
    serde_json::from_str(text).map_err(|error| place.invalid("header", PREFIX, "a directory of tensors in JSON", error))
}

impl<'de> Deserialize<'de> for Parsed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ParsedVisitor)
    }
}

struct ParsedVisitor;

impl<'de> Visitor<'de> for ParsedVisitor {
    type Value = Parsed;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of tensors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Parsed, A::Error> {
        let mut parsed = Parsed { tensors: Vec::new(), notes: BTreeMap::new() };
        let mut seen_notes = false;
        while let Some(key) = map.next_key::<String>()? {
            if key != METADATA {
                parsed.tensors.push((key, map.next_value()?));
            } else if std::mem::replace(&mut seen_notes, true) {
                return Err(A::Error::custom(format_args!("{METADATA:?} twice")));
            } else {
                parsed.notes = map.next_value::<Unique<String>>()?.0;
            }
        }
        let mut names: Vec<&str> = parsed.tensors.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(A::Error::custom(format_args!("duplicate tensor {:?}", pair[0]))),
            None => Ok(parsed),
        }
    }
}

/// A map that rejects duplicate keys; serde's maps keep the last one.
struct Unique<V>(BTreeMap<String, V>);

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Unique<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(UniqueVisitor(PhantomData))
    }
}

struct UniqueVisitor<V>(PhantomData<V>);

impl<'de, V: Deserialize<'de>> Visitor<'de> for UniqueVisitor<V> {
    type Value = Unique<V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of strings")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Unique<V>, A::Error> {
        let mut found = BTreeMap::new();
        while let Some((key, value)) = map.next_entry::<String, V>()? {
            if found.contains_key(&key) {
                return Err(A::Error::custom(format_args!("duplicate note {key:?}")));
            }
            found.insert(key, value);
        }
        Ok(Unique(found))
    }
}

/// Checks that the tensors cover the `n_data` bytes of values exactly, without gaps or overlaps.
fn locate(place: Place<'_>, tensors: Vec<(String, Info)>, begin: u64, n_data: u64) -> Result<Vec<Entry>, Error> {
    let mut entries = Vec::with_capacity(tensors.len());
    for (name, info) in tensors {
        entries.push(entry(place, name, info)?);
    }
    entries.sort_by_key(|entry: &Entry| (entry.offset, entry.n_bytes));
    let mut next = 0_u64;
    for entry in &mut entries {
        if entry.offset != next {
            let what = format!("values of tensor {:?}", entry.header.name);
            return Err(place.invalid(what, begin.saturating_add(next), format!("offset {next}"), entry.offset));
        }
        next = next.saturating_add(entry.n_bytes);
        entry.offset = begin.saturating_add(entry.offset);
    }
    match next.cmp(&n_data) {
        std::cmp::Ordering::Equal => Ok(entries),
        std::cmp::Ordering::Greater => Err(place.truncated("values", begin, next, n_data)),
        std::cmp::Ordering::Less => {
            let rest = format!("{} bytes more", n_data - next);
            Err(place.invalid("values", begin + next, "the end of the file", rest))
        }
    }
}

/// One tensor, with its offset relative to the first value.
fn entry(place: Place<'_>, name: String, info: Info) -> Result<Entry, Error> {
    let what = |part: &str| format!("header: tensor {name:?}: {part}");
    let Some(dtype) = dtype_named(&info.dtype) else {
        return Err(place.invalid(what("dtype"), PREFIX, "a type of the format", format!("{:?}", info.dtype)));
    };
    let [offset, end] = info.data_offsets;
    let n_bytes = end.checked_sub(offset);
    let header = Header { name: name.clone(), dtype, shape: info.shape };
    match (n_bytes, header.n_bytes()) {
        (Some(n_bytes), Some(needed)) if n_bytes == needed => {
            Ok(Entry { header, file: 0, offset, n_bytes, crc32c: None })
        }
        (_, needed) => {
            let needed = needed.map_or("a shape of whole bytes".to_owned(), |needed| format!("{needed} bytes"));
            Err(place.invalid(what("offsets"), PREFIX, needed, format!("{offset} to {end}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Safetensors;
    use crate::format::{Files, Format};

    fn open(header: &[u8], n_data: usize) -> String {
        let mut file = (header.len() as u64).to_le_bytes().to_vec();
        file.extend_from_slice(header);
        file.resize(file.len() + n_data, 7);
        open_file(file)
    }

    fn open_file(file: Vec<u8>) -> String {
        match Safetensors.open("m", &Files::from([("m.safetensors".to_owned(), file)])) {
            Ok(catalog) => format!("{} tensors", catalog.tensors.len()),
            Err(error) => error.to_string().replace("m.safetensors: ", ""),
        }
    }

    fn two(a: &str, b: &str, n_data: usize) -> String {
        let info = |offsets: &str| format!(r#"{{"dtype":"U8","shape":[4],"data_offsets":{offsets}}}"#);
        open(format!(r#"{{"a":{},"b":{}}}"#, info(a), info(b)).as_bytes(), n_data)
    }

    fn one(dtype: &str, shape: &str, offsets: &str, n_data: usize) -> String {
        let header = format!(r#"{{"a":{{"dtype":"{dtype}","shape":{shape},"data_offsets":{offsets}}}}}"#);
        open(header.as_bytes(), n_data)
    }

    #[test]
    fn values_must_lie_end_to_end_and_reach_the_end_of_the_file() {
        assert_eq!(two("[0,4]", "[4,8]", 8), "2 tensors");
        assert_eq!(two("[4,8]", "[0,4]", 8), "2 tensors");
        assert_eq!(two("[0,4]", "[5,9]", 9), "values of tensor \"b\" at offset 117: expected offset 4, found 5");
        assert_eq!(two("[0,4]", "[3,7]", 7), "values of tensor \"b\" at offset 117: expected offset 4, found 3");
        assert_eq!(two("[0,4]", "[0,4]", 4), "values of tensor \"b\" at offset 117: expected offset 4, found 0");
        assert_eq!(two("[0,4]", "[4,8]", 9), "values at offset 121: expected the end of the file, found 1 bytes more");
        assert_eq!(two("[0,4]", "[4,8]", 7), "values at offset 113: truncated: 8 bytes needed, 7 found");
    }

    #[test]
    fn a_length_must_be_that_of_type_and_shape() {
        let wrong = "header: tensor \"a\": offsets at offset 8: expected ";
        assert_eq!(one("F32", "[2]", "[0,8]", 8), "1 tensors");
        assert_eq!(one("F32", "[2]", "[0,7]", 7), format!("{wrong}8 bytes, found 0 to 7"));
        assert_eq!(one("F32", "[2]", "[8,0]", 8), format!("{wrong}8 bytes, found 8 to 0"));
        assert_eq!(one("F4", "[3]", "[0,2]", 2), format!("{wrong}a shape of whole bytes, found 0 to 2"));
        let huge = one("F32", "[18446744073709551615,18446744073709551615]", "[0,8]", 8);
        assert_eq!(huge, format!("{wrong}a shape of whole bytes, found 0 to 8"));
        assert_eq!(
            one("F33", "[]", "[0,8]", 8),
            "header: tensor \"a\": dtype at offset 8: expected a type of the format, found \"F33\""
        );
    }

    #[test]
    fn a_wrong_length_of_the_header_is_no_allocation() {
        assert_eq!(open_file(vec![1, 2]), "length of the header at offset 0: truncated: 8 bytes needed, 2 found");
        assert_eq!(
            open_file(vec![255; 9]),
            "length of the header at offset 0: expected at most 100000000, found 18446744073709551615"
        );
        assert_eq!(
            open_file(vec![0, 0, 0, 5, 0, 0, 0, 0, b'{']),
            "header at offset 8: truncated: 83886080 bytes needed, 1 found"
        );
    }

    #[test]
    fn what_is_no_header_is_said() {
        assert_eq!(open(b"", 0), "header at offset 8: expected \"{\", found nothing");
        assert_eq!(open(b" {}", 0), "header at offset 8: expected \"{\", found byte 0x20");
        assert_eq!(open(b"{\"\xff\":1}", 0), "header at offset 10: expected UTF-8, found invalid bytes");
        let directory = "header at offset 8: expected a directory of tensors in JSON, found ";
        assert_eq!(open(b"{}{", 0), format!("{directory}trailing characters at line 1 column 3"));
        let tensor = r#""a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}"#;
        let twice = format!("{{{tensor},{tensor}}}");
        assert_eq!(open(twice.as_bytes(), 0), format!("{directory}duplicate tensor \"a\" at line 1 column 105"));
        let notes = br#"{"__metadata__":{"k":"1","k":"2"}}"#;
        assert_eq!(open(notes, 0), format!("{directory}duplicate note \"k\" at line 1 column 33"));
        assert_eq!(
            open(br#"{"__metadata__":{},"__metadata__":{}}"#, 0),
            format!("{directory}\"__metadata__\" twice at line 1 column 33")
        );
        let number = open(br#"{"__metadata__":{"k":1}}"#, 0);
        assert_eq!(number, format!("{directory}invalid type: integer `1`, expected a string at line 1 column 22"));
        for shape in ["[-1]", "[1.5]", "[99999999999999999999]", "[\"1\"]", "1", "[[1]]", "null"] {
            let said = one("U8", shape, "[0,1]", 1);
            assert!(said.starts_with(directory), "{shape}: {said}");
        }
    }
}
