//! The formats of a workload's data: how files are laid out, made and read. A format is one file here, its `mod` and one
//! line of [`find`]; its name and what it may be compressed with are a row of `forebay_workload`'s table.

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

/// What makes and reads files of a format; `None` where this build does neither.
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

/// Whether this build makes and reads files of a format; all but HDF5, which is a feature.
pub fn is_built_in(format: Format) -> bool {
    find(format).is_some()
}

/// What is said of a format that is not [built in](is_built_in).
pub const NO_HDF5: &str = "this build has no HDF5: build with --features hdf5";

/// One file that is to be made.
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

    /// The shape of all its samples in one array: a sample's sides, and the samples as the last.
    fn array_shape(&self) -> Vec<u64> {
        self.shape.dims.iter().copied().chain([self.shape.n_samples]).collect()
    }
}

/// How a file is known to be whole when it is found again.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Proof {
    /// By its length, which follows from the shape.
    Length(u64),
    /// By its last bytes, for formats that end with a mark.
    Tail(fn(&[u8]) -> bool),
    /// By being there at all: it got its name after it was on the device.
    Presence,
}

/// A file that lies beside a data file.
#[derive(Debug, Clone)]
pub(crate) struct Beside {
    /// Relative to the data folder.
    pub(crate) path: String,
    pub(crate) proof: Proof,
    pub(crate) room: u64,
}

/// A format, of one dataset: what its files consist of, and how samples are read out of them.
pub(crate) trait DataFormat: Send + Sync {
    /// Whether files can be made as the dataset says.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// How a file is known to be whole.
    fn proof(&self, piece: &Piece) -> Proof;

    /// Bytes that a file takes at most, as well as is known before.
    fn room(&self, piece: &Piece) -> u64;

    /// Bytes between two places at which a file may be cut into ranges that are made apart; `None`: it is made as a whole.
    fn grain(&self, _piece: &Piece) -> Option<u64> {
        None
    }

    /// Writes the bytes of `range`, which begins and ends at multiples of the grain or at the end; all of them where there is no grain.
    fn write(&self, piece: &Piece, range: Range<u64>, draft: &mut Draft<'_>) -> io::Result<()>;

    /// What is put over a file that was made in ranges, at which offsets, when the checksum of all values that they noted is known.
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

    /// Bytes of a sample in a batch where the workload says nothing else, if that is not its record's length. `first` is what the part's
    /// first file holds.
    fn sample_bytes(&self, _first: &FileShape) -> Option<u64> {
        None
    }

    fn reader(&self, files: Arc<Files>) -> Box<dyn Reader>;
}

pub(crate) fn of(dataset: &Dataset) -> Result<Box<dyn DataFormat>> {
    let new = find(dataset.format).ok_or_else(|| refused("dataset.format", dataset.format.name(), NO_HDF5))?;
    Ok(new(dataset))
}

/// The same, where files are to be made.
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

/// NumPy's name of a type. It has none for bfloat16, which `ml_dtypes` saves as two bytes of no type.
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
