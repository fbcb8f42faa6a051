//! Megabytes read per second over time: a panel a level of the axis, an area a level of the series, time alike in all.
//!
//! The last series, which has most batches made ahead, is filled; the others are outlines on top of it.

use forebay_record::{IngestCell, Reads, StudyCell, TrainCell, WorkloadCell};

use crate::number::seconds;

use super::flows::{self, FILLED, Flow, Flows};
use super::{Columns, Context, Data, Drawn, Grid, Key, Tip, both, level, palette, quantity};

struct Curve<'a> {
    cell: &'a StudyCell,
    reads: &'a Reads,
    class: String,
}

struct Level<'a> {
    name: String,
    curves: Vec<Curve<'a>>,
}

pub(super) fn make(context: &Context<'_>) -> Drawn {
    let grid = Grid::for_lines(context.run, context.spec);
    let panels = panels(&grid);
    if panels.is_empty() {
        return Drawn::nothing("No cell of this figure recorded its reads over time.");
    }
    let mut remarks = grid.remarks.clone();
    remarks.extend(flows::means(&panels));
    Drawn {
        data: data(&panels),
        caption: caption(&panels),
        reading: "Bytes are counted where they are moved, in the run nearest to the median; all panels share one time \
                  axis."
            .to_owned()
            + if flows::own_scales(&panels) { " Each panel has its own y-axis." } else { "" },
        remarks,
        legend_title: grid.legend_title(),
        legend: legend(&grid),
        pictures: both(&context.spec.title, |canvas| flows::plot(canvas, "MB read per second", &panels)),
        ..Drawn::default()
    }
}

fn panels<'a>(grid: &Grid<'a>) -> Vec<Level<'a>> {
    let sound = |reads: &&Reads| {
        let finite = reads.mb.iter().all(|mb| mb.is_finite() && *mb >= 0.0);
        finite && reads.every_s > 0.0 && !reads.mb.is_empty()
    };
    let panel = |x: usize| {
        let curve = |series: usize| {
            let cell = grid.cell(series, x).filter(|cell| cell.error.is_none())?;
            let of_train = cell.measured_one::<TrainCell>().and_then(|train| train.reads.as_ref());
            let reads = of_train.or_else(|| cell.measured_one::<WorkloadCell>()?.reads.as_ref()).filter(sound)?;
            Some(Curve { cell, reads, class: class(series, grid.series.len()) })
        };
        let name = grid.x_factor.zip(grid.cells.iter().find_map(|cell| {
            let factor = grid.x_factor?;
            cell.level(factor).filter(|level| level::bare(factor, level) == grid.xs[x].name)
        }));
        let name = name.map_or(String::new(), |(factor, level)| level::named(factor, level));
        Level { name, curves: (0..grid.series.len()).filter_map(curve).collect() }
    };
    (0..grid.xs.len()).map(panel).filter(|panel| !panel.curves.is_empty()).collect()
}

fn curves<'a>(panels: &'a [Level<'a>]) -> impl Iterator<Item = &'a Curve<'a>> {
    panels.iter().flat_map(|panel| &panel.curves)
}

impl Flows for Level<'_> {
    fn title(&self, n_panels: usize) -> &str {
        if n_panels > 1 { &self.name } else { "" }
    }

    fn flows(&self) -> Vec<Flow<'_>> {
        let curves = self.curves.iter().map(|curve| (&curve.class, curve.reads));
        curves.map(|(class, of)| Flow { class: class.clone(), every_s: of.every_s, mb: &of.mb }).collect()
    }

    fn tip(&self, from_s: f64, to_s: f64, rates: &[Option<f64>]) -> Tip {
        let mut text = format!("{} to {}", seconds(from_s), seconds(to_s));
        let unknown = || "–".to_owned();
        for (curve, rate) in self.curves.iter().zip(rates) {
            let shown = rate.map_or_else(unknown, |rate| format!("{} MB/s", quantity(rate)));
            text.push_str(&format!("\n{}: {shown}", level::all(&curve.cell.factors)));
        }
        let value = |rate: &Option<f64>| rate.map_or_else(unknown, |rate| ((rate * 1e3).round() / 1e3).to_string());
        let values: Vec<String> = rates.iter().map(value).collect();
        Tip::new(text).with("panel", &self.name).with("time", from_s).with("values", values.join(" "))
    }
}

/// The class of a series' area: the last is filled.
fn class(series: usize, n_series: usize) -> String {
    if series + 1 == n_series { FILLED.to_owned() } else { format!("outline {}l", palette::hue(series)) }
}

fn legend(grid: &Grid<'_>) -> Vec<Key> {
    let n = grid.series.len();
    let key = |(i, place): (usize, &crate::grid::Place)| Key::swatch(&class(i, n), place.name.clone());
    grid.series.iter().enumerate().filter(|_| n > 1).map(key).collect()
}

fn caption(panels: &[Level<'_>]) -> String {
    let peak = |curve: &Curve<'_>| curve.reads.mb.iter().copied().fold(0.0, f64::max) / curve.reads.every_s;
    let highest = curves(panels).max_by(|a, b| peak(a).total_cmp(&peak(b)));
    highest.map_or(String::new(), |curve| {
        format!("The highest rate is {} MB/s, {}.", quantity(peak(curve)), level::all(&curve.cell.factors))
    })
}

fn data(panels: &[Level<'_>]) -> Data {
    let ticks = curves(panels).flat_map(|curve| curve.reads.mb.iter().enumerate().map(move |(i, mb)| (curve, i, *mb)));
    Columns::<(&Curve<'_>, usize, f64)>::new()
        .text("at", "cell", |(curve, ..)| level::all(&curve.cell.factors))
        .number("time_s", "from, s", flows::time, |(curve, i, _)| *i as f64 * curve.reads.every_s)
        .number(IngestCell::MB_PER_S.info.name, "MB/s", quantity, |(curve, _, mb)| mb / curve.reads.every_s)
        .of(ticks)
}
