//! Where the rows of each field lie: in which file, from which offset, how far apart.

use std::path::{Path, PathBuf};

use forebay_storage::{Buffer, Storage};
use forebay_units::{Element, PathText};

use super::packed::Packed;
use super::{npy, npz, parquet};
use crate::error::Error;

/// Endings of files that a folder's arrays are looked for in.
const ENDINGS: [&str; 6] = ["npy", "npz", "parquet", "h5", "hdf5", "hdf"];

/// Consecutive rows of a field.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) first_row: u64,
    pub(super) n_rows: u64,
    pub(super) file: u32,
    /// The piece that has to be decoded first, if there is one; offsets are then within its bytes.
    pub(super) piece: Option<u32>,
    pub(super) offset: u64,
    /// Bytes from one row to the next.
    pub(super) stride: u64,
}

/// A field of all rows.
#[derive(Debug, Clone)]
pub(super) struct Lane {
    pub(super) name: String,
    /// The type of its numbers in the file.
    pub(super) element: Element,
    pub(super) shape: Vec<u64>,
    pub(super) parts: Vec<Part>,
}

impl Lane {
    pub(super) fn row_bytes(&self) -> u64 {
        self.shape.iter().product::<u64>().saturating_mul(self.element.bytes())
    }

    pub(super) fn n_rows(&self) -> u64 {
        self.parts.last().map_or(0, |part| part.first_row + part.n_rows)
    }

    /// The part with a row, and its number.
    pub(super) fn part_of(&self, row: u64) -> (usize, &Part) {
        let number = self.parts.partition_point(|part| part.first_row + part.n_rows <= row);
        (number, &self.parts[number])
    }
}

/// Bytes that can only be decoded together.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub(super) file: u32,
    pub(super) packed: Packed,
    /// Their number once decoded.
    pub(super) n_bytes: u64,
}

/// Files and what is in them.
#[derive(Debug, Clone, Default)]
pub(super) struct Arrays {
    pub(super) files: Vec<PathBuf>,
    pub(super) lanes: Vec<Lane>,
    pub(super) pieces: Vec<Piece>,
}

pub(super) fn refused(path: &Path, what: impl std::fmt::Display) -> Error {
    Error::Source { what: format!("{}: {what}", path.escaped()), source: None }
}

pub(super) fn damaged(path: &Path, error: forebay_format::Error) -> Error {
    Error::Source { what: path.escaped().into_owned(), source: Some(Box::new(error)) }
}

/// The given files, or those of the one folder with these endings, by name.
pub(super) fn files_of(storage: &dyn Storage, paths: &[PathBuf], endings: &[&str]) -> Result<Vec<PathBuf>, Error> {
    let [one] = paths else { return Ok(paths.to_vec()) };
    match storage.size(one) {
        Ok(_) => return Ok(paths.to_vec()),
        Err(error) if error.is_final() => return Err(error.into()),
        Err(_) => {}
    }
    let listed = storage.list(one)?.into_iter().map(|entry| entry.path);
    let fits = |path: &PathBuf| {
        let ending = path.extension().unwrap_or_default().to_ascii_lowercase();
        endings.iter().any(|known| ending == *known)
    };
    let found: Vec<PathBuf> = listed.filter(fits).collect();
    if found.is_empty() {
        return Err(refused(one, format_args!("no files with the ending {}", endings.join(", "))));
    }
    Ok(found)
}

impl Arrays {
    pub(super) fn open(storage: &dyn Storage, paths: &[PathBuf], names: Option<&[String]>) -> Result<Self, Error> {
        let mut all = Self::default();
        for path in files_of(storage, paths, &ENDINGS)? {
            let found = Self::of_file(storage, &path, names)?;
            all.append(found)?;
        }
        Ok(all)
    }

    fn of_file(storage: &dyn Storage, path: &Path, names: Option<&[String]>) -> Result<Self, Error> {
        let object = storage.open(path)?;
        let mut head = Buffer::default();
        object.read_at(0, object.len()?.min(8) as usize, &mut head)?;
        let found = match head.as_slice() {
            [0x93, b'N', b'U', b'M', ..] => npy::open(object.as_ref(), path, names)?,
            [b'P', b'K', 3 | 5, 4 | 6, ..] => npz::open(object.as_ref(), path, names)?,
            [b'P', b'A', b'R', b'1', ..] => parquet::open(object.as_ref(), path, names)?,
            [0x89, b'H', b'D', b'F', ..] => of_hdf5(path, names)?,
            _ => return Err(refused(path, "not an npy, npz, HDF5 or Parquet file")),
        };
        let n_rows = found.n_rows();
        if let Some(odd) = found.lanes.iter().find(|lane| lane.n_rows() != n_rows) {
            let (first, rows) = (&found.lanes[0].name, odd.n_rows());
            return Err(refused(path, format_args!("{first} has {n_rows} rows and {} has {rows}", odd.name)));
        }
        Ok(found)
    }

    pub(super) fn n_rows(&self) -> u64 {
        self.lanes.first().map_or(0, Lane::n_rows)
    }

    /// The row that a file's first one is, from the number of a part in the file.
    pub(super) fn first_row_of_file(&self, part: usize, file: u32) -> u64 {
        let parts = &self.lanes[0].parts[..=part];
        parts.iter().rev().take_while(|part| part.file == file).last().map_or(0, |part| part.first_row)
    }

    /// More rows of the same fields.
    fn append(&mut self, other: Self) -> Result<(), Error> {
        if self.lanes.is_empty() {
            *self = other;
            return Ok(());
        }
        let path = other.files[0].clone();
        let describe = |arrays: &Self| {
            let one = |lane: &Lane| format!("{} {:?} of {}", lane.name, lane.shape, lane.element.name());
            arrays.lanes.iter().map(one).collect::<Vec<_>>().join(", ")
        };
        let (here, there) = (describe(&other), describe(self));
        if here != there {
            let first = self.files[0].escaped().into_owned();
            return Err(refused(&path, format_args!("rows of {here}, but {first} has rows of {there}")));
        }
        let n_rows = self.n_rows();
        let lanes = self.take_over(other);
        for (lane, more) in self.lanes.iter_mut().zip(lanes) {
            lane.parts.extend(more.parts.into_iter().map(|part| Part { first_row: part.first_row + n_rows, ..part }));
        }
        Ok(())
    }

    /// Another field of the same rows, under a new name.
    pub(super) fn join(&mut self, name: &str, other: Self) -> Result<(), Error> {
        let path = other.files[0].clone();
        if other.lanes.len() != 1 {
            let names: Vec<&str> = other.lanes.iter().map(|lane| lane.name.as_str()).collect();
            return Err(refused(&path, format_args!("{name} is one array, found {}", names.join(", "))));
        }
        let (wanted, found) = (self.n_rows(), other.n_rows());
        if let Some(first) = self.lanes.first()
            && wanted != found
        {
            return Err(refused(&path, format_args!("{name} has {found} rows and {} has {wanted}", first.name)));
        }
        let lanes = self.take_over(other);
        self.lanes.extend(lanes.into_iter().map(|lane| Lane { name: name.to_owned(), ..lane }));
        Ok(())
    }

    /// Takes files and pieces; returns the lanes with their numbers here.
    fn take_over(&mut self, other: Self) -> Vec<Lane> {
        let (first_file, first_piece) = (self.files.len() as u32, self.pieces.len() as u32);
        self.files.extend(other.files);
        let moved = other.pieces.into_iter().map(|piece| Piece { file: piece.file + first_file, ..piece });
        self.pieces.extend(moved);
        let mut lanes = other.lanes;
        for part in lanes.iter_mut().flat_map(|lane| &mut lane.parts) {
            part.file += first_file;
            part.piece = part.piece.map(|piece| piece + first_piece);
        }
        lanes
    }
}

#[cfg(feature = "hdf5")]
use super::hdf5::open as of_hdf5;

#[cfg(not(feature = "hdf5"))]
fn of_hdf5(path: &Path, _: Option<&[String]>) -> Result<Arrays, Error> {
    Err(refused(path, "this build cannot read HDF5: build it with `--features hdf5`"))
}

/// The places of the wanted names among those that are there; all of them without a wish.
pub(super) fn choose(path: &Path, there: &[String], wanted: Option<&[String]>) -> Result<Vec<usize>, Error> {
    let Some(wanted) = wanted else { return Ok((0..there.len()).collect()) };
    let place = |name: &String| {
        there
            .iter()
            .position(|known| known == name)
            .ok_or_else(|| refused(path, format_args!("there is no array {name}, only {}", there.join(", "))))
    };
    wanted.iter().map(place).collect()
}
