//! The formats of a workload's data: how files are laid out, made and read. A format is one file here, its `mod` and one
//! line of [`find`]; its name and its compressions are a row of `forebay_workload`'s table.

mod array;
#[cfg(test)]
mod contract;
mod csv;
mod files;
#[cfg(feature = "hdf5")]
mod hdf5;
mod image;
mod indexed;
mod npy;
mod npz;
mod parquet;
mod reader;
mod synthetic;
mod tfrecord;

use std::io;
use std::ops::Range;
use std::sync::Arc;

use forebay_format::npz::write::Sum;
use forebay_workload::{Dataset, Element, FileShape, Format, Part};

pub use self::files::Files;
use self::reader::{Known, OpenFiles, Sink};
pub use self::reader::{ReadError, Reader, Step, Tools, Traffic, Unit};
use super::draft::Draft;
use super::noise::Noise;
use crate::{Error, Result};

type New = fn(&Dataset) -> Box<dyn DataFormat>;

/// The implementation of a format; `None` if this build lacks it.
fn find(format: Format) -> Option<New> {
    Some(match format {
        Format::Tfrecord => tfrecord::new,
        #[cfg(feature = "hdf5")]
        Format::Hdf5 => hdf5::new,
        #[cfg(not(feature = "hdf5"))]
        Format::Hdf5 => return None,
        Format::Csv => csv::new,
        Format::Npz => npz::new,
        Format::Npy => npy::new,
        Format::Jpeg | Format::Png => image::new,
        Format::Parquet => parquet::new,
        Format::IndexedBinary | Format::MmapIndexedBinary => indexed::new,
        Format::Synthetic => synthetic::new,
    })
}

/// Whether this build supports a format: all except HDF5, which is a feature.
pub fn is_built_in(format: Format) -> bool {
    find(format).is_some()
}

/// The message for a format that is not [built in](is_built_in).
pub const NO_HDF5: &str = "this build has no HDF5: build with --features hdf5";

/// One file to be made.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    /// Relative to the data folder.
    pub(crate) path: String,
    pub(crate) part: Part,
    /// Its number among the files of all parts.
    pub(crate) number: u64,
    pub(crate) shape: FileShape,
    pub(crate) noise: Noise,
}

impl Piece {
    pub(crate) fn bytes(&self) -> u64 {
        self.shape.n_samples * self.shape.sample_bytes
    }

    /// The shape of all its samples in one array: a sample's dimensions, then the samples.
    fn array_shape(&self) -> Vec<u64> {
        self.shape.dims.iter().copied().chain([self.shape.n_samples]).collect()
    }
}

/// How an existing file is recognised as complete.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Proof {
    /// By its length, which follows from the shape.
    Length(u64),
    /// By its last bytes, for formats with an end marker.
    Tail(fn(&[u8]) -> bool),
    /// By its existence: it got its name after it was durable.
    Presence,
}

/// A companion file of a data file.
#[derive(Debug, Clone)]
pub(crate) struct Beside {
    /// Relative to the data folder.
    pub(crate) path: String,
    pub(crate) proof: Proof,
    pub(crate) room: u64,
}

/// The format of one dataset: the layout of its files, and how samples are read from them.
pub(crate) trait DataFormat: Send + Sync {
    /// Whether files can be made as the dataset says.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// How a file is recognised as complete.
    fn proof(&self, piece: &Piece) -> Proof;

    /// Upper bound on a file's size, as far as known beforehand.
    fn room(&self, piece: &Piece) -> u64;

    /// A file may be split into separately made ranges at multiples of this; `None` if it is made as a whole.
    fn grain(&self, _piece: &Piece) -> Option<u64> {
        None
    }

    /// Writes the bytes of `range`, which begins and ends at multiples of the grain or at the file's end; the whole file if
    /// there is no grain.
    fn write(&self, piece: &Piece, range: Range<u64>, draft: &mut Draft<'_>) -> io::Result<()>;

    /// Patches, with their offsets, for a file made in ranges, once the combined checksum of all values is known.
    fn patches(&self, _piece: &Piece, _values: &Sum) -> Vec<(u64, Vec<u8>)> {
        Vec::new()
    }

    fn beside(&self, _piece: &Piece) -> Vec<Beside> {
        Vec::new()
    }

    fn write_beside(&self, _piece: &Piece, _which: usize, _draft: &mut Draft<'_>) -> io::Result<()> {
        Ok(())
    }

    fn unit(&self) -> Unit {
        Unit::Sample
    }

    /// Default bytes of a sample in a batch, if that is not its record's length. `first` describes the part's first file.
    fn sample_bytes(&self, _first: &FileShape) -> Option<u64> {
        None
    }

    fn reader(&self, files: Arc<Files>) -> Box<dyn Reader>;
}

pub(crate) fn of(dataset: &Dataset) -> Result<Box<dyn DataFormat>> {
    let new = find(dataset.format).ok_or_else(|| refused("dataset.format", dataset.format.name(), NO_HDF5))?;
    Ok(new(dataset))
}

/// The same for files to be made.
pub(crate) fn made(dataset: &Dataset) -> Result<Box<dyn DataFormat>> {
    let format = of(dataset)?;
    if !dataset.is_made() {
        return Err(refused("dataset.compression", dataset.compression.name(), NOT_COMPRESSED));
    }
    format.check()?;
    Ok(format)
}

const NOT_COMPRESSED: &str = "files of this format are not made with this compression";

fn refused(parameter: &'static str, value: &str, reason: &'static str) -> Error {
    Error::Parameter { parameter, value: value.to_owned(), reason }
}

/// NumPy's type string. It has none for bfloat16, which `ml_dtypes` saves as two untyped bytes.
fn descr(element: Element) -> &'static str {
    match element {
        Element::U8 => "|u1",
        Element::I8 => "|i1",
        Element::U16 => "<u2",
        Element::I16 => "<i2",
        Element::U32 => "<u4",
        Element::I32 => "<i4",
        Element::U64 => "<u8",
        Element::I64 => "<i8",
        Element::F16 => "<f2",
        Element::Bf16 => "|V2",
        Element::F32 => "<f4",
        Element::F64 => "<f8",
    }
}
