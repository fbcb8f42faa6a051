//! Which features of a source's records hold image and label, decided by its first records.

use forebay_format::Error;
use forebay_format::example::{KeyNames, Keys};
use forebay_format::tfrecord::{Records, parse_frame};
use forebay_storage::{Buffer, Storage};

use super::Index;

/// A first record longer than this decides nothing: what it holds is found when it is read for use.
const LONGEST: u64 = 256 << 20;

/// By the records of an expanded shard.
pub(super) fn of_bytes(bytes: &[u8], given: &KeyNames) -> Result<Keys, Error> {
    Keys::decide_first(Records::new(bytes).flatten().map(|record| record.payload), given)
}

/// By the first records of an index, as many as it takes. Those that are damaged or cannot be read are passed over.
pub(super) fn of_index(storage: &dyn Storage, index: &Index, given: &KeyNames) -> Result<Keys, Error> {
    let read = |place: &super::Place| {
        let mut buffer = Buffer::default();
        let object = storage.open(&index.files[place.file as usize]).ok()?;
        object.read_at(place.offset, place.len as usize, &mut buffer).ok()?;
        parse_frame(buffer.as_slice(), place.offset).ok().map(|record| record.payload.to_vec())
    };
    Keys::decide_first(index.places.iter().filter(|place| place.len <= LONGEST).filter_map(read), given)
}
