//! Training on several ranks: data-parallel, one process per device.
//!
//! Each rank has a portion of every batch and the same network. After a step, the ranks exchange their gradients and
//! make the update of the whole batch, so their networks stay equal; at the end of a run that is checked. The first rank
//! saves checkpoints and makes the record. A rank that fails ends all ranks with its reason, and they stop together
//! after the step in which one of them is asked to.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use forebay_measure::{Event, Observer, usage};
use forebay_ranks::{Ranks, Verdict, all, difference, everybody, on_host};
use forebay_record::{CacheEvidence, Failure, TrainRank, TrainStep, TrainTotals, au_dlio};
use forebay_storage::Device;
use forebay_train::{Entry, State};
use forebay_units::{Fnv, chain};

use super::consumer::Consumer;
use super::plan::Plan;
use super::run::Error;
use super::settings::TrainSettings;

/// The ranks of a run, as one of them sees them.
#[derive(Clone, Copy)]
pub(super) struct Site<'a> {
    pub(super) ranks: &'a dyn Ranks,
    /// For computing.
    pub(super) cores: usize,
    /// Index among the ranks of this host.
    pub(super) on_host: u64,
    /// The emulated device of ranks in one process.
    pub(super) device: Option<&'a Arc<Device>>,
    /// Set by the user of this process to stop the run.
    pub(super) wish: &'a AtomicBool,
    /// Set when the ranks have agreed to stop. The rest of a run looks at this one only, so all ranks do the same.
    pub(super) agreed: &'a AtomicBool,
}

impl<'a> Site<'a> {
    /// Ranks that may run on the same cores divide them.
    pub(super) fn join(ranks: &'a dyn Ranks, wish: &'a AtomicBool, agreed: &'a AtomicBool) -> Result<Self, Error> {
        let (on_host, _) = on_host(ranks)?;
        let mine = usage::allowed_cores();
        let words: Vec<String> = mine.iter().map(ToString::to_string).collect();
        let places = everybody(ranks, &format!("{} {}", ranks.host(), words.join(",")))?;
        let n_here = places.iter().filter(|place| shares(place, &ranks.host(), &mine)).count();
        Ok(Self { ranks, cores: (usage::cores() / n_here.max(1)).max(1), on_host, device: None, wish, agreed })
    }

    /// `None` for a process by itself, which exchanges nothing.
    pub(super) fn several(&self) -> Option<Self> {
        (self.ranks.size() > 1).then_some(*self)
    }

    /// Replaces the values by their means over the ranks.
    pub(super) fn mean(&self, values: &mut [f32]) -> Result<(), Error> {
        self.ranks.sum(values)?;
        let share = 1.0 / self.ranks.size() as f32;
        values.iter_mut().for_each(|value| *value *= share);
        Ok(())
    }

    /// Meets the others after a step's computation. If one was asked to stop, all stop after this step.
    pub(super) fn meet(&self) -> Result<(), Error> {
        let wish = if self.wish.load(Ordering::Relaxed) { Verdict::Stop } else { Verdict::Go };
        if self.ranks.meet_or_stop(Ok(wish))? == Verdict::Stop {
            self.agreed.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Ends all ranks if one has failed.
    pub(super) fn together<T>(&self, outcome: Result<T, Error>) -> Result<T, Error> {
        if self.ranks.size() == 1 {
            return outcome;
        }
        forebay_ranks::together(self.ranks, outcome, |error| chain(error))
    }

    /// Refuses a plan that differs from the first rank's. `data` identifies the samples.
    pub(super) fn agree(&self, plan: &Plan, data: &str) -> Result<(), Error> {
        if self.ranks.size() == 1 {
            return Ok(());
        }
        let Plan { settings, tier, validate, warmups, repeats, .. } = plan;
        let version = env!("CARGO_PKG_VERSION");
        // A line per setting, for the first that differs to be named.
        let settings = format!("{settings:?}").replace(", ", "\n");
        let rounds = format!("warmups: {warmups}\nrepeats: {repeats}");
        let saves = plan.saves.as_ref().map(|saves| saves.resume);
        let mine = format!(
            "version: {version}\ndata: {data}\ntier: {tier:?}\nvalidate: {validate:?}\nresume: {saves:?}\n{rounds}\n{settings}"
        );
        let first = self.ranks.broadcast(mine.clone().into_bytes())?;
        let what = difference(&String::from_utf8_lossy(&first), &mine);
        self.together(what.map_or(Ok(()), |what| Err(Error::OtherPlan { rank: self.ranks.rank(), what })))
    }

    /// The number that each rank has, by rank.
    pub(super) fn numbers(&self, mine: u64) -> Result<Vec<u64>, Error> {
        let said = all(self.ranks, mine.to_le_bytes().to_vec())?;
        Ok(said.iter().map(|bytes| u64::from_le_bytes(bytes.as_slice().try_into().unwrap_or_default())).collect())
    }

    /// Gives the state of the first rank's consumer, after `n_steps` steps, to all others.
    pub(super) fn share_state(&self, n_steps: u64, consumer: &mut dyn Consumer) -> Result<(), Error> {
        let Some(state) = consumer.state()? else {
            return if self.ranks.rank() > 0 { consumer.go_on(n_steps, None) } else { Ok(()) };
        };
        let is_first = self.ranks.rank() == 0;
        let mine = if is_first { bytes_of(&state) } else { Vec::new() };
        let bytes = self.ranks.broadcast(mine)?;
        if is_first {
            return Ok(());
        }
        let (mut words, _) = bytes.as_chunks::<4>();
        let entries = state.entries.into_iter().map(|entry| {
            let (own, rest) = words.split_at(entry.values.len());
            words = rest;
            Entry { values: own.iter().map(|word| f32::from_le_bytes(*word)).collect(), ..entry }
        });
        let state = State { n_steps, entries: entries.collect() };
        consumer.go_on(n_steps, Some(&state))
    }

    /// Refuses networks that are not equal on all ranks.
    pub(super) fn check_equal(&self, consumer: &dyn Consumer) -> Result<(), Error> {
        let hash = consumer.state()?.map_or(0, |state| hash_of(&state));
        let hashes = self.numbers(hash)?;
        match hashes.iter().position(|other| *other != hashes[0]) {
            None => Ok(()),
            Some(rank) => Err(Error::Diverged { rank: rank as u64 }),
        }
    }

    /// The reports of all ranks, by rank, on the first; `None` on the others.
    pub(super) fn reports(&self, mine: &Report) -> Result<Option<Vec<Report>>, Error> {
        let bytes = serde_json::to_vec(mine).expect("plain numbers and texts are JSON");
        let read = |bytes: &Vec<u8>| serde_json::from_slice(bytes).expect("ranks of one version write the same JSON");
        Ok(self.ranks.gather(bytes)?.map(|all| all.iter().map(read).collect()))
    }
}

/// What a rank tells the first: itself, its steps, cache evidence, failed samples, and the seconds in which its workers
/// were busy, all in all and while the accelerator waited.
pub(super) type Report = (TrainRank, Vec<TrainStep>, Option<CacheEvidence>, Vec<Failure>, (f64, f64));

fn bytes_of(state: &State<'_>) -> Vec<u8> {
    state.entries.iter().flat_map(|entry| entry.values.iter()).flat_map(|value| value.to_le_bytes()).collect()
}

fn hash_of(state: &State<'_>) -> u64 {
    let mut hash = Fnv::default();
    let values = state.entries.iter().flat_map(|entry| entry.values.iter());
    values.for_each(|value| hash.word(u64::from(value.to_bits())));
    hash.0
}

/// Whether a rank's `host cores` says that it may run where this one does.
fn shares(place: &str, host: &str, mine: &[u32]) -> bool {
    let (theirs, cores) = place.rsplit_once(' ').unwrap_or((place, ""));
    theirs == host && cores.split(',').filter_map(|core| core.parse().ok()).any(|core: u32| mine.contains(&core))
}

/// Settings that need one process.
pub(super) fn check(settings: &TrainSettings, has_until: bool) -> Result<(), Error> {
    let refused = |why| Err(Error::NotOnRanks { why });
    if settings.fail_every.is_some() {
        return refused("`fail_every` injects failures into one process");
    }
    if has_until {
        return refused("`least_time` and `interval` repeat until one process knows its rate: give `repeats`");
    }
    Ok(())
}

/// Events of several ranks: only the first has a terminal.
pub(super) fn heard<'a>(site: Option<Site<'a>>, observer: Observer<'a>) -> Observer<'a> {
    match site {
        None => observer,
        // Each rank would count the others' processor time as that of other programs.
        Some(site) => {
            let hear = if site.ranks.rank() == 0 { observer.hear } else { &|_: Event| {} };
            Observer { hear, cancel: site.agreed, extra_repeats: None }
        }
    }
}

/// The totals and mean steps of all ranks: counts are added up, times are means. Ranks in one process all have its CPU
/// time.
pub(super) fn combined(
    reports: &[Report],
    (first, steps_per_epoch): (u64, u64),
    in_one_process: bool,
) -> (TrainTotals, Vec<TrainStep>) {
    let n = reports.len() as f64;
    let totals: Vec<&TrainTotals> = reports.iter().map(|report| &report.0.totals).collect();
    let mean = |value: fn(&TrainTotals) -> f64| totals.iter().map(|totals| value(totals)).sum::<f64>() / n;
    let sum = |value: fn(&TrainTotals) -> u64| totals.iter().map(|totals| value(totals)).sum::<u64>();
    let known = |value: fn(&TrainTotals) -> Option<f64>| totals.iter().map(|totals| value(totals)).sum::<Option<f64>>();
    let counted =
        |value: fn(&TrainTotals) -> Option<u64>| totals.iter().map(|totals| value(totals)).sum::<Option<u64>>();
    let steps = mean_steps(reports);
    let (busy_s, stalled_s) = reports.iter().fold((0.0, 0.0), |sum, report| (sum.0 + report.4.0, sum.1 + report.4.1));
    let (wall_s, validate_s, compute_s) = (mean(|of| of.wall_s), mean(|of| of.validate_s), mean(|of| of.compute_s));
    let first_wait_s = mean(|of| of.first_wait_s);
    let steady_s = wall_s - validate_s - first_wait_s;
    let mut whole = totals[0].clone();
    for (cause, seconds) in &mut whole.stall_by_cause {
        *seconds =
            totals.iter().map(|totals| totals.stall_by_cause.get(cause).copied().unwrap_or(0.0)).sum::<f64>() / n;
    }
    for totals in &totals[1..] {
        for (cause, seconds) in &totals.stall_by_cause {
            if !whole.stall_by_cause.contains_key(cause) {
                whole.stall_by_cause.insert(*cause, seconds / n);
            }
        }
        for (into, from) in [(&mut whole.worker_time, &totals.worker_time), (&mut whole.stall_time, &totals.stall_time)]
        {
            from.iter().for_each(|(name, seconds)| *into.entry(name.clone()).or_default() += seconds);
        }
    }
    let whole = TrainTotals {
        images: sum(|of| of.images),
        failed: sum(|of| of.failed),
        bytes: sum(|of| of.bytes),
        requests: counted(|of| of.requests),
        wall_s,
        wait_s: mean(|of| of.wait_s),
        copy_s: mean(|of| of.copy_s),
        compute_s,
        exchange_s: mean(|of| of.exchange_s),
        checkpoint_s: mean(|of| of.checkpoint_s),
        validate_s,
        other_s: mean(|of| of.other_s),
        first_wait_s,
        start_s: known(|of| of.start_s).map(|seconds| seconds / n),
        start_images: counted(|of| of.start_images),
        cpu_s: of_processes(totals.iter().map(|of| of.cpu_s), in_one_process),
        au_epoch: compute_s / (wall_s - validate_s),
        au_steady: (steady_s > 0.0).then(|| compute_s / steady_s),
        au_dlio: au_dlio(&steps, first, steps_per_epoch),
        overlap: (busy_s > 0.0).then(|| 1.0 - stalled_s / busy_s),
        on_core_s: known(|of| of.on_core_s),
        for_core_s: known(|of| of.for_core_s),
        ..whole
    };
    (whole, steps)
}

/// The sum over processes of what the kernel counts by process.
fn of_processes(all: impl Iterator<Item = f64>, in_one_process: bool) -> f64 {
    if in_one_process { all.fold(0.0, f64::max) } else { all.sum() }
}

fn mean_steps(reports: &[Report]) -> Vec<TrainStep> {
    let n = reports.len() as f64;
    let step = |i: usize| {
        let of: Vec<&TrainStep> = reports.iter().filter_map(|report| report.1.get(i)).collect();
        let mean = |value: fn(&TrainStep) -> f64| of.iter().map(|step| value(step)).sum::<f64>() / n;
        TrainStep {
            wait_s: mean(|step| step.wait_s),
            copy_s: mean(|step| step.copy_s),
            compute_s: mean(|step| step.compute_s),
            exchange_s: mean(|step| step.exchange_s),
            checkpoint_s: mean(|step| step.checkpoint_s),
            other_s: mean(|step| step.other_s),
            loss: reports[0].1[i].loss,
        }
    };
    (0..reports[0].1.len()).map(step).collect()
}

/// Of the files that all ranks read.
pub(super) fn evidence_of(reports: &[Report], in_one_process: bool) -> Option<CacheEvidence> {
    let all: Option<Vec<&CacheEvidence>> = reports.iter().map(|report| report.2.as_ref()).collect();
    let all = all?;
    let residents: Option<Vec<f64>> = all.iter().map(|of| of.resident_before).collect();
    Some(CacheEvidence {
        resident_before: residents.map(|all| all.into_iter().fold(0.0, f64::max)),
        block_bytes: match in_one_process {
            true => all.iter().map(|of| of.block_bytes).max().flatten(),
            false => all.iter().map(|of| of.block_bytes).sum(),
        },
        bytes_read: all.iter().map(|of| of.bytes_read).sum(),
    })
}

#[cfg(test)]
mod tests;
