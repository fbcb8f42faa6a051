//! String tensors: all lengths, a checksum of the lengths, all bytes.

use forebay_units::varint;

use super::{mask, unmask};
use crate::format::{Error, Place};

/// The bytes of a string tensor and their crc32c.
pub(super) fn encode(values: &[&[u8]]) -> (Vec<u8>, u32) {
    let mut out = Vec::new();
    values.iter().for_each(|value| varint::put(&mut out, value.len() as u64));
    let word = mask(sum_of_lengths(values.iter().map(|value| value.len() as u64))).to_le_bytes();
    out.extend_from_slice(&word);
    values.iter().for_each(|value| out.extend_from_slice(value));
    let sum = sum_of(values.iter().map(|value| value.len() as u64), word, values.iter().copied());
    (out, sum)
}

/// The strings of a tensor with `n_strings` elements.
pub(super) fn decode(
    place: Place<'_>,
    (name, offset): (&str, u64),
    bytes: &[u8],
    n_strings: u64,
    expected: u32,
) -> Result<Vec<Vec<u8>>, Error> {
    let what = format!("strings of {name:?}");
    let damaged = || place.invalid(&what, offset, format!("{n_strings} strings"), format!("{} bytes", bytes.len()));
    // Each string needs at least one byte of length, so a wrong count is refused before memory is allocated.
    if n_strings > bytes.len() as u64 {
        return Err(damaged());
    }
    let mut rest = bytes;
    let lengths: Option<Vec<u64>> = (0..n_strings).map(|_| varint::take(&mut rest).ok()).collect();
    let lengths = lengths.ok_or_else(damaged)?;
    let word: [u8; 4] = rest.split_off(..4).and_then(|word| word.try_into().ok()).ok_or_else(damaged)?;
    let (stored, found) = (unmask(u32::from_le_bytes(word)), sum_of_lengths(lengths.iter().copied()));
    if stored != found {
        return Err(place.checksum(format!("{what}: lengths"), offset, stored, found));
    }
    let mut take = |len: &u64| rest.split_off(..usize::try_from(*len).ok()?);
    let values: Option<Vec<&[u8]>> = lengths.iter().map(&mut take).collect();
    let values = values.filter(|_| rest.is_empty()).ok_or_else(damaged)?;
    let found = sum_of(lengths.iter().copied(), word, values.iter().copied());
    if found != expected {
        return Err(place.checksum(what, offset, expected, found));
    }
    Ok(values.into_iter().map(<[u8]>::to_vec).collect())
}

/// The checksum covers the lengths as four-byte numbers, or eight-byte numbers if needed, not as they are encoded.
fn sum_of_lengths(lengths: impl Iterator<Item = u64>) -> u32 {
    lengths.fold(0, |sum, len| match u32::try_from(len) {
        Ok(len) => crc32c::crc32c_append(sum, &len.to_le_bytes()),
        Err(_) => crc32c::crc32c_append(sum, &len.to_le_bytes()),
    })
}

fn sum_of<'a>(lengths: impl Iterator<Item = u64>, word: [u8; 4], values: impl Iterator<Item = &'a [u8]>) -> u32 {
    let sum = crc32c::crc32c_append(sum_of_lengths(lengths), &word);
    values.fold(sum, crc32c::crc32c_append)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_go_there_and_back_and_damage_is_noticed() {
        let long = vec![b'x'; 300];
        for values in [vec![], vec![&b""[..]], vec![b"step", b"", &long]] {
            let (bytes, sum) = encode(&values);
            let read = |bytes: &[u8], n| decode(Place { file: "f" }, ("s", 3), bytes, n, sum);
            let n = values.len() as u64;
            assert_eq!(read(&bytes, n).expect("was just written"), values);
            for at in 0..bytes.len() {
                let mut bad = bytes.clone();
                bad[at] ^= 4;
                read(&bad, n).expect_err("a bit was flipped");
                read(&bytes[..at], n).expect_err("it was cut");
            }
            read(&bytes, n + 1).expect_err("one is missing");
            read(&bytes, u64::MAX).expect_err("most are missing");
        }
    }
}
