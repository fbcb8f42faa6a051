//! The rows of an HDF5 file's datasets: contiguous ones lie in the file as they are, chunked ones are decoded by layers.
//!
//! The HDF5 library reads only the metadata, when the file is opened; values are read like those of any other file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_format::hdf5::{Chunks, Index, Lies};
use forebay_storage::{Buffer, Object, is_url};

use super::arrays::{Arrays, Lane, Part, Piece, damaged, refused};
use super::npy::at_start;
use super::packed::{Moved, Packed};
use crate::error::{Error, SampleError};
use crate::exec::activity::{Activity, Stopwatch};

/// The rows of a dataset that the same chunks hold.
#[derive(Debug, Clone)]
pub(super) struct Layer {
    chunks: Arc<Chunks>,
    first_row: u64,
    n_rows: u64,
}

pub(super) fn open(path: &Path, names: Option<&[String]>) -> Result<Arrays, Error> {
    if is_url(path) {
        return Err(refused(path, "the HDF5 library reads local files only"));
    }
    let mut arrays = Arrays { files: vec![PathBuf::from(path)], ..Arrays::default() };
    for (name, element, stored) in Index::named(path, names).map_err(|error| damaged(path, error))? {
        let Some((n_rows, shape)) = stored.shape.split_first() else {
            return Err(refused(path, format_args!("{name} is a single number, not an array of rows")));
        };
        let mut lane = Lane { name, element, shape: shape.to_vec(), parts: Vec::new() };
        let (n_rows, stride) = (*n_rows, lane.row_bytes());
        match stored.lies {
            Lies::Contiguous(offset) => lane.parts.push(Part { n_rows, offset, stride, ..at_start() }),
            Lies::Chunked(chunks) => {
                let chunks = Arc::new(chunks);
                let side = chunks.sides[0];
                for first_row in (0..n_rows).step_by(usize::try_from(side).unwrap_or(usize::MAX)) {
                    let n_rows = side.min(n_rows - first_row);
                    let layer = Layer { chunks: Arc::clone(&chunks), first_row, n_rows };
                    let piece = Some(arrays.pieces.len() as u32);
                    let n_bytes = n_rows.saturating_mul(stride);
                    arrays.pieces.push(Piece { file: 0, packed: Packed::Layer(layer), n_bytes });
                    lane.parts.push(Part { first_row, n_rows, piece, stride, ..at_start() });
                }
            }
            Lies::Nowhere => return Err(refused(path, format_args!("{} was never written", lane.name))),
        }
        arrays.lanes.push(lane);
    }
    Ok(arrays)
}

impl Layer {
    /// Its rows without gaps. Chunks that were never written hold zeros.
    pub(super) fn decode(
        &self,
        n_bytes: usize,
        object: &dyn Object,
        watch: &mut Stopwatch,
        moved: &mut Moved,
    ) -> Result<Vec<u8>, SampleError> {
        let (mut out, mut buffer, mut values) = (Vec::new(), Buffer::default(), Vec::new());
        let too_large = |_| SampleError::Refused(format!("no memory for HDF5 chunks of {n_bytes} bytes"));
        out.try_reserve_exact(n_bytes).map_err(too_large)?;
        out.resize(n_bytes, 0);
        let row_bytes = n_bytes / self.n_rows.max(1) as usize;
        for chunk in self.chunks.of_sample(self.first_row) {
            watch.enter(Activity::Reading);
            object.read_at(chunk.offset, chunk.len as usize, &mut buffer)?;
            *moved += chunk.len;
            watch.enter(Activity::Decoding);
            self.chunks.unfilter(chunk, buffer.as_slice(), &mut values)?;
            for (row, place) in (self.first_row..).zip(out.chunks_exact_mut(row_bytes.max(1))) {
                self.chunks.place(chunk, &values, row, place);
            }
        }
        Ok(out)
    }
}
