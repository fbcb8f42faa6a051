//! The marker segments before and between the scans.
//!
//! [`Headers::advance`] reads segments into tables until a scan or the end of the image. It is as lenient as libjpeg
//! where no pixel depends on it: it skips fill bytes, stray bytes between segments and unknown segments.

use crate::exif;
use crate::frame::{Component, Frame, Process};
use crate::huffman::CodeSpec;
use crate::zigzag::NATURAL;
use crate::{ColorModel, Error, Scale};

/// Maximum number of blocks per MCU in the standard.
const MAX_BLOCKS_IN_MCU: usize = 10;

#[derive(Debug, Clone, Copy)]
pub(crate) struct ScanComponent {
    pub(crate) index: usize,
    /// Number of its table for DC differences.
    pub(crate) dc: usize,
    /// Number of its table for AC coefficients.
    pub(crate) ac: usize,
}

#[derive(Debug, Clone)]
pub(crate) struct Scan {
    pub(crate) components: Vec<ScanComponent>,
    /// First and last coefficient sent, in zigzag order.
    pub(crate) band: (usize, usize),
    /// Bit position of the previous scan (0 if none) and of this one.
    pub(crate) bits: (u32, u32),
    /// Offset of the scan's marker, for errors.
    pub(crate) offset: usize,
}

pub(crate) enum Stop {
    /// The entropy-coded data begins at the current position.
    Scan(Scan),
    EndOfImage,
    /// The data ended without an end-of-image marker: accepted if every coefficient was sent, otherwise an error.
    EndOfData,
}

/// Everything set by the segments read so far.
#[derive(Debug, Default)]
pub(crate) struct Headers {
    /// Offset of the next byte to read.
    pub(crate) pos: usize,
    pub(crate) frame: Option<Frame>,
    /// Quantisation tables in natural order; multiplication wraps at 16 bits, so the sign does not matter.
    pub(crate) quant: [Option<[i16; 64]>; 4],
    pub(crate) dc: [Option<CodeSpec>; 4],
    pub(crate) ac: [Option<CodeSpec>; 4],
    /// MCUs between restart markers, 0 for none.
    pub(crate) restart_interval: usize,
    pub(crate) orientation: Option<u8>,
    jfif: bool,
    adobe_transform: Option<u8>,
    scale: Scale,
}

impl Headers {
    /// Headers of `data`, positioned after the start-of-image marker.
    pub(crate) fn new(data: &[u8], scale: Scale) -> Result<Self, Error> {
        if !data.starts_with(&[0xFF, 0xD8, 0xFF]) {
            return Err(Error::NotJpeg);
        }
        Ok(Headers { pos: 2, scale, ..Headers::default() })
    }

    /// Reads segments up to and including the next scan header.
    pub(crate) fn advance(&mut self, data: &[u8]) -> Result<Stop, Error> {
        while let Some(marker) = self.next_marker(data) {
            let offset = self.pos - 2;
            match marker {
                0xD9 => return Ok(Stop::EndOfImage),
                0xD8 => return Err(Error::corrupt(offset, "a segment", "a second start-of-image marker")),
                0x01 | 0xD0..=0xD7 => {}
                _ => {
                    let segment = self.segment(data)?;
                    if let Some(scan) = self.read_segment(marker, segment, offset)? {
                        return Ok(Stop::Scan(scan));
                    }
                }
            }
        }
        Ok(Stop::EndOfData)
    }

    /// Whether an Adobe segment was read, which inverts CMYK.
    pub(crate) fn is_adobe(&self) -> bool {
        self.adobe_transform.is_some()
    }

    /// Guesses the colour model as libjpeg does: first by the JFIF and Adobe segments, then by the component
    /// identifiers.
    pub(crate) fn color(&self) -> ColorModel {
        let ids: Vec<u8> = self.frame.iter().flat_map(|f| f.components.iter().map(|c| c.id)).collect();
        match (ids.as_slice(), self.adobe_transform) {
            ([_], _) => ColorModel::Grayscale,
            ([_, _, _, _], Some(0) | None) => ColorModel::Cmyk,
            ([_, _, _, _], Some(_)) => ColorModel::Ycck,
            _ if self.jfif => ColorModel::YCbCr,
            (_, Some(0)) | (b"RGB", None) => ColorModel::Rgb,
            _ => ColorModel::YCbCr,
        }
    }

    /// The code of the next marker; `None` if the data ends before it.
    fn next_marker(&mut self, data: &[u8]) -> Option<u8> {
        loop {
            let rest = data.get(self.pos..)?;
            let prefix = rest.iter().position(|&b| b == 0xFF)?;
            let code = prefix + rest[prefix..].iter().position(|&b| b != 0xFF)?;
            self.pos += code + 1;
            if rest[code] != 0 {
                return Some(rest[code]);
            }
        }
    }

    /// The payload of the segment whose length field is next.
    fn segment<'a>(&mut self, data: &'a [u8]) -> Result<&'a [u8], Error> {
        let truncated = Error::Truncated { offset: data.len() };
        let length = data.get(self.pos..self.pos + 2).ok_or(truncated.clone())?;
        let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
        if length < 2 {
            return Err(Error::corrupt(self.pos, "a segment length of at least 2", length));
        }
        let payload = data.get(self.pos + 2..self.pos + length).ok_or(truncated)?;
        self.pos += length;
        Ok(payload)
    }

    fn read_segment(&mut self, marker: u8, s: &[u8], offset: usize) -> Result<Option<Scan>, Error> {
        match marker {
            0xC0..=0xC2 => self.read_frame(marker, s, offset)?,
            0xC4 => self.read_codes(s, offset)?,
            0xC3 | 0xC5..=0xC7 | 0xC8..=0xCB | 0xCD..=0xCF => return Err(unsupported_process(marker)),
            0xDA => return self.read_scan(s, offset).map(Some),
            0xDB => self.read_quant(s, offset)?,
            0xDD => {
                let interval = s.first_chunk::<2>().ok_or_else(|| cut(offset, "a restart interval"))?;
                self.restart_interval = u16::from_be_bytes(*interval).into();
            }
            0xE0 => self.jfif |= s.len() >= 14 && s.starts_with(b"JFIF\0"),
            0xE1 => self.orientation = self.orientation.or_else(|| exif::orientation(s)),
            0xEE if s.len() >= 12 && s.starts_with(b"Adobe") => self.adobe_transform = Some(s[11]),
            _ => {}
        }
        Ok(None)
    }

    fn read_frame(&mut self, marker: u8, s: &[u8], offset: usize) -> Result<(), Error> {
        if self.frame.is_some() {
            return Err(Error::corrupt(offset, "one frame header", "a second one"));
        }
        let &[precision, h1, h0, w1, w0, n_components, ref rest @ ..] = s else {
            return Err(cut(offset, "a frame header"));
        };
        if precision != 8 {
            return Err(Error::unsupported(format!("{precision}-bit samples")));
        }
        let (width, height) = (u16::from_be_bytes([w1, w0]).into(), u16::from_be_bytes([h1, h0]).into());
        if height == 0 {
            return Err(Error::unsupported("height defined after the first scan (DNL)"));
        }
        if width == 0 {
            return Err(Error::corrupt(offset, "a width of at least 1", 0));
        }
        if !matches!(n_components, 1 | 3 | 4) {
            return Err(Error::unsupported(format!("{n_components} components")));
        }
        if rest.len() != 3 * usize::from(n_components) {
            return Err(cut(offset, "a frame header of 3 bytes per component"));
        }
        let components = rest.chunks_exact(3).map(|c| component(c, offset)).collect::<Result<Vec<_>, _>>()?;
        let process = if marker == 0xC2 { Process::Progressive } else { Process::Sequential };
        self.frame = Some(Frame::new(process, (width, height), components, self.scale)?);
        Ok(())
    }

    fn read_quant(&mut self, mut s: &[u8], offset: usize) -> Result<(), Error> {
        while let [head, rest @ ..] = s {
            let (is_wide, number) = (head >> 4 != 0, usize::from(head & 15));
            let n_bytes = if is_wide { 128 } else { 64 };
            let values = rest.get(..n_bytes).ok_or_else(|| cut(offset, "a quantisation table"))?;
            let slot = self.quant.get_mut(number);
            let table =
                slot.ok_or_else(|| Error::corrupt(offset, "quantisation table 0 to 3", number))?.insert([0; 64]);
            for (k, &at) in NATURAL.iter().enumerate() {
                table[at] =
                    if is_wide { i16::from_be_bytes([values[2 * k], values[2 * k + 1]]) } else { values[k].into() };
            }
            s = &rest[n_bytes..];
        }
        Ok(())
    }

    fn read_codes(&mut self, mut s: &[u8], offset: usize) -> Result<(), Error> {
        while let [head, rest @ ..] = s {
            let (is_ac, number) = (head >> 4 == 1, usize::from(head & 15));
            if head >> 4 > 1 || number > 3 {
                return Err(Error::corrupt(
                    offset,
                    "a Huffman table of class 0 or 1, number 0 to 3",
                    format!("{head:#04x}"),
                ));
            }
            let (spec, n_bytes) = CodeSpec::parse(rest, is_ac, offset)?;
            let slots = if is_ac { &mut self.ac } else { &mut self.dc };
            slots[number] = Some(spec);
            s = &rest[n_bytes..];
        }
        Ok(())
    }

    fn read_scan(&self, s: &[u8], offset: usize) -> Result<Scan, Error> {
        let frame = self.frame.as_ref().ok_or_else(|| Error::corrupt(offset, "a frame header", "a scan"))?;
        let n = s.first().copied().map_or(0, usize::from);
        if !(1..=4).contains(&n) || s.len() != 4 + 2 * n {
            return Err(cut(offset, "a scan header of 1 to 4 components"));
        }
        let mut components: Vec<ScanComponent> = Vec::with_capacity(n);
        for c in s[1..1 + 2 * n].chunks_exact(2) {
            let index = frame.components.iter().position(|f| f.id == c[0]);
            let index = index.ok_or_else(|| Error::corrupt(offset, "a component of the frame", c[0]))?;
            let (dc, ac) = (usize::from(c[1] >> 4), usize::from(c[1] & 15));
            if components.iter().any(|c| c.index == index) || dc > 3 || ac > 3 {
                return Err(Error::corrupt(offset, "each component once, tables 0 to 3", format!("{c:?}")));
            }
            components.push(ScanComponent { index, dc, ac });
        }
        let n_blocks: usize = components.iter().map(|c| &frame.components[c.index]).map(|c| c.h * c.v).sum();
        if n > 1 && n_blocks > MAX_BLOCKS_IN_MCU {
            return Err(Error::corrupt(offset, "at most 10 blocks in an MCU", n_blocks));
        }
        let tail = &s[1 + 2 * n..];
        Ok(Scan {
            components,
            band: (tail[0].into(), tail[1].into()),
            bits: ((tail[2] >> 4).into(), (tail[2] & 15).into()),
            offset,
        })
    }
}

fn component(c: &[u8], offset: usize) -> Result<Component, Error> {
    let (h, v) = (usize::from(c[1] >> 4), usize::from(c[1] & 15));
    if !(1..=4).contains(&h) || !(1..=4).contains(&v) {
        return Err(Error::corrupt(offset, "sampling factors 1 to 4", format!("{h}x{v}")));
    }
    if c[2] > 3 {
        return Err(Error::corrupt(offset, "quantisation table 0 to 3", c[2]));
    }
    Ok(Component { id: c[0], h, v, quant: c[2].into(), ..Component::default() })
}

fn cut(offset: usize, expected: &'static str) -> Error {
    Error::corrupt(offset, expected, "a segment of another length")
}

fn unsupported_process(marker: u8) -> Error {
    Error::unsupported(match marker {
        0xC3 => "lossless coding (SOF3)",
        0xC5..=0xC7 => "hierarchical coding (SOF5 to SOF7)",
        0xC9 | 0xCA => "arithmetic coding (SOF9, SOF10)",
        0xCB => "lossless arithmetic coding (SOF11)",
        0xCD..=0xCF => "hierarchical arithmetic coding (SOF13 to SOF15)",
        _ => "an extension frame (JPG)",
    })
}
