//! NumPy array files, compatible with NumPy in both directions.

pub mod read;
pub mod write;

use crate::image::Dtype;

const MAGIC: &[u8] = b"\x93NUMPY\x01\x00";
/// NumPy aligns the data so that an array can be mapped.
const ALIGNMENT: usize = 64;

/// The header (version 1.0) of an array in C order; the values follow it, little-endian.
pub fn header(dtype: Dtype, shape: &[usize]) -> Vec<u8> {
    let descr = match dtype {
        Dtype::U8 => "|u1",
        Dtype::F32 => "<f4",
        Dtype::F16 => "<f2",
        // NumPy has no such type; this is what it writes for that of the package `ml_dtypes`.
        Dtype::Bf16 => "|V2",
    };
    let sides: Vec<u64> = shape.iter().map(|&side| side as u64).collect();
    write::header(descr, &sides)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_aligned_and_ends_its_line() {
        let bytes = header(Dtype::F32, &[2, 224, 224, 3]);
        assert_eq!(bytes.len() % ALIGNMENT, 0);
        assert_eq!(bytes[..10], *b"\x93NUMPY\x01\x00\x76\x00");
        let text = std::str::from_utf8(&bytes[10..]).unwrap();
        assert!(text.starts_with("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 224, 224, 3,), }"), "{text}");
        assert!(text.ends_with(" \n"));
    }
}
