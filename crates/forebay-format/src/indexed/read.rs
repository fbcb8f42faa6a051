//! Reading the two index files: the offset and the size of each sample.

use crate::{Error, Span};

/// Bytes of a number in either file.
pub const NUMBER_LEN: u64 = 8;

/// The spans of some samples, from their entries in the two index files.
///
/// # Errors
/// When an entry is incomplete, the counts differ, or a span lies outside data of `data_len` bytes.
pub fn spans(offsets: &[u8], sizes: &[u8], first_sample: u64, data_len: u64) -> Result<Vec<Span>, Error> {
    let (starts, starts_rest) = offsets.as_chunks::<8>();
    let (lens, lens_rest) = sizes.as_chunks::<8>();
    let place = first_sample * NUMBER_LEN;
    if !starts_rest.is_empty() || !lens_rest.is_empty() {
        let whole = (offsets.len().max(sizes.len()) as u64).next_multiple_of(NUMBER_LEN);
        return Err(Error::truncated("index", place, whole, offsets.len().min(sizes.len()) as u64));
    }
    if starts.len() != lens.len() {
        return Err(Error::invalid("index", place, format!("{} sizes", starts.len()), lens.len()));
    }
    let spans = starts.iter().zip(lens).enumerate().map(|(i, (start, len))| {
        let (offset, len) = (u64::from_le_bytes(*start), u64::from_le_bytes(*len));
        match offset.checked_add(len) {
            Some(end) if end <= data_len => Ok(Span { offset, len }),
            _ => {
                let what = format!("sample {}", first_sample + i as u64);
                Err(Error::truncated(what, offset, len, data_len.saturating_sub(offset)))
            }
        }
    });
    spans.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::indexed::write;

    #[test]
    fn what_is_written_is_read() {
        let (mut offsets, mut sizes) = (Vec::new(), Vec::new());
        write::offsets(2, 5, 100, &mut offsets);
        write::sizes(3, 100, &mut sizes);
        let found = spans(&offsets, &sizes, 2, 500).unwrap();
        assert_eq!(found, [200, 300, 400].map(|offset| Span { offset, len: 100 }));
    }

    #[test]
    fn an_index_that_is_cut_off_or_points_past_the_data_is_an_error() {
        let (mut offsets, mut sizes) = (Vec::new(), Vec::new());
        write::offsets(0, 3, 100, &mut offsets);
        write::sizes(3, 100, &mut sizes);
        assert!(matches!(spans(&offsets[..20], &sizes, 0, 300), Err(Error::Truncated { .. })));
        assert!(matches!(spans(&offsets[..16], &sizes, 0, 300), Err(Error::Invalid { .. })));
        let error = spans(&offsets, &sizes, 0, 299).unwrap_err().to_string();
        assert_eq!(error, "sample 2 at offset 200: truncated: 100 bytes needed, 99 found");
        offsets[..8].fill(0xFF);
        assert!(matches!(spans(&offsets, &sizes, 0, 300), Err(Error::Truncated { .. })));
    }
}
