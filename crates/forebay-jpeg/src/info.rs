//! Information in the headers, and options of the decoder.

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
    /// Edge length in samples of the output of an 8x8 block.
    pub(crate) fn block_edge(self) -> usize {
        match self {
            Scale::Full => 8,
            Scale::Half => 4,
            Scale::Quarter => 2,
            Scale::Eighth => 1,
        }
    }
}

/// The colour interpretation of the samples in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ColorModel {
    Grayscale,
    /// Three components, luma and two chroma differences.
    YCbCr,
    /// Three components without a colour transform.
    Rgb,
    /// Four components without a colour transform.
    Cmyk,
    /// Four components, of which the first three are transformed.
    Ycck,
}

/// Information in the headers of an image.
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
    /// The colour interpretation of the components.
    pub color: ColorModel,
    /// Whether the coefficients are sent in several passes of growing precision.
    pub progressive: bool,
    /// The EXIF orientation tag, 1 to 8. The decoder reports it but does not apply it.
    pub orientation: Option<u8>,
}

/// Limits on the resources that a file may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of pixels (width times height in the file).
    pub max_pixels: u64,
    /// Maximum number of scans; each takes time in proportion to the image, not to the scan.
    pub max_scans: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { max_pixels: 1 << 28, max_scans: 500 }
    }
}
