//! Archives of every dialect, samples, and damage.

use super::*;
use crate::{Error, Scanner, Span};
use proptest::prelude::*;

fn archive(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut out = Vec::new();
    files.iter().for_each(|(path, data)| append_file(&mut out, path, data).unwrap());
    finish(&mut out);
    out
}

fn files(paths: &[&str]) -> Vec<(String, Vec<u8>)> {
    paths.iter().enumerate().map(|(n, path)| ((*path).to_owned(), vec![n as u8; n * 300])).collect()
}

fn read(bytes: &[u8]) -> Result<Vec<(String, Vec<u8>)>, Error> {
    Entries::new(bytes)
        .map(|entry| entry.map(|entry| (String::from_utf8(entry.path).unwrap(), entry.data.to_vec())))
        .collect()
}

fn scan(bytes: &[u8]) -> Result<Vec<Span>, Error> {
    let mut scanner = SampleScanner::new(bytes.len() as u64);
    let mut spans = Vec::new();
    while let Some(want) = scanner.want() {
        spans.extend(scanner.feed(&bytes[want.offset as usize..][..want.len])?);
    }
    Ok(spans)
}

/// Changes a header's fields and makes its checksum fit again.
fn patch(bytes: &mut [u8], header_at: usize, fields: &[(usize, &[u8])]) {
    let block: &mut [u8; BLOCK] = bytes[header_at..].first_chunk_mut().unwrap();
    fields.iter().for_each(|(at, field)| block[*at..at + field.len()].copy_from_slice(field));
    let sum = header::checksum(block);
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}

#[test]
fn an_entry_is_written_byte_for_byte_as_ustar() {
    let bytes = archive(&files(&["a.jpg", "b.jpg"]));
    assert_eq!(&bytes[..6], b"a.jpg\0");
    assert_eq!(&bytes[100..124], b"0000644\x000000000\x000000000\0");
    assert_eq!(&bytes[512 + 124..512 + 136], b"00000000454\0");
    assert_eq!(&bytes[156..157], b"0");
    assert_eq!(&bytes[257..265], b"ustar\x0000");
    assert_eq!(bytes.len(), 512 + 1024 + 1024);
}

#[test]
fn long_and_foreign_paths_come_back() {
    let paths = [
        "x".repeat(100),
        format!("{}/{}", "d".repeat(150), "n".repeat(100)),
        format!("{}/n.jpg", "d".repeat(300)),
        "n".repeat(101),
        "größe/ñ.jpg".to_owned(),
    ];
    let files: Vec<_> = paths.iter().map(|path| (path.clone(), path.clone().into_bytes())).collect();
    assert_eq!(read(&archive(&files)).unwrap(), files);
}

#[test]
fn gnu_long_names_and_pax_sizes_are_read() {
    let long = format!("{}.jpg", "n".repeat(200));
    let mut bytes = Vec::new();
    append_file(&mut bytes, "././@LongLink", format!("{long}\0").as_bytes()).unwrap();
    patch(&mut bytes, 0, &[(156, b"L"), (257, b"ustar  \0")]);
    append_file(&mut bytes, "short", b"data").unwrap();
    append_file(&mut bytes, "pax", b"10 size=3\n").unwrap();
    patch(&mut bytes, 2048, &[(156, b"x")]);
    append_file(&mut bytes, "b.cls", b"123").unwrap();
    patch(&mut bytes, 3072, &[(124, b"00000000000\0")]);
    finish(&mut bytes);
    let entries: Vec<_> = Entries::new(&bytes).map(Result::unwrap).collect();
    assert_eq!((entries[0].path.as_slice(), entries[0].data), (long.as_bytes(), &b"data"[..]));
    assert_eq!((entries[0].header_offset, entries[0].data_offset), (0, 1536));
    assert_eq!((entries[1].path.as_slice(), entries[1].data), (&b"b.cls"[..], &b"123"[..]));
    assert_eq!((entries[1].header_offset, entries[1].data_offset), (2048, 3584));
}

#[test]
fn a_path_that_is_not_utf_8_comes_back_from_a_header_and_from_a_pax_record() {
    let mut bytes = Vec::new();
    append_file(&mut bytes, b"ph\xffotos/a\xfe.jpg", b"data").unwrap();
    append_file(&mut bytes, b"ph\xffotos/a\xfe.cls", b"seven").unwrap();
    finish(&mut bytes);
    assert_eq!(&bytes[..15], b"ph\xffotos/a\xfe.jpg\0");
    let sample = Samples::new(&bytes).next().unwrap().unwrap();
    assert_eq!((sample.key.as_slice(), sample.image()), (&b"ph\xffotos/a\xfe"[..], Some(&b"data"[..])));
    assert!(sample.label().unwrap_err().to_string().contains(r"label of sample ph\xffotos/a\xfe"));
    assert_eq!(scan(&bytes).unwrap().len(), 1);
    let long = [b"\xff".repeat(200), b".jpg".to_vec()].concat();
    let mut bytes = Vec::new();
    append_file(&mut bytes, &long, b"data").unwrap();
    assert_eq!(&bytes[512..512 + 30], b"21 hdrcharset=BINARY\n214 path=");
    finish(&mut bytes);
    assert_eq!(Entries::new(&bytes).next().unwrap().unwrap().path, long);
}

#[test]
fn directories_and_links_are_passed_over() {
    let mut bytes = archive(&files(&["dir/", "link", "old/", "a.jpg"]));
    patch(&mut bytes, 0, &[(156, b"5")]);
    // A hard link states the size of its target, and no data follow; here the data are cut out.
    bytes.drain(1024..1536);
    patch(&mut bytes, 512, &[(156, b"1")]);
    patch(&mut bytes, 1024, &[(156, b"\0")]);
    assert_eq!(read(&bytes).unwrap(), [("a.jpg".to_owned(), vec![3; 900])]);
}

#[test]
fn damaged_headers_are_refused_with_their_offset() {
    let mut bytes = archive(&files(&["a.jpg", "b.jpg"]));
    bytes[512] ^= 1;
    assert!(matches!(read(&bytes), Err(Error::Checksum { offset: 512, part: "header", .. })));
    assert!(matches!(read(&[b'x'; 1024]), Err(Error::NotRecognised { .. })));
    let mut bytes = archive(&files(&["a.jpg"]));
    patch(&mut bytes, 0, &[(124, b"\x80\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff")]);
    assert!(matches!(read(&bytes), Err(Error::Truncated { needed: u64::MAX, .. })));
}

fn left_out(bytes: &[u8]) -> Vec<(String, u64, &'static str)> {
    let mut scanner = SampleScanner::new(bytes.len() as u64);
    while let Some(want) = scanner.want() {
        scanner.feed(&bytes[want.offset as usize..][..want.len]).unwrap();
    }
    let name = |path: &[u8]| String::from_utf8(path.to_owned()).unwrap();
    scanner.left_out().iter().map(|entry| (name(&entry.path), entry.offset, entry.what)).collect()
}

#[test]
fn links_are_left_out_and_named_with_their_long_names() {
    let long = format!("{}.jpg", "n".repeat(200));
    let mut bytes = archive(&files(&["./a.jpg", "hard.jpg", "soft.jpg"]));
    bytes.truncate(512);
    append_file(&mut bytes, "././@LongLink", format!("{long}\0").as_bytes()).unwrap();
    patch(&mut bytes, 512, &[(156, b"L"), (257, b"ustar  \0")]);
    for kind in [b"1", b"2"] {
        let at = bytes.len();
        append_file(&mut bytes, "soft.jpg", b"").unwrap();
        patch(&mut bytes, at, &[(156, kind)]);
    }
    append_file(&mut bytes, "b.jpg", b"b").unwrap();
    finish(&mut bytes);
    let paths: Vec<_> = read(&bytes).unwrap().into_iter().map(|(path, _)| path).collect();
    assert_eq!(paths, ["./a.jpg", "b.jpg"]);
    let expected = [(long, 512, "a hard link"), ("soft.jpg".to_owned(), 2048, "a symbolic link")];
    assert_eq!(left_out(&bytes), expected);
}

#[test]
fn sparse_files_of_every_form_are_left_out_and_the_next_entry_is_found() {
    let mut bytes = Vec::new();
    // GNU's own form, with two further blocks of the map before the data.
    append_file(&mut bytes, "old.jpg", &[7; 600]).unwrap();
    patch(&mut bytes, 0, &[(156, b"S"), (482, b"\x01")]);
    let mut map = [0; 2 * BLOCK];
    map[504] = 1;
    bytes.splice(512..512, map);
    let at = bytes.len();
    append_file(&mut bytes, "none.jpg", b"x").unwrap();
    patch(&mut bytes, at, &[(156, b"S")]);
    // The form of pax, whose header has a made-up path.
    let at_pax = bytes.len();
    append_file(&mut bytes, "pax", b"22 GNU.sparse.major=1\n27 GNU.sparse.name=new.jpg\n").unwrap();
    patch(&mut bytes, at_pax, &[(156, b"x")]);
    append_file(&mut bytes, "GNUSparseFile.1/new.jpg", b"map and data").unwrap();
    append_file(&mut bytes, "last.jpg", b"last").unwrap();
    finish(&mut bytes);
    assert_eq!(read(&bytes).unwrap(), [("last.jpg".to_owned(), b"last".to_vec())]);
    let what = "a sparse file";
    let expected = [("old.jpg", 0, what), ("none.jpg", at as u64, what), ("new.jpg", at_pax as u64, what)];
    assert_eq!(left_out(&bytes), expected.map(|(path, at, what)| (path.to_owned(), at, what)));
    assert!(scan(&bytes[..1000]).is_err(), "a map that is cut off");
}

#[test]
fn a_file_entry_whose_name_ends_with_a_slash_is_a_directory() {
    let mut bytes = archive(&files(&["d/", "d/a.jpg"]));
    patch(&mut bytes, 0, &[(156, b"0")]);
    assert_eq!(read(&bytes).unwrap(), [("d/a.jpg".to_owned(), vec![1; 300])]);
}

#[test]
fn consecutive_files_with_one_key_are_a_sample() {
    let paths = ["__meta__", "s/1.jpg", "s/1.CLS", "readme", "s/2.cls", "s/2.left.png", "s/1.jpg"];
    let mut files = files(&paths);
    files[2].1 = b" 12\n".to_vec();
    files[4].1 = b"twelve".to_vec();
    let bytes = archive(&files);
    let samples: Vec<_> = Samples::new(&bytes).map(Result::unwrap).collect();
    let keys: Vec<_> = samples.iter().map(|sample| sample.key.as_slice()).collect();
    assert_eq!(keys, [b"s/1", b"s/2", b"s/1"]);
    assert_eq!(samples[0].image(), Some(&files[1].1[..]));
    assert_eq!(samples[0].label().unwrap(), Some(12));
    assert_eq!(samples[1].image(), Some(&files[5].1[..]));
    assert_eq!(samples[1].part("cls"), Some(&b"twelve"[..]));
    assert!(samples[1].label().unwrap_err().to_string().contains("label of sample s/2"));
    assert_eq!(samples[2].label().unwrap(), None);

    let spans = scan(&bytes).unwrap();
    assert_eq!(spans.len(), 3);
    for (span, sample) in spans.iter().zip(&samples) {
        let piece = &bytes[span.offset as usize..][..span.len as usize];
        assert_eq!(&parse_sample(piece, span.offset).unwrap(), sample);
    }
}

#[test]
fn a_part_that_comes_twice_in_a_sample_is_refused() {
    let bytes = archive(&files(&["a.jpg", "a.JPG"]));
    assert!(matches!(Samples::new(&bytes).next(), Some(Err(Error::Invalid { offset: 512, .. }))));
}

#[test]
fn a_piece_with_two_samples_or_none_is_not_a_sample() {
    let bytes = archive(&files(&["a.jpg", "b.jpg"]));
    assert!(parse_sample(&bytes[..512], 0).is_ok());
    assert!(parse_sample(&bytes[..1536], 0).unwrap_err().to_string().contains("more than one"));
    assert!(parse_sample(&[], 7).unwrap_err().to_string().contains("none"));
}

#[test]
fn paths_that_cannot_be_written_are_refused() {
    let mut out = Vec::new();
    assert!(append_file(&mut out, "", b"").is_err());
    assert!(append_file(&mut out, "a\0b", b"").is_err());
    assert!(out.is_empty());
}

fn any_files() -> impl Strategy<Value = Vec<(String, Vec<u8>)>> {
    let path = prop_oneof!["[a-c]{1,2}\\.(jpg|cls)", "([a-z]{1,90}/){0,4}[a-zé]{1,120}\\.jpg"];
    proptest::collection::vec((path, proptest::collection::vec(any::<u8>(), 0..700)), 0..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_was_written_is_read_back(files in any_files()) {
        prop_assert_eq!(read(&archive(&files)).unwrap(), files);
    }

    #[test]
    fn a_truncated_archive_is_an_error_until_its_end_marker_begins(files in any_files(), at in 0.0..1.0_f64) {
        let bytes = archive(&files);
        let body = bytes.len() - 1024;
        let cut = (at * bytes.len() as f64) as usize;
        prop_assert_eq!(read(&bytes[..cut]).is_ok(), cut >= body + 512);
        prop_assert_eq!(scan(&bytes[..cut]).is_ok(), cut >= body + 512);
        let whole: Vec<_> = Entries::new(&bytes[..cut]).map_while(Result::ok).collect();
        prop_assert!(whole.iter().zip(&files).all(|(entry, file)| entry.path == file.0.as_bytes() && entry.data == file.1));
    }
}

#[test]
fn any_flipped_bit_of_a_header_is_detected() {
    let whole = archive(&files(&["a.jpg"]));
    let digits = |bytes: &[u8]| {
        let digits =
            bytes[148..156].iter().skip_while(|byte| b" 0".contains(byte)).take_while(|byte| !b"\0 ".contains(byte));
        digits.copied().collect::<Vec<u8>>()
    };
    for bit in 0..512 * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        // NUL and space end a number alike, nothing after them is read, and a zero before it may be a space: there alone a
        // flip leaves the checksum's value as it was.
        let benign = (148..156).contains(&(bit / 8)) && digits(&bytes) == digits(&whole);
        assert!(read(&bytes).is_err() || benign, "bit {bit}");
    }
}
