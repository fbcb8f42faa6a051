//! The kind of a file, recognised by its first bytes or, less reliably, by its name.
//!
//! The first bytes are reliable, but they cost a read, and a damaged file has lost them; a name costs nothing. For one
//! file, use [`Kind::of`]. When listing a folder of millions, use [`Kind::by_name`] first: a damaged image then still
//! counts as an image of that folder and fails under its own name. Nothing here opens a file.

use std::path::{Component, Path};

use crate::image::{self, ImageKind};
use crate::list;
use crate::tensor;
use crate::tfrecord::{self, Compression};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Image(ImageKind),
    /// One image of the named format, which is not supported.
    ForeignImage(&'static str),
    /// TFRecord frames; the whole shard may be compressed. A compressed shard is assumed to be TFRecord until expanded.
    TfRecord(Compression),
    /// A tar archive, compressed as a whole or not.
    Tar(Compression),
    Tensor,
    Empty,
    /// UTF-8 text, judged by the bytes given, or lines of printable bytes.
    Text,
    /// UTF-16 text with a byte-order mark.
    Utf16,
    /// An archive or a compressed file of an unsupported kind, by the name of the format.
    Packed(&'static str),
    Unknown,
}

impl Kind {
    /// How many of a file's first bytes are enough to recognise it: a tar header.
    pub const HEAD_LEN: usize = 512;

    /// Recognises a file by its first [`HEAD_LEN`](Self::HEAD_LEN) bytes, or by all of them if it has fewer. Further bytes
    /// are ignored.
    pub fn of(head: &[u8]) -> Self {
        let head = &head[..head.len().min(Self::HEAD_LEN)];
        if head.is_empty() {
            return Self::Empty;
        }
        // A checksum is stronger evidence than the few magic bytes of some images.
        if is_frame_header(head) {
            return Self::TfRecord(Compression::None);
        }
        if let Some(kind) = image::sniff(head) {
            return Self::Image(kind);
        }
        if head.starts_with(tensor::MAGIC) {
            return Self::Tensor;
        }
        if is_tar_header(head) {
            return Self::Tar(Compression::None);
        }
        if let Some(format) = image::sniff_unsupported(head) {
            return Self::ForeignImage(format);
        }
        if let Some(how) = packed_by(head) {
            return Self::Packed(how);
        }
        match Compression::sniff(head) {
            Compression::None if is_utf16(head) => Self::Utf16,
            Compression::None if is_text(head) || list::is_lines_of_bytes(head) => Self::Text,
            Compression::None => Self::Unknown,
            // Text may begin with the two bytes of a zlib stream, such as "x^".
            Compression::Zlib if is_text(head) => Self::Text,
            packed => Self::of_compressed(head, packed),
        }
    }

    /// What a compressed file holds, as far as its first bytes can be expanded.
    fn of_compressed(head: &[u8], packed: Compression) -> Self {
        let start = tfrecord::expand_start(head, packed, Self::HEAD_LEN);
        if is_tar_header(&start) {
            return Self::Tar(packed);
        }
        match packed {
            // Gzip may hold anything, and with a damaged start the content is unknown.
            Compression::Gzip if start.len() >= tfrecord::HEADER_LEN && !is_frame_header(&start) => {
                Self::Packed("gzip")
            }
            _ => Self::TfRecord(packed),
        }
    }

    /// The kind that a file's name suggests; `None` if it suggests none.
    ///
    /// Shards are often named `name.tfrecord-00000-of-00012` or `name.tfrecord.gz`, so the extension alone is not enough.
    pub fn by_name(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
        let ending = extension(path);
        let image = ImageKind::from_extension(&ending).map(Self::Image);
        let foreign = || image::unsupported_extension(&ending).map(Self::ForeignImage);
        image.or_else(foreign).or(match ending.as_str() {
            "tar" => Some(Self::Tar(Compression::None)),
            "tgz" => Some(Self::Tar(Compression::Gzip)),
            "gz" if name.ends_with(".tar.gz") => Some(Self::Tar(Compression::Gzip)),
            "fbt" => Some(Self::Tensor),
            ending if name.contains(".tfrec") => Some(Self::TfRecord(match ending {
                "gz" => Compression::Gzip,
                "zlib" => Compression::Zlib,
                _ => Compression::None,
            })),
            _ => None,
        })
    }

    /// Whether it holds several samples.
    pub fn is_shard(self) -> bool {
        matches!(self, Self::TfRecord(_) | Self::Tar(_) | Self::Tensor)
    }

    /// The name used in records; it is stored, so it must not change.
    pub fn name(self) -> &'static str {
        match self {
            Self::Image(ImageKind::Jpeg) => "jpeg",
            Self::Image(ImageKind::Png) => "png",
            Self::Image(ImageKind::Webp) => "webp",
            Self::Image(ImageKind::Gif) => "gif",
            Self::Image(ImageKind::Bmp) => "bmp",
            Self::Image(ImageKind::Tiff) => "tiff",
            Self::ForeignImage(format) => format,
            Self::TfRecord(Compression::None) => "tfrecord",
            Self::TfRecord(Compression::Gzip) => "tfrecord_gzip",
            Self::TfRecord(Compression::Zlib) => "tfrecord_zlib",
            Self::Tar(Compression::None) => "tar",
            Self::Tar(Compression::Gzip) => "tar_gzip",
            Self::Tar(Compression::Zlib) => "tar_zlib",
            Self::Tensor => "tensor",
            Self::Empty => "empty",
            Self::Text => "text",
            Self::Utf16 => "utf16",
            Self::Packed(how) => how,
            Self::Unknown => "unknown",
        }
    }
}

/// First bytes of unsupported archives and compressed files.
const PACKED: [(&[u8], &str); 7] = [
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\xfd7zXZ\0", "xz"),
    (b"PK\x03\x04", "zip"),
    (b"PK\x05\x06", "zip"),
    (b"7z\xbc\xaf\x27\x1c", "7-Zip"),
    (b"Rar!\x1a\x07", "RAR"),
    (b"\x04\x22\x4d\x18", "lz4"),
];

/// Whether a file in a dataset's folder is not data, by its path relative to that folder.
///
/// Hidden files and folders are unfinished or private; lists, manifests and indices describe the data and are not data.
pub fn is_passed_over(relative: &Path) -> bool {
    const NOTES: [&str; 10] = ["txt", "json", "md", "csv", "tsv", "html", "xml", "yaml", "toml", "index"];
    let is_hidden = |part| matches!(part, Component::Normal(name) if name.as_encoded_bytes().starts_with(b"."));
    relative.components().any(is_hidden) || NOTES.contains(&extension(relative).as_str())
}

fn extension(path: &Path) -> String {
    path.extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase()).unwrap_or_default()
}

fn packed_by(head: &[u8]) -> Option<&'static str> {
    // Four letters could begin a text; the block behind them begins with the digits of pi.
    if head.starts_with(b"BZh") && head.get(4..10) == Some(b"1AY&SY") {
        return Some("bzip2");
    }
    PACKED.iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, how)| *how)
}

fn is_tar_header(head: &[u8]) -> bool {
    head.get(257..262) == Some(b"ustar")
}

/// A byte-order mark, and zeros where UTF-16 text of ASCII letters has them.
fn is_utf16(head: &[u8]) -> bool {
    let zeros_from = match head {
        [0xff, 0xfe, ..] => 3,
        [0xfe, 0xff, ..] => 2,
        _ => return false,
    };
    head.iter().skip(zeros_from).step_by(2).any(|byte| *byte == 0)
}

/// Whether the first twelve bytes are a length and its checksum: not likely by chance.
fn is_frame_header(head: &[u8]) -> bool {
    let (Some(length), Some(sum)) = (head.get(..8), head.get(8..tfrecord::HEADER_LEN)) else { return false };
    tfrecord::masked_crc32c(length).to_le_bytes() == sum
}

fn is_text(head: &[u8]) -> bool {
    let whole = match std::str::from_utf8(head) {
        Ok(_) => true,
        // A character may be cut by the end of what was read.
        Err(error) => error.error_len().is_none(),
    };
    whole && !head.iter().any(|&byte| byte < 9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_recognised_by_their_first_bytes() {
        let mut record = Vec::new();
        tfrecord::append(&mut record, b"payload");
        assert_eq!(Kind::of(&record), Kind::TfRecord(Compression::None));
        for packed in [Compression::Gzip, Compression::Zlib] {
            let bytes = tfrecord::compress(&record, packed).unwrap();
            assert_eq!(Kind::of(&bytes), Kind::TfRecord(packed));
        }
        assert_eq!(Kind::of(&[0xFF, 0xD8, 0xFF, 0xE0]), Kind::Image(ImageKind::Jpeg));
        assert_eq!(Kind::of(b"\x89PNG\r\n\x1a\n"), Kind::Image(ImageKind::Png));
        assert_eq!(Kind::of(b"\0\0\0\x10ftypavif\0\0\0\0"), Kind::ForeignImage("AVIF"));
        let mut archive = Vec::new();
        crate::tar::append_file(&mut archive, "a.txt", b"x").unwrap();
        assert_eq!(Kind::of(&archive[..Kind::HEAD_LEN]), Kind::Tar(Compression::None));
        assert_eq!(Kind::of(b"FBTENSR1\x01\0\0\0"), Kind::Tensor);
    }

    #[test]
    fn text_and_nothing_are_told_from_data() {
        assert_eq!(Kind::of(b""), Kind::Empty);
        assert_eq!(Kind::of("bild/größe.jpg 3\n".as_bytes()), Kind::Text);
        assert_eq!(Kind::of(b"x^2.jpg 3\n"), Kind::Text, "and not a zlib stream");
        assert_eq!(Kind::of(&"ä".repeat(300).as_bytes()[..511]), Kind::Text);
        assert_eq!(Kind::of(b"ph\xffotos/a\xfe.jpg 3\n"), Kind::Text, "a path is bytes");
        assert_eq!(Kind::of(&[0x81; 99]), Kind::Unknown);
        assert_eq!(Kind::of(&[1, 2, 3, 4, 5, 6, 7, 8, 9]), Kind::Unknown);
    }

    #[test]
    fn a_compressed_file_is_judged_by_what_it_expands_to() {
        let mut archive = Vec::new();
        let noise: Vec<u8> = (0..100_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        crate::tar::append_file(&mut archive, "./a.jpg", &noise).unwrap();
        crate::tar::finish(&mut archive);
        let gzip = |bytes: &[u8]| tfrecord::compress(bytes, Compression::Gzip).unwrap();
        assert_eq!(Kind::of(&gzip(&archive)), Kind::Tar(Compression::Gzip));
        let mut named = gzip(&archive);
        // A header with the file's name, as gzip itself writes it.
        named[3] |= 8;
        named.splice(10..10, [b"n".repeat(200), vec![0]].concat());
        assert_eq!(Kind::of(&named), Kind::Tar(Compression::Gzip));
        assert_eq!(Kind::of(&gzip(&noise)), Kind::Packed("gzip"));
        assert_eq!(Kind::of(&gzip(b"")), Kind::TfRecord(Compression::Gzip), "a shard without records");
    }

    #[test]
    fn archives_that_are_not_read_are_named_and_utf_16_is_told_from_noise() {
        for (head, how) in [
            (&b"\x28\xb5\x2f\xfd\x04"[..], "zstd"),
            (b"\xfd7zXZ\0\0", "xz"),
            (b"BZh91AY&SY", "bzip2"),
            (b"PK\x03\x04\x14\0", "zip"),
            (b"7z\xbc\xaf\x27\x1c\0", "7-Zip"),
        ] {
            assert_eq!(Kind::of(head), Kind::Packed(how));
        }
        assert_eq!(Kind::of(b"BZh9 is no archive.jpg 3\n"), Kind::Text);
        assert_eq!(Kind::of(b"\xff\xfea\0.\0j\0p\0g\0"), Kind::Utf16);
        assert_eq!(Kind::of(b"\xfe\xff\0a\0."), Kind::Utf16);
        assert_eq!(Kind::of(&[0xff, 0xfe, 0xff, 0xfe]), Kind::Unknown);
    }

    #[test]
    fn bytes_behind_the_head_change_nothing() {
        let mut file = b"a.jpg 1\n".repeat(64);
        assert_eq!(file.len(), Kind::HEAD_LEN);
        file.extend([0, 0xFF]);
        assert_eq!(Kind::of(&file), Kind::Text);
    }

    #[test]
    fn a_name_promises_a_kind_or_nothing() {
        let by_name = |name: &str| Kind::by_name(Path::new(name));
        assert_eq!(by_name("d/a.JPEG"), Some(Kind::Image(ImageKind::Jpeg)));
        assert_eq!(by_name("a.png"), Some(Kind::Image(ImageKind::Png)));
        assert_eq!(by_name("train.tfrecord-00000-of-00012"), Some(Kind::TfRecord(Compression::None)));
        assert_eq!(by_name("train-00000-of-00012.tfrec"), Some(Kind::TfRecord(Compression::None)));
        assert_eq!(by_name("train.tfrecord.gz"), Some(Kind::TfRecord(Compression::Gzip)));
        assert_eq!(by_name("train.tfrecord.zlib"), Some(Kind::TfRecord(Compression::Zlib)));
        assert_eq!((by_name("a.tar"), by_name("a.fbt")), (Some(Kind::Tar(Compression::None)), Some(Kind::Tensor)));
        let packed = Some(Kind::Tar(Compression::Gzip));
        assert_eq!((by_name("a.tar.gz"), by_name("A.TGZ"), by_name("a.gz")), (packed, packed, None));
        assert_eq!((by_name("validation"), by_name("x.zip"), by_name("..")), (None, None, None));
        for (name, kind) in [("A.WEBP", ImageKind::Webp), ("b.gif", ImageKind::Gif), ("c.Tif", ImageKind::Tiff)] {
            assert_eq!(by_name(name), Some(Kind::Image(kind)));
        }
        for (name, format) in [("a.AVIF", "AVIF"), ("b.heic", "HEIC"), ("c.jxl", "JPEG XL"), ("d.NEF", "camera raw")] {
            assert_eq!(by_name(name), Some(Kind::ForeignImage(format)));
        }
    }

    #[test]
    fn hidden_files_and_notes_are_passed_over() {
        for path in [".a.jpg", "b/.tmp/1.jpg", "list.TXT", "b/manifest.json", "train.tfrecord.index"] {
            assert!(is_passed_over(Path::new(path)), "{path}");
        }
        for path in ["a.jpg", "b/1", "v1.0/x.tar", "train.tfrecord-00000-of-00012", "b.txt/1.png", "./a.jpg"] {
            assert!(!is_passed_over(Path::new(path)), "{path}");
        }
    }
}
