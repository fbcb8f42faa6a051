//! Run times of training with batches made ahead, and on top of each what the run without takes longer.

use forebay_record::{StudyCell, TrainCell};

use crate::data::{Data, Value};
use crate::grid::Grid;
use crate::level;
use crate::number::{brief_seconds, listed, percent, quantity, tick};
use crate::prefetch;
use crate::svg::{Area, Tip};
use crate::table::Align::{Left, Right};

use super::bars::{classes, level_title, level_value};
use super::groups::{Bar, Groups, Slot, hatched};
use super::{Context, Drawn, Key, both, swatch};

/// A cell with batches made ahead and the one without.
struct Pair<'a> {
    with: &'a StudyCell,
    without: Option<&'a StudyCell>,
}

impl Pair<'_> {
    /// Both run times, in seconds.
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
        return Drawn::nothing("No train cell of this figure was run with batches made ahead.");
    };
    let mut spec = context.spec.clone();
    // Where it is no factor, all cells have the same.
    let level =
        cells.iter().filter(|cell| prefetch::depth(cell) == Some(base)).find_map(|cell| cell.level(prefetch::FACTOR));
    spec.at.extend(level.map(|level| (prefetch::FACTOR.to_owned(), level.clone())));
    let grid = Grid::of(context.run, &spec);
    let classes = classes(&grid);
    let groups = Groups {
        names: grid.xs.iter().map(|place| place.name.clone()).collect(),
        x_title: grid.x_factor.map(level::title).unwrap_or_default(),
        y_title: "Run time in seconds".to_owned(),
        show: tick,
        right: None,
        limit: None,
        classes: classes.clone(),
        slots: slots(&grid, &cells),
    };
    let pairs: Vec<Pair<'_>> =
        grid.cells.iter().map(|with| Pair { with, without: prefetch::without(&cells, with) }).collect();
    let mut remarks = grid.remarks.clone();
    let alone = pairs.iter().filter(|pair| pair.excess().is_none()).count() as u64;
    let has_excess = pairs.iter().any(|pair| pair.excess().is_some());
    if !has_excess {
        remarks.push("No train cell of this figure was run without batches made ahead beside one with.".to_owned());
    } else if alone > 0 {
        remarks.push(format!("{} not measured both with and without.", forebay_units::count(alone, "cell")));
    }
    remarks.extend(not_drawn(&cells, base));
    let judged = context.spec.experiment.as_deref().and_then(|name| prefetch::judgement(context.run, name));
    // A caption of the study's says itself what was published.
    let has_caption = !context.spec.caption.trim().is_empty();
    let judged = judged.map(|judged| if has_caption { judged.ours } else { judged.whole() });
    Drawn {
        data: data(&pairs),
        reading: format!(
            "{}{}",
            judged.map(|judged| judged + " ").unwrap_or_default(),
            if has_excess {
                format!(
                    "Solid bars are run times with prefetch {base}; hatched is what the run without prefetch takes longer, which \
                     is also written above."
                )
            } else {
                format!("Bars are run times with prefetch {base}.")
            }
        ),
        remarks,
        legend_title: match level_title(&grid).as_str() {
            "" => String::new(),
            title => format!("{title}, prefetch {base}"),
        },
        legend: legend(&grid, &classes, base, has_excess),
        pictures: both(|canvas| groups.draw(canvas, &context.spec.title)),
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

fn slots(grid: &Grid<'_>, cells: &[&StudyCell]) -> Vec<Vec<Slot>> {
    let slot = |x: usize, s: usize| match grid.cell(s, x) {
        None => Slot::Nothing,
        Some(with) => slot(&Pair { with, without: prefetch::without(cells, with) }),
    };
    (0..grid.xs.len()).map(|x| (0..grid.series.len()).map(|s| slot(x, s)).collect()).collect()
}

fn slot(pair: &Pair<'_>) -> Slot {
    let place = level::all(&pair.with.factors);
    if let Some(error) = &pair.with.error {
        return Slot::Failed(Tip::new(format!("{place}: failed: {error}")).with("failed", "yes"));
    }
    let (Some(with), without) = pair.seconds() else { return Slot::Nothing };
    let tip = Tip::new(format!("{place}: {}", brief_seconds(with)))
        .with("cell", &pair.with.id)
        .with("metric", "wall_s")
        .with("value", with);
    let more = pair.without.zip(without).map(|(cell, wall)| {
        let text = format!(
            "{}: {}, {} longer ({})",
            level::all(&cell.factors),
            brief_seconds(wall),
            brief_seconds(wall - with),
            percent(wall / with - 1.0)
        );
        let tip = Tip::new(text)
            .with("cell", &cell.id)
            .with("metric", "excess_s")
            .with("value", wall - with)
            .with("wall", wall);
        (wall, tip)
    });
    let label = pair.excess().map_or(String::new(), |(seconds, _)| short(seconds));
    Slot::Bar(Bar { value: with, range: None, label, tip, published: None, more })
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

fn legend(grid: &Grid<'_>, classes: &[String], base: f64, has_excess: bool) -> Vec<Key> {
    let mut keys = Vec::new();
    if grid.series.len() > 1 {
        for (place, class) in grid.series.iter().zip(classes) {
            keys.push(Key { sample: swatch(&format!("bar {class}")), name: place.name.clone() });
        }
    } else {
        let class = classes.first().map_or("s6", String::as_str);
        keys.push(Key { sample: swatch(&format!("bar {class}")), name: format!("prefetch {base}") });
    }
    if has_excess {
        let area = Area { left: 1.0, top: 1.0, right: 17.0, bottom: 13.0 };
        keys.push(Key { sample: super::sample(|svg| hatched(svg, area)), name: "longer without prefetch".to_owned() });
    }
    keys
}

fn data(pairs: &[Pair<'_>]) -> Data {
    let mut factors: Vec<&str> = pairs.iter().flat_map(|pair| pair.with.factors.keys().map(String::as_str)).collect();
    factors.sort_unstable();
    factors.dedup();
    factors.retain(|factor| *factor != prefetch::FACTOR);
    let mut data = Data::default();
    for factor in &factors {
        data.column(factor, &level::words(factor), Left);
    }
    for (key, name) in [
        ("with_s", "with prefetch, s"),
        ("without_s", "without, s"),
        ("excess_s", "excess, s"),
        ("excess_share", "excess"),
        ("without_wait_s", "wait without, s"),
    ] {
        data.column(key, name, Right);
    }
    data.column("error", "failed", Left);
    for pair in pairs {
        let (with, without) = pair.seconds();
        let wait = pair.without.and_then(|cell| cell.metric("wait_s")).map(|metric| metric.value);
        let level = |factor: &&str| pair.with.level(factor).map_or(Value::Unknown, |of| level_value(factor, of));
        let mut row: Vec<Value> = factors.iter().map(level).collect();
        row.push(Value::maybe(with, quantity));
        row.push(Value::maybe(without, quantity));
        row.push(Value::maybe(pair.excess().map(|(seconds, _)| seconds), quantity));
        row.push(Value::maybe(pair.excess().map(|(_, share)| share), percent));
        row.push(Value::maybe(wait, quantity));
        let error = pair.with.error.as_ref().or(pair.without.and_then(|cell| cell.error.as_ref()));
        row.push(Value::text(error.cloned().unwrap_or_default()));
        data.row(row);
    }
    data
}
