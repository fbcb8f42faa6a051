//! jpeg and png: one picture per file, as in DLIO, whatever the number of samples per file.
//!
//! A PNG holds incompressible grey noise, so it is stored and as long as its pixels. The length of a JPEG of noise cannot be
//! chosen; ours is a painted picture whose file has the record's length within a few per cent, and takes as long to
//! decode as a photograph of that length.
//!
//! They are read whole and decoded whole.

use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use forebay_format::image::{ImageDecoder, ImageSpec};
use forebay_storage::Buffer;
use forebay_workload::{Dataset, Element, Format};

use super::{DataFormat, Draft, Files, Piece, Proof, ReadError, Reader, Sink, Step, Tools};
use crate::synth::{Camera, Shot};

struct Jpeg;

struct Png {
    element: Element,
}

pub(super) fn new(dataset: &Dataset) -> Box<dyn DataFormat> {
    if dataset.format == Format::Jpeg { Box::new(Jpeg) } else { Box::new(Png { element: dataset.element }) }
}

/// Columns and rows: the last side, and those before it.
fn size(piece: &Piece) -> io::Result<(u32, u32)> {
    let (&width, rows) = piece.shape.dims.split_last().unwrap_or((&1, &[]));
    let side = |side: u64| u32::try_from(side).ok().filter(|side| (1..=65_535).contains(side));
    side(width).zip(side(rows.iter().product())).ok_or_else(|| {
        let what = format!("image shape {:?} is not possible: a side must have 1 to 65535 pixels", piece.shape.dims);
        io::Error::new(io::ErrorKind::InvalidInput, what)
    })
}

impl DataFormat for Jpeg {
    fn proof(&self, _piece: &Piece) -> Proof {
        Proof::Tail(|tail| tail.ends_with(&[0xFF, 0xD9]))
    }

    fn room(&self, piece: &Piece) -> u64 {
        piece.shape.sample_bytes + piece.shape.sample_bytes / 16 + 1024
    }

    fn write(&self, piece: &Piece, _range: Range<u64>, draft: &mut Draft<'_>) -> io::Result<()> {
        let (width, height) = size(piece)?;
        let shot = Shot { seed: piece.noise.key(), index: 0, width, height, bytes: piece.shape.sample_bytes };
        let mut file = Vec::new();
        Camera::new().take(&shot, &mut file);
        draft.write_all(&file)
    }

    fn reader(&self, files: Arc<Files>) -> Box<dyn Reader> {
        Box::new(ImageReader::new(files))
    }
}

impl DataFormat for Png {
    fn proof(&self, _piece: &Piece) -> Proof {
        Proof::Tail(|tail| tail.ends_with(b"\0\0\0\0IEND\xAE\x42\x60\x82"))
    }

    fn room(&self, piece: &Piece) -> u64 {
        piece.shape.sample_bytes + piece.shape.sample_bytes / 256 + 4096
    }

    fn write(&self, piece: &Piece, _range: Range<u64>, draft: &mut Draft<'_>) -> io::Result<()> {
        let size = size(piece)?;
        let mut noise = piece.noise.from(0);
        match self.element.bytes() {
            bytes @ (1 | 2) => grey_png(size, bytes as u8, draft, |row| noise(row)),
            _ => {
                let what = "png values must have one or two bytes";
                Err(io::Error::new(io::ErrorKind::InvalidInput, what))
            }
        }
    }

    fn reader(&self, files: Arc<Files>) -> Box<dyn Reader> {
        Box::new(ImageReader::new(files))
    }
}

/// A grey picture without filters and without compression, row after row.
fn grey_png(
    (width, height): (u32, u32),
    bytes: u8,
    draft: &mut Draft<'_>,
    mut paint: impl FnMut(&mut [u8]),
) -> io::Result<()> {
    let mut encoder = png::Encoder::new(draft, width, height);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.set_depth(if bytes == 1 { png::BitDepth::Eight } else { png::BitDepth::Sixteen });
    encoder.set_compression(png::Compression::NoCompression);
    encoder.set_filter(png::Filter::NoFilter);
    let mut writer = encoder.write_header()?;
    let mut rows = writer.stream_writer()?;
    let mut row = vec![0; width as usize * usize::from(bytes)];
    for _ in 0..height {
        paint(&mut row);
        rows.write_all(&row)?;
    }
    rows.finish()?;
    Ok(writer.finish()?)
}

struct ImageReader {
    files: Arc<Files>,
    buffer: Buffer,
    decoder: ImageDecoder,
}

impl ImageReader {
    fn new(files: Arc<Files>) -> Self {
        Self { files, buffer: Buffer::default(), decoder: ImageDecoder::new(ImageSpec::default()) }
    }
}

impl Reader for ImageReader {
    fn read(&mut self, file: u32, _: Range<u32>, out: &mut [u8], tools: &mut Tools<'_>) -> Result<(), ReadError> {
        let object = tools.open(&self.files, file)?;
        tools.read_all(object.as_ref(), &mut self.buffer)?;
        tools.enter(Step::Decoding);
        let pixels = self.decoder.decode(self.buffer.as_slice())?;
        Sink::put(out, pixels.rgb);
        Ok(())
    }
}
