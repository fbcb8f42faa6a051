//! What a file is, told from its first bytes rather than from its name.

use forebay_format::image::{self, ImageKind};
use forebay_format::tensor;
use forebay_format::tfrecord::{self, Compression};

/// Bytes of a file that are enough to recognise it: a tar header.
pub(crate) const HEAD: usize = 512;

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Image(ImageKind),
    TfRecord(Compression),
    Tar,
    Tensor,
    /// No bytes at all.
    Empty,
    /// UTF-8 text, as far as it was looked at.
    Text,
    Unknown,
}

impl Kind {
    /// Recognises a file by its first [`HEAD`] bytes, or by all of them where it has fewer.
    pub(crate) fn of(head: &[u8]) -> Self {
        if head.is_empty() {
            return Self::Empty;
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
        if is_frame_header(head) {
            return Self::TfRecord(Compression::None);
        }
        match Compression::sniff(head) {
            Compression::None if is_text(head) => Self::Text,
            Compression::None => Self::Unknown,
            // Text may begin with the two bytes of a zlib stream, such as "x^".
            Compression::Zlib if is_text(head) => Self::Text,
            packed => Self::TfRecord(packed),
        }
    }

    /// Whether it holds samples of several files.
    pub(crate) fn is_shard(self) -> bool {
        matches!(self, Self::TfRecord(_) | Self::Tar | Self::Tensor)
    }

    /// The name used in records.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Image(ImageKind::Jpeg) => "jpeg",
            Self::Image(ImageKind::Png) => "png",
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

/// Whether the first twelve bytes are a length and its checksum.
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
        let packed = tfrecord::compress(&record, Compression::Gzip).unwrap();
        assert_eq!(Kind::of(&packed), Kind::TfRecord(Compression::Gzip));
        assert_eq!(Kind::of(&[0xFF, 0xD8, 0xFF, 0xE0]), Kind::Image(ImageKind::Jpeg));
        let mut archive = Vec::new();
        forebay_format::tar::append_file(&mut archive, "a.txt", b"x").unwrap();
        assert_eq!(Kind::of(&archive[..HEAD]), Kind::Tar);
        assert_eq!(Kind::of(b"FBTENSR1\x01\0\0\0"), Kind::Tensor);
    }

    #[test]
    fn text_and_nothing_are_told_from_data() {
        assert_eq!(Kind::of(b""), Kind::Empty);
        assert_eq!(Kind::of("bild/größe.jpg 3\n".as_bytes()), Kind::Text);
        assert_eq!(Kind::of(&"ä".repeat(300).as_bytes()[..511]), Kind::Text);
        assert_eq!(Kind::of(&[1, 2, 3, 4, 5, 6, 7, 8, 9]), Kind::Unknown);
    }
}
