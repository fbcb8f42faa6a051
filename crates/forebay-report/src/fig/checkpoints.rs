//! Run times with checkpoints beside the time without, and below how long training stands still for one.
//!
//! A bar is a run; its hatched top is the time in which training stalled for checkpoints, and a line across all is the
//! run without any. A published ratio of stalls is drawn where a stall so many times shorter than the direct one would
//! end. Without a factor along the axis, the figure is one of single saves.

use forebay_record::{STALL_SPEED_UP, StudyCell, TrainCell, TrainCheckpoints};
use forebay_units::count;

use crate::number::{brief_seconds, given, percent, times, was};
use crate::stall;
use crate::svg::{NARROW, WIDE};

use super::bars::range;
use super::columns::factors;
use super::groups::Slot;
use super::{Bar, Columns, Context, Data, Drawn, Grid, Groups, Key, Tip, level, quantity, saves, shards};

pub(super) fn make(context: &Context<'_>) -> Drawn {
    if context.spec.x.is_none() {
        return shards::make(context).unwrap_or_else(|| saves::make(context));
    }
    let grid = Grid::of(context.run, context.spec);
    let all = All::of(context, &grid);
    if !grid.cells.iter().any(|cell| saved(cell).is_some()) {
        let failed = grid.cells.iter().find_map(|cell| cell.error.as_deref());
        let why = failed.map(|error| format!(" The first error: {error}.")).unwrap_or_default();
        return Drawn { data: all.data(), ..Drawn::nothing(format!("No cell of this figure saved checkpoints.{why}")) };
    }
    let mut run_times = all.groups("Run time in seconds", |cell| all.run_time(cell));
    let mut stalls = all.groups("Stall per checkpoint in seconds, median", |cell| all.stall(cell));
    run_times.limit = all.base_s().map(|base_s| (base_s, ""));
    // The axis is that of the picture below.
    run_times.x_title = String::new();
    let title = &context.spec.title;
    let mut pictures = Vec::new();
    for canvas in [WIDE, NARROW] {
        let left = run_times.tick_room(canvas).max(stalls.tick_room(canvas));
        (run_times.left, stalls.left) = (left, left);
        pictures.push(run_times.draw(canvas, title));
        pictures.push(stalls.draw(canvas, &format!("{title}: median stall")));
    }
    Drawn {
        data: all.data(),
        judged: all.said(),
        reading: all.reading(stalls.scale().is_log()),
        remarks: grid.remarks.iter().cloned().chain(all.remarks()).collect(),
        legend_title: grid.legend_title(),
        legend: all.legend(stalls.has_published()),
        pictures,
        ..Drawn::default()
    }
}

fn saved(cell: &StudyCell) -> Option<&TrainCheckpoints> {
    cell.measured_one::<TrainCell>().filter(|_| cell.error.is_none())?.checkpoints.as_ref()
}

struct All<'a> {
    context: &'a Context<'a>,
    grid: &'a Grid<'a>,
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
            [one] => one.value(&TrainCell::WALL_S),
            _ => None,
        }
    }

    /// How much longer a cell takes than the run without checkpoints.
    fn longer(&self, cell: &StudyCell) -> Option<f64> {
        Some(cell.value(&TrainCell::WALL_S)? / self.base(cell)?.value(&TrainCell::WALL_S)? - 1.0)
            .filter(|share| share.is_finite())
    }

    /// Bars in groups, without the levels that made no checkpoints: those are the line.
    fn groups(&self, y_title: &str, bar: impl Fn(&StudyCell) -> Option<Bar>) -> Groups<'static> {
        let mut groups = Groups::of(self.grid, y_title, |cell, _, _| bar(cell));
        let is_empty = |group: &Vec<Slot>| group.iter().all(|slot| matches!(slot, Slot::Nothing));
        let mut shown = groups.slots.iter().map(|group| !is_empty(group)).collect::<Vec<_>>().into_iter();
        groups.names.retain(|_| shown.next().unwrap_or(false));
        groups.slots.retain(|group| !is_empty(group));
        groups
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
        let scale = if is_log { " The lower axis is logarithmic." } else { "" };
        format!(
            "Top: run times; the hatched part is the time in which training stalled for checkpoints.{line} Bottom: the median \
             stall; whiskers reach from the shortest to the longest.{scale}"
        )
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        match self.bases.len() {
            0 => remarks.push("No run without checkpoints was measured, so their total cost is unknown.".to_owned()),
            1 => {}
            _ => remarks.push("Each series has its own run without checkpoints; see the data below.".to_owned()),
        }
        let left_out: u64 =
            self.grid.cells.iter().filter_map(|cell| saved(cell)).map(TrainCheckpoints::n_not_saved).sum();
        if left_out > 0 {
            let (n, was) = (count(left_out, "save"), was(left_out));
            remarks.push(format!("{n} {was} skipped, replaced or failed; the data below names the runs."));
        }
        remarks
    }

    fn legend(&self, has_published: bool) -> Vec<Key> {
        let (names, classes) = (self.grid.series_names(), self.grid.classes());
        let mut keys = Key::bars(&names, &classes);
        if let [class] = classes.as_slice() {
            keys.push(Key::swatch(&format!("bar {class}"), "running"));
        }
        keys.push(Key::hatched("stalled for checkpoints"));
        let base = |base_s| Key::line("limit", format!("without checkpoints ({})", brief_seconds(base_s)));
        keys.extend(self.base_s().map(base));
        keys.extend(has_published.then(|| Key::marker("pub", 3, "stall implied by the published ratio")));
        keys
    }

    fn data(&self) -> Data {
        let base = |cell: &StudyCell| self.base(cell).filter(|_| saved(cell).is_some());
        let ends = |cell: &StudyCell| {
            cell.metric(TrainCell::STALL_S.info.name)
                .filter(|_| saved(cell).is_some())
                .and_then(|stalls| range(&stalls))
        };
        let ratio = |cell: &StudyCell| stall::speed_up(self.context.run, cell);
        Columns::<&StudyCell>::new()
            .factors(factors(&self.grid.cells), |cell| cell)
            .number(TrainCell::WALL_S.info.name, "run time, s", quantity, |cell| cell.value(&TrainCell::WALL_S))
            .number("without_s", "without checkpoints, s", quantity, move |cell| base(cell)?.value(&TrainCell::WALL_S))
            .number("longer", "longer by", percent, |cell| self.longer(cell).filter(|_| saved(cell).is_some()))
            .number(TrainCell::CHECKPOINT_S.info.name, "stalled, s", quantity, |cell| {
                cell.value(&TrainCell::CHECKPOINT_S)
            })
            .count("n_saves", "checkpoints", |cell| saved(cell).map(TrainCheckpoints::n_made))
            .number(TrainCell::STALL_S.info.name, "median stall, s", quantity, |cell| cell.value(&TrainCell::STALL_S))
            .number("stall_s_min", "shortest", quantity, move |cell| ends(cell).map(|(low, _)| low))
            .number("stall_s_max", "longest", quantity, move |cell| ends(cell).map(|(_, high)| high))
            .number(STALL_SPEED_UP.name, "shorter than direct", times, move |cell| {
                ratio(cell).filter(|_| saved(cell).is_some())
            })
            .number(TrainCell::DRAIN_AFTER_S.info.name, "drain after the end, s", quantity, |cell| {
                cell.value(&TrainCell::DRAIN_AFTER_S)
            })
            .count(TrainCell::NOT_SAVED.info.name, "not saved", |cell| {
                saved(cell).map(TrainCheckpoints::n_not_saved).filter(|n| *n > 0)
            })
            .text("error", "failed", |cell| cell.error.clone().unwrap_or_default())
            .of(self.grid.cells.iter().copied())
    }

    /// A run time: on top, the time in which training stood still.
    fn run_time(&self, cell: &StudyCell) -> Option<Bar> {
        let (wall, _) = (cell.value(&TrainCell::WALL_S)?, saved(cell)?);
        let still = cell.value(&TrainCell::CHECKPOINT_S).unwrap_or(0.0).min(wall);
        let place = level::all(&cell.factors);
        let longer = self.longer(cell).map(|share| format!(", {} over the run without checkpoints", percent(share)));
        let tip = Tip::of(cell, format!("{place}: {}{}", brief_seconds(wall), longer.unwrap_or_default()))
            .with("metric", TrainCell::WALL_S.info.name)
            .with("value", wall);
        let text = format!("{place}: stalled for checkpoints {} ({})", brief_seconds(still), percent(still / wall));
        let more = Tip::of(cell, text).with("metric", TrainCell::CHECKPOINT_S.info.name).with("value", still);
        let more = (still > 0.0).then_some((wall, more));
        Some(Bar { value: wall - still, label: quantity(wall), tip, more, ..Bar::default() })
    }

    /// The median stall, and where it would be by the published ratio.
    fn stall(&self, cell: &StudyCell) -> Option<Bar> {
        let found = cell.metric(TrainCell::STALL_S.info.name).filter(|_| saved(cell).is_some())?;
        let (median, run) = (found.value, self.context.run);
        let ratio = stall::speed_up(run, cell).map(|ratio| format!(", {} shorter than direct", times(ratio)));
        let text = format!("{}: {}{}", level::all(&cell.factors), brief_seconds(median), ratio.unwrap_or_default());
        let tip = Tip::of(cell, text).with("metric", TrainCell::STALL_S.info.name).with("value", median);
        let theirs = stall::published(run, self.context.published, cell).map(|row| row.reference.value);
        let theirs = theirs.filter(|ratio| *ratio > 0.0);
        let published = theirs.zip(stall::direct(run, cell)).and_then(|(ratio, direct)| {
            let at = direct.value(&TrainCell::STALL_S)? / ratio;
            let (times, at_s) = (given(ratio), brief_seconds(at));
            let text = format!("published: {times}× shorter than direct; here that would be {at_s}");
            Some((at, Tip::of(cell, text).with("published", ratio)))
        });
        Some(Bar { value: median, range: range(&found), label: quantity(median), tip, published, more: None })
    }
}
