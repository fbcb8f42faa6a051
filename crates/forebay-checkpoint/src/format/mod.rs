//! How a snapshot lies in files, and how it is found there again. Opens nothing.
//!
//! A [`Format`] plans before it writes: from names, types and shapes it says which bytes of which tensor stand where
//! ([`Layout`]), so that a writer may go through the files in pieces of any size and with any number of threads.
//! What depends on the values (a checksum of each tensor) is gathered on the way by [`Sums`] and goes into small files
//! that are written last. Reading goes the other way: a [`Source`] gives ranges of files, a [`Catalog`] says where each
//! tensor is, and one tensor is read without the rest.
//!
//! ```
//! use forebay_checkpoint::format;
//! use forebay_checkpoint::{Dtype, Header, Snapshot, Tensor};
//!
//! let header = Header { name: "w".to_owned(), dtype: Dtype::F32, shape: vec![2] };
//! let tensors = vec![Tensor::new(&header, &[0, 0, 0, 0, 0, 0, 128, 63])];
//! let snapshot = Snapshot { tensors, ..Snapshot::default() };
//! let format = format::named("tensorflow").expect("is in the table");
//! let layout = format.plan("model", &snapshot)?;
//! let mut files = format::Files::new();
//! for plan in layout.complete(&snapshot) {
//!     let mut bytes = vec![0; plan.len as usize];
//!     plan.fill(&snapshot, 0, &mut bytes);
//!     files.insert(plan.name, bytes);
//! }
//! let catalog = format.open("model", &files)?;
//! assert_eq!(catalog.read(&files, "w")?, [0, 0, 0, 0, 0, 0, 128, 63]);
//! # Ok::<(), format::Error>(())
//! ```

mod bundle;
mod catalog;
mod error;
mod layout;
mod safetensors;
mod sums;

use crate::Snapshot;

pub use bundle::{Bundle, State};
pub use catalog::{Catalog, Entry, Files, Source, Strings};
pub use error::Error;
use error::Place;
pub use layout::Layout;
pub use safetensors::Safetensors;
pub(crate) use sums::Seen;
pub use sums::Sums;

/// A way to lay out a checkpoint in files.
///
/// # Laws
/// - Planning reads no values: two snapshots that differ in values alone have the same plan.
/// - The planned files together hold every byte of every tensor exactly once.
/// - What was planned, written and opened is the same snapshot: names, types, shapes, values and notes. The order of
///   the tensors may differ.
/// - Opening reads the directory of tensors, notes and strings, never the values. It never panics and never asks for bytes
///   that the files do not have, whatever is in them.
/// - Every tensor of a catalog lies within its file, has the length of its shape, and overlaps no other.
/// - A file that was cut short is an error, at the latest when a tensor is read. So is a flipped bit where the format
///   has checksums.
pub trait Format: Sync {
    /// Its name on command lines and in manifests.
    fn name(&self) -> &'static str;

    /// Whether tensors carry checksums, so that [`Layout::close`] needs them and reading verifies.
    fn has_checksums(&self) -> bool;

    /// The stem of the checkpoint that a file of this name opens; `None` when it is no such file.
    fn stem<'a>(&self, file: &'a str) -> Option<&'a str>;

    /// Says which bytes go where.
    ///
    /// # Errors
    /// [`Error::Unsavable`] when the format has no way to write a name, a type or a shape, or when a tensor's bytes are
    /// not those of its shape.
    fn plan(&self, stem: &str, snapshot: &Snapshot<'_>) -> Result<Layout, Error>;

    /// Says what a checkpoint holds and where.
    ///
    /// # Errors
    /// When files are missing, damaged, or use what this library does not read.
    fn open(&self, stem: &str, source: &dyn Source) -> Result<Catalog, Error>;
}

/// The first is the default where none is named.
pub const FORMATS: [&dyn Format; 2] = [&Safetensors, &Bundle];

pub fn named(name: &str) -> Option<&'static dyn Format> {
    FORMATS.into_iter().find(|format| format.name() == name)
}

/// The format and the stem of the checkpoint that a file of this name opens.
pub fn recognise(file: &str) -> Option<(&'static dyn Format, &str)> {
    FORMATS.into_iter().find_map(|format| format.stem(file).map(|stem| (format, stem)))
}

/// Checks what no format can write: an odd stem, two tensors of one name, bytes that are not those of the shape.
fn check(format: &'static str, stem: &str, snapshot: &Snapshot<'_>) -> Result<(), Error> {
    let unsavable = |what: String| Err(Error::Unsavable { format, what });
    if stem.is_empty() || stem.contains(['/', '\0']) {
        return unsavable(format!("{stem:?} is no name of a file"));
    }
    let mut names = std::collections::HashSet::new();
    for tensor in &snapshot.tensors {
        let (name, n_bytes) = (&tensor.header.name, tensor.bytes.n_bytes());
        if !names.insert(name) {
            return unsavable(format!("two tensors are named {name:?}"));
        }
        if tensor.header.n_bytes() != Some(n_bytes) {
            let shape = (tensor.header.dtype, &tensor.header.shape);
            return unsavable(format!("tensor {name:?} of {shape:?} has {n_bytes} bytes"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_opens_the_checkpoint_of_its_stem() {
        let known = |file| recognise(file).map(|(format, stem)| (format.name(), stem));
        assert_eq!(known("model.safetensors"), Some(("safetensors", "model")));
        assert_eq!(known("model-20.index"), Some(("tensorflow", "model-20")));
        assert_eq!(known("model.data-00000-of-00001"), None);
        assert_eq!(known(".index"), None);
    }

    #[test]
    fn every_format_is_found_by_its_name() {
        let names = FORMATS.map(|format| named(format.name()).map(Format::name));
        assert_eq!(names, [Some("safetensors"), Some("tensorflow")]);
        assert!(named("pickle").is_none());
    }
}
