//! Arrays, archives of them, tables and their indexes: read in pieces.

use forebay_format::Error;
use forebay_format::csv::read::{Expand, Parser};
use forebay_format::npz::read::{Content, Finder};
use forebay_format::npz::write::{Archive, Method};
use forebay_format::{indexed, npy};

/// Bytes of a piece: small, so that everything is cut somewhere.
const PIECE: usize = 7;

pub fn npy(input: &[u8]) -> Result<(), Error> {
    let header = npy::read::parse(input)?;
    assert!(header.data_offset <= input.len() as u64);
    assert_eq!(header.n_bytes(), header.n_values() * header.element.bytes);
    Ok(())
}

pub fn npz(input: &[u8]) -> Result<(), Error> {
    let file_len = input.len() as u64;
    let mut finder = Finder::new(file_len)?;
    while let Some(want) = finder.want() {
        finder.feed(&input[want.offset as usize..][..want.len])?;
    }
    for entry in finder.finish() {
        let start = entry.data_offset(input.get(entry.offset as usize..).unwrap_or_default(), file_len)?;
        let (mut content, mut made) = (Content::new(&entry, true), 0);
        for packed in input[start as usize..][..entry.packed_bytes as usize].chunks(PIECE) {
            content.feed(packed, |bytes| {
                made += bytes.len() as u64;
                Ok(())
            })?;
        }
        content.finish()?;
        assert_eq!(made, entry.bytes);
    }
    Ok(())
}

pub fn csv(input: &[u8]) -> Result<(), Error> {
    let (mut parser, mut n_values) = (Parser::default(), 0_u64);
    for piece in input.chunks(PIECE) {
        parser.feed(piece, |_, _, _| n_values += 1)?;
    }
    let size = parser.finish(|_, _, _| n_values += 1)?;
    assert_eq!(size.n_rows * size.n_columns, n_values);
    Ok(())
}

pub fn gzip(input: &[u8]) -> Result<(), Error> {
    let mut expand = Expand::gzip();
    for piece in input.chunks(PIECE) {
        expand.feed(piece, |_| Ok(()))?;
    }
    expand.finish(|_| Ok(()))
}

pub fn index(input: &[u8]) -> Result<(), Error> {
    let (offsets, sizes) = input.split_at(input.len() / 2);
    let spans = indexed::read::spans(offsets, sizes, 3, 1 << 20)?;
    assert!(spans.iter().all(|span| span.offset + span.len <= 1 << 20));
    Ok(())
}

pub fn npy_seeds() -> Vec<Vec<u8>> {
    let mut two = b"\x93NUMPY\x02\x00".to_vec();
    let dict = b"{'descr': '>f8', 'fortran_order': True, 'shape': (3, 4L), }\n";
    two.extend((dict.len() as u32).to_le_bytes());
    two.extend(dict);
    vec![npy::write::header("|u1", &[3, 5, 2]), npy::write::header("<i8", &[]), two]
}

pub fn npz_seeds() -> Vec<Vec<u8>> {
    [Method::Stored, Method::Deflated { level: 6 }].map(archive).to_vec()
}

fn archive(method: Method) -> Vec<u8> {
    let (mut archive, mut file) = (Archive::default(), Vec::new());
    for name in ["x.npy", "y.npy"] {
        let bytes: Vec<u8> = (0..200_u8).map(|i| i % 11).collect();
        file.extend(archive.begin(name, bytes.len() as u64, method));
        match method {
            Method::Stored => {
                archive.stored(&bytes);
                file.extend(&bytes);
            }
            Method::Deflated { .. } => archive.deflated(&bytes, &mut file),
        }
        let patch = archive.end(&mut file);
        file[patch.offset as usize..][..patch.bytes.len()].copy_from_slice(&patch.bytes);
    }
    file.extend(archive.finish());
    file
}

pub fn csv_seeds() -> Vec<Vec<u8>> {
    ["7,8\n9,10\n", ",0,1\r\n0,-3,1e5\r\n1,0.5,inf\r\n", "\"a\",\"b, c\"\n1,\n"]
        .map(|text| text.as_bytes().to_vec())
        .to_vec()
}

pub fn gzip_seeds() -> Vec<Vec<u8>> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(b"0,1,2\n3,4,5\n3,4,5\n3,4,5\n").expect("a vector takes every byte");
    vec![encoder.finish().expect("a vector takes every byte")]
}

pub fn index_seeds() -> Vec<Vec<u8>> {
    let mut bytes = Vec::new();
    indexed::write::offsets(0, 3, 100, &mut bytes);
    indexed::write::sizes(3, 100, &mut bytes);
    vec![bytes]
}
