//! Decodes and resizes encoded images straight into a batch slot.

use forebay_jpeg::{Region, Scale};

use super::render::Rect;
use super::resize::Resizer;
use super::sniff::{ImageKind, recognise};
use super::{ImageSpec, png, raster};
use crate::Error;

/// Decodes and resizes images of any size to one size. One per thread; it keeps its buffers between images.
#[derive(Debug)]
pub struct ImageDecoder {
    spec: ImageSpec,
    jpeg: forebay_jpeg::Decoder,
    raw: Vec<u8>,
    rgb: Vec<u8>,
    /// Width and height of what is in `rgb`; zero if the last decode failed or there was none.
    size: (u32, u32),
    resizer: Resizer,
}

/// A decoded image: 8-bit RGB, row by row, without padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pixels<'a> {
    pub width: u32,
    pub height: u32,
    /// `width * height * 3` bytes.
    pub rgb: &'a [u8],
}

/// The part of an image that was decoded: 8-bit RGB, row by row, without padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part<'a> {
    /// Width and height of the whole image.
    pub image: (u32, u32),
    /// Where in it the pixels are.
    pub at: Rect,
    /// `at.width * at.height * 3` bytes.
    pub rgb: &'a [u8],
}

impl<'a> From<Pixels<'a>> for Part<'a> {
    fn from(Pixels { width, height, rgb }: Pixels<'a>) -> Self {
        Self { image: (width, height), at: Rect::whole((width, height)), rgb }
    }
}

impl ImageDecoder {
    /// A decoder that makes samples according to `spec`.
    pub fn new(spec: ImageSpec) -> Self {
        let limits = forebay_jpeg::Limits { max_pixels: super::MAX_PIXELS, ..Default::default() };
        Self {
            spec,
            jpeg: forebay_jpeg::Decoder::with_limits(limits),
            raw: Vec::new(),
            rgb: Vec::new(),
            size: (0, 0),
            resizer: Resizer::new(spec),
        }
    }

    pub fn spec(&self) -> &ImageSpec {
        &self.spec
    }

    /// Decodes an image at its own size (with [`ImageSpec::scaled_dct`], at a half, quarter or eighth of it).
    ///
    /// # Errors
    /// When the bytes are not a complete, undamaged image of a supported format with at most
    /// [`MAX_PIXELS`](super::MAX_PIXELS) pixels.
    pub fn decode(&mut self, bytes: &[u8]) -> Result<Pixels<'_>, Error> {
        self.size = self.decode_part(bytes, Rect::whole)?.image;
        Ok(Pixels { width: self.size.0, height: self.size.1, rgb: &self.rgb })
    }

    /// Decodes at least the part that `wanted` chooses, given the image's width and height; images other than JPEG are
    /// decoded whole. [`resize_into`](Self::resize_into) has nothing to resize after it.
    ///
    /// # Errors
    /// As for [`decode`](Self::decode): damage outside the part counts too. When the part is not within the image.
    pub fn decode_part(&mut self, bytes: &[u8], wanted: impl FnOnce((u32, u32)) -> Rect) -> Result<Part<'_>, Error> {
        self.size = (0, 0);
        let (image, at) = match recognise(bytes)? {
            ImageKind::Jpeg => self.decode_jpeg(bytes, wanted)?,
            ImageKind::Png => whole(png::decode_rgb(bytes, &mut self.raw, &mut self.rgb)?),
            kind => whole(raster::decode_rgb(kind, bytes, &mut self.raw, &mut self.rgb)?),
        };
        Ok(Part { image, at, rgb: &self.rgb })
    }

    /// Resizes what [`decode`](Self::decode) produced last into a slot of [`ImageSpec::sample_bytes`] bytes.
    ///
    /// # Errors
    /// When nothing has been decoded, the slot has the wrong size, or it holds floats and is not aligned to four bytes.
    pub fn resize_into(&mut self, out: &mut [u8]) -> Result<(), Error> {
        let (width, height) = self.size;
        if width == 0 || height == 0 {
            return Err(Error::invalid("image", 0, "a decoded image", "none"));
        }
        self.resizer.resize(Pixels { width, height, rgb: &self.rgb }, out)
    }

    /// Decodes an image and resizes it into a slot: [`decode`](Self::decode), then [`resize_into`](Self::resize_into).
    ///
    /// # Errors
    /// When either of the two fails; the slot's contents are then unspecified.
    pub fn decode_into(&mut self, bytes: &[u8], out: &mut [u8]) -> Result<(), Error> {
        self.decode(bytes)?;
        self.resize_into(out)
    }

    /// Resizes pixels that were decoded elsewhere into a slot, as [`resize_into`](Self::resize_into) does its own.
    ///
    /// # Errors
    /// When the pixels are not `width * height * 3` bytes, or the slot does not fit.
    pub fn resize_pixels_into(&mut self, pixels: Pixels<'_>, out: &mut [u8]) -> Result<(), Error> {
        let needed = u64::from(pixels.width) * u64::from(pixels.height) * 3;
        if needed == 0 || pixels.rgb.len() as u64 != needed {
            return Err(Error::truncated("pixels", 0, needed, pixels.rgb.len() as u64));
        }
        self.resizer.resize(pixels, out)
    }

    fn decode_jpeg(
        &mut self,
        bytes: &[u8],
        wanted: impl FnOnce((u32, u32)) -> Rect,
    ) -> Result<((u32, u32), Rect), Error> {
        let scale = if self.spec.scaled_dct { self.scale_for(bytes)? } else { Scale::Full };
        let (mut image, mut at) = ((0, 0), Rect::whole((0, 0)));
        let choose = |info: &forebay_jpeg::Info| {
            image = (info.output_width, info.output_height);
            at = wanted(image);
            Region { left: at.left, top: at.top, width: at.width, height: at.height }
        };
        self.jpeg.decode_rgb_region(bytes, scale, choose, &mut self.rgb)?;
        Ok((image, at))
    }

    /// The smallest decoded size that is no smaller than the target in either direction.
    fn scale_for(&self, bytes: &[u8]) -> Result<Scale, Error> {
        let info = forebay_jpeg::Decoder::info(bytes)?;
        let covers = |divisor: u32| {
            info.width.div_ceil(divisor) >= self.spec.width && info.height.div_ceil(divisor) >= self.spec.height
        };
        Ok(match () {
            () if covers(8) => Scale::Eighth,
            () if covers(4) => Scale::Quarter,
            () if covers(2) => Scale::Half,
            () => Scale::Full,
        })
    }
}

fn whole(image: (u32, u32)) -> ((u32, u32), Rect) {
    (image, Rect::whole(image))
}
