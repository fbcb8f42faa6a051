//! Recognising images by their first bytes or by their file extension.

use crate::Error;
use crate::little_endian::u32_at;

/// An image format that can be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ImageKind {
    Jpeg,
    Png,
    /// WebP, lossy or lossless; the first image of an animation.
    Webp,
    /// GIF; the first image of an animation.
    Gif,
    Bmp,
    /// TIFF; the first page.
    Tiff,
}

impl ImageKind {
    /// Every format, in the order in which messages list them.
    pub const ALL: [Self; 6] = [Self::Jpeg, Self::Png, Self::Webp, Self::Gif, Self::Bmp, Self::Tiff];

    /// The name used in `image/format` of a `tf.train.Example`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Jpeg => "JPEG",
            Self::Png => "PNG",
            Self::Webp => "WEBP",
            Self::Gif => "GIF",
            Self::Bmp => "BMP",
            Self::Tiff => "TIFF",
        }
    }

    /// The usual file extension, without the dot.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Jpeg => "jpg",
            Self::Png => "png",
            Self::Webp => "webp",
            Self::Gif => "gif",
            Self::Bmp => "bmp",
            Self::Tiff => "tif",
        }
    }

    /// Parses a format's name, such as "JPEG", "JPG" or "tiff", in any case.
    pub fn from_name(name: &[u8]) -> Option<Self> {
        std::str::from_utf8(name).ok().and_then(Self::from_extension)
    }

    /// Parses a file extension without its dot, in any case.
    pub fn from_extension(extension: &str) -> Option<Self> {
        match extension.to_ascii_lowercase().as_str() {
            "jpg" | "jpeg" | "jpe" => Some(Self::Jpeg),
            "png" => Some(Self::Png),
            "webp" => Some(Self::Webp),
            "gif" => Some(Self::Gif),
            "bmp" | "dib" => Some(Self::Bmp),
            "tif" | "tiff" => Some(Self::Tiff),
            _ => None,
        }
    }
}

/// Recognises an image by its first bytes.
pub fn sniff(bytes: &[u8]) -> Option<ImageKind> {
    match bytes {
        [0xff, 0xd8, 0xff, ..] => Some(ImageKind::Jpeg),
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(ImageKind::Png),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(ImageKind::Webp),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(ImageKind::Gif),
        [b'I', b'I', b'*' | b'+', 0, ..] | [b'M', b'M', 0, b'*' | b'+', ..] => Some(ImageKind::Tiff),
        // Text may begin with "BM": the length of the second header is a small number.
        [b'B', b'M', _, _, _, _, _, _, _, _, _, _, _, _, 12 | 16 | 40 | 52 | 56 | 64 | 108 | 124, 0, 0, 0, ..] => {
            Some(ImageKind::Bmp)
        }
        _ => None,
    }
}

/// The file length stated in an image's first bytes; `None` for formats without one.
pub fn declared_len(head: &[u8]) -> Option<u64> {
    (sniff(head) == Some(ImageKind::Webp)).then(|| u64::from(u32_at(head, 4)) + 8)
}

pub(super) fn recognise(bytes: &[u8]) -> Result<ImageKind, Error> {
    let unknown = || match sniff_unsupported(bytes) {
        Some(format) => Error::UnsupportedImage { format },
        None => Error::NotRecognised { expected: EXPECTED, found: describe(bytes) },
    };
    sniff(bytes).ok_or_else(unknown)
}

const EXPECTED: &str = "a JPEG, PNG, WebP, GIF, BMP or TIFF image";

/// Recognises an image of an unsupported format by its first bytes, and returns the format's name.
pub fn sniff_unsupported(bytes: &[u8]) -> Option<&'static str> {
    const MAGIC: &[(&[u8], &str)] = &[
        (b"\0\0\0\x0cjP  ", "JPEG 2000"),
        (b"\xff\x4f\xff\x51", "JPEG 2000"),
        (b"\xff\x0a", "JPEG XL"),
        (b"\0\0\0\x0cJXL ", "JPEG XL"),
        (b"8BPS", "Photoshop"),
        (b"v/1\x01", "OpenEXR"),
        (b"\0\0\x01\0", "Windows icon"),
    ];
    let by_magic = || MAGIC.iter().find(|(magic, _)| bytes.starts_with(magic)).map(|(_, name)| *name);
    by_brand(bytes).or_else(by_magic)
}

/// AVIF and HEIC are ISO media files and say so by their brands: the main one, then those they are compatible with.
fn by_brand(bytes: &[u8]) -> Option<&'static str> {
    let (size, rest) = bytes.split_first_chunk::<4>()?;
    let brands = rest.strip_prefix(b"ftyp")?;
    let len = (u32::from_be_bytes(*size) as usize).saturating_sub(8).min(brands.len());
    let (brands, _) = brands[..len].as_chunks::<4>();
    let has = |wanted: &[&[u8; 4]]| brands.iter().any(|brand| wanted.contains(&brand));
    match () {
        () if has(&[b"avif", b"avis"]) => Some("AVIF"),
        () if has(&[b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"]) => Some("HEIC"),
        () => None,
    }
}

/// The unsupported image format of a file extension in lower case.
///
/// Raw camera files look like TIFF by their first bytes, but their first image is a thumbnail.
pub(crate) fn unsupported_extension(extension: &str) -> Option<&'static str> {
    Some(match extension {
        "avif" | "avifs" => "AVIF",
        "heic" | "heif" | "hif" => "HEIC",
        "jxl" => "JPEG XL",
        "jp2" | "j2k" | "jpf" | "jpx" | "j2c" => "JPEG 2000",
        "psd" => "Photoshop",
        "exr" => "OpenEXR",
        "ico" => "Windows icon",
        "svg" => "SVG",
        "ppm" | "pgm" | "pbm" | "pnm" => "PNM",
        "tga" => "TGA",
        "dng" | "nef" | "arw" | "cr2" | "cr3" | "orf" | "rw2" | "pef" | "srw" | "raf" => "camera raw",
        _ => return None,
    })
}

/// First bytes of other files that occur among images.
const OTHERS: &[(&[u8], &str)] = &[
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

/// Describes bytes that are not an image, for a message.
pub fn describe(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "an empty file".to_owned();
    }
    if bytes.iter().all(|&byte| byte == 0) {
        return format!("{} zero bytes", bytes.len());
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
    fn images_are_recognised_by_their_first_bytes() {
        let bitmap = b"BM\x36\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0";
        for (bytes, kind) in [
            (&b"\xff\xd8\xff\xe0"[..], ImageKind::Jpeg),
            (b"\x89PNG\r\n\x1a\n", ImageKind::Png),
            (b"RIFF\0\0\0\0WEBPVP8 ", ImageKind::Webp),
            (b"GIF87a", ImageKind::Gif),
            (b"GIF89a", ImageKind::Gif),
            (bitmap, ImageKind::Bmp),
            (b"II*\0\x08\0\0\0", ImageKind::Tiff),
            (b"MM\0*\0\0\0\x08", ImageKind::Tiff),
            (b"II+\0\x08\0\0\0", ImageKind::Tiff),
        ] {
            assert_eq!(sniff(bytes), Some(kind), "{}", bytes.escape_ascii());
        }
        assert_eq!(sniff(b"BMW/1.jpg 0\nBMW/2.jpg 0\n"), None, "a list of cars");
        assert_eq!(sniff(b"RIFF\0\0\0\0WAVEfmt "), None);
    }

    #[test]
    fn every_format_is_found_again_by_its_name_and_its_extension() {
        for kind in ImageKind::ALL {
            assert_eq!(ImageKind::from_name(kind.name().as_bytes()), Some(kind));
            assert_eq!(ImageKind::from_extension(&kind.extension().to_uppercase()), Some(kind));
        }
        assert_eq!((ImageKind::from_name(b"AVIF"), ImageKind::from_name(b"\xff")), (None, None));
    }

    #[test]
    fn formats_that_are_not_supported_are_named() {
        let found = |bytes: &[u8]| recognise(bytes).unwrap_err().to_string();
        for (bytes, format) in [
            (&b"\0\0\0\x1cftypavif\0\0\0\0avifmif1miaf"[..], "AVIF"),
            (b"\0\0\0\x18ftypmif1\0\0\0\0mif1avif", "AVIF"),
            (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "HEIC"),
            (b"\xff\x0a\xfa\x1f", "JPEG XL"),
            (b"\0\0\0\x0cJXL \r\n\x87\n", "JPEG XL"),
            (b"\0\0\0\x0cjP  \r\n\x87\n", "JPEG 2000"),
        ] {
            assert_eq!(found(bytes), format!("{format} is not supported"), "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn what_is_no_image_is_described() {
        let found = |bytes: &[u8]| recognise(bytes).unwrap_err().to_string();
        assert_eq!(found(b""), format!("not recognised: expected {EXPECTED}, found an empty file"));
        for (bytes, name) in [
            (&b"\0\0\0\x1cftypisom"[..], "an ISO media file (brand isom)"),
            (b"\n  <!doctype html>", "an HTML page"),
            (&[0; 512], "512 zero bytes"),
            (b"\xff\xd8\x01", r#"3 bytes beginning with "\xff\xd8\x01""#),
        ] {
            assert!(found(bytes).ends_with(name), "{}", found(bytes));
        }
    }
}
