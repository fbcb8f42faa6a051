//! `forebay study list` and `forebay study show`: describes studies without running them.

use std::ffi::OsString;
use std::fmt::Write;
use std::path::Path;

use anyhow::Result;
use forebay_record::{Design, ExperimentSpec, Level, Levels, Scale, Scaled, StudySpec};
use forebay_study::{DATA, DatasetSource, Found, Making, Places, Plan, built_in};
use forebay_units::{Bytes, PathText, count};

use super::{explained, find_placement, found};
use crate::output::{Outcome, done, print_data};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name of a built-in study, or a study file
    #[arg(value_name = "NAME|FILE")]
    study: OsString,

    /// Print the study's file, as a start for a study of your own
    #[arg(long)]
    toml: bool,
}

pub(super) fn list() -> Result<Outcome> {
    let mut text = String::new();
    for name in built_in() {
        let Found { spec, .. } = found(name.as_ref())?;
        let _ = writeln!(text, "{name}: {}", spec.title);
        for scale in Scale::ALL {
            let plan = Plan::new(spec.clone(), scale).map_err(|error| explained(Some(name.as_ref()), error))?;
            let cells = count(plan.cells.len() as u64, "cell");
            let _ = writeln!(text, "  {:<8}  {cells}, {}", scale.name(), made(&plan));
        }
    }
    done(&text)
}

fn made(plan: &Plan) -> String {
    let plans = plan.datasets.iter().filter_map(|dataset| match &dataset.source {
        DatasetSource::Make(plan) => Some(plan),
        DatasetSource::Pack { .. } | DatasetSource::Path(_) => None,
    });
    let (images, bytes) =
        plans.fold((0, Bytes(0)), |(images, bytes), plan| (images + plan.count(), bytes + plan.expected_bytes()));
    let records = Places::new(plan, Path::new(DATA)).to_make(&plan.cells);
    let records: Vec<Bytes> = records
        .iter()
        .filter(|wanted| matches!(wanted.making, Making::Records(_)))
        .map(|wanted| wanted.expected_bytes())
        .collect();
    let all = records.iter().fold(Bytes(0), |sum, bytes| sum + *bytes);
    match (images, records.len() as u64) {
        (0, 0) => "no data to generate".to_owned(),
        (0, n) => format!("{} of {all} to generate", count(n, "dataset")),
        (_, 0) => format!("{} of {bytes} to generate", count(images, "image")),
        (_, n) => format!("{} of {bytes} and {} of {all} to generate", count(images, "image"), count(n, "dataset")),
    }
}

pub(super) fn run(args: &Args) -> Result<Outcome> {
    let Found { spec, text } = found(&args.study)?;
    if args.toml {
        print_data(&text)?;
        return Ok(Outcome::Met);
    }
    let plan = |scale| Plan::new(spec.clone(), scale).map_err(|error| explained(Some(&args.study), error));
    let plans = [plan(Scale::Quick)?, plan(Scale::Standard)?, plan(Scale::Full)?];
    done(&describe(&spec, &plans))
}

/// What a study has at each scale, once if that is the same: "3 quick, 5 full". The standard scale is named where it
/// differs from the quick one.
fn by_scale([quick, standard, full]: [String; 3]) -> String {
    match (quick == standard, quick == full) {
        (true, true) => full,
        (true, false) => format!("{quick} quick, {full} full"),
        (false, _) => format!("{quick} quick, {standard} standard, {full} full"),
    }
}

fn describe(spec: &StudySpec, plans: &[Plan; 3]) -> String {
    let mut text = format!("{}: {}\n", spec.name, spec.title);
    if let Some(source) = &spec.source {
        let _ = writeln!(text, "after {source}");
    }
    if !spec.about.is_empty() {
        let _ = writeln!(text, "\n{}", paragraphs(&spec.about));
    }
    text.push('\n');
    for dataset in &spec.datasets {
        let what = match (&dataset.make, &dataset.count, &dataset.path) {
            (Some(make), Some(n), _) => {
                format!("{make} images, made: {}", by_scale(Scale::ALL.map(|scale| n.at(scale).to_string())))
            }
            (Some(make), None, _) => format!("{make} images, made"),
            (None, _, Some(path)) => path.escaped().into_owned(),
            (None, _, None) => match (&dataset.pack, &dataset.of) {
                (Some(form), Some(of)) => format!("{of}, packed as {form}"),
                _ => String::new(),
            },
        };
        let sizes = dataset.sizes.as_ref().map(|sizes| format!(", sizes {sizes}")).unwrap_or_default();
        let _ = writeln!(text, "dataset {}: {what}{sizes}", dataset.name);
    }
    for workload in &spec.workloads {
        let _ = writeln!(text, "workload {}: {}", workload.name, workload.path.escaped());
    }
    for note in plans[0].tier_notes(&find_placement) {
        let _ = writeln!(text, "tier {}: {}, {}", note.name, note.kind.describe(), note.description);
    }
    for experiment in &spec.experiments {
        text.push_str(&experiment_text(experiment, plans));
    }
    text.push_str(&references(spec));
    text
}

fn experiment_text(experiment: &ExperimentSpec, plans: &[Plan; 3]) -> String {
    let n = |plan: &Plan| plan.cells.iter().filter(|cell| cell.experiment == experiment.name).count();
    let [quick, standard, full] = plans.each_ref().map(n);
    let standard = if standard == quick { String::new() } else { format!(", {standard} standard") };
    let design = match experiment.design {
        Design::Factorial => "all combinations",
        Design::OneAtATime => "one factor at a time",
    };
    let mut text = format!(
        "\nexperiment {} ({}): {} quick{standard}, {full} full, {design}; {}\n",
        experiment.name,
        experiment.run.name(),
        count(quick as u64, "cell"),
        rounds(experiment)
    );
    if let Some(dataset) = &experiment.dataset {
        let _ = writeln!(text, "  dataset = {dataset}");
    }
    let list = |levels: &[Level]| levels.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    for (name, levels) in &experiment.factors {
        let [few, more, all] = Scale::ALL.map(|scale| list(levels.at(scale)));
        let more = if more == few { String::new() } else { format!("{more} standard; ") };
        let levels = if few == all { all } else { format!("{few} quick; {more}{all} full") };
        let _ = writeln!(text, "  {name}: {levels}");
    }
    for (name, value) in &experiment.settings {
        let _ = writeln!(text, "  {}", setting(name, value));
    }
    for rule in &experiment.rules {
        let set: Vec<String> = rule.set.iter().map(|(name, value)| setting(name, value)).collect();
        let _ = writeln!(text, "  where {}: {}", levels(&rule.when), set.join("; "));
    }
    text
}

fn setting(name: &str, value: &Scaled<Level>) -> String {
    format!("{name} = {}", by_scale(Scale::ALL.map(|scale| value.at(scale).to_string())))
}

fn levels(levels: &Levels) -> String {
    levels.iter().map(|(name, level)| format!("{name}={level}")).collect::<Vec<_>>().join(" ")
}

/// A text with one line per paragraph instead of the lines of its file, so it can be folded to the terminal. List items
/// and indented lines stay lines of their own.
fn paragraphs(text: &str) -> String {
    let mut out = String::new();
    for line in text.trim().lines() {
        let is_own = line.is_empty() || line.starts_with([' ', '-', '*']) || out.ends_with('\n');
        if !out.is_empty() {
            out.push(if is_own { '\n' } else { ' ' });
        }
        out.push_str(line.trim_end());
    }
    out
}

/// "5 repeats after 1 warm-up", per scale if they differ.
fn rounds(experiment: &ExperimentSpec) -> String {
    by_scale(Scale::ALL.map(|scale| {
        let repeats = count(*experiment.repeats.at(scale), "repeat");
        format!("{repeats} after {}", count(*experiment.warmups.at(scale), "warm-up"))
    }))
}

fn references(spec: &StudySpec) -> String {
    let mut text = String::new();
    for reference in &spec.references {
        let judged = match (reference.within, reference.above) {
            (Some(below), Some(above)) => {
                format!("expected at most {:.0} % below and {:.0} % above", below * 100.0, above * 100.0)
            }
            (Some(within), None) => format!("expected within {:.0} %", within * 100.0),
            (None, _) => "not judged".to_owned(),
        };
        let calibrated = if reference.calibrated.is_some() { ", calibrated" } else { "" };
        let value = match (&reference.says, reference.to) {
            (Some(says), _) => says.clone(),
            (None, Some(to)) => format!("{} to {to}", reference.value),
            (None, None) => reference.value.to_string(),
        };
        let scale = reference.scale.map(|scale| format!(", at the {} scale only", scale.name())).unwrap_or_default();
        let _ = writeln!(
            text,
            "  {} {} {}: {} ({}; {judged}{calibrated}{scale})",
            reference.experiment,
            levels(&reference.at),
            reference.metric,
            value,
            reference.source
        );
    }
    if text.is_empty() { text } else { format!("\npublished values:\n{text}") }
}
