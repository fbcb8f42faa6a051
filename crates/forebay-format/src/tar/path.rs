//! A path as a sample's key and the name of a part.

/// Splits a path at the first dot of its file name: the key, directories included, and the extension.
///
/// `None` where there is no dot, or nothing before it.
///
/// ```
/// use forebay_format::tar::key_and_extension;
///
/// assert_eq!(key_and_extension("v1.0/a/0001.left.jpg"), Some(("v1.0/a/0001", "left.jpg")));
/// assert_eq!(key_and_extension("a/.hidden"), None);
/// ```
pub fn key_and_extension(path: &str) -> Option<(&str, &str)> {
    let name_at = path.rfind('/').map_or(0, |slash| slash + 1);
    let dot = path[name_at..].find('.').filter(|&dot| dot > 0)?;
    let (key, extension) = path.split_at(name_at + dot);
    Some((key, &extension[1..]))
}

/// Whether WebDataset would leave the entry out: shard-wide data, named like `__meta__` at the top of the archive.
pub(super) fn is_shard_wide(path: &str) -> bool {
    !path.contains('/') && path.starts_with("__") && path.ends_with("__")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_dot_of_the_file_name_separates_key_and_extension() {
        assert_eq!(key_and_extension("a.jpg"), Some(("a", "jpg")));
        assert_eq!(key_and_extension("d.x/a.b.c"), Some(("d.x/a", "b.c")));
        assert_eq!(key_and_extension("a."), Some(("a", "")));
        for path in ["", "a", "d.x/a", "d/", ".a", "d/.a.jpg"] {
            assert_eq!(key_and_extension(path), None, "{path}");
        }
    }

    #[test]
    fn only_top_level_names_between_underscores_are_shard_wide() {
        assert!(is_shard_wide("__info__"));
        assert!(!is_shard_wide("a/__info__"));
        assert!(!is_shard_wide("__a.jpg"));
    }
}
