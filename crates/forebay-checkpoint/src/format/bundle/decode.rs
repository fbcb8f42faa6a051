//! Reads the index of a bundle and checks its consistency.

use super::entry::{DT_STRING, TensorEntry, decode_header, dtype_numbered};
use super::proto::Fields;
use super::table_read::{Record, records, text};
use super::{NOTES, index_name, shard_name, strings};
use crate::Header;
use crate::format::catalog::{len_of, read};
use crate::format::{Catalog, Entry, Error, Place, Source, Strings};

pub(super) fn open(stem: &str, source: &dyn Source) -> Result<Catalog, Error> {
    let index = index_name(stem);
    let place = Place { file: &index };
    let mut rows = records(place, source)?.into_iter();
    let header = rows.next().filter(|record| record.key.is_empty());
    let header = header.ok_or_else(|| place.invalid("table", 0, "a header under the empty key", "none"))?;
    let n_shards = decode_header(fields(place, "header of the bundle", &header))?;
    let mut opened = Opened { stem, source, n_shards, catalog: Catalog::default(), shards: Vec::new() };
    opened.catalog.files.push(index.clone());
    let mut slices = false;
    for record in rows {
        // Slices of a variable have names that start like this, and sort first.
        if record.key.first() == Some(&0) {
            slices = true;
        } else {
            opened.add(place, &record)?;
        }
    }
    if slices {
        return Err(place.unsupported("slices of a variable that is missing"));
    }
    opened.check_overlaps()?;
    Ok(opened.catalog)
}

fn fields<'a>(place: Place<'a>, what: &'a str, record: &'a Record) -> Fields<'a> {
    Fields { place, what, offset: record.offset, bytes: &record.value }
}

/// State while the rows of a bundle are processed.
struct Opened<'a> {
    stem: &'a str,
    source: &'a dyn Source,
    n_shards: u32,
    catalog: Catalog,
    /// The shards in use: number, length, and the ranges of string tensors.
    shards: Vec<Shard>,
}

struct Shard {
    number: u32,
    n_bytes: u64,
    strings: Vec<(u64, u64)>,
}

impl Opened<'_> {
    fn add(&mut self, place: Place<'_>, record: &Record) -> Result<(), Error> {
        let name = String::from_utf8(record.key.clone())
            .map_err(|_| place.invalid("name of a tensor", record.offset, "UTF-8", text(&record.key)))?;
        let what = format!("entry of {name:?}");
        let fields = fields(place, &what, record);
        let entry = TensorEntry::decode(fields)?;
        if entry.n_slices > 0 {
            return Err(place.unsupported(format!("variable {name:?} in {} slices", entry.n_slices)));
        }
        let shard = self.shard(fields, &entry)?;
        if entry.dtype == DT_STRING {
            return self.add_strings(place, name, entry, shard);
        }
        let Some(dtype) = dtype_numbered(entry.dtype) else {
            return Err(place.unsupported(format!("tensor {name:?} of TensorFlow's type {}", entry.dtype)));
        };
        let crc32c = Some(entry.plain_crc32c());
        let header = Header { name, dtype, shape: entry.shape };
        if header.n_bytes() != Some(entry.n_bytes) {
            let expected = format!("the bytes of {:?} {:?}", header.dtype, header.shape);
            return Err(fields.invalid(&expected, entry.n_bytes));
        }
        let (offset, n_bytes) = (entry.offset, entry.n_bytes);
        self.catalog.tensors.push(Entry { header, file: shard + 1, offset, n_bytes, crc32c });
        Ok(())
    }

    /// The position of an entry's shard in the list, after checking that the entry lies within the shard.
    fn shard(&mut self, fields: Fields<'_>, entry: &TensorEntry) -> Result<usize, Error> {
        let number = u32::try_from(entry.shard).ok().filter(|&shard| shard < self.n_shards);
        let number = number
            .ok_or_else(|| fields.invalid(&format!("a shard below {}", self.n_shards), entry.shard.cast_signed()))?;
        let at = match self.shards.iter().position(|shard| shard.number == number) {
            Some(at) => at,
            None => {
                let file = shard_name(self.stem, number, self.n_shards);
                let n_bytes = len_of(Place { file: &file }, self.source)?;
                self.catalog.files.push(file);
                self.shards.push(Shard { number, n_bytes, strings: Vec::new() });
                self.shards.len() - 1
            }
        };
        let file = Place { file: &self.catalog.files[at + 1] };
        let n_shard = self.shards[at].n_bytes;
        match n_shard.checked_sub(entry.offset) {
            Some(found) if entry.n_bytes <= found => Ok(at),
            found => Err(file.truncated(fields.what, entry.offset, entry.n_bytes, found.unwrap_or(0))),
        }
    }

    fn add_strings(&mut self, index: Place<'_>, name: String, entry: TensorEntry, shard: usize) -> Result<(), Error> {
        let n_strings = entry.shape.iter().try_fold(1_u64, |product, &n| product.checked_mul(n)).unwrap_or(u64::MAX);
        let place = Place { file: &self.catalog.files[shard + 1] };
        let bytes = read(place, self.source, entry.offset, entry.n_bytes)?;
        let values = strings::decode(place, (&name, entry.offset), &bytes, n_strings, entry.plain_crc32c())?;
        self.shards[shard].strings.push((entry.offset, entry.n_bytes));
        match (name.strip_prefix(NOTES), &values[..]) {
            (Some(key), [value]) => {
                let note = String::from_utf8(value.clone())
                    .map_err(|_| index.invalid(format!("note {key:?}"), entry.offset, "UTF-8", "invalid bytes"))?;
                self.catalog.notes.insert(key.to_owned(), note);
            }
            _ => self.catalog.strings.push(Strings { name, shape: entry.shape, values }),
        }
        Ok(())
    }

    /// Rejects two tensors that share bytes: no writer produces this, and it would let a small file expand to a large
    /// state.
    fn check_overlaps(&self) -> Result<(), Error> {
        let tensors = self.catalog.tensors.iter().map(|entry| (entry.file, entry.offset, entry.n_bytes));
        let strings = self
            .shards
            .iter()
            .enumerate()
            .flat_map(|(at, shard)| shard.strings.iter().map(move |&(offset, n_bytes)| (at + 1, offset, n_bytes)));
        let mut ranges: Vec<_> = tensors.chain(strings).filter(|&(_, _, n_bytes)| n_bytes > 0).collect();
        ranges.sort_unstable();
        let overlap = ranges.windows(2).find(|pair| pair[0].0 == pair[1].0 && pair[0].1 + pair[0].2 > pair[1].1);
        match overlap {
            Some([(file, offset, n_bytes), (_, next, _)]) => {
                let place = Place { file: &self.catalog.files[*file] };
                Err(place.invalid("values", *offset, format!("the next values at or after {}", offset + n_bytes), next))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::entry::encode_header;
    use super::super::table_write::TableWriter;
    use super::*;
    use crate::format::Files;

    fn entry(offset: u64, n_bytes: u64) -> TensorEntry {
        TensorEntry { dtype: 4, shape: vec![n_bytes], offset, n_bytes, ..TensorEntry::default() }
    }

    /// Opens a bundle of eight bytes of values with this index.
    fn said(rows: &[(&[u8], Vec<u8>)]) -> String {
        let mut table = TableWriter::new();
        rows.iter().for_each(|(key, value)| table.add(key, value));
        let files = [("m.index", table.finish()), ("m.data-00000-of-00001", vec![0; 8])];
        let files: Files = files.map(|(name, bytes)| (name.to_owned(), bytes)).into();
        match open("m", &files) {
            Ok(catalog) => format!("{} tensors", catalog.tensors.len()),
            Err(error) => error.to_string(),
        }
    }

    fn said_of(entries: &[TensorEntry]) -> String {
        let rows = ["a", "b"].iter().zip(entries).map(|(name, entry)| (name.as_bytes(), entry.encode()));
        said(&[(&b""[..], encode_header())].into_iter().chain(rows).collect::<Vec<_>>())
    }

    #[test]
    fn tensors_must_lie_in_their_file_and_not_on_one_another() {
        assert_eq!(said_of(&[entry(0, 3), entry(5, 3)]), "2 tensors");
        assert_eq!(said_of(&[entry(8, 0), entry(8, 0)]), "2 tensors");
        let truncated = |offset, needed, found| {
            let file = "m.data-00000-of-00001";
            format!("{file}: entry of \"a\" at offset {offset}: truncated: {needed} bytes needed, {found} found")
        };
        assert_eq!(said_of(&[entry(6, 3)]), truncated(6, 3, 2));
        assert_eq!(said_of(&[entry(9, 0)]), truncated(9, 0, 0));
        assert_eq!(said_of(&[entry(u64::MAX, 3)]), truncated(u64::MAX, 3, 0));
        let overlap = "m.data-00000-of-00001: values at offset 0: expected the next values at or after 3, found 2";
        assert_eq!(said_of(&[entry(0, 3), entry(2, 3)]), overlap);
        assert_eq!(said_of(&[entry(2, 3), entry(0, 3)]), overlap);
    }

    #[test]
    fn an_entry_must_fit_its_shape_and_name_a_shard_that_is_there() {
        let odd = TensorEntry { shape: vec![4], ..entry(0, 3) };
        assert_eq!(said_of(&[odd]), "m.index: entry of \"a\" at offset 0: expected the bytes of U8 [4], found 3");
        let elsewhere = TensorEntry { shard: 1, ..entry(0, 3) };
        assert_eq!(said_of(&[elsewhere]), "m.index: entry of \"a\" at offset 0: expected a shard below 1, found 1");
        let unknown = TensorEntry { dtype: 21, ..entry(0, 3) };
        assert_eq!(said_of(&[unknown]), "m.index: not supported: tensor \"a\" of TensorFlow's type 21");
    }

    #[test]
    fn an_index_without_header_or_with_odd_names_is_refused() {
        assert_eq!(said(&[]), "m.index: table at offset 0: expected a header under the empty key, found none");
        let bare = said(&[(b"a", entry(0, 3).encode())]);
        assert_eq!(bare, "m.index: table at offset 0: expected a header under the empty key, found none");
        let odd = said(&[(b"", encode_header()), (b"\xff", entry(0, 3).encode())]);
        assert_eq!(odd, "m.index: name of a tensor at offset 0: expected UTF-8, found \"\u{fffd}\"");
        let slice = said(&[(b"", encode_header()), (b"\0w", entry(0, 3).encode())]);
        assert_eq!(slice, "m.index: not supported: slices of a variable that is missing");
    }
}
