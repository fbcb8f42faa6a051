//! The decoder: headers, then scans, then pixels.

use crate::buffered;
use crate::coefficients::Coefficients;
use crate::color::{Conversion, SLACK};
use crate::entropy::Entropy;
use crate::frame::{Frame, Process};
use crate::marker::{Headers, Scan, Stop};
use crate::output::{Lines, Output};
use crate::planes::Planes;
use crate::region::Window;
use crate::sequential;
use crate::simd::Level;
use crate::tables::Tables;
use crate::{Error, Info, Limits, Region, Scale};

/// A JPEG decoder with its tables and buffers, which are reused for further images.
///
/// Use one per thread: decoding needs `&mut self`, and decoders share nothing.
#[derive(Debug)]
pub struct Decoder {
    limits: Limits,
    level: Level,
    tables: Tables,
    planes: Planes,
    lines: Lines,
    segment: Vec<u8>,
    coefficients: Coefficients,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoder {
    pub fn new() -> Self {
        Self::with_limits(Limits::default())
    }

    /// A decoder that refuses images beyond `limits`.
    pub fn with_limits(limits: Limits) -> Self {
        Decoder {
            limits,
            level: Level::detect(),
            tables: Tables::default(),
            planes: Planes::default(),
            lines: Lines::default(),
            segment: Vec::new(),
            coefficients: Coefficients::default(),
        }
    }

    /// Disables vector instructions. The pixels stay the same, at lower speed; tests compare the two.
    #[must_use]
    pub fn portable(mut self) -> Self {
        self.level = Level::Portable;
        self
    }

    /// Reads the headers up to the first scan; the output size is that of [`Scale::Full`].
    pub fn info(data: &[u8]) -> Result<Info, Error> {
        let mut headers = Headers::new(data, Scale::Full)?;
        first_scan(&mut headers, data)?;
        info(&headers)
    }

    /// Decodes `data` to interleaved RGB, 8 bits each, row by row without gaps.
    ///
    /// Replaces `out`, reusing its memory without clearing it; on error it is left empty. Grayscale gives three equal
    /// values. The result describes the image, including the size of the output.
    pub fn decode_rgb(&mut self, data: &[u8], scale: Scale, out: &mut Vec<u8>) -> Result<Info, Error> {
        let whole = |info: &Info| Region { left: 0, top: 0, width: info.output_width, height: info.output_height };
        self.decode_rgb_region(data, scale, whole, out)
    }

    /// Decodes the part of `data` that `region` chooses, with the pixels that [`decode_rgb`](Self::decode_rgb) gives it.
    ///
    /// All data is read, so damage anywhere in the file is an error. Only what the part depends on is transformed, upsampled
    /// and converted.
    pub fn decode_rgb_region(
        &mut self,
        data: &[u8],
        scale: Scale,
        region: impl FnOnce(&Info) -> Region,
        out: &mut Vec<u8>,
    ) -> Result<Info, Error> {
        out.clear();
        let mut headers = Headers::new(data, scale)?;
        let scan = first_scan(&mut headers, data)?;
        let frame = headers.frame.take().ok_or_else(|| Error::corrupt(scan.offset, "a frame header", "none"))?;
        check_size(&self.limits, &frame, data.len())?;
        headers.frame = Some(frame.clone());
        let info = info(&headers)?;
        let window = Window::new(&frame, region(&info))?;
        let n_bytes = window.n_bytes();
        out.reserve_exact(n_bytes + SLACK);
        self.planes.prepare(&frame);
        let conversion = Conversion::new(info.color, headers.is_adobe());
        let mut lines = std::mem::take(&mut self.lines);
        let mut output = Output::new(self.level, conversion, (&frame, &window), &mut lines, out.spare_capacity_mut());
        let result = if frame.process == Process::Sequential && scan.components.len() == frame.components.len() {
            self.decode_sequential(data, &headers, (&frame, &window), &scan, &mut output)
        } else {
            self.decode_buffered(data, &mut headers, (&frame, &window), scan, &mut output)
        };
        let is_complete = output.is_complete();
        self.lines = lines;
        result?;
        assert!(is_complete, "a decoded image has all its rows");
        // SAFETY: `Output` has written every row of the window, which is the first `n_bytes` of the capacity.
        unsafe { out.set_len(n_bytes) };
        Ok(info)
    }

    fn decode_sequential(
        &mut self,
        data: &[u8],
        headers: &Headers,
        (frame, window): (&Frame, &Window),
        scan: &Scan,
        output: &mut Output<'_>,
    ) -> Result<(), Error> {
        for c in &scan.components {
            self.tables.load(headers, c, (true, true), (scan.offset, data.len() - headers.pos))?;
        }
        let codings = scan.components.iter().map(|c| self.tables.coding(headers, frame, c, scan.offset));
        let codings = codings.collect::<Result<Vec<_>, _>>()?;
        let segment = std::mem::take(&mut self.segment);
        let mut entropy = Entropy::new(self.level, data, headers.pos, headers.restart_interval, segment);
        let scan = (scan.components.as_slice(), codings.as_slice());
        let result = sequential::decode((frame, window), scan, &mut entropy, &mut self.planes, output);
        self.segment = entropy.segment;
        result
    }

    fn decode_buffered(
        &mut self,
        data: &[u8],
        headers: &mut Headers,
        (frame, window): (&Frame, &Window),
        scan: Scan,
        output: &mut Output<'_>,
    ) -> Result<(), Error> {
        let mut image = buffered::Image {
            level: self.level,
            frame,
            tables: &mut self.tables,
            coefficients: &mut self.coefficients,
            segment: &mut self.segment,
            max_scans: self.limits.max_scans,
        };
        let quants = image.read_scans(data, headers, scan)?;
        image.render(&quants, window, &mut self.planes, output);
        Ok(())
    }
}

/// Refuses images that are too large, and images whose data is shorter than the shortest possible codes.
pub(crate) fn check_size(limits: &Limits, frame: &Frame, n_bytes: usize) -> Result<(), Error> {
    if (frame.width * frame.height) as u64 > limits.max_pixels {
        let (width, height) = (frame.width as u32, frame.height as u32);
        return Err(Error::TooLarge { width, height, max_pixels: limits.max_pixels });
    }
    // A block takes one bit for its DC difference, and one for its end unless another scan sends the rest.
    let n_bits = match frame.process {
        Process::Sequential => 2,
        Process::Progressive => 1,
    };
    let n_blocks: usize = frame.components.iter().map(|c| c.blocks.0 * c.blocks.1).sum();
    if n_blocks * n_bits > n_bytes * 8 {
        return Err(Error::Truncated { offset: n_bytes });
    }
    Ok(())
}

pub(crate) fn first_scan(headers: &mut Headers, data: &[u8]) -> Result<Scan, Error> {
    match headers.advance(data)? {
        Stop::Scan(scan) => Ok(scan),
        Stop::EndOfImage => Err(Error::corrupt(headers.pos, "a scan", "the end of the image")),
        Stop::EndOfData => Err(Error::Truncated { offset: data.len() }),
    }
}

pub(crate) fn info(headers: &Headers) -> Result<Info, Error> {
    let frame = headers.frame.as_ref().ok_or_else(|| Error::corrupt(headers.pos, "a frame header", "none"))?;
    Ok(Info {
        width: frame.width as u32,
        height: frame.height as u32,
        output_width: frame.output.0 as u32,
        output_height: frame.output.1 as u32,
        components: frame.components.len() as u8,
        color: headers.color(),
        progressive: frame.process == Process::Progressive,
        orientation: headers.orientation,
    })
}
