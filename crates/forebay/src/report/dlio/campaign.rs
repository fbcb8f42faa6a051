//! Many results of DLIO as one page: each run is a cell, told from the others by its workload, its number of processes and
//! the settings in which they differ.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use forebay_record::{
    AnyRecord, Cell, Design, Environment, ExperimentSpec, FigureKind, FigureSpec, Level, Levels, Scale, Scaled, Step,
    StudyCell, StudyHead, StudyRun, StudySpec, WorkloadCell,
};
use forebay_report::NamedRun;
use forebay_units::PathText;

const EXPERIMENT: &str = "campaign";
const PROCESSES: &str = "processes";
const WORKLOAD: &str = "workload";
/// What tells runs apart that have the same settings, as far as DLIO's files say.
const RUN: &str = "run";
/// Levels that follow from the number of processes, or that all results of DLIO share.
const LEFT_OUT: [&str; 3] = ["accelerators", "ranks", "made_by"];

/// A folder of results, as a cell or with the reason why it is none.
pub(super) struct Part {
    pub(super) folder: PathBuf,
    pub(super) cell: Result<WorkloadCell, String>,
    pub(super) notes: Vec<String>,
    pub(super) environment: Environment,
}

/// All of them as one run, with the folder's name.
pub(super) fn of(dir: &Path, parts: Vec<Part>) -> NamedRun {
    let factors = factors(dir, &parts);
    let environment =
        parts.iter().find(|part| part.cell.is_ok()).map(|part| part.environment.clone()).unwrap_or_default();
    let cells: Vec<StudyCell> = parts.into_iter().zip(&factors).map(|(part, levels)| cell(part, levels)).collect();
    let head = StudyHead {
        schema: forebay_record::SCHEMA.to_owned(),
        command: "report".to_owned(),
        command_line: Vec::new(),
        environment,
        spec: spec(dir, &factors),
        scale: Scale::Full,
        n_cells: cells.len() as u64,
        tiers: Vec::new(),
        data: None,
        notes: vec![super::BARRIERS.to_owned()],
    };
    let study = StudyRun { head, cells, resumed: Vec::new(), series: None };
    NamedRun { name: dir.escaped().into_owned(), record: AnyRecord::Study(Box::new(study)) }
}

fn cell(part: Part, levels: &Levels) -> StudyCell {
    let id: String = levels.iter().map(|(factor, level)| format!("/{factor}={level}")).collect();
    let started_at = part.environment.started_at;
    let (measured, error) = match part.cell {
        Ok(cell) => (Some(cell.into()), None),
        Err(error) => (None, Some(error)),
    };
    StudyCell {
        id: format!("{EXPERIMENT}{id}"),
        experiment: EXPERIMENT.to_owned(),
        step: Step::Workload,
        factors: levels.clone(),
        started_at,
        elapsed_s: 0.0,
        error,
        left_out: None,
        measured,
        notes: part.notes,
    }
}

/// The levels of each cell. A setting is a factor if runs of the same workload and number of processes differ in it.
fn factors(dir: &Path, parts: &[Part]) -> Vec<Levels> {
    let own = |part: &Part| -> Levels {
        let Ok(cell) = &part.cell else { return Levels::new() };
        let mut levels = cell.levels();
        levels.retain(|name, _| !LEFT_OUT.contains(&name.as_str()));
        levels.insert(PROCESSES.to_owned(), Level::Integer(cell.totals.ranks as i64));
        levels
    };
    let all: Vec<Levels> = parts.iter().map(own).collect();
    let mut varied: BTreeSet<String> = [WORKLOAD, PROCESSES].map(str::to_owned).into();
    for (i, one) in all.iter().enumerate() {
        let alike = |other: &&Levels| [WORKLOAD, PROCESSES].iter().all(|name| other.get(*name) == one.get(*name));
        for other in all[..i].iter().filter(alike) {
            let names = one.keys().chain(other.keys());
            varied.extend(names.filter(|name| one.get(*name) != other.get(*name)).cloned());
        }
    }
    let mut levels: Vec<Levels> = all
        .into_iter()
        .map(|of| of.into_iter().filter(|(name, _)| varied.contains(name)).collect::<Levels>())
        .collect();
    let mut n_of: BTreeMap<String, usize> = BTreeMap::new();
    levels.iter().for_each(|of| *n_of.entry(format!("{of:?}")).or_default() += 1);
    for (of, part) in levels.iter_mut().zip(parts) {
        if n_of[&format!("{of:?}")] > 1 || part.cell.is_err() {
            let below = part.folder.strip_prefix(dir).unwrap_or(&part.folder);
            of.insert(RUN.to_owned(), Level::Text(below.escaped().into_owned()));
        }
    }
    levels
}

fn spec(dir: &Path, factors: &[Levels]) -> StudySpec {
    let mut levels: BTreeMap<String, Vec<Level>> = BTreeMap::new();
    for (name, level) in factors.iter().flatten() {
        let known = levels.entry(name.clone()).or_default();
        if !known.contains(level) {
            known.push(level.clone());
        }
    }
    for known in levels.values_mut() {
        known.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    }
    let experiment = ExperimentSpec {
        name: EXPERIMENT.to_owned(),
        run: Step::Workload,
        dataset: None,
        design: Design::Factorial,
        repeats: Scaled::Both(1),
        warmups: Scaled::Both(0),
        factors: levels.into_iter().map(|(name, levels)| (name, Scaled::Both(levels))).collect(),
        settings: BTreeMap::new(),
        rules: Vec::new(),
    };
    let name = dir.file_name().map(|name| Path::new(name).escaped().into_owned()).unwrap_or_default();
    StudySpec {
        name: "dlio".to_owned(),
        title: format!("DLIO's results in {}", if name.is_empty() { dir.escaped().into_owned() } else { name }),
        source: None,
        about: "Every run of DLIO that was found below this folder: its utilisation as DLIO reports it and over whole epochs."
            .to_owned(),
        seed: 0,
        datasets: Vec::new(),
        workloads: Vec::new(),
        tiers: Vec::new(),
        experiments: vec![experiment],
        references: Vec::new(),
        figures: figures(),
        limits: vec![
            "DLIO counts no bytes: its MiB/s are those of the configured record length.".to_owned(),
            "Settings that DLIO's files do not name are unknown; runs that differ only in those are told apart by folder."
                .to_owned(),
        ],
    }
}

fn figures() -> Vec<FigureSpec> {
    let figure = |id: &str, title: &str, kind: FigureKind, metrics: &[&str]| FigureSpec {
        id: id.to_owned(),
        title: title.to_owned(),
        kind,
        experiment: Some(EXPERIMENT.to_owned()),
        metrics: metrics.iter().map(|name| (*name).to_owned()).collect(),
        x: Some(PROCESSES.to_owned()),
        series: Some(WORKLOAD.to_owned()),
        at: Levels::new(),
        caption: String::new(),
        points: Vec::new(),
    };
    let au = [WorkloadCell::AU_EPOCH.info.name, WorkloadCell::AU_DLIO.info.name];
    let rate = [WorkloadCell::DLIO_MIB_PER_S.info.name];
    vec![
        figure("utilisation", "Accelerator utilisation by number of processes", FigureKind::Utilisation, &au),
        figure("throughput", "Throughput as DLIO counts, by number of processes", FigureKind::Bars, &rate),
        figure("time", "Where the accelerators' time went", FigureKind::Time, &[]),
    ]
}
