//! Which files a dataset has and how big their samples are: a function of the workload alone.

use crate::spec::Dataset;

/// Which files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// Those to train on.
    Train,
    /// Those to evaluate on.
    Eval,
}

impl Part {
    /// The folder they lie in.
    pub fn folder(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Eval => "valid",
        }
    }
}

/// What one file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileShape {
    /// The shape of one of its samples; two sides of a square that vary, or `record_dims`.
    pub dims: Vec<u64>,
    /// How many samples.
    pub n_samples: u64,
    /// Bytes of one sample's values.
    pub sample_bytes: u64,
}

impl Dataset {
    /// How many files a part has.
    pub fn n_files(&self, part: Part) -> u64 {
        match part {
            Part::Train => self.n_files_train,
            Part::Eval => self.n_files_eval,
        }
    }

    /// Where file `i` lies below the data folder: "train/03/img_003_of_168.npz".
    pub fn path_of(&self, part: Part, i: u64) -> String {
        let _ = (part, i);
        unimplemented!()
    }

    /// What file `i` holds: drawn from the seed and `i` alone, so that every rank and machine knows it.
    pub fn shape_of(&self, part: Part, i: u64) -> FileShape {
        let _ = (part, i);
        unimplemented!()
    }

    /// Bytes of the values of all samples of a part, before containers and compression.
    pub fn bytes(&self, part: Part) -> u64 {
        (0..self.n_files(part)).map(|i| self.shape_of(part, i)).map(|shape| shape.n_samples * shape.sample_bytes).sum()
    }
}
