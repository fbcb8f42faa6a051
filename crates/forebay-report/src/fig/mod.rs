//! Figures: one kind is one file here, its `mod` and its line of [`of`], and a variant of `FigureKind` in `forebay_record`.
//!
//! A kind picks the cells it is asked for, makes the table of values behind the picture ([`Columns`]), and says what is
//! along the axes and which marks stand in which panel ([`Plot`], [`Groups`]), all in values. Where that is drawn on a desk
//! and on a phone is up to those. What a kind cannot show, it says.

mod advice;
mod axes;
mod bars;
mod checkpoints;
mod columns;
mod contention;
mod disk;
mod distribution;
mod efficiency;
mod excess;
mod flows;
pub(crate) mod forest;
mod frontier;
mod groups;
mod interval;
mod legend;
mod need;
mod pen;
mod percentiles;
mod plot;
mod reads;
mod saves;
mod shards;
mod sizes;
mod speedup;
mod stack;
mod steps;
mod table;
mod time;
mod trace;
mod traffic;
mod tuning;
mod utilisation;
mod workers;

use forebay_record::{Cell, FigureKind, FigureSpec, IngestCell, StudyCell, TrainCell};

use crate::axis::Scale;
use crate::basis;
use crate::data::{Data, Value};
use crate::grid::{Grid, MAX_GROUPS, kept, wanted};
use crate::markup::Markup;
use crate::number::{distinct, quantity, tick};
use crate::published::Published;
use crate::run::Run;
use crate::svg::{Anchor, Area, Canvas, FAINT, Tip};
use crate::table::Align::{Left, Right};
use crate::{level, metric, palette};

use self::axes::{X, Y};
use self::columns::Columns;
use self::groups::{Bar, Groups};
pub(crate) use self::legend::Key;
use self::pen::{Line, Pen, Point};
use self::plot::{Panel, Plot, around, both};

/// Emulated step times that are named.
const MAX_INPUTS: usize = 6;

type Make = fn(&Context<'_>) -> Drawn;

/// The name of a kind on the page and in the JSON, and what makes it.
fn of(kind: FigureKind) -> (&'static str, Make) {
    match kind {
        FigureKind::Table => ("table", table::make),
        FigureKind::Bars => ("bars", bars::make),
        FigureKind::SpeedUp => ("speed-up", speedup::make),
        FigureKind::Efficiency => ("efficiency", efficiency::make),
        FigureKind::Workers => ("workers", workers::make),
        FigureKind::Trace => ("trace", trace::make),
        FigureKind::Percentiles => ("percentiles", percentiles::make),
        FigureKind::Distribution => ("distribution", distribution::make),
        FigureKind::Excess => ("excess", excess::make),
        FigureKind::Time => ("time", time::make),
        FigureKind::Reads => ("reads", reads::make),
        FigureKind::Sizes => ("sizes", sizes::make),
        FigureKind::Disk => ("disk", disk::make),
        FigureKind::Need => ("need", need::make),
        FigureKind::Steps => ("steps", steps::make),
        FigureKind::Checkpoints => ("checkpoints", checkpoints::make),
        FigureKind::Traffic => ("traffic", traffic::make),
        FigureKind::Utilisation => ("utilisation", utilisation::make),
        FigureKind::Advice => ("advice", advice::make),
        FigureKind::Frontier => ("frontier", frontier::make),
        FigureKind::Contention => ("contention", contention::make),
        FigureKind::Interval => ("interval", interval::make),
        FigureKind::Tuning => ("tuning", tuning::make),
    }
}

pub(crate) struct Context<'a> {
    pub(crate) run: &'a Run<'a>,
    pub(crate) spec: &'a FigureSpec,
    pub(crate) published: &'a [Published<'a>],
}

impl Context<'_> {
    /// The cells that the figure asks for, in the order of the study.
    fn cells(&self) -> Vec<&StudyCell> {
        let mut cells = wanted(self.run, self.spec);
        let order = crate::order::Order::of(self.run);
        cells.sort_by(|a, b| order.compare(a, b));
        cells
    }

    /// Those that were measured, each with what was.
    fn measured<C: Cell>(&self) -> Vec<(&StudyCell, &C)> {
        let sound = self.cells().into_iter().filter(|cell| cell.error.is_none());
        sound.filter_map(|cell| Some((cell, cell.measured_one::<C>()?))).collect()
    }

    fn metric(&self) -> &str {
        self.spec.metrics.first().map_or(IngestCell::IMAGES_PER_S.info.name, String::as_str)
    }

    fn published_for(&self, cell: &StudyCell, metric: &str) -> Option<&Published<'_>> {
        let is_of =
            |row: &&Published<'_>| row.reference.metric == metric && row.cell.is_some_and(|of| std::ptr::eq(of, cell));
        // Words have no place on an axis.
        self.published.iter().filter(|row| row.reference.says.is_none()).find(is_of)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Drawn {
    pub(crate) data: Data,
    /// What to see, where the study does not say it.
    pub(crate) caption: String,
    /// What follows from the cells, whatever the study says.
    pub(crate) judged: String,
    pub(crate) reading: String,
    pub(crate) remarks: Vec<String>,
    pub(crate) legend_title: String,
    pub(crate) legend: Vec<Key>,
    /// For a desk and for a phone; none when there is nothing to draw.
    pub(crate) pictures: Vec<Markup>,
    /// Lines for other programs, each with what it is.
    pub(crate) code: Vec<(String, String)>,
    /// The data is the figure: it is shown open.
    pub(crate) is_table: bool,
    /// The data is as much to be read as the picture.
    pub(crate) is_open: bool,
}

impl Drawn {
    /// A figure that says why there is no picture.
    fn nothing(why: impl Into<String>) -> Self {
        Self { remarks: vec![why.into()], ..Self::default() }
    }
}

#[derive(Debug)]
pub(crate) struct Figure {
    pub(crate) id: String,
    /// "Figure 3" or "Table 1".
    pub(crate) number: String,
    pub(crate) title: String,
    pub(crate) kind: &'static str,
    pub(crate) drawn: Drawn,
}

impl Figure {
    /// What it shows and what to see in it.
    pub(crate) fn caption(&self, spec_caption: &str) -> String {
        let said = if spec_caption.trim().is_empty() { &self.drawn.caption } else { spec_caption.trim() };
        let stop = if said.is_empty() || said.ends_with(['.', '!', '?', '…', ':']) { "" } else { "." };
        let parts = [format!("{said}{stop}"), self.drawn.judged.clone(), self.drawn.reading.clone()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
    }
}

/// Makes a figure's content; also says what its kind is called. It shows every cell, and says only what follows from the cells of `sound`,
/// which are those that nothing disturbed.
pub(crate) fn make(context: &Context<'_>, sound: Option<&Context<'_>>) -> (&'static str, Drawn) {
    let (kind, mut drawn) = drawn(context);
    let is_of_cells = !matches!(context.spec.kind, FigureKind::Trace | FigureKind::Disk);
    if let Some((sound, disturbed)) = sound.filter(|_| is_of_cells).zip(disturbed(context, &drawn)) {
        let said = self::drawn(sound).1;
        (drawn.caption, drawn.judged) = (said.caption, said.judged);
        drawn.remarks.push(format!("{} {disturbed}", basis::LEGEND));
    }
    drawn.remarks.extend(inputs(context));
    (kind, drawn)
}

/// Which cells of a figure others disturbed, and whether they are drawn faint: lines are not.
fn disturbed(context: &Context<'_>, drawn: &Drawn) -> Option<String> {
    let cells = context.cells();
    let measured = cells.iter().filter(|cell| cell.is_measured()).count();
    let (names, causes): (Vec<String>, Vec<String>) =
        cells.into_iter().filter_map(|cell| Some((context.run.name_of(cell), cell.disturbed()?.cause()))).unzip();
    let all = names.len() == measured;
    let each = names.iter().zip(&causes).map(|(name, cause)| format!("{name} ({cause})")).collect::<Vec<_>>();
    let is_faint = drawn.pictures.iter().any(|picture| picture.as_str().contains(FAINT));
    let which = if is_faint { "Drawn faint" } else { "Disturbed" };
    match names.len() {
        0 => None,
        1 if all => Some(format!("Disturbed: {}.", causes[0])),
        _ if all => Some(format!("Every cell was disturbed: {}.", each.join("; "))),
        _ => Some(format!("{which}: {}.", each.join("; "))),
    }
}

/// That run times follow from emulated step times, where a figure shows run times.
fn inputs(context: &Context<'_>) -> Option<String> {
    let is_of_times = matches!(
        context.spec.kind,
        FigureKind::Bars | FigureKind::Time | FigureKind::Checkpoints | FigureKind::Contention
    );
    let cells = context.measured::<TrainCell>();
    let mut steps = distinct(cells.iter().filter_map(|(_, cell)| cell.accelerator.as_deref()));
    let more = steps.len().saturating_sub(MAX_INPUTS);
    steps.truncate(MAX_INPUTS);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (is_of_times && !steps.is_empty()).then(|| {
        format!(
            "Computing is an input here, not a measurement ({}{more}): only what is added to it was measured.",
            steps.join(", ")
        )
    })
}

fn drawn(context: &Context<'_>) -> (&'static str, Drawn) {
    let (name, make) = of(context.spec.kind);
    (name, make(context))
}

/// The first of the items that a picture has room for; what is left out is remarked.
fn first<'a, T>(items: &'a [T], most: usize, what: &str, remarks: &mut Vec<String>) -> &'a [T] {
    if items.len() > most {
        remarks.push(format!("Of {} {what}, {most} are drawn; the data below has all.", items.len()));
    }
    &items[..items.len().min(most)]
}

/// As many of the items as a picture has room for, evenly with both ends; what is left out is remarked.
fn thinned<'a, T>(items: &'a [T], most: usize, what: &str, remarks: &mut Vec<String>) -> Vec<&'a T> {
    if items.len() > most {
        let n = items.len();
        remarks.push(format!(
            "Of {n} {what}, {most} are drawn, evenly chosen from first to last; the data below has all."
        ));
    }
    kept(items.len(), most).into_iter().map(|i| &items[i]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caption_without_a_full_stop_gets_one_before_what_follows() {
        let drawn = Drawn { reading: "Read it so.".to_owned(), ..Drawn::default() };
        let figure = Figure { id: String::new(), number: String::new(), title: String::new(), kind: "bars", drawn };
        assert_eq!(figure.caption("Rates by threads "), "Rates by threads. Read it so.");
        assert_eq!(figure.caption("Rates?"), "Rates? Read it so.");
        assert_eq!(figure.caption(""), "Read it so.");
    }
}
