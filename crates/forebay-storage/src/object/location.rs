//! URLs of objects, taken apart.

use std::path::{Path, PathBuf};

use object_store::path::Path as Key;

use crate::{Error, Operation, Result};

/// A store, and an object or prefix in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Location {
    /// The URL up to the bucket, container or host: `s3://bucket`.
    pub(super) root: String,
    pub(super) key: Key,
}

impl Location {
    /// Takes a URL apart. The key is taken as it is, as other tools do: `%20` is not a space.
    pub(super) fn of(operation: Operation, path: &Path) -> Result<Self> {
        let refused = |what: String| Error::Unsupported { operation, path: path.to_owned(), what };
        let text = path.to_str().ok_or_else(|| refused("names of objects are UTF-8".to_owned()))?;
        let (scheme, rest) = text.split_once("://").ok_or_else(|| refused("not a URL".to_owned()))?;
        let (host, key) = rest.split_once('/').unwrap_or((rest, ""));
        if host.is_empty() {
            return Err(refused(format!("no bucket is named: give {scheme}://bucket/prefix")));
        }
        if scheme.starts_with("http") && host.contains('@') {
            let path = PathBuf::from(format!("{scheme}://…@{}", host.rsplit('@').next().unwrap_or_default()));
            let what = "a URL must hold no credentials, which would be shown: give --storage-option".to_owned();
            return Err(Error::Unsupported { operation, path, what });
        }
        if scheme.starts_with("http") && key.contains('?') {
            let path = PathBuf::from(text.split('?').next().unwrap_or_default());
            let what = "a URL with a query is not supported: it may hold credentials, which would be shown".to_owned();
            return Err(Error::Unsupported { operation, path, what });
        }
        let key = Key::parse(key).map_err(|error| refused(format!("not the name of an object: {error}")))?;
        Ok(Self { root: format!("{scheme}://{host}"), key })
    }

    pub(super) fn path_of(&self, key: &Key) -> PathBuf {
        PathBuf::from(format!("{}/{key}", self.root))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(url: &str) -> (String, String) {
        let location = Location::of(Operation::Open, Path::new(url)).unwrap();
        (location.root, location.key.to_string())
    }

    fn refusal(url: &str) -> String {
        Location::of(Operation::Open, Path::new(url)).unwrap_err().to_string()
    }

    #[test]
    fn a_url_is_a_store_and_a_key() {
        assert_eq!(of("s3://bucket/a/b c/ü%20.jpg"), ("s3://bucket".into(), "a/b c/ü%20.jpg".into()));
        assert_eq!(of("s3://bucket"), ("s3://bucket".into(), String::new()));
        assert_eq!(of("az://c/prefix/"), ("az://c".into(), "prefix".into()));
        assert_eq!(of("abfss://c@account.host/a"), ("abfss://c@account.host".into(), "a".into()));
        assert_eq!(of("http://host:9000/a"), ("http://host:9000".into(), "a".into()));
    }

    #[test]
    fn names_that_no_object_can_have_are_refused() {
        assert!(refusal("s3://b/a/../c").contains("opening s3://b/a/../c: not the name of an object"));
        assert!(refusal("s3:///key").contains("no bucket is named"));
        assert!(refusal("s3://b/a//c").contains("not the name of an object"));
    }

    #[test]
    fn credentials_in_a_url_are_refused_and_not_shown() {
        let said = refusal("https://me:hush@host/a");
        assert!(said.contains("https://…@host: a URL must hold no credentials") && !said.contains("hush"), "{said}");
        let said = refusal("https://host/a?sig=hush");
        assert!(said.contains("https://host/a: a URL with a query") && !said.contains("hush"), "{said}");
    }
}
