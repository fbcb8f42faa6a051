//! Errors in a study's file beyond its syntax: unknown names, values out of range.

use std::collections::HashSet;

use forebay_record::{
    Cell, ExperimentSpec, FigureKind, Level, Levels, ProbeCell, Rule, Scale, Scaled, Step, StudySpec,
};
use forebay_units::suggest;

use super::error::{Error, Result};
use super::steps::{self, Work};

const MAX_ROUNDS: u64 = 10_000;

pub(super) fn place_of(experiment: &ExperimentSpec) -> String {
    format!("experiment \"{}\"", experiment.name)
}

/// Names become parts of paths and ids, and must be unique.
pub(super) fn names(spec: &StudySpec) -> Result<()> {
    each_once("study", [spec.name.as_str()])?;
    each_once("dataset", spec.datasets.iter().map(|dataset| dataset.name.as_str()))?;
    each_once("workload", spec.workloads.iter().map(|workload| workload.name.as_str()))?;
    each_once("tier", spec.tiers.iter().map(|tier| tier.name.as_str()))?;
    each_once("experiment", spec.experiments.iter().map(|experiment| experiment.name.as_str()))?;
    each_once("figure", spec.figures.iter().map(|figure| figure.id.as_str()))
}

fn each_once<'a>(what: &str, names: impl IntoIterator<Item = &'a str>) -> Result<()> {
    let mut seen = HashSet::new();
    for name in names {
        let place = || format!("{what} \"{name}\"");
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || name.len() > 64 || name.starts_with(['.', '-']) || !name.chars().all(is_plain) {
            return Err(Error::plan(
                place(),
                "a name has at most 64 letters, digits, hyphens, dots and underscores, and starts with no hyphen or dot",
            ));
        }
        if !seen.insert(name) {
            return Err(Error::plan(place(), "duplicate name"));
        }
    }
    Ok(())
}

/// Checks all names and values, at all scales.
pub(super) fn experiment(experiment: &ExperimentSpec) -> Result<()> {
    rounds(experiment)?;
    for (name, levels) in &experiment.factors {
        let key = format!("factors.{name}");
        known(experiment, &key, name)?;
        for levels in Scale::ALL.map(|scale| levels.at(scale)) {
            if levels.is_empty() {
                return Err(Error::plan(at(experiment, &key), "a factor needs at least one level"));
            }
            levels.iter().try_for_each(|level| value(experiment, &key, name, level))?;
        }
    }
    for (name, setting) in &experiment.settings {
        let key = format!("settings.{name}");
        known(experiment, &key, name)?;
        if experiment.factors.contains_key(name) {
            return Err(Error::plan(at(experiment, &key), "already a factor"));
        }
        scaled_value(experiment, &key, name, setting)?;
    }
    experiment.rules.iter().enumerate().try_for_each(|(i, rule)| check_rule(experiment, i + 1, rule))
}

fn rounds(experiment: &ExperimentSpec) -> Result<()> {
    for (key, rounds, least) in [("repeats", &experiment.repeats, 1), ("warmups", &experiment.warmups, 0)] {
        if Scale::ALL.iter().any(|scale| !(least..=MAX_ROUNDS).contains(rounds.at(*scale))) {
            return Err(Error::plan(at(experiment, key), format!("expected a number from {least} to {MAX_ROUNDS}")));
        }
    }
    if experiment.run == Step::Probe && Scale::ALL.iter().any(|scale| *experiment.warmups.at(*scale) != 1) {
        return Err(Error::plan(
            at(experiment, "warmups"),
            "a probe has exactly one warm-up, its first run; set this to 1",
        ));
    }
    if experiment.run == Step::Checkpoint && Scale::ALL.iter().any(|scale| *experiment.warmups.at(*scale) != 1) {
        let reason = "checkpoints have exactly one warm-up, the first save; set this to 1";
        return Err(Error::plan(at(experiment, "warmups"), reason));
    }
    let is_repeated = |scale: &Scale| (*experiment.repeats.at(*scale), *experiment.warmups.at(*scale)) != (1, 0);
    if experiment.run == Step::Inspect && Scale::ALL.iter().any(is_repeated) {
        let reason = "a dataset is inspected once; set repeats = 1 and warmups = 0";
        return Err(Error::plan(at(experiment, "repeats"), reason));
    }
    Ok(())
}

fn check_rule(experiment: &ExperimentSpec, number: usize, rule: &Rule) -> Result<()> {
    levels_exist(experiment, &at(experiment, &format!("rule {number}, when")), &rule.when)?;
    for (name, setting) in &rule.set {
        let key = format!("rule {number}, set.{name}");
        known(experiment, &key, name)?;
        if experiment.factors.contains_key(name) {
            return Err(Error::plan(at(experiment, &key), "a rule cannot change the levels of a factor"));
        }
        scaled_value(experiment, &key, name, setting)?;
    }
    Ok(())
}

fn known(experiment: &ExperimentSpec, key: &str, name: &str) -> Result<()> {
    let names = steps::names(experiment.run);
    if names.contains(&name) || (experiment.run == Step::Workload && steps::is_key(name)) {
        return Ok(());
    }
    let reason = format!("{} has no setting \"{name}\"", experiment.run.name());
    Err(Error::Plan { place: at(experiment, key), reason, hint: suggest(name, names.iter().copied()) })
}

fn scaled_value(experiment: &ExperimentSpec, key: &str, name: &str, setting: &Scaled<Level>) -> Result<()> {
    Scale::ALL.iter().try_for_each(|scale| value(experiment, key, name, setting.at(*scale)))
}

fn value(experiment: &ExperimentSpec, key: &str, name: &str, level: &Level) -> Result<()> {
    let tried = Work::new(experiment.run, 0).set(name, level);
    tried.map_err(|reason| Error::plan(at(experiment, key), reason))
}

fn at(experiment: &ExperimentSpec, key: &str) -> String {
    format!("{}, {key}", place_of(experiment))
}

/// Checks that the levels exist at one of the scales.
fn levels_exist(experiment: &ExperimentSpec, place: &str, levels: &Levels) -> Result<()> {
    for (name, level) in levels {
        factor_exists(experiment, place, name)?;
        let of_factor = &experiment.factors[name];
        let all: Vec<&Level> = Scale::ALL.iter().flat_map(|scale| of_factor.at(*scale)).collect();
        if !all.contains(&level) {
            let mut texts: Vec<String> = all.iter().map(ToString::to_string).collect();
            let mut seen = HashSet::new();
            texts.retain(|text| seen.insert(text.clone()));
            let hint = suggest(&level.to_string(), texts.iter().map(String::as_str));
            let reason = format!("{name} has no level {level}");
            return Err(Error::Plan { place: place.to_owned(), reason, hint });
        }
    }
    Ok(())
}

fn factor_exists(experiment: &ExperimentSpec, place: &str, name: &str) -> Result<()> {
    if experiment.factors.contains_key(name) {
        return Ok(());
    }
    let reason = format!("{} has no factor \"{name}\"", place_of(experiment));
    let hint = suggest(name, experiment.factors.keys().map(String::as_str));
    Err(Error::Plan { place: place.to_owned(), reason, hint })
}

pub(super) fn figures_and_references(spec: &StudySpec) -> Result<()> {
    for (i, reference) in spec.references.iter().enumerate() {
        let place = format!("reference {}", i + 1);
        let experiment = find(spec, &place, &reference.experiment)?;
        metric(experiment, &place, &reference.metric)?;
        levels_exist(experiment, &place, &reference.at)?;
        let is_positive = |value: f64| value.is_finite() && value > 0.0;
        if !is_positive(reference.value) || !reference.within.is_none_or(is_positive) {
            return Err(Error::plan(place, "`value` and `within` must be numbers above 0"));
        }
        if reference.to.is_some_and(|to| !to.is_finite() || to <= reference.value) {
            return Err(Error::plan(place, "`to` must be a number above `value`"));
        }
        if reference.above.is_some_and(|above| reference.within.is_none() || !is_positive(above)) {
            return Err(Error::plan(place, "`above` must be a number above 0 and needs `within`"));
        }
    }
    for figure in &spec.figures {
        let place = format!("figure \"{}\"", figure.id);
        if figure.kind != FigureKind::Frontier && !figure.points.is_empty() {
            return Err(Error::plan(place, "only a frontier marks step times: omit `point`"));
        }
        let is_time = |seconds: f64| seconds.is_finite() && seconds > 0.0;
        if figure.points.iter().any(|point| !is_time(point.step_s) || point.to_s.is_some_and(|to| to <= point.step_s)) {
            return Err(Error::plan(place, "`step_s` must be a number above 0, and `to_s` one above it"));
        }
        let Some(name) = &figure.experiment else {
            if figure.kind == FigureKind::Trace {
                continue;
            }
            return Err(Error::plan(place, "missing `experiment`"));
        };
        let experiment = find(spec, &place, name)?;
        figure.metrics.iter().try_for_each(|name| metric(experiment, &place, name))?;
        figure.x.iter().chain(&figure.series).try_for_each(|name| factor_exists(experiment, &place, name))?;
        levels_exist(experiment, &place, &figure.at)?;
    }
    Ok(())
}

fn find<'a>(spec: &'a StudySpec, place: &str, name: &str) -> Result<&'a ExperimentSpec> {
    spec.experiments.iter().find(|experiment| experiment.name == name).ok_or_else(|| Error::Plan {
        place: place.to_owned(),
        reason: format!("unknown experiment \"{name}\""),
        hint: suggest(name, spec.experiments.iter().map(|experiment| experiment.name.as_str())),
    })
}

fn metric(experiment: &ExperimentSpec, place: &str, name: &str) -> Result<()> {
    let metrics: Vec<&str> = experiment.run.metrics().iter().map(|info| info.name).collect();
    if metrics.contains(&name) {
        return Ok(());
    }
    let is_of_probes =
        experiment.run == Step::Probe && ProbeCell::METRICS.iter().any(|metric| metric.info.name == name);
    let reason = match is_of_probes {
        true => format!(
            "{} has several measurements per cell, each with its \"{name}\": use the best of a cell, such as \
             \"read_mb_per_s\", and a factor (`depth`) for what they differ in",
            place_of(experiment)
        ),
        false => format!("{} does not measure \"{name}\"", place_of(experiment)),
    };
    if is_of_probes {
        return Err(Error::plan(place, reason));
    }
    Err(Error::Plan { place: place.to_owned(), reason, hint: suggest(name, metrics.iter().copied()) })
}
