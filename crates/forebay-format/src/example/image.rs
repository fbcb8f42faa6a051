//! The names under which image datasets keep their features.

use super::{ExampleWriter, FeatureView, find};
use crate::Error;
use crate::image::ImageKind;

const ENCODED: &str = "image/encoded";
const FORMAT: &str = "image/format";
const LABEL: &str = "image/class/label";
const FILENAME: &str = "image/filename";
const HEIGHT: &str = "image/height";
const WIDTH: &str = "image/width";

/// An encoded image and its metadata, as one `tf.train.Example`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ImageExample<'a> {
    pub encoded: &'a [u8],
    /// `image/format`: "JPEG", "PNG" and so on.
    pub format: Option<ImageKind>,
    /// `image/class/label`.
    pub label: Option<i64>,
    /// `image/filename`: a path, so any bytes, not only UTF-8.
    pub filename: Option<&'a [u8]>,
    /// `image/height`, in pixels; as the writer stated it, not checked against the image.
    pub height: Option<u32>,
    /// `image/width`, likewise.
    pub width: Option<u32>,
}

impl<'a> ImageExample<'a> {
    /// Reads the features above and ignores all others.
    ///
    /// # Errors
    /// When the payload is not a `tf.train.Example`, or has no `image/encoded`. An invalid size is treated as unknown,
    /// because nothing depends on it.
    pub fn parse(payload: &'a [u8]) -> Result<Self, Error> {
        let encoded = first_bytes(payload, ENCODED)?.ok_or_else(|| {
            Error::invalid("example", 0, format!("a bytes feature named {ENCODED}"), "none of that name and type")
        })?;
        let format = first_bytes(payload, FORMAT)?.and_then(ImageKind::from_name);
        let filename = first_bytes(payload, FILENAME)?;
        let size = |name| first_int(payload, name).map(|size| size.and_then(|size| u32::try_from(size).ok()));
        Ok(Self {
            encoded,
            format,
            filename,
            label: first_int(payload, LABEL)?,
            height: size(HEIGHT)?,
            width: size(WIDTH)?,
        })
    }

    /// Serialises the features that are set; absent ones are left out rather than written empty.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = ExampleWriter::new().bytes(ENCODED, &[self.encoded]);
        if let Some(format) = self.format {
            writer = writer.bytes(FORMAT, &[format.name().as_bytes()]);
        }
        if let Some(filename) = self.filename {
            writer = writer.bytes(FILENAME, &[filename]);
        }
        let sizes = [(HEIGHT, self.height), (WIDTH, self.width)].map(|(name, size)| (name, size.map(i64::from)));
        for (name, value) in [(LABEL, self.label)].into_iter().chain(sizes) {
            if let Some(value) = value {
                writer = writer.ints(name, &[value]);
            }
        }
        writer.finish()
    }
}

/// The name of the file that a record was made from, in `image/filename`; `None` if it is missing.
pub fn filename(payload: &[u8]) -> Option<&[u8]> {
    first_bytes(payload, FILENAME).ok()?
}

fn first_bytes<'a>(payload: &'a [u8], name: &str) -> Result<Option<&'a [u8]>, Error> {
    find(payload, name)?.as_ref().map_or(Ok(None), FeatureView::first_bytes)
}

fn first_int(payload: &[u8], name: &str) -> Result<Option<i64>, Error> {
    find(payload, name)?.as_ref().map_or(Ok(None), FeatureView::first_int)
}
