//! A thread's reader of rows.

use std::sync::Arc;

use forebay_storage::Buffer;

use super::arrays::{Lane, Part};
use super::{Table, packed, tokens};
use crate::error::SampleError;
use crate::exec::activity::{Activity, Stopwatch};
use crate::exec::open::OpenShards;
use crate::field::Field;
use crate::map::{MapWorker, Sample};

pub(super) struct RowReader {
    table: Arc<Table>,
    open: OpenShards,
    buffer: Buffer,
    moved: u64,
}

impl RowReader {
    pub(super) fn new(table: Arc<Table>) -> Self {
        Self { table, open: OpenShards::default(), buffer: Buffer::default(), moved: 0 }
    }

    fn read(&mut self, part: &Part, start: u64, lane: &Lane, watch: &mut Stopwatch) -> Result<&[u8], SampleError> {
        let (table, len) = (&self.table, lane.row_bytes() as usize);
        let object = self.open.get(part.file, table.path(part.file), table.storage.as_ref(), watch)?;
        watch.enter(Activity::Reading);
        let bytes = object.lend(start, len, &mut self.buffer)?;
        self.moved += object.moved_for(start, len as u64);
        Ok(bytes)
    }

    fn decoded(&mut self, piece: u32, watch: &mut Stopwatch) -> Result<Arc<Vec<u8>>, SampleError> {
        let (table, open, moved) = (Arc::clone(&self.table), &mut self.open, &mut self.moved);
        // Another thread may be decoding it.
        watch.enter(Activity::WaitingForBytes);
        table.decoded.get(piece, || {
            let piece = &table.arrays.pieces[piece as usize];
            let object = open.get(piece.file, table.path(piece.file), table.storage.as_ref(), watch)?;
            packed::decode(piece, object, watch, moved)
        })
    }
}

fn put(field: &Field, lane: &Lane, bytes: &[u8], out: &mut [u8]) -> Result<(), SampleError> {
    if field.element == lane.element {
        out.copy_from_slice(bytes);
        return Ok(());
    }
    tokens::convert(lane.element, field.element, bytes, out)
}

impl MapWorker for RowReader {
    fn map(&mut self, sample: Sample<'_>, slot: &mut [u8], watch: &mut Stopwatch) -> Result<(), SampleError> {
        let (table, row) = (Arc::clone(&self.table), u64::from(sample.index));
        for (field, lane) in table.lanes() {
            let (_, part) = lane.part_of(row);
            let start = part.offset + (row - part.first_row) * part.stride;
            let out = &mut slot[field.offset..][..field.n_bytes()];
            match part.piece {
                None => {
                    let bytes = self.read(part, start, lane, watch)?;
                    put(field, lane, bytes, out)?;
                }
                Some(piece) => {
                    let decoded = self.decoded(piece, watch)?;
                    watch.enter(Activity::Decoding);
                    let range = start as usize..start as usize + lane.row_bytes() as usize;
                    let bytes = decoded
                        .get(range)
                        .ok_or_else(|| SampleError::Refused(format!("{} ends before this row", field.name)))?;
                    put(field, lane, bytes, out)?;
                }
            }
        }
        Ok(())
    }

    fn take_moved(&mut self) -> u64 {
        std::mem::take(&mut self.moved)
    }
}
