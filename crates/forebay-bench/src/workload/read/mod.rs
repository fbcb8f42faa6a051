//! Getting samples: the readers of every format, each of which opens, reads and decodes for itself, in pieces, so that a file
//! of any size takes a small buffer.

use std::path::PathBuf;
use std::sync::Arc;

use forebay_pipeline::Batches;
use forebay_storage::Storage;
use forebay_workload::{Part, Workload};

use super::run::Error;

/// The samples of one part of the data, ready to be dealt out to accelerators.
pub(crate) struct Samples {
    _private: (),
}

/// What a set of samples is read with.
pub(crate) struct Access {
    /// What it is read through: counted, shaped.
    pub(crate) storage: Arc<dyn Storage>,
    /// The folder that holds `train` and `valid`.
    pub(crate) data: PathBuf,
    /// Whether checksums are verified.
    pub(crate) verify: bool,
    /// Where samples that were read are noted: called by readers with the file's number, the sample within it, and the bytes moved for it.
    pub(crate) log: Option<Arc<dyn Fn(u32, u32, u64) + Send + Sync>>,
}

impl Samples {
    /// Lists the part's files, checks that all are there and what they hold, and indexes them.
    pub(crate) fn open(workload: &Workload, part: Part, access: Access) -> Result<Self, Error> {
        let _ = (workload, part, access);
        unimplemented!()
    }

    /// How many there are.
    pub(crate) fn n_samples(&self) -> u64 {
        unimplemented!()
    }

    /// Bytes of a sample in a batch.
    pub(crate) fn sample_bytes(&self) -> usize {
        unimplemented!()
    }

    /// The batches of one accelerator (of so many) in one epoch (from 1): its share of the epoch's order, whole batches, `n_steps` of them. `seed` is what the epoch's order is
    /// drawn from.
    pub(crate) fn batches(&self, accelerator: u64, of: u64, seed: u64, n_steps: u64) -> Result<Batches, Error> {
        let _ = (accelerator, of, seed, n_steps);
        unimplemented!()
    }
}
