//! Choosing the features that hold image and label, by a source's first records.

use forebay_format::example::{KeyNames, Keys};
use forebay_format::tfrecord::parse_frame;
use forebay_format::{Error, MAX_SAMPLE_SIZE};
use forebay_storage::{Buffer, Storage};

use super::Index;

/// Examines as many of an index's first records as needed. Records that are damaged, too large or unreadable are
/// skipped; their errors appear when they are read for use.
pub(super) fn of_index(storage: &dyn Storage, index: &Index, given: &KeyNames) -> Result<Keys, Error> {
    let read = |place: &super::Place| {
        let mut buffer = Buffer::default();
        let object = storage.open(&index.files[place.file as usize]).ok()?;
        object.read_at(place.offset, place.len as usize, &mut buffer).ok()?;
        parse_frame(buffer.as_slice(), place.offset).ok().map(|record| record.payload.to_vec())
    };
    Keys::decide_first(index.places.iter().filter(|place| place.len <= MAX_SAMPLE_SIZE).filter_map(read), given)
}
