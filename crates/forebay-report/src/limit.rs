//! What limits a rate: how each place scales with threads, and where the time of its fastest cell went.

use std::collections::BTreeMap;

use forebay_record::{CacheState, IngestCell, Level, Levels, SPEED_UP, StudyCell, TierKind};
use forebay_units::{RatioInterval, count, ratio_interval};

use crate::data::{Data, Value};
use crate::level;
use crate::number::{percent, quantity, times};
use crate::order::Order;
use crate::run::Run;
use crate::table::Align::{Left, Right};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    /// Opening and reading took most of the workers' time.
    Storage,
    /// They did, but the storage had capacity left: the rate still rose with the last threads that were added.
    Requests,
    /// Decoding and resizing did.
    Decoding,
    /// Neither did.
    Both,
    /// Reading alone kept the processor busy.
    Processor,
    /// The bytes came from memory: no storage was measured.
    Memory,
    Unknown,
}

impl Limit {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Storage => "storage",
            Self::Requests => "requests in flight",
            Self::Decoding => "decoding",
            Self::Both => "storage, decoding",
            Self::Processor => "the processor",
            Self::Memory => "memory (warm)",
            Self::Unknown => "",
        }
    }
}

/// Above this share of the workers' busy time, one of storage and decoding is the limit.
const CLEAR: f64 = 0.6;
/// Where reading alone is faster than with decoding by more than the first factor, storage is not the limit; below the second it is.
const READS_FASTER: f64 = 1.3;
const READS_ALIKE: f64 = 1.1;
/// A rate that rose by more than this with the last threads added would rise further with more.
const STILL_RISING: f64 = 1.25;
const FAR_BELOW: f64 = 0.7;
/// Above this share of all cores, the processor is.
const BUSY: f64 = 0.85;

/// What limits a cell, on a machine with so many cores (0 when unknown).
pub(crate) fn limit(cell: &IngestCell, n_cores: u64) -> Limit {
    let sum = |names: &[&str]| -> f64 { names.iter().filter_map(|name| cell.worker_time.get(*name)).sum() };
    let storage = sum(&["opening", "reading", "waiting_for_bytes"]);
    let decoding = sum(&["decoding", "decoding_on_gpu", "resizing"]);
    let cores_busy = cell.cpu_s_per_1000 * cell.images_per_s / 1000.0;
    let from_memory = cell.medium.cache == Some(CacheState::Warm) && cell.medium.tier.is_none();
    if cell.read_only {
        return match n_cores {
            _ if from_memory => Limit::Memory,
            n if n > 0 && cores_busy >= BUSY * n as f64 => Limit::Processor,
            _ => Limit::Storage,
        };
    }
    let share = storage / (storage + decoding);
    if !share.is_finite() {
        return Limit::Unknown;
    }
    // What comes from memory waits for no storage, whatever the workers' clocks say: threads without a core look as if they read.
    if from_memory || (n_cores > 0 && cores_busy >= BUSY * n_cores as f64) {
        return Limit::Decoding;
    }
    // Threads beyond the cores wait for their turn while they decode, which only looks like decoding.
    let crowd = if n_cores > 0 { (cell.threads as f64 / n_cores as f64).max(1.0) } else { 1.0 };
    let least = storage / (storage + decoding / crowd);
    match share {
        share if share >= CLEAR => Limit::Storage,
        _ if least <= 1.0 - CLEAR => Limit::Decoding,
        _ => Limit::Both,
    }
}

/// Cells that differ in threads only.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    pub(crate) levels: Levels,
    /// What to call it: its tier, or whatever tells it from others.
    pub(crate) name: String,
    pub(crate) read_only: bool,
    /// With the fewest threads.
    pub(crate) first: (&'a StudyCell, &'a IngestCell),
    pub(crate) best: (&'a StudyCell, &'a IngestCell),
    /// Whether the fastest is faster than the first by more than single runs vary.
    pub(crate) is_gain: bool,
    pub(crate) limit: Limit,
    pub(crate) kind: Option<TierKind>,
}

impl Place<'_> {
    /// Ours over one thread; `None` when a single number of threads was measured.
    pub(crate) fn speed_up(&self) -> Option<f64> {
        let ratio = self.best.1.images_per_s / self.first.1.images_per_s;
        (!std::ptr::eq(self.first.0, self.best.0) && ratio.is_finite()).then_some(ratio)
    }

    /// The 95 % confidence interval of the speed-up; `None` where there are too few repeats for one.
    pub(crate) fn speed_up_interval(&self) -> Option<RatioInterval> {
        let rates = |cell: &IngestCell| cell.samples.iter().map(|repeat| repeat.images_per_s()).collect::<Vec<_>>();
        ratio_interval(&rates(self.first.1), &rates(self.best.1), 0.95)
    }

    /// The name with how it is served: "the emulated hdd".
    pub(crate) fn full_name(&self) -> String {
        match self.kind {
            Some(TierKind::Shaped) => format!("the emulated {}", self.name),
            Some(TierKind::Kernel) => format!("the throttled {}", self.name),
            _ => self.name.clone(),
        }
    }

    /// The share of the ceiling that the fastest cell reached.
    pub(crate) fn efficiency(&self) -> Option<f64> {
        let cell = self.best.1;
        cell.ceiling_mb_per_s.filter(|ceiling| *ceiling > 0.0).map(|ceiling| cell.mb_per_s / ceiling)
    }
}

/// Every place of a run, in the order of its tiers.
pub(crate) fn places<'a>(run: &'a Run<'a>) -> Vec<Place<'a>> {
    let mut by_key: BTreeMap<String, Vec<(&StudyCell, &IngestCell)>> = BTreeMap::new();
    let mut order: Vec<String> = Vec::new();
    for (cell, ingest) in
        run.cells_of::<IngestCell>().filter(|(_, ingest)| ingest.images_per_s.is_finite() && ingest.images_per_s > 0.0)
    {
        let others = cell.factors.iter().filter(|(factor, _)| !["threads", "threads_auto"].contains(&factor.as_str()));
        let key = others.map(|(factor, level)| format!("{factor}={level}/")).collect::<String>() + &cell.experiment;
        if !by_key.contains_key(&key) {
            order.push(key.clone());
        }
        by_key.entry(key).or_default().push((cell, ingest));
    }
    let mut places: Vec<Place<'_>> = order.iter().map(|key| place(run, &by_key[key])).collect();
    cross_check(&mut places);
    let order = Order::of(run);
    places.sort_by(|a, b| a.read_only.cmp(&b.read_only).then_with(|| order.compare(a.best.0, b.best.0)));
    tell_apart(&mut places);
    places
}

/// The same storage with and without prefetch has two names.
fn tell_apart(places: &mut [Place<'_>]) {
    let prefetching: Vec<(String, bool)> = places
        .iter()
        .filter(|place| place.best.1.prefetch > 0)
        .map(|place| (place.name.clone(), place.read_only))
        .collect();
    for place in places.iter_mut().filter(|place| place.best.1.prefetch == 0) {
        if prefetching.contains(&(place.name.clone(), place.read_only)) {
            place.name.push_str(" without prefetch");
            place.levels.insert("prefetch".to_owned(), Level::Integer(0));
        }
    }
}

/// The rate of reading alone outweighs what workers were seen doing: the two must not contradict each other in one table.
fn cross_check(places: &mut [Place<'_>]) {
    let alone = |levels: &Levels| {
        let mut levels = levels.clone();
        levels.insert("read_only".to_owned(), Level::Flag(true));
        levels
    };
    let rates: Vec<(Levels, f64)> = places
        .iter()
        .filter(|place| place.read_only)
        .map(|place| (alone(&place.levels), place.best.1.images_per_s))
        .collect();
    for place in places.iter_mut().filter(|place| !place.read_only && place.limit != Limit::Requests) {
        let wanted = alone(&place.levels);
        let Some((_, reads)) = rates.iter().find(|(levels, _)| *levels == wanted) else { continue };
        match reads / place.best.1.images_per_s {
            ratio if ratio > READS_FASTER => place.limit = Limit::Decoding,
            ratio if ratio < READS_ALIKE => place.limit = Limit::Storage,
            _ => place.limit = Limit::Both,
        }
    }
}

fn place<'a>(run: &Run<'_>, cells: &[(&'a StudyCell, &'a IngestCell)]) -> Place<'a> {
    let first = cells.iter().min_by_key(|(_, ingest)| ingest.threads).expect("a place has a cell");
    let best = cells.iter().max_by(|a, b| a.1.images_per_s.total_cmp(&b.1.images_per_s)).expect("a place has a cell");
    let mut levels = best.0.factors.clone();
    levels.retain(|factor, _| !["threads", "threads_auto"].contains(&factor.as_str()));
    let tier = match levels.get("tier") {
        Some(Level::Text(tier)) => Some(tier),
        _ => best.1.medium.tier.as_ref(),
    };
    let kind = tier.and_then(|tier| run.head().tiers.iter().find(|note| note.name == *tier)).map(|note| note.kind);
    let level = |factor: &str| levels.get(factor).map(ToString::to_string);
    let named = tier.cloned().or_else(|| level("dataset")).or_else(|| level("storage"));
    Place {
        name: named.or_else(|| crate::environment::path(run)).unwrap_or("the storage".to_owned()),
        read_only: best.1.read_only,
        first: *first,
        best: *best,
        is_gain: run.differ(&[first.0, best.0], best.1.images_per_s / first.1.images_per_s),
        limit: match limit(best.1, run.environment().n_cores) {
            Limit::Storage if has_capacity_left(cells, best.1) => Limit::Requests,
            limit => limit,
        },
        kind: kind.or(best.1.medium.kind),
        levels,
    }
}

/// Whether the largest number of threads was the fastest by far, and the ceiling, where it is known, is far away.
fn has_capacity_left(cells: &[(&StudyCell, &IngestCell)], best: &IngestCell) -> bool {
    let before = cells.iter().filter(|(_, cell)| cell.threads < best.threads).map(|(_, cell)| cell.images_per_s);
    let is_last = cells.iter().all(|(_, cell)| cell.threads <= best.threads);
    let rose = before.fold(0.0, f64::max);
    let is_far = best.ceiling_mb_per_s.is_none_or(|ceiling| best.mb_per_s < FAR_BELOW * ceiling);
    is_last && rose > 0.0 && best.images_per_s > STILL_RISING * rose && is_far
}

/// Every place in a line: its rates, how it scales, what limits it.
pub(crate) fn table(run: &Run<'_>, places: &[Place<'_>]) -> Data {
    let same =
        places.first().map(|place| place.first.1.threads).filter(|n| places.iter().all(|p| p.first.1.threads == *n));
    let first_name = same.map_or("images/s".to_owned(), |n| format!("images/s, {}", count(n, "thread")));
    let mut data = Data::new(&[
        ("place", "place", Left),
        ("first_threads", "threads", Right),
        ("first_images_per_s", &first_name, Right),
        ("best_images_per_s", "best images/s", Right),
        ("best_threads", "with threads", Right),
        ("best_mb_per_s", "MB/s", Right),
        (SPEED_UP.name, "speed-up", Right),
        (IngestCell::EFFICIENCY.info.name, "of ceiling", Right),
        ("limit", "limited by", Left),
    ]);
    for place in places {
        let (first, best) = (place.first.1, place.best.1);
        let mut levels = place.levels.clone();
        if !run.is_study() {
            // What is the same in all cells of a record is not among their levels; these two are worth their words.
            levels.insert("read_only".to_owned(), Level::Flag(place.read_only));
            levels.extend(best.medium.tier.clone().map(|tier| ("tier".to_owned(), Level::Text(tier))));
        }
        data.row(vec![
            Value::text(level::all(&levels)),
            Value::count(first.threads),
            Value::number(first.images_per_s, quantity),
            Value::number(best.images_per_s, quantity),
            Value::count(best.threads),
            Value::number(best.mb_per_s, quantity),
            Value::maybe(place.speed_up(), times),
            Value::maybe(place.efficiency(), percent),
            Value::text(place.limit.word()),
        ]);
    }
    if same.is_some() {
        data.hide("first_threads");
    }
    data
}
