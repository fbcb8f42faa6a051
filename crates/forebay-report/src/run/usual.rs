//! Figures of a study that names none: of every experiment those that a record of its command shows.

use std::borrow::Cow;

use forebay_record::{
    CheckpointCell, ExperimentSpec, FigureKind, FigureSpec, IngestCell, Scale, Step, StudyCell, TrainCell,
};

use super::Run;
use super::titled::figure;

/// Factors that are rather along the axis than others.
const ALONG: [&str; 6] = ["threads", "accelerators", "ranks", "batch", "prefetch", "tier"];

impl Run<'_> {
    /// The figures of the study, or the usual ones.
    pub(crate) fn figures(&self) -> Cow<'_, [FigureSpec]> {
        let spec = self.spec();
        if !spec.figures.is_empty() || !self.is_study() {
            return Cow::Borrowed(&spec.figures);
        }
        let has_cells = |of: &&ExperimentSpec| {
            let is_measured = |cell: &StudyCell| cell.experiment == of.name && cell.is_measured();
            self.study.cells.iter().any(is_measured)
        };
        let each = spec.experiments.iter().filter(has_cells);
        Cow::Owned(each.filter_map(|experiment| usual(experiment, self.head().scale)).collect())
    }
}

fn usual(experiment: &ExperimentSpec, scale: Scale) -> Option<FigureSpec> {
    let (what, kind, metrics): (&str, FigureKind, &[&str]) = match experiment.run {
        Step::Ingest => {
            ("rate", FigureKind::Bars, &[IngestCell::IMAGES_PER_S.info.name, IngestCell::MB_PER_S.info.name])
        }
        Step::Probe => ("latency of single requests", FigureKind::Percentiles, &[]),
        Step::Train => ("wall clock", FigureKind::Bars, &[TrainCell::WALL_S.info.name]),
        Step::Workload => ("accelerator utilisation", FigureKind::Utilisation, &[]),
        Step::Checkpoint => ("stall per checkpoint", FigureKind::Bars, &[CheckpointCell::STALL_S.info.name]),
        _ => return None,
    };
    let title = format!("{}: {what}", experiment.name);
    let x = (kind != FigureKind::Percentiles).then(|| along(experiment, scale)).flatten();
    Some(FigureSpec { experiment: Some(experiment.name.clone()), ..figure(&experiment.name, &title, kind, metrics, x) })
}

/// The factor along the axis: one of several levels, if there is one.
fn along(experiment: &ExperimentSpec, scale: Scale) -> Option<&str> {
    let several = |name: &str| experiment.factors.get(name).is_some_and(|levels| levels.at(scale).len() > 1);
    let names = || experiment.factors.keys().map(String::as_str);
    let first = ALONG.into_iter().find(|name| several(name)).and_then(|name| names().find(|known| *known == name));
    first.or_else(|| names().find(|name| several(name))).or_else(|| names().next())
}
