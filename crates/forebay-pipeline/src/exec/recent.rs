//! The most recently used shards, or parts of shards, that are in memory completely.

use std::sync::{Arc, Mutex, OnceLock};

use crate::error::SampleError;

/// A value in memory, or why it could not be made.
pub(crate) type Loaded<T> = OnceLock<Result<Arc<T>, SampleError>>;

/// The values that were asked for last, by number.
pub(crate) struct Recent<T> {
    kept: Mutex<Vec<(u32, Arc<Loaded<T>>)>>,
    most: usize,
}

impl<T> Recent<T> {
    /// Keeps at most `most` values.
    pub(crate) fn new(most: usize) -> Self {
        Self { kept: Mutex::new(Vec::new()), most: most.max(1) }
    }

    /// Returns a value, making it if needed: once, however many threads want it. Different values are made in parallel.
    pub(crate) fn get(
        &self,
        number: u32,
        make: impl FnOnce() -> Result<T, SampleError>,
    ) -> Result<Arc<T>, SampleError> {
        let place = self.place_of(number);
        place.get_or_init(|| make().map(Arc::new)).clone()
    }

    fn place_of(&self, number: u32) -> Arc<Loaded<T>> {
        let mut kept = self.kept.lock().expect("no holder of this lock panics");
        let found = match kept.iter().position(|(known, _)| *known == number) {
            Some(at) => kept.remove(at),
            None if kept.len() == self.most => {
                kept.remove(0);
                (number, Arc::default())
            }
            None => (number, Arc::default()),
        };
        let place = Arc::clone(&found.1);
        kept.push(found);
        place
    }
}
