//! The workload step: a cell of it is one run of a workload, with whatever of it is overridden.
//!
//! Every name with a dot is a key of the workload (`reader.batch_size`), so that a study can vary all of them. The data of a
//! cell follows from the workload; cells with the same data share it.

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

/// Files whose samples' sizes are looked at for their mean.
const LOOKED_AT: u64 = 10_000;
/// The share of the machine's memory that batches may take.
const MEMORY_SHARE: f64 = 0.5;

/// What a workload cell does: which workload, changed how, and run how.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WorkloadTask {
    /// The workload's name: built in, or one of the study's own.
    pub workload: Option<String>,
    /// What the study's own file says; `None` for one that is built in.
    text: Option<String>,
    /// Its keys that are overridden.
    pub overrides: BTreeMap<String, Level>,
    /// How it is run.
    pub settings: WorkloadSettings,
}

impl WorkloadTask {
    /// Sets `workload`, a key of the workload, or a setting.
    pub(super) fn set(&mut self, name: &str, level: &Level) -> Result<(), Refused> {
        match name {
            "workload" => self.workload = Some(value::text(level)?),
            "checkpoint.checkpoint_folder" | "dataset.data_folder" | "output.folder" | "storage.storage_root" => {
                return Err("a study has folders of its own: --data and --out name them".to_owned());
            }
            _ if is_key(name) => {
                self.overrides.insert(name.to_owned(), level.clone());
            }
            _ => one(&mut self.settings, name, level)?,
        }
        Ok(())
    }

    /// Finds the workload among the study's own; one that is neither there nor built in is refused by [`Self::check`].
    pub(crate) fn find(&mut self, own: &[WorkloadSpec]) {
        let name = self.workload.as_deref();
        self.text = own.iter().find(|spec| Some(spec.name.as_str()) == name).map(|spec| spec.text.clone());
    }

    /// What contradicts itself, lacks something, or is no workload.
    pub(super) fn check(&self) -> Result<(), Refused> {
        Settings::check(&self.settings)?;
        self.read().map(|_| ())
    }

    /// The workload with its overrides and settings.
    pub(crate) fn read(&self) -> Result<Workload, Refused> {
        let mut workload = self.as_written()?;
        self.settings.apply(&mut workload)?;
        Ok(workload)
    }

    fn as_written(&self) -> Result<Workload, Refused> {
        let Some(name) = self.workload.as_deref() else { return Err("it has no workload: give one".to_owned()) };
        let text = match (&self.text, builtin::find(name)) {
            (Some(text), _) => text,
            (None, Some(builtin)) => builtin.text,
            (None, None) => {
                let known: Vec<&str> = builtin::all().iter().map(|builtin| builtin.name).collect();
                return Err(format!("there is no workload \"{name}\"; built in are {}", known.join(", ")));
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

    /// Why this machine or program cannot run it, or why it has nothing to run; `None` when nothing is known against it.
    pub(crate) fn unfit(&self, memory: Option<Bytes>) -> Option<String> {
        let workload = self.read().ok()?;
        if !forebay_dataset::is_built_in(workload.dataset.format) {
            return Some(forebay_dataset::NO_HDF5.to_owned());
        }
        if let Err(problem) = forebay_workload::Plan::new(&workload, self.settings.all_accelerators()) {
            return Some(problem.to_string());
        }
        let needed = Bytes(batches_bytes(&workload).saturating_mul(self.settings.all_accelerators()));
        let most = memory.map(|memory| Bytes((memory.0 as f64 * MEMORY_SHARE) as u64));
        most.filter(|most| needed > *most)
            .map(|most| format!("its batches take {needed} of memory, and half of this machine's is {most}"))
    }
}

/// Whether a name is a key of workloads.
pub(crate) fn is_key(name: &str) -> bool {
    name.contains('.')
}

/// Bytes of the batches of one accelerator: those made ahead.
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

/// Bytes of a training sample, as they come out of the dataset's law.
fn mean_sample_bytes(dataset: &Dataset) -> f64 {
    let n_files = dataset.n_files(Part::Train).min(LOOKED_AT);
    let sum: u64 = (0..n_files).map(|i| dataset.shape_of(Part::Train, i).sample_bytes).sum();
    if n_files == 0 { 0.0 } else { sum as f64 / n_files as f64 }
}
