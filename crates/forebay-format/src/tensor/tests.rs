//! Shards round trip, and no flipped bit or cut goes unnoticed.

use super::*;
use crate::Error;
use proptest::prelude::*;

const SHAPE: Shape = Shape { height: 3, width: 5, channels: 3 };

fn pixels(seed: usize) -> Vec<u8> {
    (0..45).map(|n| ((n + 1) * (seed + 7)) as u8).collect()
}

fn shard(n_samples: usize) -> Vec<u8> {
    let mut writer = ShardWriter::new(SHAPE).unwrap();
    for n in 0..n_samples {
        writer.append(&pixels(n), -(n as i64), 1000 + n as u64).unwrap();
    }
    writer.finish().unwrap()
}

/// Everything that `forebay data verify` would look at.
fn verify_all(bytes: &[u8]) -> Result<u64, Error> {
    let shard = Shard::parse(bytes)?;
    (0..shard.header().n_samples()).try_for_each(|n| shard.verify(n))?;
    Ok(shard.header().n_samples())
}

/// Overwrites part of the header and makes its checksum fit again.
fn with_header(at: usize, field: &[u8]) -> Vec<u8> {
    let mut bytes = shard(2);
    bytes[at..at + field.len()].copy_from_slice(field);
    let crc = crc32c::crc32c(&bytes[..4092]);
    bytes[4092..4096].copy_from_slice(&crc.to_le_bytes());
    bytes
}

#[test]
fn everything_is_where_the_layout_says() {
    let bytes = shard(2);
    assert_eq!(&bytes[..16], b"FBTENSR1\x01\0\0\0\0\0\0\0");
    assert_eq!(&bytes[16..28], b"\x03\0\0\0\x05\0\0\0\x03\0\0\0");
    assert_eq!(bytes[32..40], 2_u64.to_le_bytes());
    assert_eq!(bytes[40..48], 45_u64.to_le_bytes());
    assert_eq!(bytes[48..56], 4096_u64.to_le_bytes());
    assert_eq!(bytes[56..64], 8192_u64.to_le_bytes());
    assert_eq!(bytes[64..72], (8192 + 40_u64).to_le_bytes());
    assert_eq!(bytes[4096..4096 + 45], pixels(0));
    assert_eq!(bytes[4096 + 45..4096 + 90], pixels(1));
    assert_eq!(bytes[8192 + 8..8192 + 16], (-1_i64).to_le_bytes());
    assert_eq!(bytes[8192 + 16..8192 + 24], 1000_u64.to_le_bytes());
    assert_eq!(bytes[8192 + 32..8192 + 36], crc32c::crc32c(&pixels(0)).to_le_bytes());
    assert_eq!(bytes.len(), 8192 + 40);
}

#[test]
fn a_shard_without_samples_is_whole() {
    let bytes = shard(0);
    assert_eq!((verify_all(&bytes).unwrap(), bytes.len()), (0, 4096));
}

#[test]
fn a_streamed_shard_has_the_same_bytes_as_one_built_in_memory() {
    let mut tables = TableBuilder::new(SHAPE).unwrap();
    let mut body = Vec::new();
    for n in 0..3 {
        tables.push(&pixels(n), -(n as i64), 1000 + n as u64).unwrap();
        body.extend_from_slice(&pixels(n));
    }
    let (header, tail) = tables.finish().unwrap();
    assert_eq!([&header.to_bytes()[..], &body, &tail].concat(), shard(3));
}

#[test]
fn a_sample_of_another_size_is_refused_and_leaves_the_shard_as_it_was() {
    let mut writer = ShardWriter::new(SHAPE).unwrap();
    assert!(matches!(writer.append(&[0; 44], 0, 0), Err(Error::Invalid { .. })));
    assert!(writer.is_empty());
    assert_eq!(writer.finish().unwrap(), shard(0));
}

#[test]
fn foreign_future_and_impossible_headers_are_told_apart() {
    let parse = |bytes: &[u8]| Header::parse(bytes).unwrap_err();
    assert!(matches!(parse(b"FBTENSOR"), Error::NotRecognised { .. }));
    assert!(matches!(parse(b"FBTENSR1"), Error::Truncated { needed: 4096, found: 8, .. }));
    assert!(parse(&with_header(8, &[2])).to_string().contains("version 2"));
    assert!(parse(&with_header(12, &[1])).to_string().contains("type 1"));
    assert!(matches!(parse(&with_header(16, &[0])), Error::Invalid { offset: 16, .. }));
    assert!(matches!(parse(&with_header(16, &[0xff; 12])), Error::TooLarge { .. }));
    assert!(matches!(parse(&with_header(32, &[0xff; 8])), Error::Invalid { offset: 32, .. }));
    assert!(matches!(parse(&with_header(64, &[0])), Error::Invalid { offset: 64, .. }));
    assert!(matches!(parse(&with_header(2000, &[1])), Error::Invalid { offset: 2000, .. }));
}

#[test]
fn a_shard_whose_header_was_never_put_in_place_is_not_recognised() {
    let mut bytes = shard(2);
    bytes[..4096].fill(0);
    assert!(matches!(Shard::parse(&bytes), Err(Error::NotRecognised { .. })));
}

#[test]
fn a_shard_cut_or_lengthened_anywhere_is_an_error() {
    let mut bytes = shard(2);
    for cut in (0..bytes.len()).filter(|cut| cut % 61 == 0 || *cut > 8192) {
        assert!(Shard::parse(&bytes[..cut]).is_err(), "cut at {cut}");
    }
    bytes.push(0);
    assert!(matches!(Shard::parse(&bytes), Err(Error::Invalid { .. })));
}

#[test]
fn a_damaged_sample_is_named_with_its_offset() {
    let mut bytes = shard(2);
    bytes[4096 + 50] ^= 4;
    let text = verify_all(&bytes).unwrap_err().to_string();
    assert!(text.starts_with("sample 1 at offset 4141: pixel checksum: expected 0x"), "{text}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_was_written_is_read_back(samples in proptest::collection::vec((any::<i64>(), any::<u64>(), any::<u8>()), 0..8)) {
        let mut writer = ShardWriter::new(SHAPE).unwrap();
        for &(label, id, seed) in &samples {
            writer.append(&pixels(seed.into()), label, id).unwrap();
        }
        let bytes = writer.finish().unwrap();
        let shard = Shard::parse(&bytes).unwrap();
        prop_assert_eq!(shard.header().n_samples(), samples.len() as u64);
        for (n, &(label, id, seed)) in samples.iter().enumerate() {
            prop_assert_eq!(shard.sample(n as u64), pixels(seed.into()));
            shard.verify(n as u64).unwrap();
            prop_assert_eq!((shard.tables().labels()[n], shard.tables().ids()[n]), (label, id));
        }
    }

    #[test]
    fn any_flipped_bit_is_detected(at in 0.0..1.0_f64, bit in 0..8_u32, near_samples in any::<bool>()) {
        let mut bytes = shard(2);
        let len = if near_samples { 90 } else { bytes.len() };
        let start = if near_samples { 4096 } else { 0 };
        bytes[start + (at * len as f64) as usize] ^= 1 << bit;
        prop_assert!(verify_all(&bytes).is_err());
    }
}
