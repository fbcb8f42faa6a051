//! The labels of a batch.

use crate::error::{Error, Result};
use crate::room::{collected, filled};

#[derive(Debug, Clone, Copy)]
pub enum Labels<'a> {
    /// One class per sample, from 0.
    Index(&'a [i64]),
    /// One row per sample, one value per class: the weight of the class in the sample.
    OneHot(&'a [f32]),
}

impl Labels<'_> {
    pub(crate) fn targets(self, n_samples: usize, n_classes: usize) -> Result<Vec<f32>> {
        match self {
            Self::OneHot(rows) => {
                Error::check_length("one-hot labels", n_samples * n_classes, rows.len())?;
                collected(rows.iter().copied())
            }
            Self::Index(labels) => {
                Error::check_length("labels", n_samples, labels.len())?;
                let mut rows = filled(n_samples * n_classes, 0.0)?;
                for (sample, label) in labels.iter().enumerate() {
                    let class = usize::try_from(*label).ok().filter(|class| *class < n_classes);
                    let class = class.ok_or(Error::Label { sample, label: *label, n_classes })?;
                    rows[sample * n_classes + class] = 1.0;
                }
                Ok(rows)
            }
        }
    }
}
