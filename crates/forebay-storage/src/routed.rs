//! One storage for every path a user may give: local files, and objects where the path is a URL.
//!
//! Code that reads a user's data asks this storage and need not know which of the two it reads. Without the feature
//! `object`, a URL is refused with the reason.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{
    Ahead, Bucket, Buffer, CachePlace, Entry, Error, Local, Mode, Object, Operation, Reads, Requests, Result, Storage,
    Writer,
};

/// The schemes of object stores, as in `s3://bucket/prefix`.
pub const SCHEMES: [&str; 8] = ["s3", "s3a", "gs", "az", "abfs", "abfss", "http", "https"];

/// Whether a path is the URL of an object or of a prefix of objects.
pub fn is_url(path: &Path) -> bool {
    let text = path.as_os_str().as_encoded_bytes();
    let of = |scheme: &&str| text.strip_prefix(scheme.as_bytes()).is_some_and(|rest| rest.starts_with(b"://"));
    SCHEMES.iter().any(of)
}

/// What a line of a list means: a URL is itself, any other path is relative to the folder of the list.
pub fn beside(folder: &Path, path: &Path) -> PathBuf {
    if is_url(path) { path.to_owned() } else { folder.join(path) }
}

/// How objects are read ahead of their use; see [`Storage::read_ahead`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// Requests in flight at once; `None` to find out how many bring more.
    pub inflight: Option<usize>,
    /// Bytes that are requested or held for later; with 0, nothing is read ahead.
    pub readahead: u64,
    /// Where what was read ahead is kept for later epochs and runs.
    pub cache: Option<CachePlace>,
}

impl Default for Reading {
    fn default() -> Self {
        Self { inflight: None, readahead: 256 << 20, cache: None }
    }
}

/// Local files and objects.
#[derive(Clone)]
pub struct Routed {
    local: Arc<dyn Storage>,
    /// `None` without the feature `object`.
    objects: Option<Arc<dyn Storage>>,
}

impl Default for Routed {
    fn default() -> Self {
        Self::of_mode(Mode::Buffered)
    }
}

impl Routed {
    /// # Errors
    /// When the near cache cannot be opened.
    pub fn new(mode: Mode, reading: Reading) -> Result<Self> {
        Ok(Self { local: Arc::new(Local::new(mode)), objects: objects(reading)? })
    }

    pub(crate) fn of_mode(mode: Mode) -> Self {
        Self::new(mode, Reading::default()).expect("only a near cache needs opening")
    }

    fn of(&self, operation: Operation, path: &Path) -> Result<&dyn Storage> {
        match &self.objects {
            _ if !is_url(path) => Ok(self.local.as_ref()),
            Some(objects) => Ok(objects.as_ref()),
            None => Err(not_built_in(operation, path)),
        }
    }
}

pub(crate) fn not_built_in(operation: Operation, path: &Path) -> Error {
    let what = "this build has no object stores: build it with `--features object`".to_owned();
    Error::Unsupported { operation, path: path.to_owned(), what }
}

/// The object stores of this program, for conditional writes and uploads in parts. Where they are not built in, every
/// call says so.
#[cfg(feature = "object")]
pub fn bucket() -> Arc<dyn Bucket> {
    Arc::new(crate::Objects::new(Reading::default()).expect("only a near cache needs opening"))
}

/// The object stores of this program: they are not built in, and every call says so.
#[cfg(not(feature = "object"))]
pub fn bucket() -> Arc<dyn Bucket> {
    Arc::new(crate::bucket::NotBuiltIn)
}

#[cfg(feature = "object")]
fn objects(reading: Reading) -> Result<Option<Arc<dyn Storage>>> {
    Ok(Some(Arc::new(crate::Objects::new(reading)?)))
}

#[cfg(not(feature = "object"))]
fn objects(_: Reading) -> Result<Option<Arc<dyn Storage>>> {
    Ok(None)
}

impl Storage for Routed {
    fn description(&self) -> String {
        self.local.description()
    }

    fn list(&self, dir: &Path) -> Result<Vec<Entry>> {
        self.of(Operation::List, dir)?.list(dir)
    }

    fn size(&self, path: &Path) -> Result<u64> {
        self.of(Operation::Size, path)?.size(path)
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Object>> {
        self.of(Operation::Open, path)?.open(path)
    }

    fn create(&self, path: &Path) -> Result<Box<dyn Writer>> {
        self.of(Operation::Create, path)?.create(path)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.of(Operation::Remove, path)?.remove(path)
    }

    fn description_of(&self, path: &Path) -> String {
        self.of(Operation::Open, path).map_or_else(|_| self.description(), |storage| storage.description_of(path))
    }

    fn concurrency(&self, path: &Path) -> usize {
        self.of(Operation::Open, path).map_or(1, |storage| storage.concurrency(path))
    }

    fn read_many_preferred(&self) -> usize {
        self.local.read_many_preferred()
    }

    fn read_many(&self, paths: &[&Path], limit: u64, into: &mut [Buffer]) -> Vec<Result<()>> {
        assert!(into.len() >= paths.len(), "one buffer per path");
        let Some(first) = paths.first().filter(|first| paths.iter().all(|path| is_url(path) == is_url(first))) else {
            // A mixed list: one by one.
            return paths.iter().zip(into).map(|(path, buffer)| self.open(path)?.read_within(limit, buffer)).collect();
        };
        match self.of(Operation::Open, first) {
            Ok(storage) => storage.read_many(paths, limit, into),
            Err(_) => paths.iter().map(|path| self.of(Operation::Open, path).map(drop)).collect(),
        }
    }

    fn requests(&self) -> Option<Requests> {
        self.objects.as_ref()?.requests()
    }

    fn read_ahead(&self, reads: &dyn Fn() -> Reads, limit: u64, spread: usize) -> Option<Ahead> {
        let of_objects = || -> Reads { Box::new(reads().filter(|read| is_url(&read.path))) };
        of_objects().next()?;
        let Ahead { storage, stop } = self.objects.as_ref()?.read_ahead(&of_objects, limit, spread)?;
        let storage = Arc::new(Self { local: Arc::clone(&self.local), objects: Some(storage) });
        Some(Ahead { storage, stop })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_schemes_of_object_stores_make_a_path_a_url() {
        for url in ["s3://b", "s3://b/k", "gs://b/k", "az://c/k", "https://host/k", "abfss://c@a.host/k"] {
            assert!(is_url(Path::new(url)), "{url}");
        }
        for local in ["s3:/b", "s3", "a/s3://b", "S3://b", "file:///tmp", "", "ftp://h/k"] {
            assert!(!is_url(Path::new(local)), "{local}");
        }
    }

    #[test]
    fn a_line_of_a_list_may_be_a_url() {
        let line = |path: &str| beside(Path::new("s3://b/lists"), Path::new(path));
        assert_eq!(line("a/1.jpg"), Path::new("s3://b/lists/a/1.jpg"));
        assert_eq!(line("gs://c/2.jpg"), Path::new("gs://c/2.jpg"));
        assert_eq!(line("/data/3.jpg"), Path::new("/data/3.jpg"));
    }

    #[test]
    fn local_paths_are_local_files() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), b"hello").unwrap();
        let routed = Routed::default();
        assert_eq!(routed.size(&folder.path().join("a")).unwrap(), 5);
        assert_eq!(routed.description_of(folder.path()), "local, buffered");
        assert_eq!((routed.concurrency(folder.path()), routed.read_many_preferred()), (1, 1));
    }

    #[cfg(not(feature = "object"))]
    #[test]
    fn a_url_is_refused_with_the_reason_where_object_stores_are_not_built_in() {
        let routed = Routed::default();
        let said = "listing s3://b/x: this build has no object stores: build it with `--features object`";
        assert_eq!(routed.list(Path::new("s3://b/x")).unwrap_err().to_string(), said);
        let many = routed.read_many(&[Path::new("s3://b/x")], 1, &mut [Buffer::default()]);
        assert!(many[0].as_ref().unwrap_err().to_string().starts_with("opening s3://b/x: this build"));
    }
}
