//! What the headers say about an image, and what a caller may ask of the decoder.

/// The size of the output relative to the image in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Scale {
    #[default]
    Full,
    /// Half the width and height, rounded up.
    Half,
    /// A quarter of the width and height, rounded up.
    Quarter,
    /// An eighth of the width and height, rounded up.
    Eighth,
}

impl Scale {
    /// Edge length in samples of what an 8x8 block becomes.
    pub(crate) fn block_edge(self) -> usize {
        match self {
            Scale::Full => 8,
            Scale::Half => 4,
            Scale::Quarter => 2,
            Scale::Eighth => 1,
        }
    }
}

/// How the samples in the file are to be read as colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ColorModel {
    Grayscale,
    /// Three components, luma and two chroma differences.
    YCbCr,
    /// Three components without a colour transform.
    Rgb,
    /// Four components without a colour transform.
    Cmyk,
    /// Four components, the first three of them transformed.
    Ycck,
}

/// What the headers say about an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Info {
    /// Width in the file, in pixels.
    pub width: u32,
    /// Height in the file, in pixels.
    pub height: u32,
    /// Width of the decoded image, in pixels.
    pub output_width: u32,
    /// Height of the decoded image, in pixels.
    pub output_height: u32,
    /// Number of components in the file.
    pub components: u8,
    /// How the components are read as colour.
    pub color: ColorModel,
    /// Whether the coefficients are sent in several passes of growing precision.
    pub progressive: bool,
    /// The EXIF orientation tag, 1 to 8. The decoder reports it and does not act on it.
    pub orientation: Option<u8>,
}

/// Bounds on what a file may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most pixels (width times height in the file) that are decoded.
    pub max_pixels: u64,
    /// Most scans of a file that are decoded; each costs time in proportion to the image, not to the scan.
    pub max_scans: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { max_pixels: 1 << 28, max_scans: 500 }
    }
}
