//! What a file holds, told from its first bytes or, less surely, from its name.
//!
//! Bytes cannot lie about a format, but they cost a read, and a damaged file has lost them; a name costs nothing and
//! stays. Who looks at one file asks [`Kind::of`]; who lists a folder of millions may ask [`Kind::by_name`] first, so
//! that a damaged image is still an image of that folder and fails under its own name. Nothing here opens a file: a
//! path is only a name.

use std::path::{Component, Path};

use crate::image::{self, ImageKind};
use crate::tensor;
use crate::tfrecord::{self, Compression};

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One image.
    Image(ImageKind),
    /// One image of a format that is not decoded, which is named.
    ForeignImage(&'static str),
    /// TFRecord frames, the whole shard compressed or not. A compressed one is taken for TFRecord until it is expanded.
    TfRecord(Compression),
    /// A tar archive.
    Tar,
    /// Images that are already decoded.
    Tensor,
    /// No bytes at all.
    Empty,
    /// UTF-8 text, as far as it was looked at.
    Text,
    /// Anything else.
    Unknown,
}

impl Kind {
    /// How many of a file's first bytes are enough to recognise it: a tar header.
    pub const HEAD_LEN: usize = 512;

    /// Recognises a file by its first [`HEAD_LEN`](Self::HEAD_LEN) bytes, or by all of them where it has fewer. Further
    /// bytes are not looked at.
    pub fn of(head: &[u8]) -> Self {
        let head = &head[..head.len().min(Self::HEAD_LEN)];
        if head.is_empty() {
            return Self::Empty;
        }
        // A checksum says more than the few bytes that some images begin with.
        if is_frame_header(head) {
            return Self::TfRecord(Compression::None);
        }
        if let Some(kind) = image::sniff(head) {
            return Self::Image(kind);
        }
        if head.starts_with(tensor::MAGIC) {
            return Self::Tensor;
        }
        if head.get(257..262) == Some(b"ustar") {
            return Self::Tar;
        }
        if let Some(format) = image::sniff_unsupported(head) {
            return Self::ForeignImage(format);
        }
        match Compression::sniff(head) {
            Compression::None if is_text(head) => Self::Text,
            Compression::None => Self::Unknown,
            // Text may begin with the two bytes of a zlib stream, such as "x^".
            Compression::Zlib if is_text(head) => Self::Text,
            packed => Self::TfRecord(packed),
        }
    }

    /// What a file's name promises; `None` for a name that says nothing.
    ///
    /// Shards are often called `name.tfrecord-00000-of-00012` or `name.tfrecord.gz`, so the ending alone does not do.
    pub fn by_name(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
        let ending = extension(path);
        let image = ImageKind::from_extension(&ending).map(Self::Image);
        let foreign = || image::unsupported_extension(&ending).map(Self::ForeignImage);
        image.or_else(foreign).or(match ending.as_str() {
            "tar" => Some(Self::Tar),
            "fbt" => Some(Self::Tensor),
            ending if name.contains(".tfrec") => Some(Self::TfRecord(match ending {
                "gz" => Compression::Gzip,
                "zlib" => Compression::Zlib,
                _ => Compression::None,
            })),
            _ => None,
        })
    }

    /// Whether it holds samples of several files.
    pub fn is_shard(self) -> bool {
        matches!(self, Self::TfRecord(_) | Self::Tar | Self::Tensor)
    }

    /// The name used in records.
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
            Self::Tar => "tar",
            Self::Tensor => "tensor",
            Self::Empty => "empty",
            Self::Text => "text",
            Self::Unknown => "unknown",
        }
    }
}

/// Whether a file of a dataset's folder is none of its data, by its path from that folder.
///
/// Hidden files and folders are unfinished or somebody's own; notes beside the data (lists, manifests, indices) are not
/// data.
pub fn is_passed_over(relative: &Path) -> bool {
    const NOTES: [&str; 10] = ["txt", "json", "md", "csv", "tsv", "html", "xml", "yaml", "toml", "index"];
    let is_hidden = |part| matches!(part, Component::Normal(name) if name.as_encoded_bytes().starts_with(b"."));
    relative.components().any(is_hidden) || NOTES.contains(&extension(relative).as_str())
}

fn extension(path: &Path) -> String {
    path.extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase()).unwrap_or_default()
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
        assert_eq!(Kind::of(&archive[..Kind::HEAD_LEN]), Kind::Tar);
        assert_eq!(Kind::of(b"FBTENSR1\x01\0\0\0"), Kind::Tensor);
    }

    #[test]
    fn text_and_nothing_are_told_from_data() {
        assert_eq!(Kind::of(b""), Kind::Empty);
        assert_eq!(Kind::of("bild/größe.jpg 3\n".as_bytes()), Kind::Text);
        assert_eq!(Kind::of(b"x^2.jpg 3\n"), Kind::Text, "and not a zlib stream");
        assert_eq!(Kind::of(&"ä".repeat(300).as_bytes()[..511]), Kind::Text);
        assert_eq!(Kind::of(&[1, 2, 3, 4, 5, 6, 7, 8, 9]), Kind::Unknown);
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
        assert_eq!((by_name("a.tar"), by_name("a.fbt")), (Some(Kind::Tar), Some(Kind::Tensor)));
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
