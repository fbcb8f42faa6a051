//! What utilisation does as processes are added: in DLIO's arithmetic, over whole epochs, and why the two part.
//!
//! Every sentence is made from the cells. DLIO leaves the first step of an epoch out; where an epoch has hardly more steps than
//! batches are made ahead, that step has waited for most of the epoch's data, and what is left looks busy.

use forebay_record::{Levels, Scale, StudyCell, WorkloadCell};
use forebay_units::count;

use crate::level;
use crate::number::{brief_seconds, listed, percent, seconds};
use crate::order::Order;
use crate::run::Run;

const FACTORS: [&str; 2] = ["processes", "accelerators"];
/// Utilisations, as shares, that are nearer than this are the same.
const SAME: f64 = 0.03;
/// A rise of less is no rise.
const NOISE: f64 = 0.005;
/// DLIO's utilisation this far above that of the whole epoch tells another story.
const APART: f64 = 0.15;
/// A wait at a barrier that is worth a sentence, of the time of a computation.
const NOTABLE: f64 = 0.1;

#[derive(Debug)]
pub(crate) struct Count<'a> {
    pub(crate) cell: &'a StudyCell,
    workload: &'a WorkloadCell,
    n: f64,
    whole: f64,
    dlio: f64,
}

/// Cells that differ in the number of processes alone, fewest first.
#[derive(Debug)]
pub(crate) struct Group<'a> {
    factor: &'static str,
    pub(crate) levels: Levels,
    pub(crate) experiment: &'a str,
    pub(crate) counts: Vec<Count<'a>>,
    /// Utilisations, as shares, that are nearer than this are the same, or may be where cells were measured once.
    same: f64,
    /// What to know of the reader, where it is an emulated one.
    reader: Option<String>,
}

/// Every group of a run, in the order of the study; a group has three numbers of processes at least.
pub(crate) fn groups<'a>(run: &'a Run<'a>) -> Vec<Group<'a>> {
    let order = Order::of(run);
    let mut cells: Vec<(&StudyCell, &WorkloadCell)> = run.cells_of::<WorkloadCell>().collect();
    cells.sort_by(|a, b| order.compare(a.0, b.0));
    let mut groups: Vec<Group<'a>> = Vec::new();
    for (cell, workload) in cells {
        let found = FACTORS.into_iter().find_map(|factor| Some((factor, level::number(cell.level(factor)?)?)));
        let values = [&WorkloadCell::AU_EPOCH, &WorkloadCell::AU_DLIO].map(|metric| cell.value(metric));
        let (Some((factor, n)), [Some(whole), Some(dlio)]) = (found, values) else { continue };
        let mut levels = cell.factors.clone();
        levels.remove(factor);
        let count = Count { cell, workload, n, whole, dlio };
        let of = |group: &&mut Group<'_>| {
            group.experiment == cell.experiment && group.levels == levels && group.factor == factor
        };
        match groups.iter_mut().find(of) {
            Some(group) => group.counts.push(count),
            None => {
                let (experiment, counts) = (cell.experiment.as_str(), vec![count]);
                groups.push(Group { factor, levels, experiment, counts, same: SAME, reader: None });
            }
        }
    }
    groups.iter_mut().for_each(|group| group.counts.sort_by(|a, b| a.n.total_cmp(&b.n)));
    groups.retain(|group| group.counts.len() > 2);
    for group in groups.iter_mut().filter(|group| group.counts.iter().any(|count| count.cell.n_repeats() < 2)) {
        group.same = group.same.max(run.noise() * group.range().1);
    }
    let readers: Vec<Option<String>> = groups.iter().map(|group| emulated(run, group, &groups)).collect();
    groups.iter_mut().zip(readers).for_each(|(group, reader)| group.reader = reader);
    groups
}

/// That the reader of a group is an emulation, and what the real one shows where the same workload was run with it.
fn emulated(run: &Run<'_>, group: &Group<'_>, all: &[Group<'_>]) -> Option<String> {
    let rate = decode_rate(run, group.experiment)?;
    let workload = &group.counts[0].workload.workload;
    let is_real = |other: &&Group<'_>| {
        decode_rate(run, other.experiment).is_none() && other.counts[0].workload.workload == *workload
    };
    let real = all.iter().find(is_real).map(|real| {
        let (first, last) = (&real.counts[0], real.last());
        let asks = if run.head().scale != Scale::Full { ", at the quick scale's smaller demand" } else { "" };
        format!(
            " With forebay's own reader ({}{asks}), AU over whole epochs is {} with {} and {} with {}; DLIO's arithmetic gives \
             {} and {}.",
            real.experiment,
            percent(first.whole),
            real.name(first),
            percent(last.whole),
            real.name(last),
            percent(first.dlio),
            percent(last.dlio),
        )
    });
    Some(format!(
        " The reader of these runs is emulated: in each process, the loader's workers share a core that decodes {} GB/s, a rate \
         fitted to the first loads that the source recorded. The result shows how such a reader behaves, not what this machine's \
         storage can do.{}",
        crate::number::given(rate / 1e3),
        real.unwrap_or_default()
    ))
}

/// The rate at which the readers of an experiment pretend to decode.
fn decode_rate(run: &Run<'_>, experiment: &str) -> Option<f64> {
    let spec = run.spec().experiments.iter().find(|spec| spec.name == experiment)?;
    level::number(spec.settings.get("dlio_decode_mb_per_s")?.at(run.head().scale))
}

impl Group<'_> {
    /// Whether DLIO's utilisation rises to a peak that the whole epoch does not have.
    pub(crate) fn has_false_peak(&self) -> bool {
        let peak = self.peak();
        peak.n > self.counts[0].n && peak.dlio - peak.whole > APART && self.true_peak().is_none()
    }

    /// Why the utilisation is what it is, with the numbers it is concluded from.
    pub(crate) fn said(&self) -> String {
        if self.has_false_peak() {
            return self.no_peak();
        }
        let (least, most) = self.range();
        let widest = self.counts.iter().map(|count| count.dlio - count.whole).fold(f64::MIN, f64::max);
        let between = match most - least {
            apart if apart < SAME => format!("is about {} for every number of {}", percent(most), self.factor),
            apart if apart < self.same => {
                let (low, high) = (percent(least), percent(most));
                format!("is between {low} and {high}, within the noise of single runs")
            }
            _ => format!(
                "goes from {} with {} to {} with {}",
                percent(self.counts[0].whole),
                self.name(&self.counts[0]),
                percent(self.last().whole),
                self.name(self.last())
            ),
        };
        let dlio = match widest < SAME {
            true => "DLIO's arithmetic gives the same".to_owned(),
            false => format!("DLIO's arithmetic gives up to {} points more", (widest * 100.0).round()),
        };
        let peak = match self.true_peak() {
            Some(peak) => {
                format!(" The peak is in the whole epochs too: {} with {}.", percent(peak.whole), self.name(peak))
            }
            None => String::new(),
        };
        let reader = self.reader.as_deref().unwrap_or_default();
        format!("Over whole epochs, AU {between}; {dlio}.{peak}{reader}")
    }

    /// The paragraph on a peak that is not there.
    fn no_peak(&self) -> String {
        let (peak, first, last) = (self.peak(), &self.counts[0], self.last());
        let name = self.name(peak);
        let after = match last.n > peak.n && last.dlio < peak.dlio - self.same {
            true => format!(", and {} with {}", percent(last.dlio), self.name(last)),
            false => String::new(),
        };
        let steps = self.counts.iter().map(|count| count.workload.steps_per_epoch.to_string()).collect::<Vec<_>>();
        let (least, most) = self.range();
        let whole = match self.falls() {
            true => {
                format!("falls from {} to {} as {} are added", percent(first.whole), percent(last.whole), self.factor)
            }
            false if most - least < self.same => format!("stays between {} and {}", percent(least), percent(most)),
            false => {
                let all: Vec<String> = self.counts.iter().map(|count| percent(count.whole)).collect();
                format!("goes {} in turn", listed(&all))
            }
        };
        format!(
            "There is no peak at {name}. DLIO's arithmetic gives {} with {} and {} with {name}{after}, but it leaves \
             out the first step of every epoch. Files are divided among them, so an epoch has {} steps with {} {}; with {name}, the \
             first of its {} waited {} for data{}, and DLIO leaves that out.{} Over whole epochs, \
             AU is {} with {name} and {whole}.{}",
            percent(first.dlio),
            self.name(first),
            percent(peak.dlio),
            listed(&steps),
            listed(&self.counts.iter().map(|count| crate::number::given(count.n)).collect::<Vec<_>>()),
            self.factor,
            count(peak.workload.steps_per_epoch, "step"),
            brief_seconds(peak.workload.totals.first_batch_s),
            hidden(peak.workload),
            self.behind_first(),
            percent(peak.whole),
            self.reader.as_deref().unwrap_or_default(),
        )
    }

    /// What DLIO's figure lacks of 100 % where nearly all waits are those of the first step: the barrier behind it, which it counts.
    fn behind_first(&self) -> String {
        let (peak, last) = (self.peak(), self.last());
        let Some(at_peak) =
            first_barrier_s(peak.workload).filter(|waited| *waited > NOTABLE * peak.workload.computation_s)
        else {
            return String::new();
        };
        let at_last = first_barrier_s(last.workload).filter(|_| last.n > peak.n);
        let more = at_last.map(|waited| format!(", and {} with {}", brief_seconds(waited), self.name(last)));
        format!(
            " DLIO does count the barrier after that step, where accelerators waited {} on average for the slowest{}.",
            brief_seconds(at_peak),
            more.unwrap_or_default()
        )
    }

    fn name(&self, of: &Count<'_>) -> String {
        of.cell.level(self.factor).map(|level| level::named(self.factor, level)).unwrap_or_default()
    }

    /// Where DLIO's utilisation is highest: the fewest processes that reach it.
    fn peak(&self) -> &Count<'_> {
        let highest = self.counts.iter().map(|count| count.dlio).fold(f64::MIN, f64::max);
        self.counts.iter().find(|count| count.dlio > highest - SAME / 2.0).unwrap_or(&self.counts[0])
    }

    /// A number of processes between others that is better than those, over whole epochs.
    fn true_peak(&self) -> Option<&Count<'_>> {
        let best = self.counts.iter().max_by(|a, b| a.whole.total_cmp(&b.whole))?;
        let is_above = |other: &Count<'_>| best.whole > other.whole + self.same;
        (is_above(&self.counts[0]) && is_above(self.last())).then_some(best)
    }

    fn falls(&self) -> bool {
        let pairs = self.counts.windows(2);
        pairs.into_iter().all(|two| two[1].whole <= two[0].whole + NOISE)
            && self.last().whole < self.counts[0].whole - self.same
    }

    fn range(&self) -> (f64, f64) {
        let values = || self.counts.iter().map(|count| count.whole);
        (values().fold(f64::MAX, f64::min), values().fold(f64::MIN, f64::max))
    }

    fn last(&self) -> &Count<'_> {
        self.counts.last().expect("a group has three counts at least")
    }
}

/// The part of a run's waiting that was for the first batches of its epochs, in words; nothing where its steps were not kept.
fn hidden(cell: &WorkloadCell) -> String {
    let firsts: Vec<f64> = cell.epochs_of.iter().filter_map(|epoch| epoch.load.first().copied()).collect();
    if firsts.is_empty() || cell.totals.wait_s <= 0.0 {
        return String::new();
    }
    format!(", {} of all waiting", percent(firsts.iter().sum::<f64>() / cell.totals.wait_s))
}

/// The mean wait at the barrier behind the first step of an epoch; `None` where steps were not kept, or one accelerator is alone.
fn first_barrier_s(cell: &WorkloadCell) -> Option<f64> {
    let waits: Vec<f64> = cell.epochs_of.iter().filter_map(|epoch| epoch.barrier.first().copied()).collect();
    (cell.totals.accelerators > 1 && !waits.is_empty()).then(|| waits.iter().sum::<f64>() / waits.len() as f64)
}

/// The wait of the first step beside the others', for a single run.
pub(crate) fn of_first_step(cell: &WorkloadCell) -> Option<String> {
    let (whole, dlio) = (cell.totals.au_epoch?, cell.totals.au_dlio?);
    if dlio - whole <= SAME {
        return None;
    }
    let (totals, steps) = (&cell.totals, count(cell.steps_per_epoch, "step"));
    let first_s = totals.first_batch_s * cell.epochs as f64 * totals.accelerators as f64;
    let gives = format!("gives {}, not {}", percent(dlio), percent(whole));
    Some(match totals.checkpoint_s > first_s {
        true => format!(
            "DLIO's arithmetic {gives}: it leaves out checkpoints, {} of the accelerators' time, and the first step after each.",
            share_of(totals.checkpoint_s, totals.accelerator_s)
        ),
        false => format!(
            "DLIO's arithmetic leaves out the first of {steps} in every epoch and {gives}: that step waited {} for data{}.",
            seconds(totals.first_batch_s),
            hidden(cell)
        ),
    })
}

fn share_of(part_s: f64, whole_s: f64) -> String {
    if whole_s > 0.0 { percent(part_s / whole_s) } else { "nothing".to_owned() }
}
