//! Decoding the pieces whose values do not lie in the file as they are.

use std::sync::Arc;

use forebay_format::npz::read::{Content, Entry};
use forebay_format::parquet::{Footer, GroupReader};
use forebay_storage::{Buffer, Object};

use super::arrays::Piece;
use crate::error::SampleError;
use crate::exec::activity::{Activity, Stopwatch};

/// Bytes of a Parquet column that are asked for at a time.
const COLUMN_PIECE: usize = 1 << 20;

/// How a piece is packed.
#[derive(Debug, Clone)]
pub(super) enum Packed {
    /// A deflated member of an npz archive, whose content begins at `start`.
    Member { entry: Entry, start: u64 },
    /// A row group, of which the footer's columns are wanted.
    Group { footer: Arc<Footer>, number: usize },
    /// The HDF5 chunks that a run of rows is spread over.
    #[cfg(feature = "hdf5")]
    Layer(super::hdf5::Layer),
}

/// Bytes that were read, beside the outcome.
pub(super) type Moved = u64;

/// Reads and decodes a piece; checksums are verified where there are any.
pub(super) fn decode(
    piece: &Piece,
    object: &dyn Object,
    watch: &mut Stopwatch,
    moved: &mut Moved,
) -> Result<Vec<u8>, SampleError> {
    let n_bytes = usize::try_from(piece.n_bytes).unwrap_or(usize::MAX);
    let mut buffer = Buffer::default();
    match &piece.packed {
        Packed::Member { entry, start } => {
            watch.enter(Activity::Reading);
            object.read_at(*start, entry.packed_bytes as usize, &mut buffer)?;
            *moved += entry.packed_bytes;
            watch.enter(Activity::Decoding);
            let (mut out, mut content) = (Vec::new(), Content::new(entry, true));
            content.feed(buffer.as_slice(), |bytes| {
                out.extend_from_slice(bytes);
                Ok(())
            })?;
            content.finish()?;
            Ok(out)
        }
        Packed::Group { footer, number } => {
            watch.enter(Activity::Decoding);
            let mut out = Vec::new();
            let too_large = |_| SampleError::Refused(format!("no memory for a row group of {n_bytes} bytes"));
            out.try_reserve_exact(n_bytes).map_err(too_large)?;
            out.resize(n_bytes, 0);
            let mut fetch = |offset: u64, len: usize, into: &mut Vec<u8>| {
                watch.enter(Activity::Reading);
                object.read_at(offset, len, &mut buffer)?;
                *moved += len as u64;
                into.extend_from_slice(buffer.as_slice());
                watch.enter(Activity::Decoding);
                Ok::<(), SampleError>(())
            };
            GroupReader::new(footer, *number, COLUMN_PIECE, true).read(&mut out, &mut fetch)?;
            Ok(out)
        }
        #[cfg(feature = "hdf5")]
        Packed::Layer(layer) => layer.decode(n_bytes, object, watch, moved),
    }
}
