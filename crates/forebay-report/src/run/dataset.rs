//! Datasets of a study by their names: a path of the machine it ran on says nothing to a reader elsewhere.

use std::borrow::Cow;

use forebay_record::{Level, Measured, ProbeCell, StudyCell, StudyRun};

/// The words before a path in what a probe says of its sizes.
const AS_IN: &str = " as in ";
/// The setting, or factor, that names a dataset whose sizes a probe takes.
const LIKE: &str = "like";

/// The study with names in place of paths; only one that has such paths is copied.
pub(super) fn named(study: &StudyRun) -> Cow<'_, StudyRun> {
    let has_path = |cell: &StudyCell| cell.measured_as().any(|probe: &ProbeCell| path(probe.mix.as_deref()).is_some());
    if !study.cells.iter().any(has_path) {
        return Cow::Borrowed(study);
    }
    let mut renamed = study.clone();
    for cell in &mut renamed.cells {
        let like = like(study, cell);
        let Some(Measured::Probe(probes)) = &mut cell.measured else { continue };
        for probe in probes {
            if let Some((before, path)) = path(probe.mix.as_deref()) {
                let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or(path);
                probe.mix = Some(format!("{before}{AS_IN}{}", like.as_deref().unwrap_or(last)));
            }
        }
    }
    Cow::Owned(renamed)
}

/// A text about sizes, cut at the path it ends in.
fn path(mix: Option<&str>) -> Option<(&str, &str)> {
    mix?.split_once(AS_IN).filter(|(_, path)| path.contains('/'))
}

/// The dataset that a cell's sizes are of, as the study names it.
fn like(study: &StudyRun, cell: &StudyCell) -> Option<String> {
    let spec = &study.head.spec;
    let setting = || {
        let experiment = spec.experiments.iter().find(|experiment| experiment.name == cell.experiment)?;
        Some(experiment.settings.get(LIKE)?.at(study.head.scale))
    };
    let name = match cell.level(LIKE).or_else(setting)? {
        Level::Text(name) => name,
        _ => return None,
    };
    spec.datasets.iter().any(|dataset| dataset.name == *name).then(|| name.clone())
}
