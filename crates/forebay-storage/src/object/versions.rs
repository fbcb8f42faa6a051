//! The versions of objects that this program has listed or opened, as hashes.
//!
//! A cache on a near disk must not return what an object was earlier. Listings have the version (ETag) of every object
//! already, so checking it needs no request. The names are not kept: 10⁶ objects take some 40 MB.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Mutex;

use forebay_units::Fnv;

#[derive(Debug, Default)]
pub(super) struct Versions(Mutex<HashMap<u64, u64>>);

/// The hash of an ETag; some answers put it in quotes.
pub(super) fn of(etag: &str) -> u64 {
    Fnv::of(etag.trim_start_matches("W/").trim_matches('"').as_bytes())
}

impl Versions {
    pub(super) fn note(&self, path: &Path, etag: Option<&str>) {
        let Some(etag) = etag else { return };
        self.0.lock().expect("no holder of this lock panics").insert(name(path), of(etag));
    }

    pub(super) fn get(&self, path: &Path) -> Option<u64> {
        self.0.lock().expect("no holder of this lock panics").get(&name(path)).copied()
    }
}

fn name(path: &Path) -> u64 {
    Fnv::of(path.as_os_str().as_encoded_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_the_same_in_quotes_and_another_after_a_change() {
        let (versions, path) = (Versions::default(), Path::new("s3://b/k"));
        versions.note(path, None);
        assert_eq!(versions.get(path), None);
        versions.note(path, Some("\"abc\""));
        assert_eq!(versions.get(path), Some(of("abc")));
        versions.note(path, Some("abd"));
        assert_ne!(versions.get(path), Some(of("abc")));
    }
}
