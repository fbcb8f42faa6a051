//! Writing array files: a header, and then the values as they are.

use super::{ALIGNMENT, MAGIC};

/// The header (version 1.0) of an array in C order of NumPy's type `descr` (`<f4`, `|u1`); the values follow it.
///
/// ```
/// use forebay_format::npy::write::header;
///
/// assert_eq!(header("|u1", &[12_107, 12_107, 1]).len(), 128);
/// ```
pub fn header(descr: &str, shape: &[u64]) -> Vec<u8> {
    let sides: Vec<String> = shape.iter().map(|side| format!("{side},")).collect();
    let dict = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({}), }}", sides.join(" "));
    let unpadded = MAGIC.len() + 2 + dict.len() + 1;
    let padding = unpadded.next_multiple_of(ALIGNMENT) - unpadded;
    let len = (dict.len() + padding + 1) as u16;
    let mut out = MAGIC.to_vec();
    out.extend(len.to_le_bytes());
    out.extend(dict.as_bytes());
    out.extend(std::iter::repeat_n(b' ', padding));
    out.push(b'\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shape_of_no_sides_is_a_scalars() {
        let bytes = header("<i8", &[]);
        assert!(std::str::from_utf8(&bytes[10..]).unwrap().contains("'shape': (), }"));
    }

    #[test]
    fn every_header_is_a_multiple_of_the_alignment() {
        for side in [1, 10, 1 << 40] {
            for n_sides in 0..8 {
                assert_eq!(header("<f8", &vec![side; n_sides]).len() % ALIGNMENT, 0, "{n_sides} sides of {side}");
            }
        }
    }
}
