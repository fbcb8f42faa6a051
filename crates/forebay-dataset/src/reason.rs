//! Texts of [`Fault`](forebay_record::Fault)s.

use forebay_format::Kind;
use forebay_units::{Bytes, chain};

/// A storage error without the file's name.
pub(crate) fn why_unreadable(error: &forebay_storage::Error) -> String {
    use forebay_storage::Error as E;
    match error {
        E::NotFound { .. } => "no such file".to_owned(),
        E::Denied { .. } => "permission denied".to_owned(),
        E::TooLarge { size, limit, .. } => too_large(*size, *limit),
        E::Io { source, .. } => format!("cannot be read: {source}"),
        other => chain(other),
    }
}

pub(crate) fn too_large(size: Bytes, limit: Bytes) -> String {
    format!("{size} exceeds the sample size limit of {limit}; raise it with --max-sample-size")
}

/// Why a file is not an image, from its first bytes.
pub(crate) fn not_an_image(head: &[u8]) -> String {
    match Kind::of(head) {
        Kind::Empty => "empty file".to_owned(),
        Kind::Text | Kind::Utf16 => "not an image: text file".to_owned(),
        Kind::Packed(how) => format!("not an image: {how} data is not supported"),
        Kind::ForeignImage(format) => format!("{format} is not supported"),
        _ => format!("not an image: begins with \"{}\"", head[..head.len().min(8)].escape_ascii()),
    }
}
