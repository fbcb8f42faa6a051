//! Archives there and back, and every damage to them.

use super::*;
use crate::npz::write::{Archive, Method as Write};
use proptest::prelude::*;

fn archive(members: &[(&str, &[u8])], method: Write) -> Vec<u8> {
    let (mut archive, mut file) = (Archive::default(), Vec::new());
    for (name, bytes) in members {
        file.extend(archive.begin(name, bytes.len() as u64, method));
        match method {
            Write::Stored => {
                archive.stored(bytes);
                file.extend_from_slice(bytes);
            }
            Write::Deflated { .. } => archive.deflated(bytes, &mut file),
        }
        let patch = archive.end(&mut file);
        file[patch.offset as usize..][..patch.bytes.len()].copy_from_slice(&patch.bytes);
    }
    file.extend(archive.finish());
    file
}

fn directory(file: &[u8]) -> Result<Vec<Entry>, Error> {
    let mut finder = Finder::new(file.len() as u64)?;
    while let Some(want) = finder.want() {
        finder.feed(&file[want.offset as usize..][..want.len])?;
    }
    Ok(finder.finish())
}

fn content(file: &[u8], entry: &Entry, piece: usize, verify: bool) -> Result<Vec<u8>, Error> {
    let header = file.get(entry.offset as usize..).unwrap_or_default();
    let start = entry.data_offset(header, file.len() as u64)? as usize;
    let (mut content, mut out) = (Content::new(entry, verify), Vec::new());
    for packed in file[start..][..entry.packed_bytes as usize].chunks(piece) {
        content.feed(packed, |bytes| {
            out.extend_from_slice(bytes);
            Ok(())
        })?;
    }
    content.finish()?;
    Ok(out)
}

fn all(file: &[u8], piece: usize) -> Result<Vec<(String, Vec<u8>)>, Error> {
    directory(file)?.iter().map(|entry| Ok((entry.name.clone(), content(file, entry, piece, true)?))).collect()
}

fn values(n: usize) -> Vec<u8> {
    (0..n).map(|i| (i * i % 251) as u8).collect()
}

const METHODS: [Write; 2] = [Write::Stored, Write::Deflated { level: 4 }];

#[test]
fn members_are_read_in_pieces_of_any_size() {
    let (x, y) = (values(100_000), values(8));
    for method in METHODS {
        let file = archive(&[("x.npy", &x), ("y.npy", &y), ("empty", &[])], method);
        for piece in [1, 1000, 1 << 20] {
            let expected = [("x.npy", x.clone()), ("y.npy", y.clone()), ("empty", vec![])];
            assert_eq!(all(&file, piece).unwrap(), expected.map(|(name, bytes)| (name.to_owned(), bytes)));
        }
    }
}

#[test]
fn a_long_comment_behind_the_directory_is_looked_behind() {
    let mut file = archive(&[("x.npy", b"hello")], Write::Stored);
    let at = file.len() - 2;
    file[at..].copy_from_slice(&30_000_u16.to_le_bytes());
    file.extend(std::iter::repeat_n(b'c', 30_000));
    assert_eq!(all(&file, 10).unwrap()[0].1, b"hello");
}

#[test]
fn a_directory_in_zip64s_fields_is_read() {
    // As a file of more than 4 GiB has it, with the numbers of a small one.
    let mut file = archive(&[("x.npy", b"hello")], Write::Stored);
    let end = file.split_off(file.len() - END_LEN);
    let (len, at) = (u64::from(u32_at(&end, 12)), u64::from(u32_at(&end, 16)));
    let end_64 = file.len() as u64;
    file.extend(END_64.to_le_bytes());
    file.extend(44_u64.to_le_bytes());
    file.extend([45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    [1, 1, len, at].iter().for_each(|number| file.extend(number.to_le_bytes()));
    file.extend(LOCATOR_64.to_le_bytes());
    file.extend([0; 4]);
    file.extend(end_64.to_le_bytes());
    file.extend(1_u32.to_le_bytes());
    let mut end = end;
    end[8..20].fill(0xFF);
    file.extend(end);
    assert_eq!(all(&file, 10).unwrap()[0].1, b"hello");
}

#[test]
fn without_verification_damage_passes_and_with_it_is_named() {
    let mut file = archive(&[("x.npy", &values(1000))], Write::Stored);
    file[500] ^= 4;
    let entry = &directory(&file).unwrap()[0];
    assert_eq!(content(&file, entry, 100, false).unwrap().len(), 1000);
    let text = content(&file, entry, 100, true).unwrap_err().to_string();
    assert!(text.starts_with("x.npy at offset 0: content checksum: expected 0x"), "{text}");
}

#[test]
fn what_is_no_archive_is_said_so() {
    assert!(matches!(directory(&values(5000)), Err(Error::NotRecognised { .. })));
    assert!(matches!(directory(b"short"), Err(Error::Truncated { .. })));
}

#[test]
fn a_length_that_the_file_does_not_have_is_refused() {
    let file = archive(&[("x.npy", b"hello")], Write::Stored);
    let entry = Entry { packed_bytes: u64::MAX - 10, ..directory(&file).unwrap().remove(0) };
    assert!(matches!(entry.data_offset(&file, file.len() as u64), Err(Error::Truncated { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_cut_is_an_error(n in 0_usize..300, deflated: bool) {
        let file = archive(&[("x.npy", &values(n))], METHODS[usize::from(deflated)]);
        for cut in 0..file.len() {
            prop_assert!(all(&file[..cut], 64).is_err(), "cut at {}", cut);
        }
    }

    #[test]
    fn any_flipped_bit_of_the_content_is_an_error_or_leaves_it_as_it_was(n in 1_usize..200, deflated: bool) {
        let original = values(n);
        let mut file = archive(&[("x.npy", &original)], METHODS[usize::from(deflated)]);
        let entry = directory(&file).unwrap().remove(0);
        let start = entry.data_offset(&file, file.len() as u64).unwrap() as usize;
        for bit in start * 8..(start + entry.packed_bytes as usize) * 8 {
            file[bit / 8] ^= 1 << (bit % 8);
            // Padding bits at the end of a deflated stream mean nothing.
            if let Ok(found) = content(&file, &entry, 64, true) {
                prop_assert!(deflated && found == original, "bit {}", bit);
            }
            file[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn other_bytes_never_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..300), at in 0_usize..300, n in 0_usize..60) {
        let _ = all(&bytes, 64);
        let file = archive(&[("x.npy", &values(n))], METHODS[n % 2]);
        let mut mangled = file.clone();
        bytes.truncate(4);
        let at = at % mangled.len();
        let end = (at + bytes.len()).min(mangled.len());
        mangled[at..end].copy_from_slice(&bytes[..end - at]);
        let _ = all(&mangled, 64);
    }
}
