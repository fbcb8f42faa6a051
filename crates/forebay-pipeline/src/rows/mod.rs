//! Rows of arrays as samples: npy, npz, HDF5 and Parquet, and the sequences of token files.
//!
//! An array's first side counts samples, so the place of a row is a multiplication and an index takes no memory. Values that
//! lie in the file as they are wanted are read row by row; compressed ones are decoded in the pieces that they were
//! compressed in (an npz member, a layer of HDF5 chunks, a Parquet row group), which are kept for their neighbours.
//!
//! The fields of a row lie one after the other in its slot. A batch of one field is thus an array without gaps; of several
//! fields, each is a strided view of the batch.

mod arrays;
#[cfg(feature = "hdf5")]
mod hdf5;
mod npy;
mod npz;
mod packed;
mod parquet;
mod reader;
mod tokens;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_storage::Storage;
use forebay_units::{Bytes, Element, PathText};

use crate::error::Error;
use crate::exec::recent::Recent;
use crate::field::Field;
use crate::map::{Map, MapWorker};
use crate::source::Source;
use crate::source::streamed::{self, Streamed};
use arrays::{Arrays, Lane};
use reader::RowReader;

pub use tokens::TokenFiles;

/// Bytes of decoded pieces that are kept for their neighbours; at least four pieces are.
const KEPT: Bytes = Bytes(512 << 20);

/// Opened arrays with the same number of rows. A [`Map`] that reads by itself: use it with [`source`](Self::source).
#[derive(Clone)]
pub struct Rows(Arc<Table>);

pub(crate) struct Table {
    storage: Arc<dyn Storage>,
    arrays: Arrays,
    fields: Vec<Field>,
    slot_bytes: usize,
    /// Rows that stay together in orders of groups; 0 for the rows of a part of a file.
    group: u64,
    decoded: Recent<Vec<u8>>,
}

impl Rows {
    /// Opens files of arrays, or the files of a folder: the rows of all of them, in the order given (in a folder, by name).
    /// Takes the named fields, or all. The one array of an npy file is named `data`.
    ///
    /// # Errors
    /// When a file cannot be read, is of no known kind, lacks a field, or its arrays differ in rows or from those of the
    /// other files.
    pub fn open(storage: Arc<dyn Storage>, paths: &[PathBuf], names: Option<&[String]>) -> Result<Self, Error> {
        let arrays = Arrays::open(storage.as_ref(), paths, names)?;
        Self::new(storage, arrays, None, 0)
    }

    /// Several arrays side by side, each from its own files, such as `x` and `label`.
    ///
    /// # Errors
    /// As for [`open`](Self::open); also when files hold several fields, or the numbers of rows differ.
    pub fn side_by_side(storage: Arc<dyn Storage>, columns: &[(String, Vec<PathBuf>)]) -> Result<Self, Error> {
        let mut all = Arrays::default();
        for (name, paths) in columns {
            all.join(name, Arrays::open(storage.as_ref(), paths, None)?)?;
        }
        Self::new(storage, all, None, 0)
    }

    /// The sequences of token files.
    ///
    /// # Errors
    /// When a file cannot be read, or there is no whole sequence.
    pub fn tokens(storage: Arc<dyn Storage>, paths: &[PathBuf], of: &TokenFiles) -> Result<Self, Error> {
        let arrays = tokens::open(storage.as_ref(), paths, of)?;
        Self::new(storage, arrays, Some(of.element), of.block)
    }

    fn new(storage: Arc<dyn Storage>, arrays: Arrays, element: Option<Element>, group: u64) -> Result<Self, Error> {
        let what = || arrays.files.first().map_or_else(String::new, |file| file.escaped().into_owned());
        if arrays.lanes.is_empty() || arrays.n_rows() == 0 {
            return Err(Error::Empty { what: what() });
        }
        let lane = |lane: &Lane| (lane.name.clone(), element.unwrap_or(lane.element), lane.shape.clone());
        let (fields, slot_bytes) = Field::lay_out(arrays.lanes.iter().map(lane).collect())
            .map_err(|reason| Error::Source { what: format!("{}: {reason}", what()), source: None })?;
        let largest = arrays.pieces.iter().map(|piece| piece.n_bytes).max().unwrap_or(0).max(1);
        let decoded = Recent::new((KEPT.0 / largest).clamp(4, 4096) as usize);
        Ok(Self(Arc::new(Table { storage, arrays, fields, slot_bytes, group, decoded })))
    }

    /// What a row consists of, in the order of its slot.
    pub fn fields(&self) -> &[Field] {
        &self.0.fields
    }

    pub fn n_rows(&self) -> u64 {
        self.0.arrays.n_rows()
    }

    /// Whether any row can be read alone; false if values have to be decoded together with others.
    pub fn is_seekable(&self) -> bool {
        self.0.arrays.pieces.is_empty()
    }

    /// The rows as samples.
    ///
    /// # Errors
    /// When there are more than a source can have.
    pub fn source(&self) -> Result<Source, Error> {
        let n_slots = u32::try_from(self.n_rows()).map_err(|_| {
            let reason = format!("at most 2^32 samples are supported, found {}", self.n_rows());
            Error::Plan { stage: "source", reason }
        })?;
        let (named, grouped) = (self.clone(), self.clone());
        let streamed = Streamed {
            n_slots,
            samples_per_slot: 1,
            name_of: Box::new(move |row| named.0.name_of(row)),
            group_of: Box::new(move |row| grouped.0.group_of(row)),
        };
        Ok(streamed::of_files(self.0.arrays.files.clone(), streamed))
    }
}

impl Table {
    fn name_of(&self, row: u32) -> String {
        let (number, part) = self.arrays.lanes[0].part_of(u64::from(row));
        let path = &self.arrays.files[part.file as usize];
        let first = self.arrays.first_row_of_file(number, part.file);
        format!("{} row {}", path.escaped(), u64::from(row) - first)
    }

    fn group_of(&self, row: u32) -> u32 {
        match u64::from(row).checked_div(self.group) {
            Some(block) => block as u32,
            None => self.arrays.lanes[0].part_of(u64::from(row)).0 as u32,
        }
    }

    fn path(&self, file: u32) -> &Path {
        &self.arrays.files[file as usize]
    }

    fn lanes(&self) -> impl Iterator<Item = (&Field, &Lane)> {
        self.fields.iter().zip(&self.arrays.lanes)
    }
}

impl Map for Rows {
    fn sample_bytes(&self) -> usize {
        self.0.slot_bytes
    }

    fn worker(&self) -> Box<dyn MapWorker> {
        Box::new(RowReader::new(Arc::clone(&self.0)))
    }

    fn description(&self) -> Option<String> {
        Some(format!("rows {:?}", self.0.fields))
    }
}

impl std::fmt::Debug for Rows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rows").field("fields", &self.0.fields).field("n_rows", &self.n_rows()).finish_non_exhaustive()
    }
}
