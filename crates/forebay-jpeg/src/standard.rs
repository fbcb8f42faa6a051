//! The codes printed in the standard (annex K.3), which the sequential process may leave undefined.
//!
//! Frames of Motion JPEG have no DHT segments and mean these tables. Each is as in a segment: the number of codes of each
//! length from 1 to 16, then the symbols.

use crate::huffman::CodeSpec;

/// The table that `number` stands for unless a file defines it: 0 is for luma, 1 for chroma.
pub(crate) fn spec(is_ac: bool, number: usize) -> Option<CodeSpec> {
    let bytes = match (is_ac, number) {
        (false, 0) => DC_LUMA,
        (false, 1) => DC_CHROMA,
        (true, 0) => AC_LUMA,
        (true, 1) => AC_CHROMA,
        _ => return None,
    };
    CodeSpec::parse(bytes, is_ac, 0).ok().map(|(spec, _)| spec)
}

/// DC differences of luma.
#[rustfmt::skip]
const DC_LUMA: &[u8] = &[
    0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
];

/// DC differences of chroma.
#[rustfmt::skip]
const DC_CHROMA: &[u8] = &[
    0, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
];

/// AC coefficients of luma.
#[rustfmt::skip]
const AC_LUMA: &[u8] = &[
    0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 125, 1, 2, 3, 0, 4, 17, 5, 18, 33, 49, 65, 6, 19, 81, 97, 7, 34, 113,
    20, 50, 129, 145, 161, 8, 35, 66, 177, 193, 21, 82, 209, 240, 36, 51, 98, 114, 130, 9, 10, 22, 23, 24, 25, 26, 37,
    38, 39, 40, 41, 42, 52, 53, 54, 55, 56, 57, 58, 67, 68, 69, 70, 71, 72, 73, 74, 83, 84, 85, 86, 87, 88, 89, 90,
    99, 100, 101, 102, 103, 104, 105, 106, 115, 116, 117, 118, 119, 120, 121, 122, 131, 132, 133, 134, 135, 136, 137,
    138, 146, 147, 148, 149, 150, 151, 152, 153, 154, 162, 163, 164, 165, 166, 167, 168, 169, 170, 178, 179, 180, 181,
    182, 183, 184, 185, 186, 194, 195, 196, 197, 198, 199, 200, 201, 202, 210, 211, 212, 213, 214, 215, 216, 217, 218,
    225, 226, 227, 228, 229, 230, 231, 232, 233, 234, 241, 242, 243, 244, 245, 246, 247, 248, 249, 250,
];

/// AC coefficients of chroma.
#[rustfmt::skip]
const AC_CHROMA: &[u8] = &[
    0, 2, 1, 2, 4, 4, 3, 4, 7, 5, 4, 4, 0, 1, 2, 119, 0, 1, 2, 3, 17, 4, 5, 33, 49, 6, 18, 65, 81, 7, 97, 113, 19, 34,
    50, 129, 8, 20, 66, 145, 161, 177, 193, 9, 35, 51, 82, 240, 21, 98, 114, 209, 10, 22, 36, 52, 225, 37, 241, 23,
    24, 25, 26, 38, 39, 40, 41, 42, 53, 54, 55, 56, 57, 58, 67, 68, 69, 70, 71, 72, 73, 74, 83, 84, 85, 86, 87, 88,
    89, 90, 99, 100, 101, 102, 103, 104, 105, 106, 115, 116, 117, 118, 119, 120, 121, 122, 130, 131, 132, 133, 134,
    135, 136, 137, 138, 146, 147, 148, 149, 150, 151, 152, 153, 154, 162, 163, 164, 165, 166, 167, 168, 169, 170, 178,
    179, 180, 181, 182, 183, 184, 185, 186, 194, 195, 196, 197, 198, 199, 200, 201, 202, 210, 211, 212, 213, 214, 215,
    216, 217, 218, 226, 227, 228, 229, 230, 231, 232, 233, 234, 242, 243, 244, 245, 246, 247, 248, 249, 250,
];

#[cfg(test)]
mod tests {
    use super::spec;

    #[test]
    fn standard_has_tables_for_luma_and_chroma_only() {
        for is_ac in [false, true] {
            assert!(spec(is_ac, 0).is_some() && spec(is_ac, 1).is_some() && spec(is_ac, 2).is_none());
        }
    }
}
