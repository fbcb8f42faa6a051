//! Writing the two index files: the offset and the size of each sample, eight bytes each, little-endian.

/// Suffix of the offset file's name, after the name of the data file.
pub const OFFSETS: &str = ".off.idx";
/// The same for the file of sizes.
pub const SIZES: &str = ".sz.idx";

/// Appends the offsets of the samples `from..to`, all of `sample_bytes`.
///
/// ```
/// let mut index = Vec::new();
/// forebay_format::indexed::write::offsets(1, 3, 100, &mut index);
/// assert_eq!(index, [100u64.to_le_bytes(), 200u64.to_le_bytes()].concat());
/// ```
pub fn offsets(from: u64, to: u64, sample_bytes: u64, out: &mut Vec<u8>) {
    (from..to).for_each(|sample| out.extend_from_slice(&(sample * sample_bytes).to_le_bytes()));
}

/// Appends the sizes of `n` samples, all of `sample_bytes`.
pub fn sizes(n: u64, sample_bytes: u64, out: &mut Vec<u8>) {
    (0..n).for_each(|_| out.extend_from_slice(&sample_bytes.to_le_bytes()));
}
