//! Run times of training with batches made ahead, and on top of each what the run without takes longer.

use forebay_record::{StudyCell, TrainCell};

use crate::number::{brief_seconds, listed, percent};
use crate::prefetch;

use super::columns::factors;
use super::{Bar, Columns, Context, Data, Drawn, Grid, Groups, Key, Tip, level, quantity};

/// A cell with batches made ahead and the one without.
struct Pair<'a> {
    with: &'a StudyCell,
    without: Option<&'a StudyCell>,
}

impl Pair<'_> {
    fn seconds(&self) -> (Option<f64>, Option<f64>) {
        (prefetch::wall_s(self.with), self.without.and_then(prefetch::wall_s))
    }

    /// What the run without takes longer: seconds and share.
    fn excess(&self) -> Option<(f64, f64)> {
        let (with, without) = self.seconds();
        Some((without? - with?, without? / with? - 1.0))
    }
}

pub(super) fn make(context: &Context<'_>) -> Drawn {
    let cells = context.cells();
    if cells.iter().all(|cell| cell.measured_one::<TrainCell>().is_none()) {
        return Drawn::nothing("No cell of this figure was trained.");
    }
    let Some(base) = prefetch::base(&cells) else {
        return Drawn::nothing("No cell of this figure was trained with prefetch.");
    };
    let mut spec = context.spec.clone();
    // Where it is no factor, all cells have the same.
    let level =
        cells.iter().filter(|cell| prefetch::depth(cell) == Some(base)).find_map(|cell| cell.level(prefetch::FACTOR));
    spec.at.extend(level.map(|level| (prefetch::FACTOR.to_owned(), level.clone())));
    let grid = Grid::of(context.run, &spec);
    let pair = |with| Pair { with, without: prefetch::without(&cells, with) };
    let groups = Groups::of(&grid, "Run time in seconds", |with, _, _| bar(&pair(with)));
    let pairs: Vec<Pair<'_>> = grid.cells.iter().copied().map(pair).collect();
    let mut remarks = grid.remarks.clone();
    let alone = pairs.iter().filter(|pair| pair.excess().is_none()).count() as u64;
    let has_excess = pairs.iter().any(|pair| pair.excess().is_some());
    if !has_excess {
        remarks.push("No cell of this figure was trained both with and without prefetch.".to_owned());
    } else if alone > 0 {
        remarks.push(format!("{} not measured both with and without prefetch.", forebay_units::count(alone, "cell")));
    }
    remarks.extend(not_drawn(&cells, base));
    let judged = context.spec.experiment.as_deref().and_then(|name| prefetch::judgement(context.run, name));
    // A caption of the study's says itself what was published.
    let has_caption = !context.spec.caption.trim().is_empty();
    let judged = judged.map(|judged| if has_caption { judged.ours } else { judged.whole() });
    Drawn {
        data: data(&pairs),
        judged: judged.unwrap_or_default(),
        reading: match has_excess {
            true => format!(
                "Solid bars are run times with prefetch {base}; the hatched part, with its value above, is the extra time \
                 without prefetch."
            ),
            false => format!("Bars are run times with prefetch {base}."),
        },
        remarks,
        legend_title: match grid.legend_title().as_str() {
            "" => String::new(),
            title => format!("{title}, prefetch {base}"),
        },
        legend: legend(&grid, base, has_excess),
        pictures: groups.pictures(&context.spec.title),
        ..Drawn::default()
    }
}

/// Cells with more batches made ahead than those that are drawn.
fn not_drawn(cells: &[&StudyCell], base: f64) -> Option<String> {
    let mut more: Vec<f64> = cells.iter().filter_map(|cell| prefetch::depth(cell)).filter(|of| *of > base).collect();
    more.sort_by(f64::total_cmp);
    more.dedup();
    let more: Vec<String> = more.into_iter().map(|depth| depth.to_string()).collect();
    let said = || format!("Runs with prefetch {} are not drawn here; the table of cells has them.", listed(&more));
    (!more.is_empty()).then(said)
}

fn bar(pair: &Pair<'_>) -> Option<Bar> {
    let (Some(with), without) = pair.seconds() else { return None };
    let tip = Tip::of(pair.with, format!("{}: {}", level::all(&pair.with.factors), brief_seconds(with)))
        .with("metric", TrainCell::WALL_S.info.name)
        .with("value", with);
    let more = pair.without.zip(without).map(|(cell, wall)| {
        let (longer, share) = (brief_seconds(wall - with), percent(wall / with - 1.0));
        let text = format!("{}: {}, {longer} longer ({share})", level::all(&cell.factors), brief_seconds(wall));
        (wall, Tip::of(cell, text).with("metric", "excess_s").with("value", wall - with).with("wall", wall))
    });
    let label = pair.excess().map_or(String::new(), |(seconds, _)| short(seconds));
    Some(Bar { value: with, label, tip, more, ..Bar::default() })
}

/// What is written above a bar: "+3.1".
fn short(seconds: f64) -> String {
    let size = seconds.abs();
    let text = match size {
        ..0.95 => format!("{size:.2}"),
        ..99.5 => format!("{size:.1}"),
        _ => format!("{size:.0}"),
    };
    format!("{}{text}", if seconds < 0.0 { '−' } else { '+' })
}

fn legend(grid: &Grid<'_>, base: f64, has_excess: bool) -> Vec<Key> {
    let classes = grid.classes();
    let mut keys = Key::bars(&grid.series_names(), &classes);
    if let [class] = classes.as_slice() {
        keys.push(Key::swatch(&format!("bar {class}"), format!("prefetch {base}")));
    }
    keys.extend(has_excess.then(|| Key::hatched("longer without prefetch")));
    keys
}

fn data(pairs: &[Pair<'_>]) -> Data {
    let cells: Vec<&StudyCell> = pairs.iter().map(|pair| pair.with).collect();
    let mut factors = factors(&cells);
    factors.retain(|factor| *factor != prefetch::FACTOR);
    let wait = |pair: &&Pair<'_>| pair.without?.value(&TrainCell::WAIT_S);
    let error = |pair: &&Pair<'_>| pair.with.error.clone().or(pair.without.and_then(|cell| cell.error.clone()));
    Columns::new()
        .factors(factors, |pair: &&Pair<'_>| pair.with)
        .number("with_s", "with prefetch, s", quantity, |pair| pair.seconds().0)
        .number("without_s", "without prefetch, s", quantity, |pair| pair.seconds().1)
        .number("excess_s", "excess, s", quantity, |pair| pair.excess().map(|(seconds, _)| seconds))
        .number("excess_share", "excess", percent, |pair| pair.excess().map(|(_, share)| share))
        .number("without_wait_s", "wait without prefetch, s", quantity, wait)
        .text("error", "failed", move |pair| error(pair).unwrap_or_default())
        .of(pairs)
}
