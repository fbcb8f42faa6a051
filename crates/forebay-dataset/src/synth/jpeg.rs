//! A baseline JPEG writer for 4:2:0 planes, cut for writing one picture at several qualities.
//!
//! The transform is done once and its coefficients kept; quantising and coding them at a quality is the cheap half, so
//! that [`super::rate`] may try qualities on a sample of the picture before the file is written. Three things make it
//! quick: chroma comes at half size and is never averaged down, zero coefficients are skipped by bit mask, and codes
//! leave through a 64-bit accumulator.

use super::dct::{self, Block};
use super::huffman::{AC_CHROMA, AC_LUMA, Codes, DC_CHROMA, DC_LUMA, Listing};
use super::photo::Photo;

/// Blocks of one 16×16 unit: four of luma, one of each chroma.
pub(crate) const BLOCKS_PER_UNIT: usize = 6;
const COMPONENT_OF: [usize; BLOCKS_PER_UNIT] = [0, 0, 0, 0, 1, 2];

/// Annex K's quantisation tables, row by row, for luma and chroma.
const BASE: [[u8; 64]; 2] = [
    [
        16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55, 14, 13, 16, 24, 40, 57, 69, 56, 14, 17, 22, 29,
        51, 87, 80, 62, 18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113, 92, 49, 64, 78, 87, 103, 121,
        120, 101, 72, 92, 95, 98, 112, 100, 103, 99,
    ],
    [
        17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99, 24, 26, 56, 99, 99, 99, 99, 99, 47, 66, 99, 99,
        99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
        99, 99, 99, 99, 99, 99, 99, 99,
    ],
];

/// Divisors of a quality, in zigzag order, and what to multiply with instead.
pub(crate) struct Quantiser {
    divisors: [[u8; 64]; 2],
    factors: [[f32; 64]; 2],
}

impl Quantiser {
    /// Annex K's tables times `percent`/100: 100 is quality 50 of the usual scale, 10 is quality 95.
    pub(crate) fn new(percent: f32) -> Self {
        let scale = |base: u8| ((f32::from(base) * percent + 50.0) / 100.0).clamp(1.0, 255.0) as u8;
        let divisors = BASE.map(|table| dct::ZIGZAG.map(|at| scale(table[usize::from(at)])));
        Self { divisors, factors: divisors.map(|table| table.map(|divisor| 1.0 / (8.0 * f32::from(divisor)))) }
    }

    #[inline(always)]
    fn block(&self, block: &Block, component: usize) -> Block {
        let factors = &self.factors[component.min(1)];
        let mut quantised = [0; 64];
        for ((out, &value), factor) in quantised.iter_mut().zip(block).zip(factors) {
            *out = dct::round(f32::from(value) * factor) as i16;
        }
        quantised
    }

    fn dc(&self, block: &Block, component: usize) -> i16 {
        dct::round(f32::from(block[0]) * self.factors[component.min(1)][0]) as i16
    }
}

/// The transformed picture: six blocks for each 16×16 unit, unit after unit.
#[derive(Default)]
pub(crate) struct Spectrum {
    size: (u32, u32),
    blocks: Vec<Block>,
}

impl Spectrum {
    pub(crate) fn load(&mut self, photo: &Photo) {
        self.size = (photo.width, photo.height);
        self.blocks.clear();
        let [luma, blue, red] = &photo.planes;
        for y in 0..luma.height / 16 {
            for x in 0..luma.width / 16 {
                for (bx, by) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
                    let start = (y * 16 + by * 8) * luma.width + x * 16 + bx * 8;
                    self.blocks.push(dct::forward(&luma.samples[start..], luma.width));
                }
                for plane in [blue, red] {
                    self.blocks.push(dct::forward(&plane.samples[y * 8 * plane.width + x * 8..], plane.width));
                }
            }
        }
    }

    pub(crate) fn units(&self) -> usize {
        self.blocks.len() / BLOCKS_PER_UNIT
    }

    /// Bits of the entropy-coded data under `quantiser`, measured on every `stride`-th unit and scaled up.
    pub(crate) fn estimate_bits(&self, quantiser: &Quantiser, stride: usize) -> f64 {
        let (mut bits, mut seen) = (0u64, 0u64);
        let sampled = (0..self.units()).step_by(stride).map(|unit| unit * BLOCKS_PER_UNIT);
        for first in sampled {
            seen += 1;
            for (at, &component) in (first..).zip(&COMPONENT_OF) {
                let before = predecessor(at).map_or(0, |before| quantiser.dc(&self.blocks[before], component));
                let block = quantiser.block(&self.blocks[at], component);
                Codes::of(component).walk(&block, before, |_, len| bits += u64::from(len));
            }
        }
        bits as f64 * self.units() as f64 / seen.max(1) as f64
    }

    pub(crate) fn write(&self, quantiser: &Quantiser, out: &mut Vec<u8>) {
        self.write_head(quantiser, out);
        let mut writer = BitWriter { out, held: 0, free: 64 };
        let mut dc = [0i16; 3];
        for unit in self.blocks.chunks_exact(BLOCKS_PER_UNIT) {
            for (block, &component) in unit.iter().zip(&COMPONENT_OF) {
                let block = quantiser.block(block, component);
                Codes::of(component).walk(&block, dc[component], |bits, len| writer.put(bits, len));
                dc[component] = block[0];
            }
        }
        writer.finish();
        out.extend_from_slice(&[0xFF, 0xD9]);
    }

    fn write_head(&self, quantiser: &Quantiser, out: &mut Vec<u8>) {
        out.extend_from_slice(&[0xFF, 0xD8]);
        segment(out, 0xE0, &[b"JFIF\0", &[1, 1, 0, 0, 1, 0, 1, 0, 0]]);
        for (id, table) in (0u8..).zip(&quantiser.divisors) {
            segment(out, 0xDB, &[&[id], table]);
        }
        let side = |length: u32| (length as u16).to_be_bytes();
        let components = [3, 1, 0x22, 0, 2, 0x11, 1, 3, 0x11, 1];
        segment(out, 0xC0, &[&[8], &side(self.size.1), &side(self.size.0), &components]);
        let tables: [(u8, Listing); 4] = [(0x00, DC_LUMA), (0x10, AC_LUMA), (0x01, DC_CHROMA), (0x11, AC_CHROMA)];
        for (id, Listing { counts, symbols }) in tables {
            segment(out, 0xC4, &[&[id], &counts, symbols]);
        }
        segment(out, 0xDA, &[&[3, 1, 0x00, 2, 0x11, 3, 0x11, 0, 63, 0]]);
    }
}

/// The block of the same component that comes before block `at` of the scan.
fn predecessor(at: usize) -> Option<usize> {
    let back = match at % BLOCKS_PER_UNIT {
        0 => 3,
        1..=3 => 1,
        _ => BLOCKS_PER_UNIT,
    };
    at.checked_sub(back)
}

fn segment(out: &mut Vec<u8>, marker: u8, parts: &[&[u8]]) {
    let len = 2 + parts.iter().map(|part| part.len()).sum::<usize>();
    out.extend_from_slice(&[0xFF, marker]);
    out.extend_from_slice(&(len as u16).to_be_bytes());
    parts.iter().for_each(|part| out.extend_from_slice(part));
}

/// Bits into bytes, most significant first, with the zero byte that follows each 0xFF.
struct BitWriter<'a> {
    out: &'a mut Vec<u8>,
    held: u64,
    free: u32,
}

impl BitWriter<'_> {
    /// Appends the `len` (at most 32) low bits of `bits`; the others are zero.
    #[inline(always)]
    fn put(&mut self, bits: u64, len: u32) {
        if len <= self.free {
            self.free -= len;
            self.held |= bits << self.free;
            return;
        }
        let over = len - self.free;
        self.held |= bits >> over;
        self.flush();
        self.free = 64 - over;
        self.held = bits << self.free;
    }

    fn flush(&mut self) {
        let word = self.held;
        // A byte is 0xFF where its complement is zero; the usual test for a zero byte, without false negatives.
        let complement = !word;
        let suspicious = complement.wrapping_sub(0x0101_0101_0101_0101) & !complement & 0x8080_8080_8080_8080;
        if suspicious == 0 {
            self.out.extend_from_slice(&word.to_be_bytes());
        } else {
            word.to_be_bytes().into_iter().for_each(|byte| self.push(byte));
        }
    }

    fn push(&mut self, byte: u8) {
        self.out.push(byte);
        if byte == 0xFF {
            self.out.push(0);
        }
    }

    /// Pads the last byte with ones, as the standard demands.
    fn finish(mut self) {
        let used = 64 - self.free;
        let padded = self.held | u64::MAX.checked_shr(used).unwrap_or(0);
        for byte in padded.to_be_bytes().into_iter().take(used.div_ceil(8) as usize) {
            self.push(byte);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_written_in_order_and_ff_is_stuffed() {
        let mut out = Vec::new();
        let mut writer = BitWriter { out: &mut out, held: 0, free: 64 };
        for nibble in [0xA, 0xF, 0xF, 0x1] {
            writer.put(nibble, 4);
        }
        for _ in 0..13 {
            writer.put(0x0F0, 12);
        }
        writer.put(0b101, 3);
        writer.finish();
        let text: String = out.iter().map(|byte| format!("{byte:08b}")).collect();
        let plain = format!("1010111111110001{}101", "000011110000".repeat(13));
        assert!(text.starts_with(&plain), "{text}");
        assert!(text[plain.len()..].chars().all(|bit| bit == '1'));
        assert_eq!(out.len(), plain.len().div_ceil(8));
    }

    #[test]
    fn the_sampled_estimate_over_all_units_is_the_coded_length() {
        let mut photo = Photo::default();
        photo.paint(&mut Default::default(), &mut crate::rng::Rng::new(5, 5), (100, 60), 1.0);
        let mut spectrum = Spectrum::default();
        spectrum.load(&photo);
        let quantiser = Quantiser::new(20.0);
        let (mut head, mut file) = (Vec::new(), Vec::new());
        spectrum.write_head(&quantiser, &mut head);
        spectrum.write(&quantiser, &mut file);
        let stuffed = file.windows(2).filter(|pair| pair == &[0xFF, 0]).count();
        let coded = file.len() - head.len() - 2 - stuffed;
        let bits = spectrum.estimate_bits(&quantiser, 1) as usize;
        assert!(coded.abs_diff(bits.div_ceil(8)) <= 1, "{coded} bytes, estimated {bits} bits");
    }
}
