//! Records of single commands as studies of one experiment.

use std::collections::BTreeMap;

use forebay_record::{
    Design, ExperimentSpec, FigureKind, FigureSpec, IngestCell, Level, Levels, ProbeCell, Record, SCHEMA, Scale,
    Scaled, Step, StudyCell, StudyHead, StudyRun, StudySpec, TierKind, TierNote,
};

use super::{ENGINES, MODES, differing, levels_of_ingest, levels_of_probe, mode_name};

pub(super) fn of_ingest(record: &Record<IngestCell>) -> StudyRun {
    let levels = differing(record.cells.iter().map(levels_of_ingest).collect(), &["threads"]);
    let cells = record
        .cells
        .iter()
        .zip(levels)
        .map(|(cell, levels)| StudyCell { ingest: Some(cell.clone()), ..bare_cell("ingest", Step::Ingest, levels) });
    let cells: Vec<StudyCell> = cells.collect();
    let mut figures = vec![
        figure("rates", "Rate by threads", FigureKind::Bars, &["images_per_s", "mb_per_s"], Some("threads")),
        figure("speed-up", "Speed-up by threads", FigureKind::SpeedUp, &["images_per_s"], Some("threads")),
    ];
    if record.cells.iter().any(|cell| cell.ceiling_mb_per_s.is_some()) {
        figures.push(figure("ceiling", "Share of the storage's ceiling", FigureKind::Efficiency, &[], Some("threads")));
    }
    figures.push(figure("workers", "Where the workers' time went", FigureKind::Workers, &[], Some("threads")));
    let tiers = record.cells.iter().filter_map(|cell| Some((cell.tier.clone()?, cell.tier_kind)));
    let title = match record.dataset.path.as_str() {
        "" => "Ingest".to_owned(),
        path => format!("Ingest of {path}"),
    };
    finish(record, title, cells, figures, tier_notes(tiers))
}

pub(super) fn of_probe(record: &Record<ProbeCell>) -> StudyRun {
    let levels = differing(record.cells.iter().map(levels_of_probe).collect(), &["mode", "engine", "depth"]);
    let cells = record
        .cells
        .iter()
        .zip(levels)
        .map(|(cell, levels)| StudyCell { probe: vec![cell.clone()], ..bare_cell("probe", Step::Probe, levels) });
    let cells: Vec<StudyCell> = cells.collect();
    let mut modes: Vec<&'static str> = Vec::new();
    for cell in &record.cells {
        if !modes.contains(&mode_name(cell)) {
            modes.push(mode_name(cell));
        }
    }
    let figures = modes.iter().flat_map(|mode| probe_figures(record, mode)).collect();
    let tiers = record.cells.iter().filter_map(|cell| Some((cell.tier.clone()?, cell.tier_kind)));
    let title = match record.dataset.path.as_str() {
        "" => "Probe".to_owned(),
        path => format!("Probe of {path}"),
    };
    finish(record, title, cells, figures, tier_notes(tiers))
}

/// Rates and latencies of a mode; the distribution where requests are small and their tail is what one waits for.
fn probe_figures(record: &Record<ProbeCell>, mode: &str) -> Vec<FigureSpec> {
    let of_mode = || record.cells.iter().filter(|cell| mode_name(cell) == mode);
    let named = |id: &str, title: &str, kind: FigureKind, metrics: &[&str], x: Option<&str>| {
        let mut spec =
            figure(&format!("{id}-{}", mode.replace(' ', "-")), &format!("{title}: {mode}"), kind, metrics, x);
        spec.at.insert("mode".to_owned(), Level::Text(mode.to_owned()));
        spec
    };
    let metrics: &[&str] = if mode == "files" { &["iops", "mb_per_s"] } else { &["mb_per_s", "iops"] };
    let mut rates = named("rates", "Rate by requests in flight", FigureKind::Bars, metrics, Some("depth"));
    rates.series = Some("engine".to_owned());
    let mut figures = vec![rates];
    if of_mode().any(|cell| cell.latency_us.p50 > 0.0) {
        figures.push(named("percentiles", "Latency of single requests", FigureKind::Percentiles, &[], None));
    }
    if of_mode().any(|cell| !cell.histogram.is_empty()) && !mode.starts_with("sequential") {
        figures.push(named("distribution", "How latencies are distributed", FigureKind::Distribution, &[], None));
    }
    figures
}

pub(super) fn finish<C: forebay_record::Cell>(
    record: &Record<C>,
    title: String,
    cells: Vec<StudyCell>,
    mut figures: Vec<FigureSpec>,
    tiers: Vec<TierNote>,
) -> StudyRun {
    if record.series.as_ref().is_some_and(|series| !series.is_empty()) {
        figures.push(figure("trace", "What the machine did meanwhile", FigureKind::Trace, &[], None));
    }
    if cells.is_empty() {
        figures.clear();
    }
    for figure in &mut figures {
        figure.experiment = (figure.kind != FigureKind::Trace).then(|| C::COMMAND.to_owned());
    }
    let experiment = ExperimentSpec {
        name: C::COMMAND.to_owned(),
        run: match C::COMMAND {
            "probe" => Step::Probe,
            "train" => Step::Train,
            "checkpoint" => Step::Checkpoint,
            "workload" => Step::Workload,
            _ => Step::Ingest,
        },
        dataset: None,
        design: Design::Factorial,
        repeats: Scaled::Both(0),
        warmups: Scaled::Both(0),
        factors: orders(C::COMMAND),
        settings: [].into(),
        rules: Vec::new(),
    };
    let spec = StudySpec {
        name: C::COMMAND.to_owned(),
        title,
        source: None,
        about: String::new(),
        seed: 0,
        datasets: Vec::new(),
        workloads: Vec::new(),
        tiers: Vec::new(),
        experiments: vec![experiment],
        references: Vec::new(),
        figures,
    };
    let head = StudyHead {
        schema: SCHEMA.to_owned(),
        command: C::COMMAND.to_owned(),
        command_line: record.command_line.clone(),
        environment: record.environment.clone(),
        spec,
        scale: Scale::Full,
        n_cells: cells.len() as u64,
        data: None,
        tiers,
        notes: record.notes.clone(),
    };
    StudyRun { head, cells, resumed: Vec::new(), series: record.series.clone() }
}

/// Factors whose levels are shown in an order of their own.
fn orders(command: &str) -> BTreeMap<String, Scaled<Vec<Level>>> {
    let (factor, names) = if command == "checkpoint" { ("mode", MODES) } else { ("engine", ENGINES) };
    [(factor.to_owned(), Scaled::Both(names.map(|name| Level::Text(name.to_owned())).into()))].into()
}

pub(super) fn bare_cell(experiment: &str, step: Step, factors: Levels) -> StudyCell {
    let levels: Vec<String> = factors.iter().map(|(factor, level)| format!("{factor}={level}")).collect();
    StudyCell {
        id: format!("{experiment}/{}", levels.join("/")),
        experiment: experiment.to_owned(),
        step,
        factors,
        started_at: String::new(),
        elapsed_s: 0.0,
        error: None,
        left_out: None,
        ingest: None,
        probe: Vec::new(),
        train: None,
        checkpoint: None,
        workload: None,
        inspection: None,
        notes: Vec::new(),
    }
}

pub(super) fn figure(id: &str, title: &str, kind: FigureKind, metrics: &[&str], x: Option<&str>) -> FigureSpec {
    FigureSpec {
        id: id.to_owned(),
        title: title.to_owned(),
        kind,
        experiment: None,
        metrics: metrics.iter().map(|name| (*name).to_owned()).collect(),
        x: x.map(str::to_owned),
        series: None,
        at: Levels::new(),
        caption: String::new(),
    }
}

/// A tier that a record names was emulated in process when the record, of an older version, does not say how.
pub(super) fn tier_notes(tiers: impl Iterator<Item = (String, Option<TierKind>)>) -> Vec<TierNote> {
    let mut notes: Vec<TierNote> = Vec::new();
    for (name, kind) in tiers {
        if !notes.iter().any(|note| note.name == name) {
            notes.push(TierNote { name, kind: kind.unwrap_or(TierKind::Shaped), description: String::new() });
        }
    }
    notes
}
