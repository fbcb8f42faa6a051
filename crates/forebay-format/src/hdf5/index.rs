//! The places of a file's samples, as the HDF5 library reports them.

use std::collections::HashMap;
use std::path::Path;

use hdf5_metno::dataset::Layout;
use hdf5_metno::datatype::ByteOrder;
use hdf5_metno::filters::Filter as Applied;
use hdf5_metno::types::TypeDescriptor;
use hdf5_metno::{Dataset, File};

use super::filter::{self, Filter};
use crate::{Element, Error};

/// The filter number of h5py's LZF, as registered with the HDF Group.
const LZF: i32 = 32000;
/// A larger chunk is refused, because a chunk is held in memory.
const MAX_CHUNK_BYTES: u64 = 1 << 30;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Index {
    /// The datasets that a sample is spread over, in order.
    pub sets: Vec<Stored>,
}

/// A dataset whose first side counts samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Its sides, the first of which counts samples.
    pub shape: Vec<u64>,
    pub value_bytes: usize,
    pub lies: Lies,
}

/// Where the values of a dataset are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lies {
    /// In one piece from this offset on.
    Contiguous(u64),
    Chunked(Chunks),
    /// Nowhere: nothing was ever written, so all values are 0.
    Nowhere,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunks {
    /// The sides of a chunk, one for each of the dataset.
    pub sides: Vec<u64>,
    pub filters: Vec<Filter>,
    shape: Vec<u64>,
    value_bytes: usize,
    at: HashMap<Vec<u64>, Chunk>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Its first value's place along every side.
    pub corner: Vec<u64>,
    /// Offset in the file.
    pub offset: u64,
    /// Bytes in the file, after filters.
    pub len: u64,
    mask: u32,
}

impl Index {
    /// Asks the library for the places of a file's samples, in `records` or in `records_0`, `records_1`, ….
    ///
    /// # Errors
    /// When the file is not HDF5, lacks these datasets, has too few samples, or is of an unsupported kind.
    pub fn of_file(path: &Path, n_samples: u64) -> Result<Self, Error> {
        let library = |error: hdf5_metno::Error| failed(path, &error);
        let file = File::with_options().with_fapl(|plist| plist.evict_on_close(false)).open(path).map_err(library)?;
        let named = (0..).map(|i| format!("records_{i}")).take_while(|name| file.link_exists(name));
        let names: Vec<String> = if file.link_exists("records") { vec!["records".to_owned()] } else { named.collect() };
        if names.is_empty() {
            let found = file.member_names().unwrap_or_default().join(", ");
            return Err(Error::invalid("HDF5 file", 0, "a dataset `records` or `records_0`", found));
        }
        let stored = |name: &String| {
            let set = file.dataset(name).map_err(library)?;
            Stored::of(&set, path)?.counted(n_samples, name)
        };
        Ok(Self { sets: names.iter().map(stored).collect::<Result<_, _>>()? })
    }

    /// The datasets of a file by name (`x`, `group/x`), or all of its root, each with the type of its values.
    ///
    /// # Errors
    /// When the file is not HDF5, lacks a dataset, or one is of an unsupported kind.
    pub fn named(path: &Path, names: Option<&[String]>) -> Result<Vec<(String, Element, Stored)>, Error> {
        let library = |error: hdf5_metno::Error| failed(path, &error);
        let file = File::with_options().with_fapl(|plist| plist.evict_on_close(false)).open(path).map_err(library)?;
        let all = || file.datasets().map(|sets| sets.iter().map(|set| set.name()).collect());
        let names = names.map_or_else(all, |names| Ok(names.to_vec())).map_err(library)?;
        let named = |name: String| {
            let name = name.trim_start_matches('/').to_owned();
            if !file.link_exists(&name) {
                let found = file.member_names().unwrap_or_default().join(", ");
                return Err(Error::invalid("HDF5 file", 0, format!("a dataset {name:?}"), found));
            }
            let set = file.dataset(&name).map_err(library)?;
            let stored = Stored::of(&set, path)?;
            Ok((name, element_of(&set, path)?, stored))
        };
        names.into_iter().map(named).collect()
    }

    /// Bytes of a sample, of all its datasets.
    pub fn sample_bytes(&self) -> u64 {
        self.sets.iter().map(Stored::sample_bytes).sum()
    }
}

fn element_of(set: &Dataset, path: &Path) -> Result<Element, Error> {
    let descriptor = set.dtype().and_then(|dtype| dtype.to_descriptor()).map_err(|error| failed(path, &error))?;
    let (bytes, of) = match descriptor {
        TypeDescriptor::Unsigned(size) => (size as usize, [Element::U8, Element::U16, Element::U32, Element::U64]),
        TypeDescriptor::Integer(size) => (size as usize, [Element::I8, Element::I16, Element::I32, Element::I64]),
        // No float has one byte.
        TypeDescriptor::Float(size) => (size as usize, [Element::F16, Element::F16, Element::F32, Element::F64]),
        _ => (0, [Element::U8; 4]),
    };
    match bytes {
        1 | 2 | 4 | 8 => Ok(of[bytes.trailing_zeros() as usize]),
        _ => Err(Error::unsupported(format!("HDF5 dataset {} of values other than numbers", set.name()))),
    }
}

/// Converts an error of the library.
pub(super) fn failed(path: &Path, error: &hdf5_metno::Error) -> Error {
    Error::Library { library: "HDF5", path: path.to_owned(), what: error.to_string() }
}

impl Stored {
    fn of(set: &Dataset, path: &Path) -> Result<Self, Error> {
        let library = |error: hdf5_metno::Error| failed(path, &error);
        let dtype = set.dtype().map_err(library)?;
        let number = matches!(
            dtype.to_descriptor(),
            Ok(TypeDescriptor::Integer(_) | TypeDescriptor::Unsigned(_) | TypeDescriptor::Float(_))
        );
        if !number || dtype.byte_order() == ByteOrder::BigEndian {
            return Err(Error::unsupported(format!(
                "HDF5 dataset {} of values other than little-endian numbers",
                set.name()
            )));
        }
        let shape: Vec<u64> = set.shape().into_iter().map(|side| side as u64).collect();
        let value_bytes = dtype.size();
        let lies = match set.layout() {
            Layout::Contiguous => {
                if !set.dcpl().map_err(library)?.external().is_empty() {
                    return Err(refused(set, "external"));
                }
                set.offset().map_or(Lies::Nowhere, Lies::Contiguous)
            }
            Layout::Chunked => Lies::Chunked(Chunks::of(set, &shape, value_bytes, path)?),
            Layout::Compact => return Err(refused(set, "compact")),
            _ => return Err(refused(set, "virtual")),
        };
        Ok(Self { shape, value_bytes, lies })
    }

    /// The same with samples as its first side. A file of one sample may lack that side.
    fn counted(mut self, n_samples: u64, name: &str) -> Result<Self, Error> {
        if n_samples == 1 && self.shape.first() != Some(&1) {
            self.shape.insert(0, 1);
            if let Lies::Chunked(chunks) = &mut self.lies {
                chunks.add_side();
            }
        }
        if self.shape.first() != Some(&n_samples) {
            let found = format!("a dataset {name:?} of shape {:?}", self.shape);
            return Err(Error::invalid("HDF5 file", 0, format!("{n_samples} samples"), found));
        }
        Ok(self)
    }

    pub fn sample_bytes(&self) -> u64 {
        self.shape[1..].iter().product::<u64>() * self.value_bytes as u64
    }
}

fn refused(set: &Dataset, kind: &str) -> Error {
    Error::unsupported(format!(
        "HDF5 dataset {}, which is {kind}; only contiguous and chunked datasets are supported",
        set.name()
    ))
}

impl Chunks {
    fn of(set: &Dataset, shape: &[u64], value_bytes: usize, path: &Path) -> Result<Self, Error> {
        let sides: Vec<u64> = set.chunk().unwrap_or_default().into_iter().map(|side| side as u64).collect();
        let filters =
            set.filters().iter().map(|applied| filter_of(applied, value_bytes, set)).collect::<Result<_, _>>()?;
        let bytes = sides.iter().try_fold(value_bytes as u64, |bytes, side| bytes.checked_mul(*side));
        if sides.len() != shape.len() || sides.contains(&0) || bytes.is_none_or(|bytes| bytes > MAX_CHUNK_BYTES) {
            let found = bytes.unwrap_or(u64::MAX);
            return Err(Error::TooLarge { what: "HDF5 chunk".to_owned(), limit: MAX_CHUNK_BYTES, found });
        }
        let mut at = HashMap::new();
        set.chunks_visit(|info| {
            let corner = info.offset.to_vec();
            let chunk = Chunk { corner: corner.clone(), offset: info.addr, len: info.size, mask: info.filter_mask };
            at.insert(corner, chunk);
            0
        })
        .map_err(|error| failed(path, &error))?;
        Ok(Self { sides, filters, shape: shape.to_vec(), value_bytes, at })
    }

    fn add_side(&mut self) {
        self.sides.insert(0, 1);
        self.shape.insert(0, 1);
        let old = std::mem::take(&mut self.at);
        self.at = old
            .into_values()
            .map(|mut chunk| {
                chunk.corner.insert(0, 0);
                (chunk.corner.clone(), chunk)
            })
            .collect();
    }

    /// Bytes of a chunk before its filters.
    pub fn bytes(&self) -> usize {
        (self.sides.iter().product::<u64>() as usize) * self.value_bytes
    }

    pub fn all(&self) -> impl Iterator<Item = &Chunk> {
        self.at.values()
    }

    /// The chunks that hold values of a sample, in the order of its values. A chunk that was never written holds zeros and is
    /// left out.
    pub fn of_sample(&self, sample: u64) -> impl Iterator<Item = &Chunk> {
        let first = sample / self.sides[0] * self.sides[0];
        let counts: Vec<u64> =
            self.shape[1..].iter().zip(&self.sides[1..]).map(|(n, side)| n.div_ceil(*side)).collect();
        (0..counts.iter().product()).filter_map(move |number: u64| {
            let mut rest = number;
            let mut corner = vec![0; self.sides.len()];
            corner[0] = first;
            for (i, count) in counts.iter().enumerate().rev() {
                corner[i + 1] = rest % count * self.sides[i + 1];
                rest /= count;
            }
            self.at.get(&corner)
        })
    }

    /// Undoes a chunk's filters.
    ///
    /// # Errors
    /// When the bytes are damaged.
    pub fn unfilter(&self, chunk: &Chunk, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        filter::undo(&self.filters, chunk.mask, bytes, self.bytes(), chunk.offset, out)
    }

    /// Copies a chunk's part of a sample into the sample's first `out.len()` bytes.
    pub fn place(&self, chunk: &Chunk, values: &[u8], sample: u64, out: &mut [u8]) {
        let size = self.value_bytes;
        let Some(layer) = sample.checked_sub(chunk.corner[0]).filter(|layer| *layer < self.sides[0]) else { return };
        let (shape, sides, corner) = (&self.shape[1..], &self.sides[1..], &chunk.corner[1..]);
        let layer_bytes = sides.iter().product::<u64>() as usize * size;
        let values = &values[layer as usize * layer_bytes..][..layer_bytes];
        let Some(last) = sides.len().checked_sub(1) else {
            let n = size.min(out.len());
            out[..n].copy_from_slice(&values[..n]);
            return;
        };
        let run = (shape[last] - corner[last]).min(sides[last]) as usize * size;
        for (row, bytes) in (0_u64..).zip(values.chunks_exact(sides[last] as usize * size)) {
            let Some(at) = row_start(row, shape, sides, corner) else { continue };
            let Some(to) = out.get_mut(at as usize * size..) else { continue };
            let n = run.min(to.len());
            to[..n].copy_from_slice(&bytes[..n]);
        }
    }
}

/// Where row `row` of a chunk begins in the sample, in values; `None` if it is outside the sample.
fn row_start(row: u64, shape: &[u64], sides: &[u64], corner: &[u64]) -> Option<u64> {
    let last = sides.len() - 1;
    let mut rest = row;
    let (mut at, mut stride) = (corner[last], shape[last]);
    for i in (0..last).rev() {
        let place = corner[i] + rest % sides[i];
        if place >= shape[i] {
            return None;
        }
        at += place * stride;
        stride *= shape[i];
        rest /= sides[i];
    }
    Some(at)
}

fn filter_of(applied: &Applied, value_bytes: usize, set: &Dataset) -> Result<Filter, Error> {
    Ok(match applied {
        Applied::Deflate(_) => Filter::Deflate,
        Applied::Shuffle => Filter::Shuffle(value_bytes),
        Applied::Fletcher32 => Filter::Fletcher32,
        Applied::User(LZF, _) => Filter::Lzf,
        other => {
            let what = format!("HDF5 dataset {} filtered by {other:?}", set.name());
            return Err(Error::unsupported(format!(
                "{what}; only deflate, shuffle, LZF and Fletcher's checksum are supported"
            )));
        }
    })
}
