//! What the page of a single record is called, and which figures it shows.

use forebay_record::{
    Cell, CheckpointCell, FigureKind, FigureSpec, IngestCell, Level, Levels, ProbeCell, Record, TraceCell, TrainCell,
    WorkloadCell,
};

use crate::number::distinct;

/// An experiment whose records have a page of their own.
pub(super) trait Titled: Cell {
    fn title(record: &Record<Self>) -> String;

    fn figures(record: &Record<Self>) -> Vec<FigureSpec>;

    /// Levels that are named even where all cells share them.
    fn always(_: &Record<Self>) -> Vec<&'static str> {
        Self::ALWAYS.to_vec()
    }

    fn shown(levels: Levels) -> Levels {
        levels
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
        points: Vec::new(),
    }
}

/// "Ingest", or "Ingest of PATH".
fn of_data<C: Cell>(what: &str, between: &str, record: &Record<C>) -> String {
    match record.dataset.path.as_str() {
        "" => what.to_owned(),
        path => format!("{what} {between} {path}"),
    }
}

impl Titled for IngestCell {
    fn title(record: &Record<Self>) -> String {
        of_data("Ingest", "of", record)
    }

    fn figures(record: &Record<Self>) -> Vec<FigureSpec> {
        let x = Some("threads");
        let mut figures = vec![
            figure(
                "rates",
                "Rate by threads",
                FigureKind::Bars,
                &[Self::IMAGES_PER_S.info.name, Self::MB_PER_S.info.name],
                x,
            ),
            figure("speed-up", "Speed-up by threads", FigureKind::SpeedUp, &[Self::IMAGES_PER_S.info.name], x),
        ];
        if record.cells.iter().any(|cell| cell.ceiling_mb_per_s.is_some()) {
            figures.push(figure("ceiling", "Share of the storage's ceiling", FigureKind::Efficiency, &[], x));
        }
        figures.push(figure("workers", "Where the workers' time went", FigureKind::Workers, &[], x));
        figures
    }
}

impl Titled for ProbeCell {
    fn title(record: &Record<Self>) -> String {
        of_data("Probe", "of", record)
    }

    fn figures(record: &Record<Self>) -> Vec<FigureSpec> {
        let modes = distinct(record.cells.iter().map(|cell| cell.mode.describe()));
        modes.into_iter().flat_map(|mode| probe_figures(record, mode)).collect()
    }
}

/// Rates and latencies of a mode; the distribution where requests are small and their tail is what one waits for.
fn probe_figures(record: &Record<ProbeCell>, mode: &str) -> Vec<FigureSpec> {
    let of_mode = || record.cells.iter().filter(|cell| cell.mode.describe() == mode);
    let named = |id: &str, title: &str, kind: FigureKind, metrics: &[&str], x: Option<&str>| {
        let mut spec =
            figure(&format!("{id}-{}", mode.replace(' ', "-")), &format!("{title}: {mode}"), kind, metrics, x);
        spec.at.insert("mode".to_owned(), Level::Text(mode.to_owned()));
        spec
    };
    let metrics: &[&str] = if mode == "files" {
        &[ProbeCell::IOPS.info.name, ProbeCell::MB_PER_S.info.name]
    } else {
        &[ProbeCell::MB_PER_S.info.name, ProbeCell::IOPS.info.name]
    };
    let mut rates = named("rates", "Rate by requests in flight", FigureKind::Bars, metrics, Some("depth"));
    rates.series = Some("engine".to_owned());
    let mut figures = vec![rates];
    if of_mode().any(|cell| cell.latency_us.p50 > 0.0) {
        figures.push(named("percentiles", "Latency of single requests", FigureKind::Percentiles, &[], None));
    }
    if of_mode().any(|cell| !cell.histogram.is_empty()) && !mode.starts_with("sequential") {
        figures.push(named("distribution", "Latency distribution", FigureKind::Distribution, &[], None));
    }
    figures
}

impl Titled for TraceCell {
    fn title(record: &Record<Self>) -> String {
        record.cells.first().map_or("Trace".to_owned(), |cell| format!("Trace of {}", cell.job))
    }

    fn figures(_: &Record<Self>) -> Vec<FigureSpec> {
        Vec::new()
    }
}

impl Titled for TrainCell {
    fn title(record: &Record<Self>) -> String {
        let model = record.cells.first().and_then(|cell| cell.model.as_deref());
        let what = model.map_or("Training".to_owned(), |model| format!("Training {model}"));
        if is_tuned(record) {
            return of_data("Tuning", "of training on", record);
        }
        let is_synthetic = record.dataset.path.is_empty() && record.cells.iter().any(|cell| cell.synthetic);
        if is_synthetic { format!("{what} on synthetic batches") } else { of_data(&what, "on", record) }
    }

    /// Of an emulated accelerator also the device, which is all that tells it from another.
    fn always(record: &Record<Self>) -> Vec<&'static str> {
        let is_emulated = record.cells.iter().all(|cell| cell.model.is_none());
        Self::ALWAYS.iter().copied().chain(is_emulated.then_some("device")).collect()
    }

    fn figures(record: &Record<Self>) -> Vec<FigureSpec> {
        let mut figures = Vec::new();
        let x = Some(if is_tuned(record) { "threads" } else { "batch" });
        if is_tuned(record) {
            figures.push(figure("tuning", "Run times from change to change", FigureKind::Tuning, &[], None));
        } else if record.cells.len() > 1 {
            figures.push(figure(
                "wall-clock",
                "Wall clock",
                FigureKind::Bars,
                &[Self::WALL_S.info.name, Self::IMAGES_PER_S.info.name],
                x,
            ));
        }
        figures.push(figure("time", "Where the accelerator's time went", FigureKind::Time, &[], x));
        figures.push(figure("steps", "Step by step", FigureKind::Steps, &[], x));
        let saved = || record.cells.iter().filter_map(|cell| cell.checkpoints.as_ref());
        if saved().any(|saved| !saved.saves.is_empty()) {
            figures.push(figure("checkpoints", "Each checkpoint", FigureKind::Checkpoints, &[], None));
        }
        if saved().any(|saved| !saved.traffic.is_empty()) {
            figures.push(figure("traffic", "Checkpoint traffic over time", FigureKind::Traffic, &[], None));
        }
        if record.cells.iter().any(|cell| cell.reads.as_ref().is_some_and(|reads| !reads.mb.is_empty())) {
            figures.push(figure("reads", "Reads over time", FigureKind::Reads, &[], x));
        }
        if record.cells.iter().any(|cell| !cell.totals.worker_time.is_empty()) {
            figures.push(figure("workers", "Where the workers' time went", FigureKind::Workers, &[], x));
        }
        figures
    }
}

/// Whether `forebay tune` made it.
fn is_tuned(record: &Record<TrainCell>) -> bool {
    record.cells.iter().any(|cell| cell.tuning.is_some())
}

impl Titled for WorkloadCell {
    fn title(record: &Record<Self>) -> String {
        match record.cells.first() {
            Some(Self { workload, made_by: Some(by), .. }) => format!("Workload {workload}, measured by {by}"),
            Some(Self { workload, .. }) => format!("Workload {workload}"),
            None => "Workload".to_owned(),
        }
    }

    fn figures(record: &Record<Self>) -> Vec<FigureSpec> {
        let has = |of: fn(&WorkloadCell) -> bool| record.cells.iter().any(of);
        let x = Some("accelerators");
        let mut figures = Vec::new();
        if has(|cell| !cell.epochs_of.is_empty()) {
            let title = "Accelerator utilisation, epoch by epoch";
            figures.push(figure(
                "utilisation",
                title,
                FigureKind::Utilisation,
                &[Self::AU_EPOCH.info.name, Self::AU_DLIO.info.name],
                Some("epoch"),
            ));
        }
        figures.push(figure("time", "Where the accelerators' time went", FigureKind::Time, &[], x));
        if has(|cell| cell.epochs_of.iter().any(|epoch| !epoch.load.is_empty())) {
            figures.push(figure("steps", "Step by step", FigureKind::Steps, &[], x));
        }
        if has(|cell| cell.reads.as_ref().is_some_and(|reads| !reads.mb.is_empty())) {
            figures.push(figure("reads", "Reads over time", FigureKind::Reads, &[], x));
        }
        if has(|cell| !cell.worker_time.is_empty()) {
            figures.push(figure("workers", "Where the readers' time went", FigureKind::Workers, &[], x));
        }
        if has(|cell| !cell.saves.is_empty()) {
            figures.push(figure("saves", "Each checkpoint", FigureKind::Checkpoints, &[], None));
        }
        figures
    }
}

impl Titled for CheckpointCell {
    fn title(record: &Record<Self>) -> String {
        match record.cells.first().map(|cell| cell.state.as_str()).unwrap_or_default() {
            "" => "Checkpoints".to_owned(),
            state => format!("Checkpoints of {state}"),
        }
    }

    /// What a mode without a first tier lacks is told by the mode.
    fn shown(mut levels: Levels) -> Levels {
        levels.retain(|factor, _| !["burst_storage", "burst_tier"].contains(&factor.as_str()));
        levels
    }

    fn figures(record: &Record<Self>) -> Vec<FigureSpec> {
        let by_mode = |id: &str, title: &str, kind: FigureKind, metric: &[&str]| {
            let mut spec = figure(id, title, kind, metric, Some("mode"));
            spec.series = Some("format".to_owned());
            spec
        };
        let has = |of: fn(&CheckpointCell) -> Option<f64>| record.cells.iter().any(|cell| of(cell).is_some());
        let mut figures = vec![by_mode("stall", "Stall per checkpoint", FigureKind::Bars, &[Self::STALL_S.info.name])];
        if has(|cell| cell.durable_fast_s) {
            figures.push(by_mode("saves", "Durable save rate", FigureKind::Bars, &[Self::SAVE_MB_PER_S.info.name]));
        }
        if has(|cell| cell.ceiling_mb_per_s) {
            figures.push(by_mode("ceiling", "Save rate, share of the ceiling", FigureKind::Efficiency, &[]));
        }
        if has(|cell| cell.restore_s) {
            figures.push(by_mode(
                "restores",
                "Restore rate, verified",
                FigureKind::Bars,
                &[Self::RESTORE_MB_PER_S.info.name],
            ));
        }
        figures
    }
}
