//! The ingest step: a cell is one ingest run with one thread count.

use std::path::PathBuf;

use forebay_bench::Gpus;
use forebay_bench::ingest::{self, IngestSettings, Plan};
use forebay_format::example::KeyNames;
use forebay_measure::Observer;

use super::{Failed, StepContext, StepResult, record};

pub(super) fn run(
    settings: &IngestSettings,
    data: PathBuf,
    on: StepContext,
    observer: Observer<'_>,
) -> Result<StepResult, Failed> {
    let plan = Plan {
        settings: settings.clone(),
        data,
        keys: KeyNames::default(),
        tier: on.shaped,
        kernel_tier: on.kernel,
        gpus: Gpus::cuda(on.cuda_folders),
        warmups: on.warmups,
        repeats: on.repeats,
        until: settings.until(true),
    };
    let record = ingest::run(&plan, record(), observer)?;
    let notes = record.notes;
    match record.cells.into_iter().next() {
        Some(cell) if cell.empty_repeats > 0 => {
            let why = cell.failures.first().map(|first| format!(": {}: {}", first.name, first.reason));
            let n_repeats = cell.empty_repeats + cell.samples.len() as u64;
            Err(format!(
                "{} of {} delivered no image{}",
                cell.empty_repeats,
                forebay_units::count(n_repeats, "repeat"),
                why.unwrap_or_default()
            )
            .into())
        }
        Some(cell) => Ok(StepResult { measured: Some(cell.into()), notes }),
        None => Err("no repeat finished".into()),
    }
}
