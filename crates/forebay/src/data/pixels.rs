//! What decoded images shall look like: the flags of every command that decodes.

use forebay_format::image::{Dtype, ImageSpec, Layout};
use forebay_measure::value;
use forebay_record::Level;

/// Type, order and scaling of the pixels. The size is each command's own, because their defaults differ.
#[derive(Debug, clap::Args)]
pub(super) struct PixelArgs {
    /// Type of the output values
    #[arg(long, default_value = "f32", value_parser = parse_dtype, value_name = "f32|u8")]
    dtype: Dtype,

    /// Order of the output values
    #[arg(long, default_value = "nhwc", value_parser = parse_layout, value_name = "nhwc|nchw")]
    layout: Layout,

    /// Decode JPEG at 1/2, 1/4 or 1/8 where that still covers the output: faster, other pixels
    #[arg(long)]
    scaled: bool,
}

impl PixelArgs {
    /// The images to make, `(width, height)` pixels each.
    pub(super) fn spec(&self, (width, height): (u32, u32)) -> ImageSpec {
        ImageSpec { width, height, dtype: self.dtype, layout: self.layout, scaled_dct: self.scaled }
    }
}

/// "224" or "320x240" (width times height).
pub(super) fn parse_size(text: &str) -> Result<(u32, u32), String> {
    value::pixels(&Level::of_text(text))
}

fn parse_dtype(text: &str) -> Result<Dtype, String> {
    match text {
        "f32" => Ok(Dtype::F32),
        "u8" => Ok(Dtype::U8),
        _ => Err("give f32 or u8".to_owned()),
    }
}

fn parse_layout(text: &str) -> Result<Layout, String> {
    match text {
        "nhwc" => Ok(Layout::Nhwc),
        "nchw" => Ok(Layout::Nchw),
        _ => Err("give nhwc or nchw".to_owned()),
    }
}
