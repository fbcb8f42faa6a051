//! What a file of each format consists of: one file here a format, one line in [`of`].

mod csv;
#[cfg(feature = "hdf5")]
mod hdf5;
mod image;
mod indexed;
mod npy;
mod npz;
mod parquet;
mod synthetic;
mod tfrecord;

use std::io;
use std::ops::Range;
use std::sync::Mutex;

pub use parquet::parquet_columns;

use forebay_format::npz::write::Sum;
use forebay_format::parquet::Codec;
use forebay_workload::{Compression, Dataset, Element, FileShape, Format, Part};

use super::draft::Draft;
use super::noise::Noise;
use crate::{Error, Result};

/// One file that is to be made.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    /// Below the data folder.
    pub(crate) path: String,
    pub(crate) part: Part,
    /// Its number among the files of all parts.
    pub(crate) number: u64,
    pub(crate) shape: FileShape,
    pub(crate) noise: Noise,
}

impl Piece {
    /// Bytes of all its values.
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
    /// By how it ends.
    Tail(fn(&[u8]) -> bool),
    /// By being there at all: it got its name after it was on the device.
    Presence,
}

/// A file that lies beside a data file.
#[derive(Debug, Clone)]
pub(crate) struct Beside {
    /// Below the data folder.
    pub(crate) path: String,
    pub(crate) proof: Proof,
    /// Bytes that it takes at most.
    pub(crate) room: u64,
}

/// What a file of a format consists of.
pub(crate) trait Form: Sync {
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

    /// What lies beside a file.
    fn beside(&self, _piece: &Piece) -> Vec<Beside> {
        Vec::new()
    }

    /// Writes number `which` of those.
    fn write_beside(&self, _piece: &Piece, _which: usize, _draft: &mut Draft<'_>) -> io::Result<()> {
        Ok(())
    }
}

/// The form of a dataset's files.
pub(crate) fn of(dataset: &Dataset) -> Result<Box<dyn Form>> {
    let (element, level) = (dataset.element, dataset.compression_level);
    Ok(match (dataset.format, dataset.compression) {
        (Format::Npz, Compression::None) => Box::new(npz::Npz { element, level: None }),
        (Format::Npz, Compression::Zip) => Box::new(npz::Npz { element, level: Some(level) }),
        (Format::Csv, Compression::None) => Box::new(csv::Csv { element, level: None }),
        (Format::Csv, Compression::Gzip) => Box::new(csv::Csv { element, level: Some(level) }),
        #[cfg(feature = "hdf5")]
        (Format::Hdf5, _) => Box::new(hdf5::Hdf5::new(dataset)?),
        #[cfg(not(feature = "hdf5"))]
        (Format::Hdf5, _) => return Err(refused("dataset.format", "hdf5", NO_HDF5)),
        (Format::Parquet, Compression::None) => parquet(dataset, Codec::None),
        (Format::Parquet, Compression::Gzip) => parquet(dataset, Codec::Gzip(level)),
        (Format::Parquet, Compression::Snappy) => parquet(dataset, Codec::Snappy),
        (_, Compression::Gzip) => return Err(refused("dataset.compression", "gzip", NOT_COMPRESSED)),
        (_, Compression::Lzf) => return Err(refused("dataset.compression", "lzf", NOT_COMPRESSED)),
        (_, Compression::Bz2) => return Err(refused("dataset.compression", "bz2", NOT_COMPRESSED)),
        (_, Compression::Snappy) => return Err(refused("dataset.compression", "snappy", NOT_COMPRESSED)),
        (_, Compression::Zip) => return Err(refused("dataset.compression", "zip", NOT_COMPRESSED)),
        (_, Compression::Xz) => return Err(refused("dataset.compression", "xz", NOT_COMPRESSED)),
        (Format::Npy, _) => Box::new(npy::Npy { element }),
        (Format::Tfrecord, _) => Box::new(tfrecord::TfRecord),
        (Format::Jpeg, _) => Box::new(image::Jpeg),
        (Format::Png, _) => Box::new(image::Png { element }),
        (Format::IndexedBinary | Format::MmapIndexedBinary, _) => Box::new(indexed::Indexed),
        (Format::Synthetic, _) => Box::new(synthetic::Synthetic),
    })
}

fn parquet(dataset: &Dataset, codec: Codec) -> Box<dyn Form> {
    Box::new(parquet::Parquet { dataset: dataset.clone(), codec, lengths: Mutex::default() })
}

#[cfg(not(feature = "hdf5"))]
const NO_HDF5: &str = "this build has no HDF5: build with --features hdf5";
const NOT_COMPRESSED: &str =
    "files of this format are not made with this compression (npz: zip; csv: gzip; parquet: gzip, snappy)";

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
