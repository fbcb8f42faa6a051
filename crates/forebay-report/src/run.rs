//! Every record seen as a study: cells with levels of factors, and figures over them.
//!
//! An ingest record is a study of one experiment over threads; a probe record is one over engines, blocks and depths.
//! What reports and compares then knows one kind of run only.

use std::borrow::Cow;

use forebay_record::{
    AnyRecord, Design, Environment, ExperimentSpec, FigureKind, FigureSpec, IngestCell, Level, Levels, Metric,
    ProbeCell, Record, SCHEMA, Scale, Scaled, Series, Step, StudyCell, StudyHead, StudyRun, StudySpec, TierKind,
    TierNote,
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
    pub(crate) record: &'a AnyRecord,
    pub(crate) study: Cow<'a, StudyRun>,
}

impl<'a> Run<'a> {
    pub(crate) fn of(named: &'a NamedRun) -> Self {
        let study = match &named.record {
            AnyRecord::Study(study) => Cow::Borrowed(study.as_ref()),
            AnyRecord::Ingest(record) => Cow::Owned(of_ingest(record)),
            AnyRecord::Probe(record) => Cow::Owned(of_probe(record)),
        };
        Self { name: &named.name, record: &named.record, study }
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
    if let Some(block) = cell.block {
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
    let cells = record.cells.iter().map(|cell| {
        let levels = levels_of_ingest(cell);
        StudyCell { ingest: Some(cell.clone()), ..bare_cell("ingest", Step::Ingest, levels) }
    });
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
    let cells = record.cells.iter().map(|cell| {
        let levels = levels_of_probe(cell);
        StudyCell { probe: vec![cell.clone()], ..bare_cell("probe", Step::Probe, levels) }
    });
    let cells: Vec<StudyCell> = cells.collect();
    let mut modes: Vec<&'static str> = Vec::new();
    for cell in &record.cells {
        if !modes.contains(&mode_name(cell)) {
            modes.push(mode_name(cell));
        }
    }
    let mut figures = Vec::new();
    for mode in &modes {
        let metrics: &[&str] = if *mode == "files" { &["iops", "mb_per_s"] } else { &["mb_per_s", "iops"] };
        let title = format!("Rate by requests in flight: {mode}");
        let mut rates =
            figure(&format!("rates-{}", mode.replace(' ', "-")), &title, FigureKind::Bars, metrics, Some("depth"));
        rates.series = Some("engine".to_owned());
        rates.at.insert("mode".to_owned(), Level::Text((*mode).to_owned()));
        figures.push(rates);
    }
    figures.push(figure("percentiles", "Latency of single requests", FigureKind::Percentiles, &[], None));
    if record.cells.iter().any(|cell| !cell.histogram.is_empty()) {
        figures.push(figure("distribution", "How latencies are distributed", FigureKind::Distribution, &[], None));
    }
    let tiers = record.cells.iter().filter_map(|cell| Some((cell.tier.clone()?, cell.tier_kind)));
    let title = match record.dataset.path.as_str() {
        "" => "Probe".to_owned(),
        path => format!("Probe of {path}"),
    };
    finish(record, title, cells, figures, tier_notes(tiers))
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
        run: if C::COMMAND == "probe" { Step::Probe } else { Step::Ingest },
        dataset: None,
        design: Design::Factorial,
        repeats: Scaled::Both(0),
        warmups: Scaled::Both(0),
        factors: [].into(),
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
        tiers,
        notes: record.notes.clone(),
    };
    StudyRun { head, cells, resumed: Vec::new(), series: record.series.clone() }
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
