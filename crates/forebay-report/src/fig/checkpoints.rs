//! Run times with checkpoints beside the time without, and below how long training stands still for one.
//!
//! A bar is a run; its hatched top is the time in which training stood still for checkpoints, and a line across all is the
//! run without any. A published ratio of stalls is drawn where a stall so many times shorter than the direct one would
//! end. Without a factor along the axis, the figure is one of single saves.

use forebay_record::{Measurement, StudyCell, TrainCell, TrainCheckpoints};
use forebay_units::count;

use crate::data::{Data, Value};
use crate::grid::Grid;
use crate::level;
use crate::number::{brief_seconds, given, percent, quantity, tick, times};
use crate::palette;
use crate::stall;
use crate::svg::{Area, NARROW, Tip, WIDE};
use crate::table::Align::{Left, Right};

use super::bars::{classes, factors, level_title, level_value, range};
use super::groups::{Bar, Groups, Slot, hatched};
use super::{Context, Drawn, Key, saves, shards, swatch};

pub(super) fn make(context: &Context<'_>) -> Drawn {
    if context.spec.x.is_none() {
        return shards::make(context).unwrap_or_else(|| saves::make(context));
    }
    let grid = Grid::of(context.run, context.spec);
    let all = All::of(context, &grid);
    if !grid.cells.iter().any(|cell| saved(cell).is_some()) {
        let failed = grid.cells.iter().find_map(|cell| cell.error.as_deref());
        let why = failed.map(|error| format!(" The first that failed: {error}.")).unwrap_or_default();
        return Drawn { data: all.data(), ..Drawn::nothing(format!("No cell of this figure made checkpoints.{why}")) };
    }
    let classes = classes(&grid);
    let mut run_times = all.groups(&classes, "Run time in seconds", all.base_s().map(|base_s| (base_s, "")), run_time);
    let stalls = all.groups(&classes, "Standing still for a checkpoint in seconds, median", None, stall_of);
    // The axis is that of the picture below.
    run_times.x_title = String::new();
    let has_published =
        stalls.slots.iter().flatten().any(|slot| matches!(slot, Slot::Bar(bar) if bar.published.is_some()));
    let title = &context.spec.title;
    let below = format!("{title}: median stall");
    Drawn {
        data: all.data(),
        reading: [all.said(), all.reading(is_log(&stalls))].join(" ").trim().to_owned(),
        remarks: grid.remarks.iter().cloned().chain(all.remarks()).collect(),
        legend_title: level_title(&grid),
        legend: all.legend(&classes, has_published),
        pictures: [WIDE, NARROW]
            .into_iter()
            .flat_map(|on| {
                let left = run_times.tick_room(on).max(stalls.tick_room(on));
                [run_times.draw_from(on, title, left), stalls.draw_from(on, &below, left)]
            })
            .collect(),
        ..Drawn::default()
    }
}

/// The checkpoints of a cell that was trained.
fn saved(cell: &StudyCell) -> Option<&TrainCheckpoints> {
    cell.measured_one::<TrainCell>().filter(|_| cell.error.is_none())?.checkpoints.as_ref()
}

fn value(cell: &StudyCell, name: &str) -> Option<f64> {
    cell.metric(name).filter(|_| cell.error.is_none()).map(|of| of.value)
}

fn is_log(groups: &Groups<'_>) -> bool {
    let values = groups.slots.iter().flatten().filter_map(|slot| match slot {
        Slot::Bar(bar) => Some(bar.value),
        _ => None,
    });
    crate::axis::Scale::for_bars(values).is_log()
}

/// What the figure is made from.
struct All<'a> {
    context: &'a Context<'a>,
    grid: &'a Grid<'a>,
    /// Runs without checkpoints.
    bases: Vec<&'a StudyCell>,
}

impl<'a> All<'a> {
    fn of(context: &'a Context<'a>, grid: &'a Grid<'a>) -> Self {
        let is_base = |cell: &&StudyCell| {
            let trained = cell.measured_one::<TrainCell>().filter(|_| cell.error.is_none());
            trained.is_some_and(|cell| cell.checkpoints.is_none())
        };
        Self { context, grid, bases: grid.cells.iter().copied().filter(is_base).collect() }
    }

    /// The run without checkpoints that a cell is set beside: the only one, or the one that is alike but for the axis.
    fn base(&self, cell: &StudyCell) -> Option<&'a StudyCell> {
        let alike = |base: &&StudyCell| {
            base.factors
                .iter()
                .all(|(of, level)| Some(of.as_str()) == self.grid.x_factor || cell.level(of) == Some(level))
        };
        match self.bases.as_slice() {
            [one] => Some(one),
            several => several.iter().copied().find(alike),
        }
    }

    /// The time without checkpoints, where it is one for all.
    fn base_s(&self) -> Option<f64> {
        match self.bases.as_slice() {
            [one] => value(one, "wall_s"),
            _ => None,
        }
    }

    /// How much longer a cell takes than the run without checkpoints.
    fn longer(&self, cell: &StudyCell) -> Option<f64> {
        Some(value(cell, "wall_s")? / value(self.base(cell)?, "wall_s")? - 1.0).filter(|share| share.is_finite())
    }

    /// Bars in groups, without the levels that made no checkpoints: those are the line.
    fn groups(
        &self,
        classes: &[String],
        y_title: &str,
        limit: Option<(f64, &'static str)>,
        slot: fn(&Self, &StudyCell) -> Slot,
    ) -> Groups<'static> {
        let is_shown = |x: &usize| {
            let mut cells = (0..self.grid.series.len()).filter_map(|s| self.grid.cell(s, *x));
            cells.any(|cell| saved(cell).is_some() || cell.error.is_some())
        };
        let shown: Vec<usize> = (0..self.grid.xs.len()).filter(is_shown).collect();
        let of = |x: usize, s: usize| {
            self.grid.cell(s, x).map_or(Slot::Nothing, |cell| failed_or(cell, |cell| slot(self, cell)))
        };
        Groups {
            names: shown.iter().map(|x| self.grid.xs[*x].name.clone()).collect(),
            x_title: self.grid.x_factor.map(level::title).unwrap_or_default(),
            y_title: y_title.to_owned(),
            show: tick,
            right: None,
            limit,
            classes: classes.to_vec(),
            slots: shown.iter().map(|x| (0..self.grid.series.len()).map(|s| of(*x, s)).collect()).collect(),
        }
    }

    /// The least and the most that checkpoints cost, and what a burst buffer is worth: ours, whatever the caption says.
    fn said(&self) -> String {
        let mut longer: Vec<(&StudyCell, f64)> = self
            .grid
            .cells
            .iter()
            .filter(|cell| saved(cell).is_some())
            .filter_map(|cell| Some((*cell, self.longer(cell)?)))
            .collect();
        longer.sort_by(|a, b| b.1.total_cmp(&a.1));
        let said = |(cell, share): &(&StudyCell, f64)| {
            let than = if *share < 0.0 { "shorter" } else { "longer" };
            format!("{} {than} ({})", percent(share.abs()), level::all(&cell.factors))
        };
        let mut parts = Vec::new();
        parts.extend(match longer.as_slice() {
            [] => None,
            [one] => Some(format!("With checkpoints the run takes {} than without.", said(one))),
            [most, .., least] => {
                Some(format!("With checkpoints a run takes {} to {} than without.", said(most), said(least)))
            }
        });
        parts.extend(crate::verdict::shorter_stalls(self.context.run, self.context.published, &self.grid.cells));
        parts.join(" ")
    }

    fn reading(&self, is_log: bool) -> String {
        let line = match (self.bases.len(), self.base_s()) {
            (1, Some(base_s)) => format!(" The dashed line is the run without checkpoints, {}.", brief_seconds(base_s)),
            _ => String::new(),
        };
        let scale = if is_log { " The lower scale is logarithmic: equal steps are equal ratios." } else { "" };
        format!(
            "Above: run times; hatched is the time in which training stood still for checkpoints.{line} Below: the median of the \
             stalls, whiskers from the shortest to the longest.{scale}"
        )
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        match self.bases.len() {
            0 => remarks.push(
                "No run of this figure was made without checkpoints: what they cost in all is not known.".to_owned(),
            ),
            1 => {}
            _ => remarks.push("Runs without checkpoints differ by the series; the data below has them.".to_owned()),
        }
        let left_out: u64 =
            self.grid.cells.iter().filter_map(|cell| saved(cell)).map(TrainCheckpoints::n_not_saved).sum();
        if left_out > 0 {
            let was = if left_out == 1 { "was" } else { "were" };
            remarks.push(format!(
                "{} {was} skipped, replaced or failed; the data below says of which run.",
                count(left_out, "save")
            ));
        }
        remarks
    }

    fn legend(&self, classes: &[String], has_published: bool) -> Vec<Key> {
        let mut keys = Vec::new();
        let several = self.grid.series.len() > 1;
        for (place, class) in self.grid.series.iter().zip(classes) {
            let name = if several { place.name.clone() } else { "running".to_owned() };
            keys.push(Key { sample: swatch(&format!("bar {class}")), name });
        }
        let area = Area { left: 1.0, top: 1.0, right: 17.0, bottom: 13.0 };
        keys.push(Key {
            sample: super::sample(|svg| hatched(svg, area)),
            name: "standing still for checkpoints".to_owned(),
        });
        if let Some(base_s) = self.base_s() {
            let sample = super::sample(|svg| svg.line("limit", (0.0, 7.0), (18.0, 7.0)));
            keys.push(Key { sample, name: format!("without checkpoints ({})", brief_seconds(base_s)) });
        }
        if has_published {
            let sample = super::sample(|svg| palette::marker(svg, "pub", 3, (9.0, 7.0), 4.5));
            keys.push(Key { sample, name: "stall by the published ratio to direct".to_owned() });
        }
        keys
    }

    fn data(&self) -> Data {
        let cells = &self.grid.cells;
        let factors = factors(cells);
        let mut data = Data::default();
        for factor in &factors {
            data.column(factor, &level::words(factor), Left);
        }
        for (key, name) in COLUMNS {
            data.column(key, name, Right);
        }
        data.column("error", "failed", Left);
        cells.iter().for_each(|cell| {
            let level = |factor: &&str| cell.level(factor).map_or(Value::Unknown, |of| level_value(factor, of));
            let mut row: Vec<Value> = factors.iter().map(level).collect();
            row.extend(self.values(cell));
            row.push(Value::text(cell.error.clone().unwrap_or_default()));
            data.row(row);
        });
        data
    }

    /// The values of the columns.
    fn values(&self, cell: &StudyCell) -> [Value; 11] {
        let number = |name: &str| Value::maybe(value(cell, name), quantity);
        let saved = saved(cell);
        let base = self.base(cell).filter(|_| saved.is_some());
        let ends = cell.metric("stall_s").filter(|_| saved.is_some()).and_then(|stalls| range(&stalls));
        let some = |n: u64| if n > 0 { Value::count(n) } else { Value::Unknown };
        [
            number("wall_s"),
            Value::maybe(base.and_then(|base| value(base, "wall_s")), quantity),
            Value::maybe(self.longer(cell).filter(|_| saved.is_some()), percent),
            number("checkpoint_s"),
            saved.map_or(Value::Unknown, |saved| Value::count(saved.n_made())),
            number("stall_s"),
            Value::maybe(ends.map(|(low, _)| low), quantity),
            Value::maybe(ends.map(|(_, high)| high), quantity),
            Value::maybe(stall::speed_up(self.context.run, cell).filter(|_| saved.is_some()), times),
            number("drain_after_s"),
            saved.map_or(Value::Unknown, |saved| some(saved.n_not_saved())),
        ]
    }
}

const COLUMNS: [(&str, &str); 11] = [
    ("wall_s", "run time, s"),
    ("without_s", "without checkpoints, s"),
    ("longer", "longer by"),
    ("checkpoint_s", "standing still, s"),
    ("n_saves", "checkpoints"),
    ("stall_s", "median stall, s"),
    ("stall_s_min", "shortest"),
    ("stall_s_max", "longest"),
    ("stall_speed_up", "shorter than direct"),
    ("drain_after_s", "drained after the end, s"),
    ("not_saved", "not saved"),
];

fn failed_or(cell: &StudyCell, slot: impl FnOnce(&StudyCell) -> Slot) -> Slot {
    match &cell.error {
        Some(error) => {
            let text = format!("{}: failed: {error}", level::all(&cell.factors));
            Slot::Failed(Tip::new(text).with("failed", "yes"))
        }
        None => slot(cell),
    }
}

/// A run time: on top, the time in which training stood still.
fn run_time(all: &All<'_>, cell: &StudyCell) -> Slot {
    let (Some(wall), Some(_)) = (value(cell, "wall_s"), saved(cell)) else { return Slot::Nothing };
    let still = value(cell, "checkpoint_s").unwrap_or(0.0).min(wall);
    let place = level::all(&cell.factors);
    let longer = all.longer(cell).map(|share| format!(", {} over the run without", percent(share))).unwrap_or_default();
    let tip = Tip::new(format!("{place}: {}{longer}", brief_seconds(wall)))
        .with("cell", &cell.id)
        .with("metric", "wall_s")
        .with("value", wall);
    let text = format!("{place}: stood still for checkpoints {} ({})", brief_seconds(still), percent(still / wall));
    let more = Tip::new(text).with("cell", &cell.id).with("metric", "checkpoint_s").with("value", still);
    Slot::Bar(Bar {
        value: wall - still,
        range: None,
        label: quantity(wall),
        tip,
        published: None,
        more: (still > 0.0).then_some((wall, more)),
    })
}

/// The median stall, and where it would be by the published ratio.
fn stall_of(all: &All<'_>, cell: &StudyCell) -> Slot {
    let found = cell.metric("stall_s").filter(|_| saved(cell).is_some());
    let Some(found @ Measurement { value: median, .. }) = found else { return Slot::Nothing };
    let run = all.context.run;
    let ratio = stall::speed_up(run, cell).map(|ratio| format!(", {} shorter than direct", times(ratio)));
    let text = format!("{}: {}{}", level::all(&cell.factors), brief_seconds(median), ratio.unwrap_or_default());
    let tip = Tip::new(text).with("cell", &cell.id).with("metric", "stall_s").with("value", median);
    let theirs = stall::published(run, all.context.published, cell).filter(|ratio| *ratio > 0.0);
    let published = theirs.zip(stall::direct(run, cell)).and_then(|(ratio, direct)| {
        let at = value(direct, "stall_s")? / ratio;
        let text = format!("published: {}× shorter than direct, which would be {}", given(ratio), brief_seconds(at));
        Some((at, Tip::new(text).with("published", ratio).with("cell", &cell.id)))
    });
    Slot::Bar(Bar { value: median, range: range(&found), label: quantity(median), tip, published, more: None })
}
