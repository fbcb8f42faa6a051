//! The workload step: a cell is one run of a workload, with its overrides.
//!
//! Every name with a dot is a key of the workload (`reader.batch_size`), so a study can vary any key. The workload
//! determines the data of a cell; cells with the same data share it.

mod run;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use forebay_emulation::WorkloadSettings;
use forebay_measure::{Refused, Settings, value};
use forebay_record::{Level, WorkloadSpec};
use forebay_units::Bytes;
use forebay_workload::{Dataset, Part, Workload, builtin};

use super::one;

pub(super) use run::run;

/// The mean sample size is taken over at most this many files.
const MAX_SIZED_FILES: u64 = 10_000;
/// Fraction of the machine's memory that batches may take.
const MEMORY_FRACTION: f64 = 0.5;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct WorkloadTask {
    /// Built in, or one of the study's own.
    pub workload: Option<String>,
    /// From the study's file; `None` for a built-in workload.
    text: Option<String>,
    pub overrides: BTreeMap<String, Level>,
    pub settings: WorkloadSettings,
}

impl WorkloadTask {
    /// `name` is `workload`, a key of the workload, or a setting.
    pub(super) fn set(&mut self, name: &str, level: &Level) -> Result<(), Refused> {
        match name {
            "workload" => self.workload = Some(value::text(level)?),
            "checkpoint.checkpoint_folder" | "dataset.data_folder" | "output.folder" | "storage.storage_root" => {
                return Err("a study sets its own folders; use --data and --out".to_owned());
            }
            _ if is_key(name) => {
                self.overrides.insert(name.to_owned(), level.clone());
            }
            _ => one(&mut self.settings, name, level)?,
        }
        Ok(())
    }

    /// Looks up the workload in the study; [`Self::check`] refuses one that is neither there nor built in.
    pub(crate) fn find(&mut self, own: &[WorkloadSpec]) {
        let name = self.workload.as_deref();
        self.text = own.iter().find(|spec| Some(spec.name.as_str()) == name).map(|spec| spec.text.clone());
    }

    pub(super) fn check(&self) -> Result<(), Refused> {
        Settings::check(&self.settings)?;
        self.read().map(|_| ())
    }

    pub(crate) fn read(&self) -> Result<Workload, Refused> {
        let mut workload = self.as_written()?;
        self.settings.apply(&mut workload)?;
        Ok(workload)
    }

    fn as_written(&self) -> Result<Workload, Refused> {
        let Some(name) = self.workload.as_deref() else { return Err("missing `workload`".to_owned()) };
        let text = match (&self.text, builtin::find(name)) {
            (Some(text), _) => text,
            (None, Some(builtin)) => builtin.text,
            (None, None) => {
                let known: Vec<&str> = builtin::all().iter().map(|builtin| builtin.name).collect();
                return Err(format!("unknown workload \"{name}\"; built-in workloads: {}", known.join(", ")));
            }
        };
        let overrides: Vec<String> =
            self.overrides.iter().map(|(key, level)| format!("++workload.{key}={level}")).collect();
        let read = forebay_workload::read(name, text, &overrides).map_err(|problems| {
            let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
            said.join("; ")
        })?;
        Ok(read.workload)
    }

    /// Why this machine or build cannot run it; `None` if it can.
    pub(crate) fn unfit(&self, memory: Option<Bytes>) -> Option<String> {
        let workload = self.read().ok()?;
        if !forebay_dataset::is_built_in(workload.dataset.format) {
            return Some(forebay_dataset::NO_HDF5.to_owned());
        }
        if let Err(problem) = forebay_workload::Plan::new(&workload, self.settings.all_accelerators()) {
            return Some(problem.to_string());
        }
        let needed = Bytes(batches_bytes(&workload).saturating_mul(self.settings.all_accelerators()));
        let most = memory.map(|memory| Bytes((memory.0 as f64 * MEMORY_FRACTION) as u64));
        most.filter(|most| needed > *most).map(|most| {
            format!("its batches need {needed} of memory; the limit is {most}, half of this machine's memory")
        })
    }
}

pub(crate) fn is_key(name: &str) -> bool {
    name.contains('.')
}

/// Bytes of the prefetched batches of one accelerator.
fn batches_bytes(workload: &Workload) -> u64 {
    let reader = &workload.reader;
    let transformed: u64 = reader.transformed_dims.iter().product::<u64>() * reader.transformed_element.bytes();
    let delivered = match (reader.transformed_dims.is_empty(), workload.dataset.record_length_bytes_resize) {
        (false, _) => transformed,
        (true, 0) => mean_sample_bytes(&workload.dataset) as u64,
        (true, resized) => resized,
    };
    reader.n_ahead().max(1).saturating_mul(reader.batch_size).saturating_mul(delivered)
}

/// The mean over the dataset's size distribution.
fn mean_sample_bytes(dataset: &Dataset) -> f64 {
    let n_files = dataset.n_files(Part::Train).min(MAX_SIZED_FILES);
    let sum: u64 = (0..n_files).map(|i| dataset.shape_of(Part::Train, i).sample_bytes).sum();
    if n_files == 0 { 0.0 } else { sum as f64 / n_files as f64 }
}
