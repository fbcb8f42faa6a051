//! Runs side by side: which cells differ, how sure that is, and what else differs between the runs.
//!
//! Cells are matched by experiment and factors. A setting that each run keeps constant, but not at the same level, does
//! not part them: it is what is being compared, and is listed first among the differences. Judgement is by the interval
//! of the ratio ([`ratio_interval`]) after Holm's correction, since of many comparisons some differ by chance.

mod difference;
mod entry;

use std::collections::{HashMap, HashSet};

use forebay_record::{AnyRecord, Better, Disturbed, Level, Levels, MetricInfo, ProbeCell, Step};
use forebay_units::{RatioInterval, count, holm, ratio_interval};

use crate::basis;
use crate::data::{Data, Tone, Value};
use crate::level;
use crate::metric;
use crate::number::{given, quantity, times};
use crate::run::{Run, differing};
use crate::table::Align::{Left, Right};

use entry::{Entry, entries};

/// How sure the intervals are.
const CONFIDENCE: f64 = 0.95;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Word {
    Faster,
    Slower,
    /// The interval includes 1.
    Noise,
    /// The interval does not, but among so many comparisons some do that by chance.
    Chance,
    /// With one repeat there is no interval.
    CannotTell,
    NotMeasured,
    Disturbed,
}

impl Word {
    fn tone(self) -> Tone {
        match self {
            Self::Faster => Tone::Good,
            Self::Slower => Tone::Bad,
            Self::Noise | Self::Chance | Self::CannotTell | Self::NotMeasured | Self::Disturbed => Tone::Neither,
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Noise => "noise: the interval includes 1×",
            Self::Chance => "not significant after Holm's correction",
            Self::CannotTell => "inconclusive (one repeat)",
            Self::NotMeasured => "not measured in both",
            Self::Disturbed => "not judged: disturbed",
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Pair {
    pub(crate) id: String,
    pub(crate) experiment: String,
    pub(crate) metric: &'static MetricInfo,
    /// Whether it is one of several values of its cell.
    pub(crate) is_of_several: bool,
    pub(crate) levels: Levels,
    /// The geometric means of the repeats where there is an interval, else the values; the ratio is theirs.
    pub(crate) before: Option<f64>,
    pub(crate) after: Option<f64>,
    /// After over before.
    pub(crate) ratio: Option<f64>,
    pub(crate) interval: Option<RatioInterval>,
    /// The probability of such a difference by chance, corrected for the number of comparisons.
    pub(crate) p: Option<f64>,
    pub(crate) word: Word,
    /// What others did while each of the two was measured.
    disturbed: [Option<Disturbed>; 2],
}

impl Pair {
    /// The cell, and what of it where that is not all.
    pub(crate) fn name(&self) -> String {
        let cell = level::all(&self.levels);
        if self.is_of_several { format!("{cell}: {}", self.metric.label) } else { cell }
    }

    /// Whether less is better.
    pub(crate) fn is_cost(&self) -> bool {
        self.metric.better == Better::Lower
    }

    pub(crate) fn describe(&self) -> String {
        let show =
            |value: Option<f64>| value.map_or("–".to_owned(), |value| metric::with_unit(self.metric.name, value));
        let mut text = format!("{}: {} → {}", self.name(), show(self.before), show(self.after));
        if let Some(ratio) = self.ratio {
            text.push_str(&format!(", {}", times(ratio)));
        }
        if let Some(interval) = self.interval {
            text.push_str(&format!(" ({} to {})", times(interval.low), times(interval.high)));
        }
        format!("{text}: {}", self.word.word())
    }
}

#[derive(Debug)]
pub(crate) struct Comparison<'a> {
    pub(crate) base: &'a str,
    pub(crate) name: &'a str,
    /// What else differs: what, there, here.
    pub(crate) differences: Vec<(String, String, String)>,
    pub(crate) pairs: Vec<Pair>,
    /// Cells of one run only; values, where a cell holds several measurements.
    pub(crate) only_base: usize,
    pub(crate) only_other: usize,
    /// Whether a cell holds several measurements, as one that probes does.
    has_several: bool,
    kind: RunKind,
}

/// How the run that is compared was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunKind {
    Traced,
    Single,
    Study,
}

impl RunKind {
    fn of(run: &Run<'_>) -> Self {
        match run.record {
            AnyRecord::Trace(_) => Self::Traced,
            _ if run.is_study() => Self::Study,
            _ => Self::Single,
        }
    }
}

pub(crate) fn compare<'a>(runs: &'a [Run<'a>]) -> Vec<Comparison<'a>> {
    let Some((base, others)) = runs.split_first() else { return Vec::new() };
    others.iter().filter(|other| are_alike(base, other)).map(|other| compare_two(base, other)).collect()
}

/// Whether two runs have an experiment of the same command; a probe and a workload stand beside each other in a report, and
/// there is nothing to compare.
fn are_alike(base: &Run<'_>, other: &Run<'_>) -> bool {
    let steps = |run: &Run<'_>| run.study.cells.iter().map(|cell| cell.step).collect::<Vec<Step>>();
    let of_base = steps(base);
    of_base.is_empty() || steps(other).iter().any(|step| of_base.contains(step))
}

fn compare_two<'a>(base: &'a Run<'a>, other: &'a Run<'a>) -> Comparison<'a> {
    let (mut before, mut after) = (entries(base), entries(other));
    let mut differences = difference::settings_apart(&mut before, &mut after);
    differences.extend(difference::environment_differences(base, other));
    let cell = |entry: &Entry| {
        let levels: Vec<String> = entry.levels.iter().map(|(factor, level)| format!("{factor}={level}")).collect();
        format!("{}/{}", entry.experiment, levels.join("/"))
    };
    let key = |entry: &Entry| (cell(entry), entry.metric.name);
    let mut found: HashMap<(String, &str), Entry> = after.into_iter().map(|entry| (key(&entry), entry)).collect();
    let mut pairs = Vec::new();
    // A cell may have several values.
    let mut only_base: HashSet<String> = HashSet::new();
    for entry in before {
        match found.remove(&key(&entry)) {
            Some(with) => pairs.push(pair(cell(&entry), entry, with)),
            None => drop(only_base.insert(cell(&entry))),
        }
    }
    let only_base = only_base.len();
    name_several(&mut pairs);
    let only_other = found.values().map(cell).collect::<HashSet<String>>().len();
    judge(&mut pairs);
    pairs.sort_by(|a, b| a.experiment.cmp(&b.experiment).then_with(|| order(&a.levels, &b.levels)));
    // What all have in common need not be said of each.
    let shown = differing(pairs.iter().map(|pair| pair.levels.clone()).collect(), &["threads", "depth", "mode"]);
    pairs.iter_mut().zip(shown).for_each(|(pair, levels)| pair.levels = levels);
    // Which tier a mode has in front is told by the mode, in a record of checkpoints.
    for pair in pairs.iter_mut().filter(|pair| pair.levels.contains_key("mode")) {
        pair.levels.retain(|factor, _| !["burst_storage", "burst_tier"].contains(&factor.as_str()));
    }
    let has_several =
        [base, other].iter().any(|run| run.study.cells.iter().any(|cell| cell.measured_as::<ProbeCell>().count() > 1));
    Comparison {
        base: &base.short,
        name: &other.short,
        differences,
        pairs,
        only_base,
        only_other,
        has_several,
        kind: RunKind::of(other),
    }
}

/// Of a cell with several values, every id ends in what the value is of.
fn name_several(pairs: &mut [Pair]) {
    let mut n_of: HashMap<String, usize> = HashMap::new();
    pairs.iter().for_each(|pair| *n_of.entry(pair.id.clone()).or_default() += 1);
    for pair in pairs.iter_mut().filter(|pair| n_of[&pair.id] > 1) {
        pair.is_of_several = true;
        pair.id = format!("{}/{}", pair.id, pair.metric.name);
    }
}

fn order(a: &Levels, b: &Levels) -> std::cmp::Ordering {
    let threads_last = |levels: &Levels| -> Vec<Level> {
        let is_last = |factor: &str| ["threads", "depth"].contains(&factor);
        let first = levels.iter().filter(|(factor, _)| !is_last(factor));
        first.chain(levels.iter().filter(|(factor, _)| is_last(factor))).map(|(_, level)| level.clone()).collect()
    };
    let (a, b) = (threads_last(a), threads_last(b));
    let by_level = a.iter().zip(&b).map(|(a, b)| level::order(a, b));
    by_level.fold(std::cmp::Ordering::Equal, |so_far, next| so_far.then(next))
}

fn pair(id: String, mut before: Entry, mut after: Entry) -> Pair {
    if let (Some(a), Some(b)) = (before.by_rate.take(), after.by_rate.take())
        && a.work != b.work
    {
        for (entry, rate) in [(&mut before, a), (&mut after, b)] {
            (entry.metric, entry.found) = (rate.metric, rate.found);
        }
    }
    let disturbed = [before.disturbed, after.disturbed];
    let sound = |value: f64| (value.is_finite() && value > 0.0).then_some(value);
    let (a, b) = (sound(before.found.value), sound(after.found.value));
    let interval =
        ratio_interval(&before.found.repeats, &after.found.repeats, CONFIDENCE).filter(|_| a.is_some() && b.is_some());
    // A ratio beside two values has to be theirs: the median would be of another kind than the interval.
    let (a, b) = match interval {
        Some(_) => (Some(geometric_mean(&before.found.repeats)), Some(geometric_mean(&after.found.repeats))),
        None => (a, b),
    };
    let ratio = interval.map(|interval| interval.ratio).or_else(|| Some(b? / a?));
    Pair {
        id,
        experiment: before.experiment,
        metric: before.metric,
        is_of_several: false,
        levels: before.levels,
        before: a,
        after: b,
        ratio,
        interval,
        p: None,
        word: match ratio {
            None => Word::NotMeasured,
            Some(_) if disturbed != [None; 2] => Word::Disturbed,
            Some(_) => Word::CannotTell,
        },
        disturbed,
    }
}

fn geometric_mean(values: &[f64]) -> f64 {
    (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp()
}

/// Corrects for the number of comparisons and gives every pair its word.
fn judge(pairs: &mut [Pair]) {
    let is_judged = |pair: &Pair| pair.word != Word::Disturbed;
    let judged = pairs.iter().filter(|pair| is_judged(pair));
    let raw: Vec<f64> = judged.filter_map(|pair| pair.interval.map(|interval| interval.p)).collect();
    let mut corrected = holm(&raw).into_iter();
    for pair in pairs.iter_mut().filter(|pair| is_judged(pair)) {
        let Some(interval) = pair.interval else { continue };
        pair.p = corrected.next();
        pair.word = match pair.p {
            _ if interval.includes_one() => Word::Noise,
            Some(p) if p >= 1.0 - CONFIDENCE => Word::Chance,
            _ if (interval.ratio > 1.0) != pair.is_cost() => Word::Faster,
            _ => Word::Slower,
        };
    }
}

impl Comparison<'_> {
    /// Whether some cells are there with more than one quantity.
    fn has_several_of_a_cell(&self) -> bool {
        self.has_several || self.pairs.iter().any(|pair| pair.is_of_several)
    }

    pub(crate) fn n(&self, word: Word) -> usize {
        self.pairs.iter().filter(|pair| pair.word == word).count()
    }

    pub(crate) fn summary(&self) -> String {
        if self.pairs.is_empty() {
            return "The runs have no cell in common; there is nothing to compare.".to_owned();
        }
        let n = self.pairs.len();
        let noun = if self.has_several_of_a_cell() { "value" } else { "cell" };
        for (word, said) in
            [(Word::CannotTell, "measured only once"), (Word::Disturbed, "disturbed by other processes")]
        {
            match n {
                n if self.n(word) < n => {}
                1 => return format!("The {noun} in common was {said}: no verdict."),
                _ => return format!("All {} in common were {said}: no verdict.", count(n as u64, noun)),
            }
        }
        let mut parts = Vec::new();
        for (word, said) in [
            (Word::Faster, "faster"),
            (Word::Slower, "slower"),
            (Word::Noise, "within noise"),
            (Word::Chance, "not significant after Holm's correction"),
            (Word::CannotTell, "measured only once, so without a verdict"),
            (Word::NotMeasured, "not measured in both"),
            (Word::Disturbed, "disturbed and not judged"),
        ] {
            if self.n(word) > 0 {
                parts.push(format!("{} {said}", self.n(word)));
            }
        }
        let compared = count(n as u64, noun);
        format!("{compared} in common: {}.", crate::number::listed(&parts))
    }

    pub(crate) fn method(&self) -> String {
        let legend = if self.n(Word::Disturbed) > 0 { basis::LEGEND } else { "" };
        let parts = [self.intervals(), self.direction(), self.apart(), self.how_to_tell(), legend.to_owned()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
    }

    /// How a verdict is had where there is none for lack of repeats.
    fn how_to_tell(&self) -> String {
        match self.kind {
            _ if self.n(Word::CannotTell) == 0 => "",
            RunKind::Traced => "A trace is one run: trace each job several times, and compare the ranges yourself.",
            RunKind::Single => "For a verdict, measure both with --repeats 5.",
            RunKind::Study => "For a verdict, run both studies with repeats.",
        }
        .to_owned()
    }

    /// What the values and the intervals are; nothing where there is none.
    fn intervals(&self) -> String {
        let is_judged = |pair: &&Pair| pair.interval.is_some() && pair.word != Word::Disturbed;
        let n = self.pairs.iter().filter(is_judged).count();
        if n == 0 {
            return String::new();
        }
        let mut text = format!(
            "Values are geometric means of the repeats; the table of each run shows medians. Each ratio has a 95 % confidence \
             interval (Welch's t-test on the logarithms of the repeats). {} made; ",
            if n == 1 {
                "1 comparison was".to_owned()
            } else {
                format!("{} comparisons were", forebay_units::group_digits(n as u64))
            }
        );
        let alarms = (n as f64 * (1.0 - CONFIDENCE) * 10.0).round() / 10.0;
        text.push_str(&format!(
            "between equal runs, about {} of these intervals would exclude 1× by chance. “Faster” and “slower” are therefore \
             judged after Holm's correction.",
            given(alarms)
        ));
        text
    }

    /// Which way a ratio is better, where some are of times.
    pub(crate) fn direction(&self) -> String {
        let times = self.pairs.iter().filter(|pair| pair.is_cost()).count();
        match times {
            0 => String::new(),
            n if n == self.pairs.len() && self.has_several_of_a_cell() => {
                "These are ratios of times: below 1× is faster.".to_owned()
            }
            n if n == self.pairs.len() => "These are ratios of run times: below 1× is faster.".to_owned(),
            _ => "Ratios of run times are better below 1×, ratios of rates above 1×.".to_owned(),
        }
    }

    fn apart(&self) -> String {
        if self.only_base + self.only_other == 0 {
            return String::new();
        }
        // A value that is matched by itself is counted by itself.
        let noun = if self.has_several { "value" } else { "cell" };
        format!(
            "{} only in {}, {} only in {}.",
            count(self.only_base as u64, noun),
            self.base,
            count(self.only_other as u64, noun),
            self.name
        )
    }

    fn is_all(&self, metric: &MetricInfo) -> bool {
        self.pairs.iter().all(|pair| pair.metric == metric)
    }

    pub(crate) fn table(&self) -> Data {
        let is_mean = self.pairs.iter().any(|pair| pair.interval.is_some());
        // A quantity that all have in common needs no column, but a unit.
        let quantity_of_all = self.pairs.first().map(|pair| pair.metric).filter(|first| self.is_all(first));
        let unit = quantity_of_all.map(|info| format!(", {}", info.heading())).unwrap_or_default();
        let head = |name: &str| if is_mean { format!("{name}{unit}, geometric mean") } else { format!("{name}{unit}") };
        let mut data = Data::new(&[
            ("experiment", "experiment", Left),
            ("at", "cell", Left),
            ("metric", "quantity", Left),
            ("before", &head(self.base), Right),
            ("after", &head(self.name), Right),
            ("ratio", "ratio", Right),
            ("low", "95 % from", Right),
            ("high", "to", Right),
            ("p", "p, corrected", Right),
            ("word", "verdict", Left),
        ]);
        for pair in &self.pairs {
            data.row(vec![
                Value::text(pair.experiment.clone()),
                Value::text(level::all(&pair.levels)),
                Value::text(pair.metric.heading()),
                Value::maybe(pair.before, metric::show(pair.metric.name)).marked(pair.disturbed[0]),
                Value::maybe(pair.after, metric::show(pair.metric.name)).marked(pair.disturbed[1]),
                Value::maybe(pair.ratio, times),
                Value::maybe(pair.interval.map(|interval| interval.low), times),
                Value::maybe(pair.interval.map(|interval| interval.high), times),
                Value::maybe(pair.p, quantity),
                Value::Word(pair.word.word(), pair.word.tone()),
            ]);
        }
        data.hide_if_same("experiment");
        data.hide_if_same("metric");
        // Without a level, a cell has no name.
        if self.pairs.iter().all(|pair| pair.levels.is_empty()) {
            data.hide("at");
        }
        data
    }

    pub(crate) fn differences_table(&self) -> Data {
        let mut data = Data::new(&[("what", "what", Left), ("before", self.base, Left), ("after", self.name, Left)]);
        for (what, a, b) in &self.differences {
            data.row(vec![Value::text(what.clone()), Value::text(a.clone()), Value::text(b.clone())]);
        }
        data
    }
}
