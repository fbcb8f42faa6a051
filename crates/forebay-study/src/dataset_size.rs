//! Checks that a dataset has enough samples for its cells: generated data while planning, existing data when a run
//! starts.

use std::path::Path;
use std::sync::Arc;

use forebay_pipeline::Source;
use forebay_storage::Local;
use forebay_units::count;

use super::dataset::{self, DatasetPlan, DatasetSource, pack_plan};
use super::error::{Error, Result};
use super::plan::{CellPlan, Plan};
use super::steps::{Task, Work};

/// Refuses a training cell whose dataset has fewer samples than one batch.
pub(super) fn for_cell(id: &str, work: &Work, n_samples: u64) -> Result<()> {
    match &work.task {
        Task::Train(settings) if !settings.synthetic && n_samples < settings.images_per_step() => {
            let name = work.dataset().unwrap_or_default();
            let (has, batch) = (count(n_samples, "sample"), settings.images_per_step());
            let reason = format!("dataset \"{name}\" has {has}, less than one batch of {batch}");
            Err(Error::plan(format!("cell {id}"), reason))
        }
        _ => Ok(()),
    }
}

/// `None` for existing data, and for data packed from it.
pub(super) fn n_made(plan: &Plan, name: &str) -> Option<u64> {
    match &plan.dataset(name)?.source {
        DatasetSource::Make(made) => Some(made.count()),
        DatasetSource::Pack { of, .. } => n_made(plan, of),
        DatasetSource::Path(_) => None,
    }
}

/// Existing data must have samples, and at least one batch of them for cells that train.
pub(super) fn check_existing(plan: &Plan) -> Result<()> {
    for dataset in &plan.datasets {
        let is_read = |cell: &&CellPlan| {
            matches!(cell.work.task, Task::Ingest(_) | Task::Train(_)) && cell.work.dataset() == Some(&dataset.name)
        };
        let cells: Vec<&CellPlan> = plan.cells.iter().filter(is_read).collect();
        if cells.is_empty() {
            continue;
        }
        if let Some(n_samples) = n_existing(plan, dataset)? {
            cells.iter().try_for_each(|cell| for_cell(&cell.id, &cell.work, n_samples))?;
        }
    }
    Ok(())
}

/// `None` for generated data.
fn n_existing(plan: &Plan, dataset: &DatasetPlan) -> Result<Option<u64>> {
    let of_path = |path: &Path| {
        let source = Source::discover(Arc::new(Local::default()), path);
        source.map(|source| source.n_samples() as u64).map_err(|error| dataset::refused(dataset, error.to_string()))
    };
    match &dataset.source {
        DatasetSource::Path(path) => of_path(path).map(Some),
        DatasetSource::Pack { packing, of } => match plan.dataset(of).map(|origin| &origin.source) {
            Some(DatasetSource::Path(path)) => match pack_plan(path, *packing) {
                Ok(packed) => Ok(Some(packed.n_files())),
                Err(error) => Err(dataset::refused(dataset, error.to_string())),
            },
            _ => Ok(None),
        },
        DatasetSource::Make(_) => Ok(None),
    }
}
