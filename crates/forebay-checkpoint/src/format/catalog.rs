//! What a checkpoint contains, where it is stored, and how to read one entry.

use std::collections::BTreeMap;
use std::io;

use super::{Error, Place};
use crate::Header;

/// Named files with random-access reads.
pub trait Source {
    /// A file's length in bytes; an error of kind `NotFound` if the file does not exist.
    fn size(&self, file: &str) -> io::Result<u64>;

    /// Fills `into` with the file's bytes from `offset`: completely, or returns an error.
    fn read_at(&self, file: &str, offset: u64, into: &mut [u8]) -> io::Result<()>;
}

/// Files in memory. Maps of borrowed bytes are sources too.
pub type Files = BTreeMap<String, Vec<u8>>;

impl<B: AsRef<[u8]>> Source for BTreeMap<String, B> {
    fn size(&self, file: &str) -> io::Result<u64> {
        self.get(file).map(|bytes| bytes.as_ref().len() as u64).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn read_at(&self, file: &str, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let bytes = self.get(file).ok_or(io::ErrorKind::NotFound)?.as_ref();
        let from = usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..));
        let found = from.and_then(|rest| rest.get(..into.len())).ok_or(io::ErrorKind::UnexpectedEof)?;
        into.copy_from_slice(found);
        Ok(())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub header: Header,
    /// The file that holds its values: an index into [`Catalog::files`].
    pub file: usize,
    pub offset: u64,
    pub n_bytes: u64,
    /// The crc32c of its values, if the format stores one.
    pub crc32c: Option<u32>,
}

/// A string tensor. It is not model state, but other programs store some in their checkpoints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strings {
    pub name: String,
    pub shape: Vec<u64>,
    /// In row-major order: the last dimension varies fastest.
    pub values: Vec<Vec<u8>>,
}

/// The entry in which `tf.train.Checkpoint` describes its Python objects. The variables can be read without it.
const OBJECT_GRAPH: &str = "_CHECKPOINTABLE_OBJECT_GRAPH";

impl Strings {
    /// Whether this is TensorFlow's object graph, which describes the Python objects that owned the variables. Every
    /// checkpoint of `tf.train.Checkpoint` has one; it is not model state.
    pub fn is_object_graph(&self) -> bool {
        self.name == OBJECT_GRAPH && self.shape.is_empty()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Catalog {
    pub files: Vec<String>,
    /// Its tensors, in the order of the format.
    pub tensors: Vec<Entry>,
    pub strings: Vec<Strings>,
    pub notes: BTreeMap<String, String>,
}

impl Catalog {
    /// Reads one tensor, and verifies it if the format stores checksums.
    ///
    /// # Errors
    /// When the tensor does not exist, cannot be read, or fails its checksum.
    pub fn read(&self, source: &dyn Source, name: &str) -> Result<Vec<u8>, Error> {
        let entry = self.tensors.iter().find(|entry| entry.header.name == name);
        let entry = entry.ok_or_else(|| Error::NoTensor { name: name.to_owned() })?;
        let mut bytes = zeroed(Place { file: &self.files[entry.file] }, source, entry.offset, entry.n_bytes)?;
        self.read_into(source, entry, &mut bytes)?;
        Ok(bytes)
    }

    /// Reads an entry of this catalog into `into`, and verifies it if the format stores checksums.
    ///
    /// # Errors
    /// When the bytes cannot be read or fail their checksum.
    ///
    /// # Panics
    /// When `into` does not have the entry's length.
    pub fn read_into(&self, source: &dyn Source, entry: &Entry, into: &mut [u8]) -> Result<(), Error> {
        assert_eq!(into.len() as u64, entry.n_bytes, "memory for one tensor");
        let place = Place { file: &self.files[entry.file] };
        source.read_at(place.file, entry.offset, into).map_err(|source| place.io(source))?;
        let Some(expected) = entry.crc32c else { return Ok(()) };
        let found = crc32c::crc32c(into);
        if found != expected {
            return Err(place.checksum(format!("tensor {:?}", entry.header.name), entry.offset, expected, found));
        }
        Ok(())
    }
}

pub(super) fn len_of(place: Place<'_>, source: &dyn Source) -> Result<u64, Error> {
    source.size(place.file).map_err(|source| place.io(source))
}

/// Reads a range that is known to lie within the file.
pub(super) fn read(place: Place<'_>, source: &dyn Source, offset: u64, n_bytes: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = zeroed(place, source, offset, n_bytes)?;
    source.read_at(place.file, offset, &mut bytes).map_err(|source| place.io(source))?;
    Ok(bytes)
}

/// Allocates memory for a range after checking that the file still contains it: a wrong length must not cause an
/// allocation.
fn zeroed(place: Place<'_>, source: &dyn Source, offset: u64, n_bytes: u64) -> Result<Vec<u8>, Error> {
    let found = len_of(place, source)?.saturating_sub(offset);
    match usize::try_from(n_bytes) {
        Ok(len) if n_bytes <= found => Ok(vec![0; len]),
        _ => Err(place.truncated("range", offset, n_bytes, found)),
    }
}
