//! Which features of a source's records hold image and label, decided by its first records.

use forebay_format::example::{KeyNames, Keys};
use forebay_format::tfrecord::parse_frame;
use forebay_format::{Error, MAX_SAMPLE_SIZE};
use forebay_storage::{Buffer, Storage};

use super::Index;

/// By the first records of an index, as many as it takes. Those that are damaged, too large or cannot be read are passed
/// over: what they hold is found when they are read for use.
pub(super) fn of_index(storage: &dyn Storage, index: &Index, given: &KeyNames) -> Result<Keys, Error> {
    let read = |place: &super::Place| {
        let mut buffer = Buffer::default();
        let object = storage.open(&index.files[place.file as usize]).ok()?;
        object.read_at(place.offset, place.len as usize, &mut buffer).ok()?;
        parse_frame(buffer.as_slice(), place.offset).ok().map(|record| record.payload.to_vec())
    };
    Keys::decide_first(index.places.iter().filter(|place| place.len <= MAX_SAMPLE_SIZE).filter_map(read), given)
}
