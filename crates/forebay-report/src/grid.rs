//! Cells laid out for a figure: along an axis, and in series told apart by colour.
//!
//! A figure names two factors. Factors that vary beside those do not get averaged away: their levels become part of the
//! series' names. What is too much for a picture is thinned out, and the figure says so.

use std::collections::{BTreeSet, HashMap};

use forebay_record::{FigureSpec, Level, StudyCell};

use crate::level;
use crate::order::Order;
use crate::palette::{self, N_HUES};
use crate::run::Run;

/// Levels along an axis that still have room for their bars.
pub(crate) const MAX_GROUPS: usize = 12;
/// Shades of ordered series that can still be told apart; of hues there are [`N_HUES`].
const MAX_SHADES: usize = 8;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Place {
    pub(crate) name: String,
    pub(crate) number: Option<f64>,
}

#[derive(Debug)]
pub(crate) struct Grid<'a> {
    pub(crate) x_factor: Option<&'a str>,
    /// What the series differ in: "Threads".
    pub(crate) series_title: String,
    pub(crate) xs: Vec<Place>,
    pub(crate) series: Vec<Place>,
    /// Every cell of the figure, drawn or not, in the order of the axis and then of the series.
    pub(crate) cells: Vec<&'a StudyCell>,
    slots: HashMap<(usize, usize), &'a StudyCell>,
    pub(crate) remarks: Vec<String>,
}

impl<'a> Grid<'a> {
    pub(crate) fn of(run: &'a Run<'a>, spec: &'a FigureSpec) -> Self {
        let wanted = wanted(run, spec);
        let factors = Factors::of(run, &wanted, spec);
        let (xs, series) =
            (places(&wanted, |cell| factors.x_key(cell)), places(&wanted, |cell| factors.series_key(cell)));
        let of = |cell: &StudyCell| (xs.position(&factors.x_key(cell)), series.position(&factors.series_key(cell)));
        let mut cells: Vec<((usize, usize), &StudyCell)> = wanted.into_iter().map(|cell| (of(cell), cell)).collect();
        cells.sort_by_key(|(place, _)| *place);
        let mut grid = Self {
            x_factor: factors.x,
            series_title: factors.series_title(),
            xs: xs.0.into_iter().map(|key| key.place).collect(),
            series: series.0.into_iter().map(|key| key.place).collect(),
            slots: cells.iter().map(|((x, s), cell)| ((*s, *x), *cell)).collect(),
            cells: cells.into_iter().map(|(_, cell)| cell).collect(),
            remarks: Vec::new(),
        };
        grid.thin(if grid.is_ordered() { MAX_SHADES } else { N_HUES });
        grid
    }

    /// As [`Grid::of`], with no more series than lines have hues.
    pub(crate) fn for_lines(run: &'a Run<'a>, spec: &'a FigureSpec) -> Self {
        let mut grid = Self::of(run, spec);
        if grid.series.len() > N_HUES {
            grid.thin(N_HUES);
        }
        grid
    }

    /// The cell of a series at a level of the axis.
    pub(crate) fn cell(&self, series: usize, x: usize) -> Option<&'a StudyCell> {
        self.slots.get(&(series, x)).copied()
    }

    /// The cells of a series that were measured, with their places.
    pub(crate) fn line(&self, series: usize) -> impl Iterator<Item = (usize, &'a StudyCell)> {
        let cells = (0..self.xs.len()).filter_map(move |x| Some((x, self.cell(series, x)?)));
        cells.filter(|(_, cell)| cell.error.is_none())
    }

    /// Whether the series are numbers in their order, such as threads.
    pub(crate) fn is_ordered(&self) -> bool {
        self.series.len() > 1 && self.series.iter().all(|place| place.number.is_some())
    }

    pub(crate) fn x_names(&self) -> Vec<String> {
        self.xs.iter().map(|place| place.name.clone()).collect()
    }

    pub(crate) fn series_names(&self) -> Vec<String> {
        self.series.iter().map(|place| place.name.clone()).collect()
    }

    /// What is along the axis: "Threads".
    pub(crate) fn x_title(&self) -> String {
        self.x_factor.map(level::title).unwrap_or_default()
    }

    /// What several series differ in, as a legend's title.
    pub(crate) fn legend_title(&self) -> String {
        if self.series.len() > 1 { level::title(&self.series_title) } else { String::new() }
    }

    /// A class of colour a series: shades where the series are ordered, hues where not.
    pub(crate) fn classes(&self) -> Vec<String> {
        let n = self.series.len();
        (0..n).map(|i| if self.is_ordered() || n == 1 { palette::shade(i, n) } else { palette::hue(i) }).collect()
    }

    /// Leaves out evenly what is too much for a picture; both ends stay.
    fn thin(&mut self, max_series: usize) {
        let (xs, n_xs) = (kept(self.xs.len(), MAX_GROUPS), self.xs.len());
        let (series, n_series) = (kept(self.series.len(), max_series), self.series.len());
        let axis = self.x_factor.map_or("the axis".to_owned(), |factor| format!("“{}”", level::words(factor)));
        for (what, kept, all) in
            [(format!("levels of {axis}"), xs.len(), n_xs), ("series".to_owned(), series.len(), n_series)]
        {
            if kept < all {
                self.remarks.push(format!("Of {all} {what}, {kept} are drawn; the JSON and the CSV have every cell."));
            }
        }
        let place = |((s, x), cell): ((usize, usize), &'a StudyCell)| {
            Some(((series.binary_search(&s).ok()?, xs.binary_search(&x).ok()?), cell))
        };
        self.slots = std::mem::take(&mut self.slots).into_iter().filter_map(place).collect();
        self.xs = xs.iter().map(|i| self.xs[*i].clone()).collect();
        self.series = series.iter().map(|i| self.series[*i].clone()).collect();
    }
}

/// The cells that a figure asks for, in the order of the record.
pub(crate) fn wanted<'a>(run: &'a Run<'a>, spec: &FigureSpec) -> Vec<&'a StudyCell> {
    let experiment = spec.experiment.as_deref();
    let of = |cell: &&StudyCell| experiment.is_none_or(|name| cell.experiment == name) && cell.is_at(&spec.at);
    run.study.cells.iter().filter(of).collect()
}

/// Which of `n` to keep when only `most` fit: evenly, with both ends.
pub(crate) fn kept(n: usize, most: usize) -> Vec<usize> {
    if n <= most { (0..n).collect() } else { (0..most).map(|i| i * (n - 1) / (most - 1)).collect() }
}

struct Factors<'a> {
    x: Option<&'a str>,
    series: Option<&'a str>,
    others: Vec<&'a str>,
    /// The experiment whose order of levels counts; all where the figure names none.
    experiment: Option<&'a str>,
    order: Order<'a>,
}

impl<'a> Factors<'a> {
    fn of(run: &'a Run<'a>, cells: &[&'a StudyCell], spec: &'a FigureSpec) -> Self {
        let varying = varying(cells);
        let x = spec.x.as_deref().or_else(|| varying.first().copied());
        let series = spec.series.as_deref();
        let others = varying.into_iter().filter(|factor| Some(*factor) != x && Some(*factor) != series).collect();
        Self { x, series, others, experiment: spec.experiment.as_deref(), order: Order::of(run) }
    }

    fn x_key(&self, cell: &StudyCell) -> Key {
        let level = self.x.and_then(|factor| Some((factor, cell.level(factor)?)));
        let name = level.map_or("–".to_owned(), |(factor, level)| level::bare(factor, level));
        self.key(level.into_iter().collect(), name)
    }

    fn series_key(&self, cell: &StudyCell) -> Key {
        let named = self.series.iter().chain(&self.others);
        let levels: Vec<(&str, &Level)> = named.filter_map(|factor| Some((*factor, cell.level(factor)?))).collect();
        let names: Vec<String> = levels.iter().map(|(factor, level)| level::named(factor, level)).collect();
        self.key(levels, if names.is_empty() { "all".to_owned() } else { names.join(", ") })
    }

    fn key(&self, levels: Vec<(&str, &Level)>, name: String) -> Key {
        let number = match levels.as_slice() {
            [(_, level)] => level::number(level),
            _ => None,
        };
        let rank = |factor: &str, level: &Level| self.order.rank(self.experiment, factor, level);
        let order = levels.iter().map(|(factor, level)| (rank(factor, level), (*level).clone())).collect();
        Key { order, place: Place { name, number } }
    }

    fn series_title(&self) -> String {
        let named: Vec<String> = self.series.iter().chain(&self.others).map(|factor| level::words(factor)).collect();
        named.join(", ")
    }
}

/// The factors that have more than one level among the cells.
fn varying<'a>(cells: &[&'a StudyCell]) -> Vec<&'a str> {
    let factors: BTreeSet<&str> = cells.iter().flat_map(|cell| cell.factors.keys().map(String::as_str)).collect();
    let varies = |factor: &&str| cells.iter().any(|cell| cell.level(factor) != cells[0].level(factor));
    factors.into_iter().filter(varies).collect()
}

#[derive(Debug, Clone)]
struct Key {
    order: Vec<(usize, Level)>,
    place: Place,
}

impl Key {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let pairs = self.order.iter().zip(&other.order);
        let by_level = pairs.map(|((rank_a, a), (rank_b, b))| rank_a.cmp(rank_b).then_with(|| level::order(a, b)));
        by_level
            .fold(std::cmp::Ordering::Equal, |so_far, next| so_far.then(next))
            .then(self.order.len().cmp(&other.order.len()))
    }
}

struct Places(Vec<Key>);

fn places(cells: &[&StudyCell], key: impl Fn(&StudyCell) -> Key) -> Places {
    let mut keys: Vec<Key> = cells.iter().map(|cell| key(cell)).collect();
    keys.sort_by(Key::cmp);
    keys.dedup_by(|a, b| a.cmp(b).is_eq());
    Places(keys)
}

impl Places {
    fn position(&self, key: &Key) -> usize {
        self.0.binary_search_by(|known| known.cmp(key)).expect("every cell's key is among them")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_spread_evenly_with_both_ends() {
        assert_eq!(kept(3, 8), [0, 1, 2]);
        assert_eq!(kept(100, 4), [0, 33, 66, 99]);
    }
}
