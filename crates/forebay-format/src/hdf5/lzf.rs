//! LZF as h5py's filter writes it: literal runs and references to bytes expanded earlier.

use crate::Error;

/// Expands `bytes` and appends the result, at most `limit` bytes.
pub(super) fn expand(bytes: &[u8], limit: usize, offset: u64, out: &mut Vec<u8>) -> Result<(), Error> {
    let wrong = |expected: &str| Error::invalid("HDF5 chunk: LZF", offset, expected, "other bytes");
    let start = out.len();
    let mut rest = bytes;
    while let Some((&control, after)) = rest.split_first() {
        let control = usize::from(control);
        if control < 32 {
            let (literal, after) =
                after.split_at_checked(control + 1).ok_or_else(|| wrong("a literal run of its length"))?;
            out.extend_from_slice(literal);
            rest = after;
        } else {
            let mut after = after.iter();
            let mut next = || after.next().copied().map(usize::from).ok_or_else(|| wrong("a whole reference"));
            let len = if control >> 5 == 7 { 7 + next()? } else { control >> 5 } + 2;
            let back = ((control & 31) << 8 | next()?) + 1;
            rest = after.as_slice();
            let from = (out.len() - start).checked_sub(back).ok_or_else(|| wrong("a reference to bytes before it"))?;
            for i in start + from..start + from + len {
                out.push(out[i]);
            }
        }
        if out.len() - start > limit {
            return Err(Error::TooLarge {
                what: "HDF5 chunk".to_owned(),
                limit: limit as u64,
                found: (out.len() - start) as u64,
            });
        }
    }
    Ok(())
}
