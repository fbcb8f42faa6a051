//! The one EXIF field that matters for images: which way is up.

const ORIENTATION: u16 = 0x0112;

/// The orientation, 1 to 8, in a TIFF structure as a PNG's `eXIf` chunk holds it.
pub(super) fn orientation(tiff: &[u8]) -> Option<u8> {
    let tiff = Tiff { bytes: tiff, little: tiff.starts_with(b"II") };
    let directory = tiff.number::<4>(4)? as usize;
    let n_entries = tiff.number::<2>(directory)? as usize;
    (0..n_entries).map_while(|n| directory.checked_add(2 + 12 * n)).find_map(|entry| {
        let found = tiff.number::<2>(entry)? == u64::from(ORIENTATION);
        let value = tiff.number::<2>(entry + 8).filter(|_| found)?;
        (1..=8).contains(&value).then_some(value as u8)
    })
}

struct Tiff<'a> {
    bytes: &'a [u8],
    little: bool,
}

impl Tiff<'_> {
    fn number<const N: usize>(&self, at: usize) -> Option<u64> {
        let bytes = self.bytes.get(at..at.checked_add(N)?)?;
        let join = |value: u64, &byte: &u8| value << 8 | u64::from(byte);
        Some(if self.little { bytes.iter().rev().fold(0, join) } else { bytes.iter().fold(0, join) })
    }
}

#[cfg(test)]
mod tests {
    use super::orientation;

    #[test]
    fn both_byte_orders_are_read_and_nonsense_is_none() {
        let big = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
        let little = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x08\0\0\0\0\0\0\0";
        assert_eq!(orientation(big), Some(6));
        assert_eq!(orientation(little), Some(8));
        for cut in 0..20 {
            assert_eq!(orientation(&big[..cut.min(19)]), None);
        }
        assert_eq!(orientation(b"II*\0\xff\xff\xff\xff"), None);
    }
}
