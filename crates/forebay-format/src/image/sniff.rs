//! What a file is, by its first bytes.

use crate::Error;

/// An image format that can be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ImageKind {
    /// JPEG.
    Jpeg,
    /// PNG.
    Png,
}

impl ImageKind {
    /// The name that `image/format` of a `tf.train.Example` has.
    pub fn name(self) -> &'static str {
        match self {
            Self::Jpeg => "JPEG",
            Self::Png => "PNG",
        }
    }

    /// The usual file extension, without the dot.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Jpeg => "jpg",
            Self::Png => "png",
        }
    }

    /// Understands "JPEG", "JPG" and "PNG" in any case.
    pub fn from_name(name: &[u8]) -> Option<Self> {
        match name.to_ascii_lowercase().as_slice() {
            b"jpeg" | b"jpg" => Some(Self::Jpeg),
            b"png" => Some(Self::Png),
            _ => None,
        }
    }
}

/// Recognises an image by its first bytes.
pub fn sniff(bytes: &[u8]) -> Option<ImageKind> {
    if bytes.starts_with(&[0xff, 0xd8, 0xff]) {
        Some(ImageKind::Jpeg)
    } else if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        Some(ImageKind::Png)
    } else {
        None
    }
}

pub(super) fn recognise(bytes: &[u8]) -> Result<ImageKind, Error> {
    sniff(bytes).ok_or_else(|| Error::NotRecognised { expected: "a JPEG or PNG image", found: describe(bytes) })
}

/// First bytes of what turns up among images now and then.
const OTHERS: &[(&[u8], &str)] = &[
    (b"GIF8", "a GIF image"),
    (b"BM", "a BMP image"),
    (b"II*\0", "a TIFF image"),
    (b"MM\0*", "a TIFF image"),
    (b"\0\0\x01\0", "a Windows icon"),
    (b"8BPS", "a Photoshop file"),
    (b"\0\0\0\x0cjP  ", "a JPEG 2000 image"),
    (b"\xff\x4f\xff\x51", "a JPEG 2000 codestream"),
    (b"\xff\x0a", "a JPEG XL codestream"),
    (b"\0\0\0\x0cJXL ", "a JPEG XL image"),
    (b"P6", "a PPM image"),
    (b"P5", "a PGM image"),
    (b"<!DOCTYPE", "an HTML page"),
    (b"<!doctype", "an HTML page"),
    (b"<html", "an HTML page"),
    (b"<HTML", "an HTML page"),
    (b"<svg", "an SVG image"),
    (b"<?xml", "an XML document"),
    (b"version https://git-lfs", "a Git LFS pointer"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\x1f\x8b", "gzip data"),
];

fn describe(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "an empty file".to_owned();
    }
    if bytes.iter().all(|&byte| byte == 0) {
        return format!("{} zero bytes", bytes.len());
    }
    if bytes.len() >= 12 && &bytes[..4] == b"RIFF" && &bytes[8..12] == b"WEBP" {
        return "a WebP image".to_owned();
    }
    if bytes.len() >= 12 && &bytes[4..8] == b"ftyp" {
        return format!("an ISO media file (brand {})", bytes[8..12].escape_ascii());
    }
    let text = bytes.trim_ascii_start();
    match OTHERS.iter().find(|(magic, _)| bytes.starts_with(magic) || text.starts_with(magic)) {
        Some((_, name)) => (*name).to_owned(),
        None => format!("{} bytes beginning with \"{}\"", bytes.len(), bytes[..bytes.len().min(8)].escape_ascii()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_recognised_and_others_are_named() {
        assert_eq!(sniff(b"\xff\xd8\xff\xe0"), Some(ImageKind::Jpeg));
        assert_eq!(sniff(b"\x89PNG\r\n\x1a\n"), Some(ImageKind::Png));
        let found = |bytes: &[u8]| recognise(bytes).unwrap_err().to_string();
        assert_eq!(found(b""), "not recognised: expected a JPEG or PNG image, found an empty file");
        for (bytes, name) in [
            (&b"GIF89a"[..], "a GIF image"),
            (b"RIFF\0\0\0\0WEBPVP8 ", "a WebP image"),
            (b"\0\0\0\x1cftypavif", "an ISO media file (brand avif)"),
            (b"\n  <!doctype html>", "an HTML page"),
            (&[0; 512], "512 zero bytes"),
            (b"\xff\xd8\x01", r#"3 bytes beginning with "\xff\xd8\x01""#),
        ] {
            assert!(found(bytes).ends_with(name), "{}", found(bytes));
        }
    }
}
