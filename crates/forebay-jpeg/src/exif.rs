//! The orientation tag of an EXIF segment.
//!
//! An APP1 segment contains a small TIFF file, whose first directory may have tag 0x0112. Malformed data counts as
//! absent, because the orientation never decides whether the pixels can be decoded.

const ORIENTATION: u16 = 0x0112;
const TYPE_SHORT: u16 = 3;

/// The orientation (1 to 8) in the payload of an APP1 segment.
pub(crate) fn orientation(segment: &[u8]) -> Option<u8> {
    let tiff = Tiff::new(segment.strip_prefix(b"Exif\0\0")?)?;
    let directory = tiff.u32(4)? as usize;
    let n_entries = tiff.u16(directory)? as usize;
    (0..n_entries).map(|i| directory + 2 + 12 * i).find_map(|entry| {
        let is_orientation = tiff.u16(entry)? == ORIENTATION && tiff.u16(entry + 2)? == TYPE_SHORT;
        let value = is_orientation.then(|| tiff.u16(entry + 8))??;
        (1..=8).contains(&value).then_some(value as u8)
    })
}

struct Tiff<'a> {
    bytes: &'a [u8],
    big_endian: bool,
}

impl<'a> Tiff<'a> {
    fn new(bytes: &'a [u8]) -> Option<Self> {
        match bytes.get(..4)? {
            b"II\x2a\0" => Some(Tiff { bytes, big_endian: false }),
            b"MM\0\x2a" => Some(Tiff { bytes, big_endian: true }),
            _ => None,
        }
    }

    fn u16(&self, at: usize) -> Option<u16> {
        let raw = self.bytes.get(at..)?.first_chunk::<2>()?;
        Some(if self.big_endian { u16::from_be_bytes(*raw) } else { u16::from_le_bytes(*raw) })
    }

    fn u32(&self, at: usize) -> Option<u32> {
        let raw = self.bytes.get(at..)?.first_chunk::<4>()?;
        Some(if self.big_endian { u32::from_be_bytes(*raw) } else { u32::from_le_bytes(*raw) })
    }
}

#[cfg(test)]
mod tests {
    use super::orientation;

    fn segment(big_endian: bool, value: u16) -> Vec<u8> {
        let short = |x: u16| if big_endian { x.to_be_bytes() } else { x.to_le_bytes() };
        let long = |x: u32| if big_endian { x.to_be_bytes() } else { x.to_le_bytes() };
        let mut s = b"Exif\0\0".to_vec();
        s.extend(if big_endian { b"MM\0\x2a" } else { b"II\x2a\0" });
        s.extend(long(8));
        s.extend(short(1));
        s.extend([short(0x0112), short(3)].concat());
        s.extend(long(1));
        s.extend([short(value), short(0)].concat());
        s
    }

    #[test]
    fn orientation_is_read_in_both_byte_orders() {
        assert_eq!(orientation(&segment(false, 6)), Some(6));
        assert_eq!(orientation(&segment(true, 3)), Some(3));
    }

    #[test]
    fn value_out_of_range_or_cut_segment_is_absent() {
        assert_eq!(orientation(&segment(false, 9)), None);
        let whole = segment(true, 8);
        for n in 0..whole.len() - 2 {
            assert_eq!(orientation(&whole[..n]), None, "truncated to {n}");
        }
    }
}
