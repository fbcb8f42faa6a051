//! A path as a sample's key and the name of a part.

/// Splits a path at the first dot of its file name: the key, directories included, and the extension.
///
/// `None` where there is no dot, or nothing before it.
///
/// ```
/// use forebay_format::tar::key_and_extension;
///
/// assert_eq!(key_and_extension("v1.0/a/0001.left.jpg"), Some((&b"v1.0/a/0001"[..], &b"left.jpg"[..])));
/// assert_eq!(key_and_extension("a/.hidden"), None);
/// ```
pub fn key_and_extension(path: &(impl AsRef<[u8]> + ?Sized)) -> Option<(&[u8], &[u8])> {
    let path = path.as_ref();
    let name_at = path.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    let dot = path[name_at..].iter().position(|&byte| byte == b'.').filter(|&dot| dot > 0)?;
    let (key, extension) = path.split_at(name_at + dot);
    Some((key, &extension[1..]))
}

/// Whether WebDataset would leave the entry out: shard-wide data, named like `__meta__` at the top of the archive.
pub(super) fn is_shard_wide(path: &[u8]) -> bool {
    !path.contains(&b'/') && path.starts_with(b"__") && path.ends_with(b"__")
}

/// A part of a path for messages and for comparing: escaped where it is not plain text.
pub(super) fn as_text(part: &[u8]) -> String {
    match std::str::from_utf8(part) {
        Ok(text) if !text.contains(char::is_control) => text.to_owned(),
        _ => part.escape_ascii().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_dot_of_the_file_name_separates_key_and_extension() {
        let split = |key: &'static [u8], extension: &'static [u8]| Some((key, extension));
        assert_eq!(key_and_extension("a.jpg"), split(b"a", b"jpg"));
        assert_eq!(key_and_extension("d.x/a.b.c"), split(b"d.x/a", b"b.c"));
        assert_eq!(key_and_extension("a."), split(b"a", b""));
        assert_eq!(key_and_extension(b"d/\xff.jpg"), split(b"d/\xff", b"jpg"));
        for path in ["", "a", "d.x/a", "d/", ".a", "d/.a.jpg"] {
            assert_eq!(key_and_extension(path), None, "{path}");
        }
    }

    #[test]
    fn only_top_level_names_between_underscores_are_shard_wide() {
        assert!(is_shard_wide(b"__info__"));
        assert!(!is_shard_wide(b"a/__info__"));
        assert!(!is_shard_wide(b"__a.jpg"));
    }
}
