//! What the host does for a file: headers, codes, and the entropy-coded data without stuffing.

use super::layout::{Code, Component, Image, MAX_SLOTS, Segment};
use crate::bits::unstuff;
use crate::color::Conversion;
use crate::decoder::{check_size, first_scan, info};
use crate::frame::{Frame, Process};
use crate::huffman::CodeSpec;
use crate::marker::{Headers, Scan};
use crate::simd::Level;
use crate::tables::{quant_of, spec_of};
use crate::upsample::Method;
use crate::{Error, Info, Limits, Scale};

/// Zero bytes after a segment, which the device may read.
const PADDING: usize = 16;
/// Segments begin at multiples of this.
const ALIGNMENT: usize = 16;
/// Largest segment, so that a number of bits has 32 bits.
const MAX_SEGMENT_BYTES: usize = 1 << 28;

/// Why a file is left to [`Decoder`](crate::Decoder).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// It is a valid kind of file that the device does not decode.
    Kind(&'static str),
    /// It is damaged or unsupported. The decoder may find another error first.
    Error(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// A file ready for a [`Batch`](super::Batch). Reuse it: it keeps its memory.
#[derive(Debug, Default)]
pub struct Prepared {
    pub(super) image: Image,
    pub(super) segments: Vec<Segment>,
    pub(super) codes: Vec<CodeSpec>,
    pub(super) quant: Vec<[i16; 64]>,
    pub(super) bytes: Vec<u8>,
    pub(super) n_blocks: u64,
    /// Samples of all components, in units of 64.
    pub(super) n_sample_blocks: u64,
    info: Option<Info>,
    segment: Vec<u8>,
}

impl Prepared {
    /// Size and colour of the file; `None` before the first [`Prepared::read`] and after a refusal.
    pub fn info(&self) -> Option<Info> {
        self.info
    }

    /// Bytes on the device without those of the sample; a little more than needed.
    pub fn n_device_bytes(&self) -> usize {
        // A coefficient and a DC difference have two bytes, a chunk of 8 bytes or more four numbers of four.
        (self.n_blocks * (64 * 2 + 2) + self.n_sample_blocks * 64) as usize + 3 * self.bytes.len()
    }

    /// Reads a file: a sequential one whose components are all in one scan.
    ///
    /// # Errors
    /// The reason why a device cannot decode it; if it is damaged, perhaps not the first error that the decoder finds.
    pub fn read(&mut self, data: &[u8], limits: &Limits) -> Result<Info, Refusal> {
        self.info = None;
        self.segments.clear();
        self.codes.clear();
        self.quant.clear();
        self.bytes.clear();
        let mut headers = Headers::new(data, Scale::Full)?;
        let scan = first_scan(&mut headers, data)?;
        let frame = headers.frame.take().ok_or_else(|| Error::corrupt(scan.offset, "a frame header", "none"))?;
        check_size(limits, &frame, data.len())?;
        headers.frame = Some(frame.clone());
        let info = info(&headers)?;
        if frame.process != Process::Sequential || scan.components.len() != frame.components.len() {
            return Err(Refusal::Kind("several scans"));
        }
        let color = match Conversion::new(info.color, headers.is_adobe()) {
            Conversion::Gray => 0,
            Conversion::YCbCr => 1,
            Conversion::Rgb => 2,
            Conversion::Cmyk { .. } | Conversion::Ycck { .. } => return Err(Refusal::Kind("four components")),
        };
        self.image = Image { color, mcus_x: frame.mcus.0 as u32, ..Image::default() };
        self.set_components(&headers, &frame, &scan)?;
        self.set_slots(&headers, &frame, &scan)?;
        self.set_segments(data, &headers, &frame)?;
        self.info = Some(info);
        Ok(info)
    }

    fn set_components(&mut self, headers: &Headers, frame: &Frame, scan: &Scan) -> Result<(), Refusal> {
        let mut first = 0;
        for (i, c) in frame.components.iter().enumerate() {
            self.image.components[i] = Component {
                h: c.h as u32,
                v: c.v as u32,
                first: first as u32,
                stride: (c.padded.0 * 8) as u32,
                width: c.samples.0 as u32,
                height: c.samples.1 as u32,
                method: match Method::of(c, frame.min_edge) {
                    Method::Copy | Method::Replicate => 0,
                    Method::FancyH2V1 => 1,
                    Method::FancyH1V2 => 2,
                    Method::FancyH2V2 => 3,
                },
                expand_x: c.expand.0 as u32,
                expand_y: c.expand.1 as u32,
                quant: i as u32,
            };
            self.quant.push(*quant_of(headers, frame, i, scan.offset)?);
            first += (c.padded.0 * c.padded.1) as u64;
        }
        (self.n_blocks, self.n_sample_blocks) = (first, first);
        if first * 64 > u64::from(u32::MAX) {
            return Err(Refusal::Kind("more than 67 million blocks"));
        }
        Ok(())
    }

    /// The blocks of an MCU in the order of the scan, with their codes.
    fn set_slots(&mut self, headers: &Headers, frame: &Frame, scan: &Scan) -> Result<(), Refusal> {
        let mut n = 0;
        for scanned in &scan.components {
            let dc = self.code(headers, scanned.dc, false, scan.offset)?;
            let ac = self.code(headers, scanned.ac, true, scan.offset)?;
            let c = &frame.components[scanned.index];
            for (y, x) in (0..c.v).flat_map(|y| (0..c.h).map(move |x| (y, x))) {
                (self.image.dc[n], self.image.ac[n]) = (dc, ac);
                self.image.component[n] = scanned.index as u32;
                (self.image.slot_x[n], self.image.slot_y[n]) = (x as u32, y as u32);
                n += 1;
            }
        }
        self.image.n_slots = n as u32;
        self.image.period = period(&self.image.dc[..n], &self.image.ac[..n]) as u32;
        Ok(())
    }

    /// The number of a code within the file.
    fn code(&mut self, headers: &Headers, number: usize, is_ac: bool, offset: usize) -> Result<u32, Refusal> {
        let spec = spec_of(headers, number, is_ac, true);
        let spec =
            spec.ok_or_else(|| Error::corrupt(offset, "the Huffman tables of the scan", "an undefined table"))?;
        let known = self.codes.iter().position(|known| known == spec.as_ref());
        Ok(known.unwrap_or_else(|| {
            self.codes.push(spec.into_owned());
            self.codes.len() - 1
        }) as u32)
    }

    /// Copies the data of the scan, split at its restart markers.
    fn set_segments(&mut self, data: &[u8], headers: &Headers, frame: &Frame) -> Result<(), Refusal> {
        let n_mcus = frame.mcus.0 * frame.mcus.1;
        let interval = if headers.restart_interval == 0 { n_mcus } else { headers.restart_interval };
        let mut start = headers.pos;
        for (number, first_mcu) in (0..n_mcus).step_by(interval).enumerate() {
            let is_last = first_mcu + interval >= n_mcus;
            let source = data.get(start..).unwrap_or_default();
            let end = start + unstuff(Level::detect(), source, &mut self.segment);
            if self.segment.len() > MAX_SEGMENT_BYTES {
                return Err(Refusal::Kind("more than 256 MiB between two markers"));
            }
            let marker = 0xD0 + (number % 8) as u8;
            if !is_last && data.get(end + 1) != Some(&marker) {
                return Err(Error::corrupt(end, "the next restart marker", "none").into());
            }
            self.segments.push(Segment {
                first_bytes: (self.bytes.len() / ALIGNMENT) as u32,
                n_bits: (self.segment.len() * 8) as u32,
                first_block: first_mcu as u32 * self.image.n_slots,
                n_blocks: interval.min(n_mcus - first_mcu) as u32 * self.image.n_slots,
                is_last: is_last.into(),
                ..Segment::default()
            });
            self.bytes.extend_from_slice(&self.segment);
            self.bytes.resize((self.bytes.len() + PADDING).next_multiple_of(ALIGNMENT), 0);
            start = end + 2;
        }
        Ok(())
    }
}

/// The smallest number of blocks after which the same codes come again.
fn period(dc: &[u32], ac: &[u32]) -> usize {
    let n = dc.len();
    let repeats = |p: usize| (p..n).all(|i| dc[i] == dc[i - p] && ac[i] == ac[i - p]);
    (1..=n).find(|&p| n.is_multiple_of(p) && repeats(p)).unwrap_or(n)
}

impl Code {
    pub(super) fn new(spec: &CodeSpec) -> Self {
        let (limits, offsets) = spec.bounds();
        Self { limits, offsets, symbols: *spec.symbols() }
    }
}

const _: () = assert!(MAX_SLOTS == 10, "the decoder's limit of blocks per MCU");

#[cfg(test)]
mod tests {
    use super::period;

    #[test]
    fn codes_repeat_after_the_smallest_period_that_divides_the_mcu() {
        assert_eq!(period(&[0, 0, 0, 0], &[1, 1, 1, 1]), 1);
        assert_eq!(period(&[0, 0, 0, 0, 2, 2], &[1, 1, 1, 1, 3, 3]), 6);
        assert_eq!(period(&[0, 1, 0, 1], &[2, 3, 2, 3]), 2);
        assert_eq!(period(&[0, 1, 0], &[2, 2, 2]), 3);
    }
}
