//! Files written and read again, in memory; those of other writers are read by the tests in Python.

use proptest::prelude::*;

use super::*;
use crate::Element;

/// A file with its values: value `v` of column `c` in row `r` is bytes of a pattern.
fn made(columns: &[Column], n_rows: u64, group_rows: u64, codec: Codec) -> Vec<u8> {
    let mut file = Vec::new();
    let mut out = |bytes: &[u8]| -> Result<(), Error> {
        file.extend_from_slice(bytes);
        Ok(())
    };
    let mut writer = Writer::new(columns.to_vec(), codec).unwrap();
    let mut first = 0;
    while first < n_rows {
        let n = group_rows.min(n_rows - first);
        let mut fill = |column: usize, row: u64, values: &mut [u8]| {
            let row_bytes = columns[column].width as usize * columns[column].element.bytes() as usize;
            for (i, row_values) in (first + row..).zip(values.chunks_mut(row_bytes)) {
                row_values.copy_from_slice(&pattern(column, i, row_bytes));
            }
        };
        writer.write_group(n, &mut fill, &mut out).unwrap();
        first += n;
    }
    writer.finish(&mut out).unwrap();
    file
}

fn pattern(column: usize, row: u64, len: usize) -> Vec<u8> {
    (0..len as u64).map(|i| (row * 31 + i * 7 + column as u64 * 101 + (row * i) % 251) as u8).collect()
}

fn footer_of(file: &[u8], columns: Option<&[&str]>) -> Result<Footer, Error> {
    let tail = &file[file.len().saturating_sub(TAIL_BYTES)..];
    let range = footer_range(tail, file.len() as u64)?;
    let names: Option<Vec<String>> = columns.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
    Footer::parse(&file[range.start as usize..range.end as usize], range.start, names.as_deref())
}

type Asked = Vec<(u64, usize)>;

/// All rows of the chosen columns, and the ranges that were asked for.
fn read_all(file: &[u8], columns: Option<&[&str]>, piece: usize, at_once: usize) -> Result<(Vec<u8>, Asked), Error> {
    let footer = footer_of(file, columns)?;
    let mut asked = Vec::new();
    let mut all = Vec::new();
    for group in 0..footer.groups.len() {
        let mut reader = GroupReader::new(&footer, group, piece, true);
        let mut rows = vec![0; reader.row_bytes().min(1 << 20) * at_once];
        loop {
            let mut fetch = |offset: u64, len: usize, into: &mut Vec<u8>| -> Result<(), Error> {
                asked.push((offset, len));
                into.extend_from_slice(&file[offset as usize..offset as usize + len]);
                Ok(())
            };
            let n = reader.read(&mut rows, &mut fetch)?;
            if n == 0 {
                break;
            }
            all.extend_from_slice(&rows[..n * reader.row_bytes()]);
        }
    }
    Ok((all, asked))
}

fn column(name: &str, element: Element, width: u32) -> Column {
    Column { name: name.to_owned(), element, width }
}

fn expected(columns: &[Column], chosen: &[usize], n_rows: u64) -> Vec<u8> {
    let row = |row: u64| {
        chosen
            .iter()
            .flat_map(move |c| pattern(*c, row, columns[*c].width as usize * columns[*c].element.bytes() as usize))
    };
    (0..n_rows).flat_map(row).collect()
}

#[test]
fn every_type_comes_back_alone_and_in_lists_with_every_codec() {
    for codec in [Codec::None, Codec::Snappy, Codec::Gzip(4)] {
        for element in Element::ALL {
            for width in [1, 2, 8, 9, 70] {
                let columns = [column("x", element, width)];
                let file = made(&columns, 23, 10, codec);
                let (rows, _) = read_all(&file, None, 64, 3).unwrap();
                assert_eq!(rows, expected(&columns, &[0], 23), "{element:?} × {width}, {codec:?}");
            }
        }
    }
}

#[test]
fn only_the_chunks_of_the_chosen_columns_are_asked_for() {
    let columns = [column("a", Element::F32, 1), column("b", Element::F64, 40), column("c", Element::I64, 1)];
    let file = made(&columns, 100, 30, Codec::None);
    let (rows, asked) = read_all(&file, Some(&["c", "a"]), 128, 7).unwrap();
    assert_eq!(rows, expected(&columns, &[2, 0], 100));
    let footer = footer_of(&file, Some(&["c", "a"])).unwrap();
    let within = |(offset, len): &(u64, usize)| {
        let mut chunks = footer.groups.iter().flat_map(|group| &group.chunks);
        chunks.any(|chunk| *offset >= chunk.offset && offset + *len as u64 <= chunk.offset + chunk.len)
    };
    assert!(asked.iter().all(within));
    let moved: usize = asked.iter().map(|(_, len)| len).sum();
    let chosen: u64 = footer.groups.iter().flat_map(|group| &group.chunks).map(|chunk| chunk.len).sum();
    assert_eq!(moved as u64, chosen, "every byte once");
}

#[test]
fn rows_that_are_passed_over_cost_the_headers_of_their_pages() {
    let columns = [column("a", Element::F32, 10_000), column("b", Element::I8, 1)];
    let file = made(&columns, 60, 60, Codec::None);
    let footer = footer_of(&file, None).unwrap();
    for skipped in [0, 1, 5, 6, 7, 30, 59] {
        let mut moved = 0;
        let mut fetch = |offset: u64, len: usize, into: &mut Vec<u8>| -> Result<(), Error> {
            moved += len;
            into.extend_from_slice(&file[offset as usize..offset as usize + len]);
            Ok(())
        };
        let mut reader = GroupReader::new(&footer, 0, 4096, true);
        reader.skip(skipped, &mut fetch).unwrap();
        let mut rows = vec![0; reader.row_bytes()];
        assert_eq!(reader.read(&mut rows, &mut fetch).unwrap(), 1);
        assert_eq!(rows, expected(&columns, &[0, 1], 60)[skipped as usize * rows.len()..][..rows.len()], "{skipped}");
        assert!(moved < 260 << 10, "{moved} bytes for row {skipped} of {}", file.len());
    }
    let mut none = |_: u64, _: usize, _: &mut Vec<u8>| -> Result<(), Error> { panic!("nothing is asked for") };
    assert!(GroupReader::new(&footer, 0, 4096, true).skip(61, &mut none).is_err());
}

#[test]
fn the_length_of_a_file_is_known_before_it_is_written() {
    let columns = [column("a", Element::F32, 100_000), column("b", Element::U8, 3000), column("c", Element::I16, 1)];
    for (n_rows, group_rows) in [(0, 5), (1, 5), (5, 5), (301, 100), (400, 400)] {
        let file = made(&columns, n_rows, group_rows, Codec::None);
        assert_eq!(
            file_bytes(&columns, n_rows, group_rows).unwrap(),
            file.len() as u64,
            "{n_rows} rows by {group_rows}"
        );
    }
}

#[test]
fn a_flipped_bit_of_a_page_is_noticed_unless_checksums_are_left_out() {
    let columns = [column("a", Element::F32, 20)];
    let mut file = made(&columns, 10, 10, Codec::None);
    let footer = footer_of(&file, None).unwrap();
    let chunk = footer.groups[0].chunks[0];
    let last = (chunk.offset + chunk.len) as usize - 1;
    file[last] ^= 1;
    let error = read_all(&file, None, 4096, 10).unwrap_err();
    assert!(matches!(error, Error::Checksum { offset: 4, .. }), "{error}");
    let mut reader = GroupReader::new(&footer, 0, 4096, false);
    let mut rows = vec![0; reader.row_bytes() * 10];
    let mut fetch = |offset: u64, len: usize, into: &mut Vec<u8>| -> Result<(), Error> {
        into.extend_from_slice(&file[offset as usize..offset as usize + len]);
        Ok(())
    };
    assert_eq!(reader.read(&mut rows, &mut fetch).unwrap(), 10);
}

#[test]
fn a_column_that_is_not_there_is_named_with_those_that_are() {
    let file = made(&[column("a", Element::F32, 1), column("b", Element::F32, 1)], 3, 3, Codec::None);
    let error = footer_of(&file, Some(&["x"])).unwrap_err();
    assert_eq!(error.to_string(), "Parquet columns at offset 0: expected a column \"x\", found a, b");
}

#[test]
fn a_file_of_another_kind_is_not_recognised() {
    let error = footer_range(b"\0\0\0\0PK\x05\x06", 1000).unwrap_err();
    assert!(matches!(error, Error::NotRecognised { .. }), "{error}");
    assert!(matches!(footer_range(b"\xff\xff\0\0PAR1", 1000), Err(Error::Truncated { .. })));
}

proptest! {
    #[test]
    fn what_is_written_is_read_for_any_shape(
        n_rows in 0_u64..200,
        group_rows in 1_u64..90,
        width in 1_u32..40,
        piece in 1_usize..3000,
        at_once in 1_usize..50,
        element in 0_usize..12,
        codec in prop::sample::select(vec![Codec::None, Codec::Snappy, Codec::Gzip(1)]),
    ) {
        let columns = [column("a", Element::ALL[element], width), column("b", Element::U64, 1)];
        let file = made(&columns, n_rows, group_rows, codec);
        let (rows, _) = read_all(&file, None, piece, at_once).unwrap();
        prop_assert_eq!(rows, expected(&columns, &[0, 1], n_rows));
    }

    #[test]
    fn any_cut_is_an_error(len in 0_usize..2000) {
        let file = made(&[column("a", Element::F32, 3), column("b", Element::U16, 1)], 50, 20, Codec::Snappy);
        prop_assume!(len < file.len());
        prop_assert!(read_all(&file[..len], None, 100, 5).is_err());
    }

    #[test]
    fn any_flipped_bit_of_a_page_is_an_error_and_one_elsewhere_never_a_panic(bit in 0_usize..8000) {
        let columns = [column("a", Element::F32, 3), column("b", Element::U16, 1)];
        let mut file = made(&columns, 50, 20, Codec::None);
        let footer = footer_of(&file, None).unwrap();
        prop_assume!(bit / 8 < file.len());
        file[bit / 8] ^= 1 << (bit % 8);
        let outcome = read_all(&file, None, 100, 5);
        let header_bytes = 30;
        let in_page = footer.groups.iter().flat_map(|group| &group.chunks).any(|chunk| {
            let at = (bit / 8) as u64;
            at >= chunk.offset + header_bytes && at < chunk.offset + chunk.len
        });
        if in_page {
            prop_assert!(outcome.is_err());
        }
    }
}
