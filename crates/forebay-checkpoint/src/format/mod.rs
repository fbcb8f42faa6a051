//! File formats of checkpoints: how a snapshot is laid out in files and found again. Performs no I/O.
//!
//! A [`Format`] plans before it writes: from names, types and shapes it derives which bytes of which tensor go where
//! ([`Layout`]). A writer can then process the files in pieces of any size with any number of threads. Checksums of
//! tensors depend on the values; [`Sums`] collects them during the write, and they go into small files that are written
//! last. For reading, a [`Source`] provides ranges of files and a [`Catalog`] locates each tensor, so one tensor can be
//! read without the rest.
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
/// - Planning reads no values: snapshots that differ only in values have the same plan.
/// - The planned files together hold every byte of every tensor exactly once.
/// - A snapshot that is planned, written and opened keeps its names, types, shapes, values and notes. The order of the
///   tensors may change.
/// - Opening reads the tensor directory, notes and strings, never the values. It never panics and never requests bytes
///   beyond the end of a file, even if the files are corrupt.
/// - Every tensor of a catalog lies within its file, has the length given by its shape, and overlaps no other.
/// - A truncated file is an error, at the latest when a tensor is read. So is a flipped bit if the format has
///   checksums.
pub trait Format: Sync {
    /// Its name on the command line and in manifests.
    fn name(&self) -> &'static str;

    /// Whether tensors have checksums: [`Layout::close`] then needs them and reads are verified.
    fn has_checksums(&self) -> bool;

    /// The stem of the checkpoint that a file with this name belongs to; `None` if the name does not match the format.
    fn stem<'a>(&self, file: &'a str) -> Option<&'a str>;

    /// Derives which bytes go where.
    ///
    /// # Errors
    /// [`Error::Unsavable`] when the format cannot represent a name, type or shape, or when the length of a tensor does
    /// not match its shape.
    fn plan(&self, stem: &str, snapshot: &Snapshot<'_>) -> Result<Layout, Error>;

    /// Reads what a checkpoint contains and where.
    ///
    /// # Errors
    /// When files are missing, damaged, or use features that this library does not read.
    fn open(&self, stem: &str, source: &dyn Source) -> Result<Catalog, Error>;
}

/// All formats; the first is the default.
pub const FORMATS: [&dyn Format; 2] = [&Safetensors, &Bundle];

pub fn named(name: &str) -> Option<&'static dyn Format> {
    FORMATS.into_iter().find(|format| format.name() == name)
}

/// The format and stem of the checkpoint that a file with this name belongs to.
pub fn recognise(file: &str) -> Option<(&'static dyn Format, &str)> {
    FORMATS.into_iter().find_map(|format| format.stem(file).map(|stem| (format, stem)))
}

/// Checks for what no format can write: an invalid stem, duplicate tensor names, or a length that does not match the
/// shape.
fn check(format: &'static str, stem: &str, snapshot: &Snapshot<'_>) -> Result<(), Error> {
    let unsavable = |what: String| Err(Error::Unsavable { format, what });
    if stem.is_empty() || stem.contains(['/', '\0']) {
        return unsavable(format!("{stem:?} is not a valid file name"));
    }
    let mut names = std::collections::HashSet::new();
    for tensor in &snapshot.tensors {
        let (name, n_bytes) = (&tensor.header.name, tensor.bytes.n_bytes());
        if !names.insert(name) {
            return unsavable(format!("duplicate tensor name {name:?}"));
        }
        if tensor.header.n_bytes() != Some(n_bytes) {
            let shape = (tensor.header.dtype, &tensor.header.shape);
            return unsavable(format!("tensor {name:?} has {n_bytes} bytes, which does not match its shape {shape:?}"));
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
