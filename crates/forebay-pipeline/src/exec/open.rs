//! The files that a reading thread keeps open.

use std::path::Path;

use forebay_storage::{Object, Storage};

use super::activity::{Activity, Stopwatch};
use crate::error::SampleError;

/// Open shards per reading thread: more than any sensible interleave, far below the process limit on open files.
const OPEN_SHARDS: usize = 32;

/// Objects by the number of their file; the first one opened makes room for a new one.
#[derive(Default)]
pub(crate) struct OpenShards(Vec<(u32, Box<dyn Object>)>);

impl OpenShards {
    /// The object of a file, opened if it is not.
    pub(crate) fn get(
        &mut self,
        file: u32,
        path: &Path,
        storage: &dyn Storage,
        watch: &mut Stopwatch,
    ) -> Result<&dyn Object, SampleError> {
        if let Some(at) = self.0.iter().position(|(known, _)| *known == file) {
            return Ok(self.0[at].1.as_ref());
        }
        watch.enter(Activity::Opening);
        let object = storage.open(path)?;
        if self.0.len() == OPEN_SHARDS {
            self.0.remove(0);
        }
        self.0.push((file, object));
        Ok(self.0.last().expect("pushed just above").1.as_ref())
    }
}
