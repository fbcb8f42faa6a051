//! Making checksums fit again, as far as the damaged structure can still be followed.

use forebay_checkpoint::format::{Bundle, Error};
use forebay_format::tfrecord::masked_crc32c;

use crate::checkpoint;

pub fn nothing(_: &mut [u8]) {}

/// PNG: the crc32 of every chunk.
pub fn png(input: &mut [u8]) {
    let mut at = 8;
    while let Some(len) = input.get(at..at + 4).map(|len| u32::from_be_bytes(len.try_into().expect("four bytes"))) {
        let end = at + 8 + len as usize;
        let Some(body) = input.get(at + 4..end) else { return };
        let mut crc = flate2::Crc::new();
        crc.update(body);
        put(input, end, &crc.sum().to_be_bytes());
        at = end + 4;
    }
}

/// TFRecord: both checksums of every frame.
pub fn tfrecord(input: &mut [u8]) {
    let mut at = 0;
    while let Some(header) = input.get(at..at + 8) {
        let len = u64::from_le_bytes(header.try_into().expect("eight bytes"));
        let crc = masked_crc32c(header);
        put(input, at + 8, &crc.to_le_bytes());
        let Some(end) = usize::try_from(len).ok().and_then(|len| len.checked_add(at + 12)) else { return };
        let Some(payload) = input.get(at + 12..end) else { return };
        let crc = masked_crc32c(payload);
        put(input, end, &crc.to_le_bytes());
        at = end + 4;
    }
}

/// Tar: the sum of every block that looks like a header.
pub fn tar(input: &mut [u8]) {
    for block in input.chunks_exact_mut(512).filter(|block| block[257..262] == *b"ustar") {
        block[148..156].fill(b' ');
        let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
        block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }
}

/// Tensor shards: the checksum of the header.
pub fn tensor(input: &mut [u8]) {
    if let Some(header) = input.get(..4092) {
        let crc = crc32c::crc32c(header);
        put(input, 4092, &crc.to_le_bytes());
    }
}

/// TensorFlow bundle: whichever checksum the decoder finds wrong next, as long as it does.
pub fn bundle(input: &mut [u8]) {
    let mask = |crc: u32| crc.rotate_right(15).wrapping_add(0xa282_ead8);
    for _ in 0..32 {
        let read = checkpoint::read(&Bundle, &checkpoint::index_and_values(input));
        let Err(Error::Checksum { expected, found, .. }) = read else { return };
        // Of blocks the decoder names what is stored, of values the sum that was stored in its masked form.
        for (stored, right) in [(expected, found), (mask(expected), mask(found))] {
            if let Some(at) = input.windows(4).position(|bytes| bytes == stored.to_le_bytes()) {
                put(input, at, &right.to_le_bytes());
                break;
            }
        }
    }
}

fn put(input: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = input.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}
