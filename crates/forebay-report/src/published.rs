//! What others published, beside what was measured here.

use forebay_record::{
    Disturbed, FigureKind, FigureSpec, IngestCell, Reference, SPEED_UP, STALL_SPEED_UP, StudyCell, TierKind,
};

use crate::data::{Data, Tone, Value};
use crate::level;
use crate::metric;
use crate::number::{percent, times};
use crate::run::Run;
use crate::stall;
use crate::table::Align::{Left, Right};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Agreement {
    /// Within the reference's tolerance.
    Agrees,
    /// Outside of it.
    Differs,
    /// The reference has no tolerance.
    NotJudged,
    /// There is nothing of ours to set beside it.
    NotMeasured,
    Disturbed,
    /// Outside of the tolerance by less than a cell varies that was measured once.
    CannotTell,
    /// Follows from what the emulation was given, and came out so.
    Calibrated,
    /// Follows from what the emulation was given, and did not come out so.
    Missed,
}

impl Agreement {
    pub(crate) fn value(self) -> Value {
        match self {
            Self::Agrees => Value::Word("agrees", Tone::Good),
            Self::Differs => Value::Word("differs", Tone::Bad),
            Self::NotJudged => Value::Word("not judged", Tone::Neither),
            Self::NotMeasured => Value::Word("not measured", Tone::Neither),
            Self::Disturbed => Value::Word("not judged: disturbed", Tone::Neither),
            Self::CannotTell => Value::Word("inconclusive (one repeat)", Tone::Neither),
            Self::Calibrated => Value::Word("calibrated", Tone::Neither),
            Self::Missed => Value::Word("calibrated, not reached", Tone::Bad),
        }
    }
}

/// A published value and a cell of ours that was measured at its levels.
#[derive(Debug, Clone)]
pub(crate) struct Published<'a> {
    pub(crate) reference: &'a Reference,
    /// The cell; `None` when there is none.
    pub(crate) cell: Option<&'a StudyCell>,
    pub(crate) name: String,
    /// Our value; `None` when the cell failed or does not have the quantity.
    pub(crate) ours: Option<f64>,
    /// What others did while that was measured, or the value it is a ratio to.
    pub(crate) disturbed: Option<Disturbed>,
    /// How far a cell varies that was measured once, as a share; 0 of one that was repeated.
    pub(crate) noise: f64,
    /// Whether the value follows from what an emulation was given; never on real devices.
    pub(crate) is_calibrated: bool,
}

impl Published<'_> {
    /// Ours over theirs; of a range, over its nearest end.
    pub(crate) fn ratio(&self) -> Option<f64> {
        self.ours.map(|ours| ours / self.reference.nearest(ours)).filter(|ratio| ratio.is_finite())
    }

    /// What was published, as text.
    pub(crate) fn theirs(&self) -> String {
        let reference = self.reference;
        let shown = |value| metric::published(&reference.metric, value);
        match (&reference.says, reference.to) {
            (Some(says), _) => says.clone(),
            (None, Some(to)) => format!("{} to {}", shown(reference.value), shown(to)),
            (None, None) => shown(reference.value),
        }
    }

    pub(crate) fn agreement(&self) -> Agreement {
        match (self.ratio(), self.reference.within) {
            (None, _) => Agreement::NotMeasured,
            _ if self.disturbed.is_some() => Agreement::Disturbed,
            (_, None) => Agreement::NotJudged,
            (Some(ratio), Some(within)) => {
                let above = self.reference.above.unwrap_or(within);
                // A value on the border agrees, also where the border cannot be written exactly.
                let is_within = |more: f64| (-within - more - 1e-9..=above + more + 1e-9).contains(&(ratio - 1.0));
                match (is_within(0.0), is_within(self.noise)) {
                    (true, _) if self.is_calibrated => Agreement::Calibrated,
                    (false, false) if self.is_calibrated => Agreement::Missed,
                    (true, _) => Agreement::Agrees,
                    (false, true) => Agreement::CannotTell,
                    _ => Agreement::Differs,
                }
            }
        }
    }
}

impl Published<'_> {
    /// What ours was calibrated from, or why it agrees or differs.
    fn note(&self) -> String {
        let from = self.reference.calibrated.as_ref().filter(|_| self.is_calibrated);
        let from = from.map(|from| format!("Calibrated: {}.", from.trim_end_matches('.')));
        from.into_iter().chain(self.reference.because.clone()).collect::<Vec<_>>().join(" ")
    }

    /// How the value stands in a sentence: "published", or "calibrated to".
    pub(crate) fn word(&self) -> &'static str {
        if self.is_calibrated { "calibrated to" } else { "published" }
    }

    /// Ours beside theirs with the reason, where the study gives one and the two were compared.
    pub(crate) fn explained(&self) -> Option<String> {
        let because = self.reference.because.as_deref()?.trim();
        let verb = match self.agreement() {
            Agreement::Agrees => "agrees with",
            Agreement::Differs => "differs from",
            Agreement::NotJudged | Agreement::Calibrated | Agreement::Missed => "stands beside",
            Agreement::NotMeasured | Agreement::Disturbed | Agreement::CannotTell => return None,
        };
        let (ours, metric) = (self.ours?, &self.reference.metric);
        let at = if self.name.is_empty() { String::new() } else { format!(", {}", self.name) };
        let (shown, source) = (metric::with_unit(metric, ours), &self.reference.source);
        Some(format!(
            "{}{at}: ours, {shown}, {verb} the published value, {} ({source}). {because}",
            crate::number::capital(&metric::name(metric)),
            self.theirs(),
        ))
    }
}

/// Every published value of a study; one that several cells were measured for is there for each.
pub(crate) fn published<'a>(run: &'a Run<'a>) -> Vec<Published<'a>> {
    let mut all = Vec::new();
    for reference in run.spec().references.iter().filter(|reference| reference.is_of(run.head().scale)) {
        let of = |cell: &&StudyCell| cell.experiment == reference.experiment && cell.is_at(&reference.at);
        let cells = run.study.cells.iter().filter(of);
        let mut rows: Vec<Published<'_>> = cells.map(|cell| of_cell(run, reference, cell)).collect();
        // A cell that cannot have the quantity says nothing where others have it.
        if rows.iter().any(|row| row.ours.is_some()) {
            rows.retain(|row| row.ours.is_some() || row.cell.is_some_and(|cell| cell.error.is_some()));
        }
        if rows.is_empty() {
            let name = level::all(&reference.at);
            rows.push(Published {
                reference,
                cell: None,
                name,
                ours: None,
                disturbed: None,
                noise: 0.0,
                is_calibrated: false,
            });
        }
        all.extend(rows);
    }
    all
}

fn of_cell<'a>(run: &'a Run<'a>, reference: &'a Reference, cell: &'a StudyCell) -> Published<'a> {
    let base = base(run, reference, cell);
    let both = || std::iter::once(cell).chain(base.flatten());
    let is_once = both().any(|cell| cell.n_repeats() < 2);
    Published {
        reference,
        cell: Some(cell),
        name: run.name_of(cell),
        ours: base.and_then(|base| ours(run, reference, cell, base)),
        disturbed: Disturbed::together(both().filter_map(StudyCell::disturbed)),
        noise: if is_once { run.noise() } else { 0.0 },
        is_calibrated: reference.calibrated.is_some() && !is_real(run, cell),
    }
}

/// Whether every tier that a cell's levels name is a real device; false where they name none.
fn is_real(run: &Run<'_>, cell: &StudyCell) -> bool {
    let levels: Vec<String> = cell.factors.values().map(ToString::to_string).collect();
    let names = || levels.iter().flat_map(|level| level.split('→')).map(str::trim);
    let mut tiers = run.head().tiers.iter().filter(|tier| names().any(|name| name == tier.name)).peekable();
    tiers.peek().is_some() && tiers.all(|tier| tier.kind == TierKind::Device)
}

/// The cell that a published ratio of a cell is to, if it is a ratio; `None` where that cell is missing.
fn base<'a>(run: &'a Run<'a>, reference: &Reference, cell: &StudyCell) -> Option<Option<&'a StudyCell>> {
    match reference.metric.as_str() {
        _ if is_stall(run, reference) => stall::direct(run, cell).map(Some),
        metric if metric == SPEED_UP.name => base_of(run, cell, scaling_of(run, &reference.experiment).1).map(Some),
        _ => Some(None),
    }
}

fn is_stall(run: &Run<'_>, reference: &Reference) -> bool {
    let is_speed_up = reference.metric == SPEED_UP.name;
    reference.metric == STALL_SPEED_UP.name || (is_speed_up && is_of_stalls(run, &reference.experiment))
}

fn ours(run: &Run<'_>, reference: &Reference, cell: &StudyCell, base: Option<&StudyCell>) -> Option<f64> {
    if cell.error.is_some() {
        return None;
    }
    if is_stall(run, reference) {
        return stall::speed_up(run, cell);
    }
    let Some(base) = base else { return cell.metric(&reference.metric).map(|metric| metric.value) };
    let quantity = scaling_of(run, &reference.experiment).0;
    let ratio = cell.metric(quantity)?.value / base.metric(quantity)?.value;
    Some(if metric::is_cost(quantity) { 1.0 / ratio } else { ratio })
}

/// Whether an experiment's speed-up is that of the stalls: it has a figure of checkpoints, and none of speed-up.
pub(crate) fn is_of_stalls(run: &Run<'_>, experiment: &str) -> bool {
    let has = |kind: FigureKind| {
        let of = |figure: &&FigureSpec| figure.kind == kind && figure.experiment.as_deref() == Some(experiment);
        run.spec().figures.iter().any(|figure| of(&figure))
    };
    has(FigureKind::Checkpoints) && !has(FigureKind::SpeedUp)
}

/// The quantity whose speed-up an experiment is about, and the factor it is over.
pub(crate) fn scaling_of<'a>(run: &'a Run<'a>, experiment: &str) -> (&'a str, &'a str) {
    let of = |figure: &&FigureSpec| {
        figure.kind == FigureKind::SpeedUp && figure.experiment.as_deref().is_none_or(|name| name == experiment)
    };
    let figure = run.spec().figures.iter().find(of);
    let quantity =
        figure.and_then(|figure| figure.metrics.first()).map_or(IngestCell::IMAGES_PER_S.info.name, String::as_str);
    (quantity, figure.and_then(|figure| figure.x.as_deref()).unwrap_or("threads"))
}

/// The cell that a speed-up of `cell` is over: the same levels, but the first of the factor `x`.
fn base_of<'a>(run: &'a Run<'a>, cell: &StudyCell, x: &str) -> Option<&'a StudyCell> {
    let alike = |other: &&StudyCell| {
        other.experiment == cell.experiment
            && other.factors.len() == cell.factors.len()
            && other.factors.iter().all(|(factor, level)| factor == x || cell.level(factor) == Some(level))
            && other.level(x).is_some()
    };
    let first = run.study.cells.iter().filter(alike).min_by(|a, b| match (a.level(x), b.level(x)) {
        (Some(a), Some(b)) => level::order(a, b),
        _ => std::cmp::Ordering::Equal,
    });
    first.filter(|base| base.error.is_none())
}

/// "±10 %", or "−20 % +60 %" where it is not the same to both sides.
fn tolerance(within: f64, above: Option<f64>) -> String {
    match above {
        Some(above) => format!("−{} +{}", percent(within), percent(above)),
        None => format!("±{}", percent(within)),
    }
}

pub(crate) fn table<'a>(rows: impl Iterator<Item = &'a Published<'a>>) -> Data {
    let mut data = Data::new(&[
        ("experiment", "experiment", Left),
        ("at", "at", Left),
        ("metric", "quantity", Left),
        ("ours", "ours", Right),
        ("published", "published", Right),
        ("ratio", "ratio", Right),
        ("within", "tolerance", Right),
        ("agreement", "verdict", Left),
        ("source", "source", Left),
        ("note", "note", Left),
    ]);
    for row in rows {
        let reference = row.reference;
        let show = metric::show(&reference.metric);
        data.row(vec![
            Value::text(reference.experiment.clone()),
            Value::text(row.name.clone()),
            Value::text(metric::name(&reference.metric)),
            Value::maybe(row.ours, show).marked(row.disturbed),
            Value::number(reference.value, |_| row.theirs()),
            Value::maybe(row.ratio(), times),
            Value::maybe(reference.within, |within| tolerance(within, reference.above)),
            row.agreement().value(),
            Value::text(reference.source.clone()),
            Value::text(row.note()),
        ]);
    }
    data.hide_if_same("experiment");
    data
}
