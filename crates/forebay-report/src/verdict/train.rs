//! What training says: how busy the accelerator was, what it waited for, what prefetching is worth, what would help.

use std::collections::BTreeMap;

use forebay_record::{Baseline, ByCause, Cause, Change, Lever, Limit, StudyCell, TrainCell, TrainTotals};
use forebay_units::{count, group_digits};

use crate::advised;
use crate::followed;
use crate::level;
use crate::number::{brief_seconds, capital, listed, percent, quantity, seconds};
use crate::prefetch;
use crate::run::Run;
use crate::tuned;

const MAX_CELLS: usize = 2;
/// An accelerator that waits for less than this share of the time is the limit itself.
const HARDLY: f64 = 0.05;

/// A train cell with the cell it is of.
type Trained<'a> = (&'a StudyCell, &'a TrainCell);

/// Cells that took some time: of others nothing can be said.
fn trained<'a>(run: &'a Run<'a>) -> Vec<Trained<'a>> {
    run.cells_of::<TrainCell>().filter(|(_, cell)| cell.totals.wall_s > 0.0 && cell.totals.wall_s.is_finite()).collect()
}

/// The answer; `None` when nothing was trained.
pub(super) fn headline(run: &Run<'_>) -> Option<String> {
    if let Some(said) = advised::headline(&advised::asked(run)) {
        return Some(said);
    }
    let cells = trained(run);
    if let Some(said) = of_prefetch(run) {
        return Some(said);
    }
    if let [(of, cell)] = cells.as_slice() {
        return Some(run.if_left(of) + &of_one(of, cell));
    }
    if let Some(said) = hardly_waits(&cells).then(|| super::checkpoint::brief(run)).flatten() {
        return Some(said);
    }
    let au = |(of, _): &&Trained<'_>| of.value(&TrainCell::AU_EPOCH).unwrap_or(0.0);
    let least = cells.iter().min_by(|a, b| au(a).total_cmp(&au(b)))?;
    let most = cells.iter().max_by(|a, b| au(a).total_cmp(&au(b)))?;
    let totals = &least.1.totals;
    let (still, what) =
        if totals.checkpoint_s > totals.wait_s { ("stalled", "checkpoints") } else { ("waited", cause(least.1)) };
    let where_most = match run.differ(&[least.0, most.0], au(&most) / au(&least)) {
        true => format!("; the accelerator {still} most with {} (main cause: {what})", level::all(&least.0.factors)),
        false => String::new(),
    };
    let (low, high) = (percent(au(&least)), percent(au(&most)));
    Some(format!("AU, the accelerator's utilisation, is {low} to {high}{where_most}."))
}

/// Whether there is no wait to speak of in any.
fn hardly_waits(cells: &[Trained<'_>]) -> bool {
    cells.iter().all(|(_, cell)| cell.totals.wait_s / cell.totals.wall_s < HARDLY)
}

fn of_one(of: &StudyCell, cell: &TrainCell) -> String {
    let totals = &cell.totals;
    // The median of the runs, as in the table.
    let au = percent(of.value(&TrainCell::AU_EPOCH).unwrap_or(totals.au_epoch));
    let saving = totals.checkpoint_s / totals.wall_s;
    if saving >= HARDLY && totals.checkpoint_s > totals.wait_s {
        let still = percent(saving);
        return format!("Checkpoints cause the longest stalls: {still} of the time. AU is {au}.");
    }
    let limit = cell.limit.as_ref().map(|limit| limit.name.as_str());
    let hardly = totals.wait_s / totals.wall_s < HARDLY;
    if limit == Some("accelerator") || (hardly && limit.is_none_or(|limit| limit == "unknown")) {
        let after = if hardly { "" } else { " after its first batch" };
        return format!("The accelerator is the limit{after}: AU is {au}{}.", rest(totals));
    }
    format!(
        "The accelerator waited for data {} of the time ({}). AU is {au}.",
        percent(totals.wait_s / totals.wall_s),
        match cell.limit.as_ref().filter(|limit| limit.name != "unknown").and_then(|limit| limit_name(&limit.name)) {
            Some(limit) => format!("limit: {limit}"),
            None => format!("main cause: {}", cause(cell)),
        }
    )
}

/// What else took a share of the time that AU is of, where it is one to speak of: "; copying took 19 %".
fn rest(totals: &TrainTotals) -> String {
    let working_s = totals.wall_s - totals.validate_s;
    let parts = [
        ("copying took", totals.copy_s),
        ("checkpoints took", totals.checkpoint_s),
        ("time between the steps took", totals.other_s),
    ];
    let much = parts.into_iter().filter(|(_, part)| *part / working_s > HARDLY);
    much.map(|(words, part)| format!("; {words} {}", percent(part / working_s))).collect()
}

/// What the wait is charged to most, in words.
fn cause(cell: &TrainCell) -> &'static str {
    let most = cell.totals.stall_by_cause.iter().max_by(|a, b| a.1.total_cmp(b.1));
    most.map_or("data", |(cause, _)| cause.describe())
}

/// What batches made ahead are worth, where that was tried and the study asks it.
pub(super) fn of_prefetch(run: &Run<'_>) -> Option<String> {
    let asked = prefetch::experiments(run).into_iter().find(|name| prefetch::judgement(run, name).is_some())?;
    let cells: Vec<&StudyCell> = run.study.cells.iter().filter(|cell| cell.experiment == asked).collect();
    let groups = prefetch::groups(run, &cells);
    let widest = groups.iter().max_by(|a, b| a.spread().total_cmp(&b.spread()))?;
    let within = percent(widest.spread());
    let with = capital(&widest.with);
    let it = if widest.with == "with prefetch" { "with it" } else { &widest.with };
    Some(if widest.is_same() {
        let given = prefetch::Given::of(&cells).map(|given| given.brief()).unwrap_or_default();
        format!("{with} the run time is the same for every {}, within {within}{given}.", widest.differ_in())
    } else if widest.is_open() {
        format!("{with} run times differ by {within}, which is within the noise of single runs.")
    } else if let Some(later) = widest.same_after_first() {
        let later = percent(later);
        format!(
            "{with} run times differ by {within}; without the wait for the first batch they are the same, within {later}."
        )
    } else {
        format!("Prefetch does not hide I/O everywhere: {it} run times still differ by {within}.")
    })
}

/// Of the fastest run: its limit, and what would help beyond settings.
fn of_tuned(run: &Run<'_>) -> Vec<String> {
    let path = tuned::path(run);
    let Some(best) = tuned::best(&path) else { return Vec::new() };
    let cell = best.train;
    // A setting is what the search would have tried next, had it not been cut short.
    let is_untried = |setting: &Change| {
        tuned::is_cut_short(&path) && !path.iter().any(|tried| tried.tuning.change.as_ref() == Some(setting))
    };
    let hardware =
        || lever(&cell.lever, cell.totals.wall_s).filter(|_| cell.lever.setting.as_ref().is_none_or(is_untried));
    cell.limit.as_ref().and_then(limit).into_iter().chain(hardware()).collect()
}

pub(super) fn findings(run: &Run<'_>) -> Vec<String> {
    let advice = advised::asked(run);
    let mut findings: Vec<String> =
        [advised::predicted(&advice), followed::said(run), advised::wrong(&advice)].into_iter().flatten().collect();
    if !advice.is_empty() {
        // What else its cells show was not asked.
        return findings;
    }
    let experiments = prefetch::experiments(run);
    for experiment in &experiments {
        findings.extend(prefetch::judgement(run, experiment).map(|judged| judged.whole()));
        let name = if experiments.len() > 1 { format!("“{experiment}”: ") } else { String::new() };
        findings.extend(prefetch::cost(run, experiment).map(|said| name + &said));
    }
    let cells = trained(run);
    if cells.iter().any(|(_, cell)| cell.tuning.is_some()) {
        return of_tuned(run);
    }
    if cells.len() <= MAX_CELLS {
        for (of, cell) in &cells {
            let name = name_of(run, of);
            findings.extend(of_cell(cell).into_iter().map(|said| name.clone() + &said));
        }
    } else {
        findings.extend(levers(&cells));
    }
    findings.extend(synthetic(run, &cells));
    findings
}

/// The cell that a sentence is about, where there are others.
fn name_of(run: &Run<'_>, cell: &StudyCell) -> String {
    match run.head().n_cells {
        1 => String::new(),
        _ if cell.factors.is_empty() => format!("“{}”: ", cell.experiment),
        _ => format!("{}: ", level::all(&cell.factors)),
    }
}

fn of_cell(cell: &TrainCell) -> Vec<String> {
    let totals = &cell.totals;
    let parts = [
        ("computing", totals.compute_s),
        ("waiting", totals.wait_s),
        ("copying", totals.copy_s),
        ("waiting for other ranks and exchanging gradients", totals.exchange_s),
        ("checkpoints", totals.checkpoint_s),
        ("validation", totals.validate_s),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(_, part)| *part / totals.wall_s >= 0.0005)
        .map(|(word, part)| format!("{word} {}", brief_seconds(part)))
        .collect();
    let mut said = vec![format!(
        "{} of {} images{} took {} ({} images/s): {}.",
        count(totals.n_steps, "step"),
        group_digits(cell.batch),
        if cell.ranks.is_empty() { String::new() } else { format!(" on each of {} ranks", cell.ranks.len()) },
        seconds(totals.wall_s),
        quantity(totals.images_per_s()),
        parts.join(", ")
    )];
    said.push(utilisation(totals));
    said.extend(slowest_rank(cell));
    said.extend(charged(&totals.stall_by_cause, totals.wait_s, totals.wall_s).filter(|_| !cell.synthetic));
    said.extend(cost(cell));
    // A wait that the headline calls none needs no cause.
    let waits = totals.wait_s / totals.wall_s >= HARDLY || totals.checkpoint_s / totals.wall_s >= HARDLY;
    said.extend(cell.limit.as_ref().filter(|limit| waits || limit.name != "unknown").and_then(limit));
    said.extend(lever(&cell.lever, totals.wall_s).filter(|_| waits || cell.limit.is_none()));
    said.extend(cell.feed.map(|feed| {
        format!(
            "The accelerator consumes {} images/s; at this run's time per sample, {} {}{}.",
            quantity(feed.takes_images_per_s),
            if cell.threads == 1 {
                "1 thread can deliver".to_owned()
            } else {
                count(cell.threads, "thread") + " can deliver"
            },
            quantity(feed.gives_images_per_s),
            match feed.threads_needed {
                // Where there is a limit, its lever says what would do.
                Some(threads) if cell.limit.is_none() => format!("; {} would suffice", count(threads, "thread")),
                _ => String::new(),
            }
        )
    }));
    said.extend(learnt(cell));
    said
}

/// The rank that waited longest for data, where another waited for less than half of that.
fn slowest_rank(cell: &TrainCell) -> Option<String> {
    let waits = || cell.ranks.iter().map(|rank| (rank.totals.wait_s, rank));
    let (longest, slowest) = waits().max_by(|a, b| a.0.total_cmp(&b.0))?;
    let (shortest, _) = waits().min_by(|a, b| a.0.total_cmp(&b.0))?;
    let is_apart = longest >= 2.0 * shortest && longest / cell.totals.wall_s >= HARDLY;
    is_apart.then(|| {
        let (rank, host) = (slowest.rank, &slowest.host);
        let (longest, shortest) = (brief_seconds(longest), brief_seconds(shortest));
        format!("Rank {rank} on {host} waited longest for data, {longest}; the shortest wait was {shortest}. All wait for the slowest.")
    })
}

/// AU in the three ways in which it is counted.
fn utilisation(totals: &TrainTotals) -> String {
    let mut text = format!("AU is {}", percent(totals.au_epoch));
    if let Some(steady) = totals.au_steady {
        text.push_str(&format!(", {} without the wait for the first batch", percent(steady)));
    }
    if let Some(dlio) = totals.au_dlio {
        let checkpoints = if totals.checkpoint_s > 0.0 { "checkpoints and " } else { "" };
        text.push_str(&format!(
            ", {} as DLIO counts, without {checkpoints}the first step of every epoch",
            percent(dlio)
        ));
    }
    if let Some(overlap) = totals.overlap {
        text.push_str(&format!("; {} of the pipeline's work overlapped with compute", percent(overlap)));
    }
    text + "."
}

/// What a wait is charged to, the most first; `None` without a wait to speak of.
pub(super) fn charged(by_cause: &ByCause, wait_s: f64, wall_s: f64) -> Option<String> {
    let known = by_cause.iter().filter(|(_, s)| s.is_finite() && **s / wall_s >= 0.0005);
    let mut causes: Vec<(&Cause, &f64)> = known.collect();
    causes.sort_by(|a, b| b.1.total_cmp(a.1));
    let said =
        |(cause, s): (&Cause, &f64)| format!("{} {} ({})", cause.describe(), brief_seconds(*s), percent(s / wait_s));
    let causes: Vec<String> = causes.into_iter().map(said).collect();
    (!causes.is_empty()).then(|| format!("Causes of the wait of {}: {}.", brief_seconds(wait_s), listed(&causes)))
}

fn learnt(cell: &TrainCell) -> Option<String> {
    let last = cell.epochs.last()?;
    let mut text = format!("After {} the mean loss is {:.3}", count(cell.epochs.len() as u64, "epoch"), last.loss?);
    if let Some(validation) = last.validation {
        let samples = count(validation.n_samples, "sample");
        text.push_str(&format!("; the validation accuracy is {} ({samples})", percent(validation.accuracy)));
    }
    Some(text + ".")
}

pub(super) fn lever(lever: &Lever, wall_s: f64) -> Option<String> {
    if lever.name == "none" || lever.advice.is_empty() {
        return None;
    }
    let advice = lever.advice.trim_end_matches('.');
    if lever.saves_s <= 0.0 {
        return Some(format!("No change can be recommended: {advice}."));
    }
    let most = if lever.is_bound { "at most " } else { "about " };
    let error = lever.error_s.map(|error| format!(" ± {}", brief_seconds(error))).unwrap_or_default();
    let (saves, wall) = (brief_seconds(lever.saves_s), brief_seconds(wall_s));
    let mut said = format!("What would help most: {advice}. It would save {most}{saves}{error} of {wall}.");
    if let Some(second) = lever.runner_up.as_ref().filter(|second| second.saves_s > 0.0) {
        let most = if second.is_bound { "at most " } else { "" };
        let saves = brief_seconds(second.saves_s);
        said.push_str(&format!(" Second best, alone: {} ({most}{saves}).", second.advice.trim_end_matches('.')));
    }
    Some(said)
}

/// The limit in words, with its evidence; `None` for a name of another version.
fn limit(limit: &Limit) -> Option<String> {
    let name = limit_name(&limit.name)?;
    let evidence = if limit.evidence.is_empty() { String::new() } else { format!(": {}", limit.evidence.join("; ")) };
    Some(match limit.name.as_str() {
        "unknown" => format!("This run does not show what limits it{evidence}."),
        _ => format!("The limit is {name}{evidence}."),
    })
}

/// Completes "the limit is".
pub(crate) fn limit_name(name: &str) -> Option<&'static str> {
    Some(match name {
        "accelerator" => "the accelerator",
        "latency" => "the number of requests in flight",
        "storage" => "the storage",
        "decode" => "decoding",
        "gpu" => "decoding on the GPU",
        "threads" => "the number of threads",
        "prefetch" => "too little prefetch",
        "order" => "slow samples",
        "cores" => "other programs on the cores",
        "checkpoint" => "checkpoints",
        "unknown" => "unknown",
        _ => return None,
    })
}

/// What the run took beyond its baseline. With steps that vary, a difference below their error is none.
fn cost(cell: &TrainCell) -> Option<String> {
    let (cost, baseline, totals) = (cell.io_cost_s?, cell.baseline?, &cell.totals);
    let alone = baseline.step_s * totals.n_steps as f64;
    let error = cost_error(cell, baseline);
    if error.is_some_and(|error| cost.abs() <= error) {
        let error = brief_seconds(error.unwrap_or_default());
        return Some(format!(
            "The cost of I/O cannot be told: it is less than the variation of the steps, ± {error} over the run of {}.",
            brief_seconds(totals.wall_s)
        ));
    }
    let share = Some(cost / alone).filter(|share| share.is_finite());
    let error = error.map(|error| format!(" ± {}", brief_seconds(error))).unwrap_or_default();
    Some(format!(
        "The cost of I/O is {}{error}{}: the same steps without I/O would take {}.",
        brief_seconds(cost),
        share.map(|share| format!(" ({})", percent(share))).unwrap_or_default(),
        brief_seconds(alone)
    ))
}

/// Half the 95 % interval of the cost, from the variation of the steps' computing; `None` where the run is its own baseline or has too
/// few steps.
fn cost_error(cell: &TrainCell, baseline: Baseline) -> Option<f64> {
    let computing: Vec<f64> = cell.steps.iter().map(|step| step.compute_s).collect();
    if baseline.is_mean || baseline.n_steps == 0 || computing.len() < 3 {
        return None;
    }
    let n = computing.len() as f64;
    let mean = computing.iter().sum::<f64>() / n;
    let deviation = (computing.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    Some(1.96 * deviation * n.sqrt() * (1.0 + n / baseline.n_steps as f64).sqrt())
}

fn levers(cells: &[Trained<'_>]) -> Option<String> {
    // As the table of cells has it: the first batch cannot be hidden, and weighs much in a short run.
    let share = |cell: &StudyCell| cell.value(&TrainCell::WAIT_SHARE).unwrap_or(0.0);
    // Several ranks get no advice.
    let of_one = || cells.iter().filter(|(_, cell)| cell.ranks.is_empty());
    let waiting = of_one().filter(|(of, _)| share(of) >= HARDLY);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    waiting.for_each(|(_, cell)| *counts.entry(cell.lever.name.as_str()).or_default() += 1);
    let all: usize = counts.values().sum();
    let (name, n) = counts.into_iter().max_by_key(|(_, n)| *n)?;
    let name = match name {
        "none" => "none of the known ones",
        "" => "unknown",
        name => name,
    };
    Some(format!(
        "In {all} of {} training cells the accelerator waited {} or more of the time after the first batch; the most frequent lever \
         is {name} ({n} of {all}).",
        of_one().count(),
        percent(HARDLY)
    ))
}

/// What real data costs beside batches made once in memory, where both were trained on.
fn synthetic(run: &Run<'_>, cells: &[Trained<'_>]) -> Option<String> {
    let best = |wanted: bool| {
        // The rate of several ranks is that of several accelerators.
        let of_one = cells.iter().filter(|(_, cell)| cell.ranks.is_empty());
        let rates = of_one.filter(|(_, cell)| cell.synthetic == wanted && cell.images_per_s > 0.0);
        rates.max_by(|a, b| a.1.comparable_images_per_s().total_cmp(&b.1.comparable_images_per_s()))
    };
    let (memory, real) = (best(true)?, best(false)?);
    let (of_real, of_memory) = (real.1.comparable_images_per_s(), memory.1.comparable_images_per_s());
    let ratio = of_real / of_memory;
    let size = real.1.bytes_per_image().map(|bytes| format!(" of {}", crate::number::bytes(bytes.round() as u64)));
    Some(format!(
        "After its first step, training reached {} images/s on synthetic batches; on real images{} it reached at best {} ({}), {} of that.",
        quantity(of_memory),
        size.unwrap_or_default(),
        quantity(of_real),
        level::all(&real.0.factors),
        percent(ratio)
    ))
    .filter(|_| run.is_study() && run.differ(&[memory.0, real.0], ratio))
}
