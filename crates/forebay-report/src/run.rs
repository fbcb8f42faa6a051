//! Every record seen as a study: cells with levels of factors, and figures over them.
//!
//! An ingest record is a study of one experiment over threads; a probe record is one over engines, blocks and depths.
//! What reports and compares then knows one kind of run only.

use std::borrow::Cow;

use forebay_record::{
    AnyRecord, Design, Environment, ExperimentSpec, FigureKind, FigureSpec, IngestCell, Level, Levels, Metric,
    ProbeCell, Record, SCHEMA, Scale, Scaled, Series, Step, StudyCell, StudyHead, StudyRun, StudySpec, TierKind,
    TierNote, TrainCell,
};

/// A record and what to call it.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedRun {
    /// What the reader sees, as the path it was named by.
    pub name: String,
    /// The record, its series inside.
    pub record: AnyRecord,
}

/// A run as the report sees it.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    pub(crate) name: &'a str,
    /// The name beside those of other runs: no more of a path than tells them apart.
    pub(crate) short: String,
    pub(crate) record: &'a AnyRecord,
    pub(crate) study: Cow<'a, StudyRun>,
}

impl<'a> Run<'a> {
    pub(crate) fn of(named: &'a NamedRun) -> Self {
        let study = match &named.record {
            AnyRecord::Study(study) => Cow::Borrowed(study.as_ref()),
            AnyRecord::Ingest(record) => Cow::Owned(of_ingest(record)),
            AnyRecord::Probe(record) => Cow::Owned(of_probe(record)),
            AnyRecord::Train(record) => Cow::Owned(of_train(record)),
        };
        Self { name: &named.name, short: named.name.clone(), record: &named.record, study }
    }

    pub(crate) fn is_study(&self) -> bool {
        matches!(self.record, AnyRecord::Study(_))
    }

    pub(crate) fn head(&self) -> &StudyHead {
        &self.study.head
    }

    pub(crate) fn spec(&self) -> &StudySpec {
        &self.study.head.spec
    }

    pub(crate) fn environment(&self) -> &Environment {
        &self.study.head.environment
    }

    pub(crate) fn series(&self) -> Option<&Series> {
        self.study.series.as_ref().filter(|series| !series.is_empty())
    }

    /// Every probe cell with the levels it was measured at.
    pub(crate) fn probes(&self) -> impl Iterator<Item = (&StudyCell, &ProbeCell)> {
        let cells = self.study.cells.iter().filter(|cell| cell.error.is_none());
        cells.flat_map(|cell| cell.probe.iter().map(move |probe| (cell, probe)))
    }

    /// Every ingest cell that was measured.
    pub(crate) fn ingests(&self) -> impl Iterator<Item = (&StudyCell, &IngestCell)> {
        let cells = self.study.cells.iter().filter(|cell| cell.error.is_none());
        cells.filter_map(|cell| cell.ingest.as_ref().map(|ingest| (cell, ingest)))
    }
}

/// The last part of each path, where those differ.
pub(crate) fn shorten(runs: &mut [Run<'_>]) {
    let last = |name: &str| {
        let name = name.trim_end_matches('/');
        let name = name.strip_suffix("/record.jsonl").unwrap_or(name);
        let last = name.rsplit('/').next().unwrap_or(name);
        last.strip_suffix(".json").unwrap_or(last).to_owned()
    };
    let short: Vec<String> = runs.iter().map(|run| last(run.name)).collect();
    let differ = short.iter().enumerate().all(|(i, name)| !name.is_empty() && !short[..i].contains(name));
    if differ {
        runs.iter_mut().zip(short).for_each(|(run, short)| run.short = short);
    }
}

/// A quantity of a cell, positive or zero and finite; also the plain rates of a cell that holds a single probe.
pub(crate) fn metric(cell: &StudyCell, name: &str) -> Option<Metric> {
    let metric = match (cell.probe.as_slice(), name) {
        ([probe], "mb_per_s") => {
            let repeats = probe.samples.iter().map(|repeat| repeat.mb_per_s()).collect();
            Some(Metric { value: probe.mb_per_s, repeats })
        }
        ([probe], "iops") => {
            let repeats = probe.samples.iter().map(|repeat| repeat.iops()).collect();
            Some(Metric { value: probe.iops, repeats })
        }
        _ => cell.metric(name),
    }?;
    let sound = |value: &f64| value.is_finite() && *value >= 0.0;
    let repeats = metric.repeats.into_iter().filter(sound).collect();
    sound(&metric.value).then_some(Metric { value: metric.value, repeats })
}

/// The levels of an ingest cell: what tells it from others of its kind.
pub(crate) fn levels_of_ingest(cell: &IngestCell) -> Levels {
    let integer = |value: u64| Level::Integer(i64::try_from(value).unwrap_or(i64::MAX));
    let mut levels = Levels::new();
    levels.insert("threads".to_owned(), integer(cell.threads));
    levels.insert("read_only".to_owned(), Level::Flag(cell.read_only));
    levels.insert("batch".to_owned(), integer(cell.batch));
    levels.insert("prefetch".to_owned(), integer(cell.prefetch));
    if cell.threads_auto {
        levels.insert("threads_auto".to_owned(), Level::Flag(true));
    }
    if cell.readers > 0 {
        levels.insert("readers".to_owned(), integer(cell.readers));
    }
    for (name, text) in [("storage", Some(&cell.storage)), ("tier", cell.tier.as_ref())] {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            levels.insert(name.to_owned(), Level::Text(text.clone()));
        }
    }
    levels
}

/// The levels of a probe cell.
pub(crate) fn levels_of_probe(cell: &ProbeCell) -> Levels {
    let integer = |value: u64| Level::Integer(i64::try_from(value).unwrap_or(i64::MAX));
    let text = |value: &str| Level::Text(value.to_owned());
    let mut levels = Levels::new();
    levels.insert("mode".to_owned(), text(mode_name(cell)));
    levels.insert("engine".to_owned(), text(engine_name(cell)));
    levels.insert("depth".to_owned(), integer(cell.depth));
    // Of files, what their lengths are is said in words.
    if let Some(block) = cell.block.filter(|_| cell.mode != forebay_record::ProbeMode::Files) {
        levels.insert("block".to_owned(), integer(block));
    }
    for (name, value) in [("mix", &cell.mix), ("tier", &cell.tier)] {
        if let Some(value) = value {
            levels.insert(name.to_owned(), text(value));
        }
    }
    levels
}

/// What a probe did, in words.
pub(crate) fn mode_name(cell: &ProbeCell) -> &'static str {
    use forebay_record::ProbeMode::{Files, RandomRead, SequentialRead, SequentialWrite};
    match cell.mode {
        SequentialWrite => "sequential write",
        SequentialRead => "sequential read",
        RandomRead => "random read",
        Files => "files",
    }
}

/// Engines in the order in which they are shown.
const ENGINES: [&str; 3] = ["sync", "direct", "uring"];

/// How it did it.
pub(crate) fn engine_name(cell: &ProbeCell) -> &'static str {
    use forebay_record::Engine::{Direct, Sync, Uring};
    match cell.engine {
        Sync => "sync",
        Direct => "direct",
        Uring => "uring",
    }
}

fn of_ingest(record: &Record<IngestCell>) -> StudyRun {
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

fn of_probe(record: &Record<ProbeCell>) -> StudyRun {
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

fn of_train(record: &Record<TrainCell>) -> StudyRun {
    let cells = record.cells.iter().map(|cell| StudyCell {
        train: Some(Box::new(cell.clone())),
        ..bare_cell("train", Step::Train, Levels::new())
    });
    let tiers = record.cells.iter().filter_map(|cell| Some((cell.tier.clone()?, cell.tier_kind)));
    finish(record, format!("Training on {}", record.dataset.path), cells.collect(), Vec::new(), tier_notes(tiers))
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

fn finish<C: forebay_record::Cell>(
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
            _ => Step::Ingest,
        },
        dataset: None,
        design: Design::Factorial,
        repeats: Scaled::Both(0),
        warmups: Scaled::Both(0),
        factors: [("engine".to_owned(), Scaled::Both(ENGINES.map(|name| Level::Text(name.to_owned())).into()))].into(),
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

/// The levels without factors that are the same in all cells, but for some that are always said.
pub(crate) fn differing(mut all: Vec<Levels>, always: &[&str]) -> Vec<Levels> {
    let Some(first) = all.first().cloned() else { return all };
    let same: Vec<String> = first
        .iter()
        .filter(|(factor, level)| all.iter().all(|levels| levels.get(*factor) == Some(level)))
        .map(|(factor, _)| factor.clone())
        .filter(|factor| !always.contains(&factor.as_str()))
        .collect();
    for levels in &mut all {
        levels.retain(|factor, _| !same.contains(factor));
    }
    all
}

fn bare_cell(experiment: &str, step: Step, factors: Levels) -> StudyCell {
    let levels: Vec<String> = factors.iter().map(|(factor, level)| format!("{factor}={level}")).collect();
    StudyCell {
        id: format!("{experiment}/{}", levels.join("/")),
        experiment: experiment.to_owned(),
        step,
        factors,
        started_at: String::new(),
        elapsed_s: 0.0,
        error: None,
        ingest: None,
        probe: Vec::new(),
        train: None,
        inspection: None,
        notes: Vec::new(),
    }
}

fn figure(id: &str, title: &str, kind: FigureKind, metrics: &[&str], x: Option<&str>) -> FigureSpec {
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
fn tier_notes(tiers: impl Iterator<Item = (String, Option<TierKind>)>) -> Vec<TierNote> {
    let mut notes: Vec<TierNote> = Vec::new();
    for (name, kind) in tiers {
        if !notes.iter().any(|note| note.name == name) {
            notes.push(TierNote { name, kind: kind.unwrap_or(TierKind::Shaped), description: String::new() });
        }
    }
    notes
}
