//! The manifest of a packed folder: written last, checked by `verify`.

use std::collections::HashSet;
use std::io::BufRead;
use std::path::{Path, PathBuf};

use forebay_record::Fault;
use forebay_storage::{Buffer, Object, ObjectReader, Storage};
use serde::{Deserialize, Serialize};

use crate::reason::why_unreadable;
use crate::source::Item;

/// Name of the manifest in a packed folder.
pub const MANIFEST: &str = "manifest.json";

/// The version of the manifest that is written and read.
pub(crate) const SCHEMA: u32 = 1;

/// The largest manifest that is read: it is held in memory, which a damaged or foreign file must not fill.
const MAX_LEN: u64 = 256 << 20;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the manifest; other versions are refused.
    pub schema: u32,
    /// `tfrecord`, `tar` or `tensor`.
    pub format: String,
    pub n_samples: u64,
    pub bytes: u64,
    pub shards: Vec<ShardEntry>,
    /// Class names by label, if the inputs were in class folders.
    pub classes: Vec<String>,
    /// Inputs that were left out, and why.
    pub skipped: Vec<Fault>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardEntry {
    #[serde(with = "forebay_units::serde_path")]
    pub file: PathBuf,
    pub n_samples: u64,
    pub bytes: u64,
    /// Over the whole file, so a copy can be checked without knowing its format.
    pub crc32c: u32,
}

/// The class names of a packed folder; `None` without a manifest.
pub fn packed_classes(storage: &dyn Storage, path: &Path) -> Option<Vec<String>> {
    Manifest::beside(storage, path)?.ok().map(|manifest| manifest.classes).filter(|classes| !classes.is_empty())
}

/// The checksum of a whole object, read in chunks.
fn checksum(object: &dyn Object) -> std::io::Result<u32> {
    let mut reader = ObjectReader::new(object).map_err(std::io::Error::other)?;
    let mut sum = 0;
    loop {
        let chunk = reader.fill_buf()?;
        if chunk.is_empty() {
            return Ok(sum);
        }
        sum = crc32c::crc32c_append(sum, chunk);
        let n = chunk.len();
        reader.consume(n);
    }
}

impl Manifest {
    /// The manifest of the folder `path`; `None` if it has none.
    pub(crate) fn beside(storage: &dyn Storage, path: &Path) -> Option<Result<Self, Fault>> {
        let file = path.join(MANIFEST);
        let mut buffer = Buffer::default();
        let read = storage.open(&file).and_then(|object| object.read_within(MAX_LEN, &mut buffer));
        match read {
            Ok(()) => Some(Self::parse(buffer.as_slice()).map_err(|reason| Fault::of_file(&file, reason))),
            Err(forebay_storage::Error::NotFound { .. }) => None,
            // `path` may be a file.
            Err(_) if storage.size(path).is_ok() => None,
            Err(error) => Some(Err(Fault::of_file(&file, why_unreadable(&error)))),
        }
    }

    fn parse(json: &[u8]) -> Result<Self, String> {
        let manifest: Self = serde_json::from_slice(json).map_err(|error| format!("not a manifest: {error}"))?;
        match manifest.schema {
            SCHEMA => Ok(manifest),
            other => Err(format!("manifest version {other} is not supported; expected version {SCHEMA}")),
        }
    }

    /// How the file at `path` in the folder `dir` differs from its entry in the manifest.
    pub(crate) fn disagreement(&self, storage: &dyn Storage, dir: &Path, path: &Path) -> Option<Fault> {
        let file = path.strip_prefix(dir).unwrap_or(path);
        let Some(entry) = self.shards.iter().find(|entry| entry.file == file) else {
            return Some(Fault::of_file(path, format!("not in {MANIFEST}")));
        };
        let opened = storage.open(path).and_then(|object| Ok((object.len()?, object)));
        let (len, object) = match opened {
            Ok(opened) => opened,
            Err(error) => return Some(Fault::of_file(path, why_unreadable(&error))),
        };
        let differ = |what, wanted: String, found: String| {
            Some(Fault::of_file(path, format!("{what}: expected {wanted} (from {MANIFEST}), found {found}")))
        };
        if len != entry.bytes {
            return differ("length", entry.bytes.to_string(), len.to_string());
        }
        let sum = match checksum(object.as_ref()) {
            Ok(sum) => sum,
            Err(error) => return Some(Fault::of_file(path, format!("cannot be read: {error}"))),
        };
        (sum != entry.crc32c).then(|| differ("checksum", format!("{:#010x}", entry.crc32c), format!("{sum:#010x}")))?
    }

    /// Shards of the manifest that are not among `items`.
    pub(crate) fn missing(&self, dir: &Path, items: &[Item]) -> Vec<Fault> {
        let here: HashSet<&Path> = items.iter().map(|item| item.path.as_path()).collect();
        let paths = self.shards.iter().map(|entry| dir.join(&entry.file));
        paths
            .filter(|path| !here.contains(path.as_path()))
            .map(|path| Fault::of_file(&path, format!("missing: listed in {MANIFEST}")))
            .collect()
    }
}
