//! What batches made ahead are worth: runs with and without, cell by cell, and whether those with take the same time.
//!
//! The finding to check is that of chien-2018: with a batch made ahead, the run time is the same for every device and
//! number of threads, so that what a run without takes longer is the cost of I/O.

use std::collections::BTreeMap;

use forebay_record::{FigureKind, Level, StudyCell, TrainCell, TrainTotals};

use crate::level;
use crate::number::{brief_seconds, listed, percent, quantity};
use crate::order::Order;
use crate::run::Run;

pub(crate) const FACTOR: &str = "prefetch";
/// Run times that lie within this of each other are the same.
const SAME: f64 = 0.10;
/// Factors that the run time must not depend on when batches are made ahead.
const HIDDEN: [&str; 3] = ["tier", "threads", FACTOR];
const MAX_NAMED: usize = 3;

/// Cells of training that differ in what prefetching should hide, all with batches made ahead.
pub(crate) struct Ahead<'a> {
    /// "with prefetch", as much of it as they have.
    pub(crate) with: String,
    /// The cells with their run times, the shortest first.
    cells: Vec<(&'a StudyCell, f64)>,
    /// How far apart run times may lie by chance, as a share; 0 where all were repeated.
    noise: f64,
}

/// How many batches were made ahead, by the factor or by what the training says.
pub(crate) fn depth(cell: &StudyCell) -> Option<f64> {
    let setting =
        || cell.measured_one::<TrainCell>().filter(|train| !train.synthetic).map(|train| train.prefetch as f64);
    match cell.level(FACTOR) {
        Some(level) => level::number(level),
        None => setting(),
    }
}

/// The fewest batches made ahead, if any were: what runs without are set beside.
pub(crate) fn base(cells: &[&StudyCell]) -> Option<f64> {
    let ahead = cells.iter().filter(|cell| cell.measured_one::<TrainCell>().is_some()).filter_map(|cell| depth(cell));
    ahead.filter(|depth| *depth > 0.0).min_by(f64::total_cmp)
}

/// "with prefetch", and how much of it where cells had more.
fn with(cells: &[&StudyCell]) -> String {
    let base = base(cells);
    let has_more = cells.iter().filter_map(|cell| depth(cell)).any(|depth| base.is_some_and(|base| depth > base));
    match base.filter(|_| has_more) {
        Some(base) => format!("with prefetch {base}"),
        None => "with prefetch".to_owned(),
    }
}

/// The run time of a cell that was measured.
pub(crate) fn wall_s(cell: &StudyCell) -> Option<f64> {
    cell.value(&TrainCell::WALL_S).filter(|wall| *wall > 0.0)
}

/// The cell with the same levels but without batches made ahead.
pub(crate) fn without<'a>(cells: &[&'a StudyCell], with: &StudyCell) -> Option<&'a StudyCell> {
    let alike = |cell: &&&StudyCell| {
        cell.experiment == with.experiment
            && cell.factors.len() == with.factors.len()
            && cell.factors.iter().all(|(factor, level)| factor == FACTOR || with.level(factor) == Some(level))
    };
    cells.iter().filter(alike).find(|cell| depth(cell) == Some(0.0)).copied()
}

/// The groups of an experiment's cells whose run times should be the same, of two cells and more; all have the fewest
/// batches made ahead that there are.
pub(crate) fn groups<'a>(run: &Run<'_>, cells: &[&'a StudyCell]) -> Vec<Ahead<'a>> {
    let mut groups: BTreeMap<String, Vec<(&StudyCell, f64)>> = BTreeMap::new();
    let order = Order::of(run);
    let mut sorted = cells.to_vec();
    sorted.sort_by(|a, b| order.compare(a, b));
    let base = base(cells);
    for cell in sorted.into_iter().filter(|cell| base.is_some() && depth(cell) == base) {
        let Some(wall) = wall_s(cell) else { continue };
        let others = cell.factors.iter().filter(|(factor, _)| !HIDDEN.contains(&factor.as_str()));
        let key: String = others.map(|(factor, level)| format!("{factor}={level}/")).collect();
        groups.entry(key).or_default().push((cell, wall));
    }
    let with = with(cells);
    let ahead = |cells: Vec<(&'a StudyCell, f64)>| {
        let is_once = cells.iter().any(|(cell, _)| cell.n_repeats() < 2);
        Ahead { with: with.clone(), cells, noise: if is_once { run.noise() } else { 0.0 } }
    };
    let mut found: Vec<Ahead<'_>> = groups.into_values().map(ahead).collect();
    found.retain(|group| group.cells.len() > 1);
    found.iter_mut().for_each(|group| group.cells.sort_by(|a, b| a.1.total_cmp(&b.1)));
    found
}

impl Ahead<'_> {
    /// The longest run time over the shortest, less 1.
    pub(crate) fn spread(&self) -> f64 {
        self.cells[self.cells.len() - 1].1 / self.cells[0].1 - 1.0
    }

    /// What the cells differ in, in words: "device and thread count".
    pub(crate) fn differ_in(&self) -> String {
        let varies =
            |factor: &str| self.cells.iter().any(|(cell, _)| cell.level(factor) != self.cells[0].0.level(factor));
        let words = [("tier", "device"), ("threads", "thread count")];
        let named: Vec<&str> = words.into_iter().filter(|(factor, _)| varies(factor)).map(|(_, word)| word).collect();
        listed(&named)
    }

    pub(crate) fn is_same(&self) -> bool {
        self.spread() <= SAME
    }

    /// Whether the run times lie apart, but by no more than single runs do by chance.
    pub(crate) fn is_open(&self) -> bool {
        !self.is_same() && self.spread() <= self.noise
    }

    /// The spread without the wait for the first batch, where that makes the run times the same: nothing can hide it, and
    /// in a run of few steps it weighs much.
    pub(crate) fn same_after_first(&self) -> Option<f64> {
        let later = |(cell, _): &(&StudyCell, f64)| {
            let train = cell.measured_one::<TrainCell>()?;
            let of = |run: &TrainTotals| run.wall_s - run.first_wait_s;
            let runs: Vec<f64> = train.samples.iter().map(of).collect();
            Some(forebay_units::median(&runs).unwrap_or_else(|| of(&train.totals)))
        };
        let later: Vec<f64> = self.cells.iter().filter_map(later).filter(|wall| *wall > 0.0).collect();
        let (low, high) = later.iter().fold((f64::MAX, 0.0_f64), |(low, high), w| (low.min(*w), high.max(*w)));
        Some(high / low - 1.0).filter(|spread| later.len() == self.cells.len() && *spread <= SAME)
    }

    /// What the run times come to, in a sentence without its end.
    fn said(&self) -> String {
        let n = self.cells.len();
        let (shortest, longest) = (self.cells[0].1, self.cells[n - 1].1);
        let range = format!("{} to {} s", quantity(shortest), quantity(longest));
        let within = format!(
            "{} the run times of {n} cells are within {} of each other ({range})",
            self.with,
            percent(self.spread())
        );
        if self.is_same() {
            return within;
        }
        if self.is_open() {
            return format!("{within}, within the noise of single runs");
        }
        let mut apart: Vec<String> =
            self.cells.iter().rev().filter(|(_, wall)| wall / shortest - 1.0 > SAME).map(named).collect();
        let more = apart.len().saturating_sub(MAX_NAMED);
        apart.truncate(MAX_NAMED);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        let than = format!("more than {} longer than the shortest", percent(SAME).replace(".0", ""));
        let first = self.same_after_first().map(|later| {
            format!("; without the wait for the first batch, which nothing can hide, all are within {}", percent(later))
        });
        format!("{within}; {than}: {}{more}{}", listed(&apart), first.unwrap_or_default())
    }
}

fn named((cell, wall): &(&StudyCell, f64)) -> String {
    format!("{} ({})", levels_of(cell), brief_seconds(*wall))
}

/// What an emulated step time decides: a step, and the longest time that a batch took where none was made ahead.
pub(crate) struct Given {
    step_s: f64,
    slowest: Option<(f64, String)>,
}

impl Given {
    /// `None` where a network was trained in any cell.
    pub(crate) fn of(cells: &[&StudyCell]) -> Option<Self> {
        let trained: Vec<(&StudyCell, &TrainCell)> =
            cells.iter().filter_map(|cell| Some((*cell, cell.measured_one::<TrainCell>()?))).collect();
        let is_given = !trained.is_empty() && trained.iter().all(|(_, cell)| cell.accelerator.is_some());
        let per_step = |cell: &TrainCell, s: f64| s / cell.totals.n_steps.max(1) as f64;
        let steps: Vec<f64> = trained.iter().map(|(_, cell)| per_step(cell, cell.totals.compute_s)).collect();
        let without = trained.iter().filter(|(of, _)| depth(of) == Some(0.0));
        let waits = without.map(|(of, cell)| (per_step(cell, cell.totals.wait_s), *of));
        let slowest = waits.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(s, of)| (s, levels_of(of)));
        forebay_units::median(&steps).filter(|_| is_given).map(|step_s| Self { step_s, slowest })
    }

    /// Whether every batch takes less time than the step that hides it.
    fn hides_all(&self) -> bool {
        self.slowest.as_ref().is_some_and(|(slowest, _)| *slowest < self.step_s)
    }

    /// Whether the outcome is that the run times are the same because each step hides each batch.
    fn decides(&self, is_same: bool) -> bool {
        is_same && self.hides_all()
    }

    /// Which way the step time decides the outcome, and why.
    fn said(&self, is_same: bool) -> String {
        let step = brief_seconds(self.step_s);
        let Some((slowest, of)) = &self.slowest else {
            return format!("The step time of {step} is an input of this study.");
        };
        let (slowest, longer) = (brief_seconds(*slowest), self.hides_all());
        let compared = format!(
            "the emulated step of {step}, an input, is {} than the slowest batch takes ({slowest}, {of})",
            if longer { "longer" } else { "shorter" }
        );
        match (longer, is_same) {
            (true, true) => format!("It could not come out otherwise: {compared}. A faster accelerator would wait."),
            (true, false) => format!("It should be the same: {compared}, so one batch ahead should hide it."),
            (false, _) => format!("The step time decides this: {compared}, so one batch ahead cannot hide it."),
        }
    }

    /// The same as the end of a headline.
    pub(crate) fn brief(&self) -> String {
        match self.slowest.as_ref().filter(|_| self.hides_all()) {
            Some((slowest, _)) => format!(
                ", which the emulated step of {} decides (the slowest batch takes {})",
                brief_seconds(self.step_s),
                brief_seconds(*slowest)
            ),
            None => String::new(),
        }
    }
}

fn levels_of(cell: &StudyCell) -> String {
    let mut levels = cell.factors.clone();
    levels.retain(|factor, _| factor != FACTOR);
    level::all(&levels)
}

pub(crate) struct Judgement {
    pub(crate) published: Option<&'static str>,
    pub(crate) ours: String,
}

impl Judgement {
    pub(crate) fn whole(&self) -> String {
        self.published.map_or(self.ours.clone(), |published| format!("{published} {}", self.ours))
    }
}

const PUBLISHED: &str = "Published: with prefetch the run time is the same for every device and thread count.";

/// Whether the run times with batches made ahead are the same; `None` where the study does not ask that.
pub(crate) fn judgement(run: &Run<'_>, experiment: &str) -> Option<Judgement> {
    let cells: Vec<&StudyCell> = run.study.cells.iter().filter(|cell| cell.experiment == experiment).collect();
    let groups = groups(run, &cells);
    let drawn = || run.spec().figures.iter().filter(|figure| figure.kind == FigureKind::Excess);
    let is_drawn = drawn().any(|figure| figure.experiment.as_deref().is_none_or(|name| name == experiment));
    // Where there are figures of it, the study asks it of their experiments alone.
    if groups.is_empty() || (!is_drawn && drawn().next().is_some()) {
        return None;
    }
    let said = groups.iter().map(Ahead::said).collect::<Vec<_>>().join("; ");
    if !is_drawn || run.spec().source.is_none() {
        return Some(Judgement { published: None, ours: crate::number::capital(&said) + "." });
    }
    let (given, is_same) = (Given::of(&cells), groups.iter().all(Ahead::is_same));
    let word = match is_same {
        true if given.as_ref().is_some_and(|given| given.decides(is_same)) => "agrees by construction",
        true => "agrees",
        false if groups.iter().all(|group| group.is_same() || group.is_open()) => "is inconclusive",
        false => "differs",
    };
    let given = given.map(|given| format!(" {}", given.said(is_same))).unwrap_or_default();
    Some(Judgement { published: Some(PUBLISHED), ours: format!("Ours {word}: {said}.{given}") })
}

/// What runs without batches made ahead take longer, over all pairs of an experiment's cells.
pub(crate) fn cost(run: &Run<'_>, experiment: &str) -> Option<String> {
    let cells: Vec<&StudyCell> = run.study.cells.iter().filter(|cell| cell.experiment == experiment).collect();
    let base = base(&cells)?;
    let pairs = cells.iter().filter(|cell| depth(cell) == Some(base)).filter_map(|with| {
        let without = without(&cells, with)?;
        let (a, b) = (wall_s(with)?, wall_s(without)?);
        run.differ(&[with, without], b / a).then_some((*with, b - a, b / a - 1.0))
    });
    let pairs: Vec<(&StudyCell, f64, f64)> = pairs.collect();
    let least = pairs.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let most = pairs.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let said = |(cell, s, share): &(&StudyCell, f64, f64)| {
        let word = if *s < 0.0 { "less" } else { "more" };
        format!("{} {word} ({}; {})", brief_seconds(s.abs()), percent(share.abs()), levels_of(cell))
    };
    let than = match with(&cells).as_str() {
        "with prefetch" => String::new(),
        with => format!(" than {with}"),
    };
    Some(match pairs.len() {
        1 => format!("Without prefetch the run takes {}{than}: the cost of I/O.", said(least)),
        _ => format!("Without prefetch runs take {} to {}{than}: the cost of I/O.", said(least), said(most)),
    })
}

/// The experiments of training that vary prefetch, in the order of the study.
pub(crate) fn experiments<'a>(run: &'a Run<'a>) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for (cell, _) in run.cells_of::<TrainCell>() {
        let varies =
            |other: &StudyCell| other.experiment == cell.experiment && other.level(FACTOR) != cell.level(FACTOR);
        let is_number = matches!(cell.level(FACTOR), Some(Level::Integer(_)));
        if is_number && !names.contains(&cell.experiment.as_str()) && run.study.cells.iter().any(varies) {
            names.push(&cell.experiment);
        }
    }
    let place = |name: &str| run.spec().experiments.iter().position(|experiment| experiment.name == name);
    names.sort_by_key(|name| place(name).unwrap_or(usize::MAX));
    names
}
