//! What is compared of a run: its cells' values, with the levels that tell which is set beside which.

use forebay_record::{AnyCell, Disturbed, Levels, Measured, Measurement, MetricInfo, ProbeCell, StudyCell};

use crate::run::Run;

pub(super) struct Entry {
    pub(super) experiment: String,
    pub(super) levels: Levels,
    pub(super) metric: &'static MetricInfo,
    pub(super) found: Measurement,
    pub(super) disturbed: Option<Disturbed>,
    /// The same as a rate, and the work it is about: times of unlike work are not compared.
    pub(super) by_rate: Option<ByRate>,
}

pub(super) struct ByRate {
    pub(super) work: u64,
    pub(super) metric: &'static MetricInfo,
    pub(super) found: Measurement,
}

/// Every quantity of every cell that its experiment wants compared.
pub(super) fn entries(run: &Run<'_>) -> Vec<Entry> {
    let of_cell = |cell: &StudyCell| -> Vec<Entry> {
        let measured = cell.result().into_iter().flat_map(Measured::cells);
        measured.flat_map(|one| of_measured(cell, levels(run, cell, one), one)).collect()
    };
    run.study.cells.iter().flat_map(of_cell).collect()
}

/// A study's cells are told apart by its factors, those of a record by all their settings.
fn levels(run: &Run<'_>, cell: &StudyCell, measured: &dyn AnyCell) -> Levels {
    match (run.is_study(), cell.measured_one::<ProbeCell>()) {
        (true, None) => cell.factors.clone(),
        (true, Some(_)) => measured.levels().into_iter().chain(cell.factors.clone()).collect(),
        (false, _) => measured.levels(),
    }
}

fn of_measured(cell: &StudyCell, levels: Levels, measured: &dyn AnyCell) -> Vec<Entry> {
    let all = measured.measurements();
    let by_rate = |info: &MetricInfo| {
        let (metric, found) = all.iter().find(|(other, _)| Some(other.name) == info.or_by_rate)?;
        Some(ByRate { work: measured.work()?, metric, found: found.clone() })
    };
    let compared = all.iter().filter(|(info, _)| info.is_compared);
    let entry = |(info, found): &(&'static MetricInfo, Measurement)| Entry {
        experiment: cell.experiment.clone(),
        levels: levels.clone(),
        metric: info,
        found: found.clone(),
        disturbed: measured.disturbed(),
        by_rate: by_rate(info),
    };
    compared.map(entry).collect()
}
