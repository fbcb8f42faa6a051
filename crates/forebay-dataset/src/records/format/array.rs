//! Extracting samples from an array's bytes as they pass by: one array, `(…, samples)`, in NumPy's layout.
//!
//! In C order the last index runs fastest, so the values of a file's samples alternate and no sample can be read alone; in
//! Fortran order the samples are contiguous.

use std::ops::Range;

use forebay_format::Error;
use forebay_format::npy::read::{Header, PREFIX_LEN, header_len, parse};

/// Takes an array file's bytes and puts some of its samples into a batch.
pub(super) struct ArraySink<'a> {
    /// The bytes of the header read so far.
    head: Vec<u8>,
    header: Option<Header>,
    /// Bytes of values seen so far.
    at: u64,
    n_samples: u64,
    wanted: Range<u64>,
    out: &'a mut [u8],
}

impl<'a> ArraySink<'a> {
    /// For the samples `wanted` of a file that holds `n_samples`.
    pub(super) fn new(n_samples: u64, wanted: Range<u32>, out: &'a mut [u8]) -> Self {
        let wanted = u64::from(wanted.start)..u64::from(wanted.end);
        Self { head: Vec::new(), header: None, at: 0, n_samples, wanted, out }
    }

    /// Takes the next bytes of the file.
    pub(super) fn take(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        while self.header.is_none() && !bytes.is_empty() {
            let missing = self.head_len()? - self.head.len();
            let (now, later) = bytes.split_at(missing.min(bytes.len()));
            self.head.extend_from_slice(now);
            bytes = later;
            if self.head.len() > PREFIX_LEN && self.head.len() == self.head_len()? {
                self.header = Some(self.checked(parse(&self.head)?)?);
                self.out.fill(0);
            }
        }
        let Some(header) = &self.header else { return Ok(()) };
        let left = header.n_bytes() - self.at;
        if bytes.len() as u64 > left {
            let found = format!("{} more bytes", bytes.len() as u64 - left);
            return Err(invalid("npy values", format!("{} bytes", header.n_bytes()), found));
        }
        if header.fortran_order || self.n_samples == 1 {
            let sample_bytes = header.n_bytes() / self.n_samples;
            self.copy(bytes, sample_bytes);
        } else {
            let item = header.element.bytes.max(1);
            self.pick(bytes, item);
        }
        self.at += bytes.len() as u64;
        Ok(())
    }

    pub(super) fn finish(self) -> Result<(), Error> {
        let needed = self.header.as_ref().map_or(PREFIX_LEN as u64, Header::n_bytes);
        if self.header.is_none() || self.at < needed {
            return Err(Error::Truncated { what: "npy values".to_owned(), offset: 0, needed, found: self.at });
        }
        Ok(())
    }

    /// Length of the header, or of its prefix until that is known.
    fn head_len(&self) -> Result<usize, Error> {
        if self.head.len() < PREFIX_LEN { Ok(PREFIX_LEN) } else { header_len(&self.head) }
    }

    fn checked(&self, header: Header) -> Result<Header, Error> {
        let last = header.shape.last().copied();
        if self.n_samples > 1 && last != Some(self.n_samples) {
            let expected = format!("{} samples along the last side", self.n_samples);
            return Err(invalid("npy shape", expected, format!("{:?}", header.shape)));
        }
        Ok(header)
    }

    fn room(&self) -> usize {
        self.out.len() / (self.wanted.end - self.wanted.start).max(1) as usize
    }

    /// Contiguous samples.
    fn copy(&mut self, bytes: &[u8], sample_bytes: u64) {
        let room = self.room();
        let here = self.at..self.at + bytes.len() as u64;
        for (place, sample) in self.out.chunks_mut(room.max(1)).zip(self.wanted.clone()) {
            let start = sample * sample_bytes;
            let from = start.max(here.start);
            let to = (start + sample_bytes.min(room as u64)).min(here.end);
            if from < to {
                let piece = &bytes[(from - here.start) as usize..(to - here.start) as usize];
                place[(from - start) as usize..][..piece.len()].copy_from_slice(piece);
            }
        }
    }

    fn pick(&mut self, bytes: &[u8], item: u64) {
        let room = self.room();
        // After this byte of the file, every slot is full.
        let full = (room as u64).div_ceil(item) * item * self.n_samples;
        if self.at >= full {
            return;
        }
        let bytes = &bytes[..bytes.len().min((full - self.at) as usize)];
        let (mut within, value) = (self.at % item, self.at / item);
        let (mut sample, mut index) = (value % self.n_samples, value / self.n_samples);
        for byte in bytes {
            let to = (index * item + within) as usize;
            if self.wanted.contains(&sample) && to < room {
                self.out[(sample - self.wanted.start) as usize * room + to] = *byte;
            }
            within += 1;
            if within == item {
                within = 0;
                sample += 1;
                if sample == self.n_samples {
                    (sample, index) = (0, index + 1);
                }
            }
        }
    }
}

fn invalid(what: &str, expected: String, found: String) -> Error {
    Error::Invalid { what: what.to_owned(), offset: 0, expected, found }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_format::npy::write::header;

    fn gather(file: &[u8], piece: usize, n: u64, wanted: Range<u32>, room: usize) -> Result<Vec<u8>, Error> {
        let mut out = vec![9; room * wanted.len()];
        let mut sink = ArraySink::new(n, wanted, &mut out);
        for bytes in file.chunks(piece) {
            sink.take(bytes)?;
        }
        sink.finish()?;
        Ok(out)
    }

    /// Two samples of three 16-bit values, in C order.
    fn two() -> Vec<u8> {
        let mut file = header("<u2", &[3, 2]);
        [1_u16, 10, 2, 20, 3, 30].iter().for_each(|value| file.extend(value.to_le_bytes()));
        file
    }

    #[test]
    fn values_that_alternate_are_put_together_whatever_the_pieces() {
        for piece in [1, 5, 13, 1000] {
            assert_eq!(gather(&two(), piece, 2, 0..2, 6).unwrap(), [1, 0, 2, 0, 3, 0, 10, 0, 20, 0, 30, 0]);
            assert_eq!(gather(&two(), piece, 2, 1..2, 6).unwrap(), [10, 0, 20, 0, 30, 0]);
            assert_eq!(gather(&two(), piece, 2, 0..2, 3).unwrap(), [1, 0, 2, 10, 0, 20]);
            assert_eq!(gather(&two(), piece, 2, 1..2, 8).unwrap(), [10, 0, 20, 0, 30, 0, 0, 0]);
        }
    }

    #[test]
    fn the_one_sample_of_a_file_is_its_first_bytes() {
        let mut file = header("|u1", &[2, 3, 1]);
        file.extend(b"abcdef");
        for piece in [1, 7, 1000] {
            assert_eq!(gather(&file, piece, 1, 0..1, 4).unwrap(), b"abcd");
            assert_eq!(gather(&file, piece, 1, 0..1, 8).unwrap(), b"abcdef\0\0");
        }
    }

    #[test]
    fn a_file_that_is_cut_or_longer_or_of_another_number_of_samples_is_an_error() {
        let file = two();
        for cut in 0..file.len() {
            let error = gather(&file[..cut], 16, 2, 0..1, 6).unwrap_err();
            assert!(matches!(error, Error::Truncated { .. }), "cut at {cut}: {error}");
        }
        let longer = [&file[..], b"x"].concat();
        let error = gather(&longer, 16, 2, 0..1, 6).unwrap_err().to_string();
        assert!(error.contains("expected 12 bytes, found 1 more bytes"), "{error}");
        assert!(gather(&file, 16, 4, 0..1, 6).unwrap_err().to_string().contains("4 samples along the last side"));
    }
}
