//! What workloads say: how busy their accelerators were over whole epochs, what held them up, what DLIO's arithmetic makes of
//! it, and why a peak is not there.

use forebay_record::{Judged, StudyCell, WorkloadCell, WorkloadSave};
use forebay_units::{count, median};

use crate::number::{brief_seconds, bytes, capital, given, percent, quantity, seconds};
use crate::processes::{self, Group};
use crate::run::Run;

/// An accelerator that is used less than this waits enough to speak of it.
const BUSY: f64 = 0.95;
const MAX_GROUPS: usize = 6;

fn au(cell: &StudyCell) -> Option<f64> {
    cell.value(&WorkloadCell::AU_EPOCH)
}

/// The answer; `None` where no workload was run.
pub(super) fn headline(run: &Run<'_>) -> Option<String> {
    let cells: Vec<(&StudyCell, &WorkloadCell)> = run.cells_of::<WorkloadCell>().collect();
    if let Some(group) = processes::groups(run).iter().find(|group| group.has_false_peak()) {
        return Some(group.said());
    }
    if let [(of, cell)] = cells.as_slice() {
        return Some(run.if_left(of) + &of_one(of, cell));
    }
    let known = || cells.iter().filter_map(|(of, cell)| Some((*of, *cell, au(of)?)));
    let least = known().min_by(|a, b| a.2.total_cmp(&b.2))?;
    let most = known().max_by(|a, b| a.2.total_cmp(&b.2))?;
    if !run.differ(&[least.0, most.0], most.2 / least.2) {
        let (low, high) = (percent(least.2), percent(most.2));
        return Some(format!("AU over whole epochs is {low} to {high}, within the noise of single runs."));
    }
    let why = match cause(least.1) {
        Some(what) if least.2 < BUSY => format!("; main cause: {what}"),
        _ => String::new(),
    };
    Some(format!(
        "AU over whole epochs is {} ({}{why}) to {} ({}).",
        percent(least.2),
        run.name_of(least.0),
        percent(most.2),
        run.name_of(most.0)
    ))
}

fn of_one(of: &StudyCell, cell: &WorkloadCell) -> String {
    let totals = &cell.totals;
    // What somebody else measured may not say what was moved.
    let moved = match totals.bytes_moved {
        0 => String::new(),
        _ => format!(", {} MB/s moved", quantity(totals.mb_per_s_moved)),
    };
    let rates = format!("{} samples/s{moved}", quantity(totals.samples_per_s));
    if totals.steps == 0 && !cell.saves.is_empty() {
        return "Checkpoints were saved and restored; nothing was trained.".to_owned();
    }
    let Some(whole) = au(of) else { return format!("{} ran: {rates}.", capital(&cell.workload)) };
    let why = match cause(cell) {
        Some(what) if whole < BUSY => format!("; the main cause of stalls is {what}"),
        _ => String::new(),
    };
    format!("AU over whole epochs is {} ({rates}){why}.", percent(whole))
}

/// Checkpoints or restores, each over its slowest rank.
fn saves(cell: &WorkloadCell, is_restore: bool) -> Option<String> {
    let saves: Vec<&WorkloadSave> = cell.saves.iter().filter(|save| save.is_restore == is_restore).collect();
    let largest = saves.iter().map(|save| save.bytes).max()?;
    let of = |time: fn(&WorkloadSave) -> f64| saves.iter().map(|save| time(save)).collect::<Vec<f64>>();
    let (times, first) = (of(|save| save.seconds), of(|save| save.seconds_rank_0));
    let (moved, all_s) = (saves.iter().map(|save| save.bytes).sum::<u64>(), times.iter().sum::<f64>());
    let is_known = moved > 0 && all_s > 0.0;
    let rate = if is_known { format!(", {}/s", bytes((moved as f64 / all_s) as u64)) } else { String::new() };
    let size = if is_known { format!(" of {}", bytes(largest)) } else { String::new() };
    let rank_0 = match (cell.totals.ranks, median(&first)) {
        (2.., Some(first)) => format!("; {} for the first rank, which is what DLIO reports", brief_seconds(first)),
        _ => String::new(),
    };
    let how = match saves.iter().filter(|save| save.is_durable).count() {
        _ if is_restore || cell.made_by.is_some() => "",
        0 => "; not durable when they ended",
        n if n == saves.len() => "; durable when they ended",
        _ => "; some durable when they ended",
    };
    let what = capital(&count(saves.len() as u64, if is_restore { "restore" } else { "checkpoint" }));
    let (each, all) = (brief_seconds(median(&times)?), seconds(all_s));
    Some(format!("{what}{size}: {each} each (median of the slowest rank), {all} in all{rate}{rank_0}{how}."))
}

/// Where checkpoints went: their times and rates are of that place.
fn saved_in(cell: &WorkloadCell) -> Option<String> {
    let place = cell.checkpoint_place.as_ref().filter(|_| !cell.saves.is_empty())?;
    let with = match place.is_with_data {
        Some(true) => ", on the file system of the data",
        Some(false) => ", not on the file system of the data",
        None => "",
    };
    Some(format!("Checkpoints in {}{with}.", place.describe()))
}

/// What most of the stall is charged to, in words.
fn cause(cell: &WorkloadCell) -> Option<&'static str> {
    let stalls = cell.totals.stall_by_cause.iter().map(|(cause, seconds)| (cause.describe(), *seconds));
    let all = stalls.chain([("checkpoints", cell.totals.checkpoint_s)]).filter(|(_, seconds)| *seconds > 0.0);
    all.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(name, _)| name)
}

pub(super) fn findings(run: &Run<'_>) -> Vec<String> {
    let cells: Vec<(&StudyCell, &WorkloadCell)> = run.cells_of::<WorkloadCell>().collect();
    let groups = processes::groups(run);
    let mut findings = Vec::new();
    let said = groups.iter().find(|group| group.has_false_peak()).map(|group| (group.experiment, &group.levels));
    for group in groups.iter().filter(|group| Some((group.experiment, &group.levels)) != said).take(MAX_GROUPS) {
        findings.push(of_group_named(group));
    }
    if let [(_, cell)] = cells.as_slice() {
        findings.extend(processes::of_first_step(cell));
        findings.extend(judged(cell));
        let (totals, is_ours) = (&cell.totals, cell.made_by.is_none() && cell.totals.steps > 0);
        let waited = totals.wait_s + totals.barrier_s;
        findings.extend(super::train::charged(&totals.stall_by_cause, waited, totals.accelerator_s));
        findings.extend(saves(cell, false).into_iter().chain(saves(cell, true)));
        findings.extend(saved_in(cell));
        findings.extend(super::train::lever(&cell.lever, totals.wall_s).filter(|_| is_ours));
    } else {
        findings.extend(missed(run));
        findings.extend(required(run));
    }
    findings
}

/// What each workload requires and takes, and how many of its cells reach it.
fn required(run: &Run<'_>) -> Vec<String> {
    let mut all: Vec<(&str, f64, Option<f64>, Vec<&WorkloadCell>)> = Vec::new();
    for (_, cell) in run.cells_of::<WorkloadCell>() {
        let Some(judged) = cell.judged.iter().find(|judged| judged.is_decisive) else { continue };
        let demand = cell.demand_bytes_per_s.map(|rate| rate / 1e6);
        match all
            .iter_mut()
            .find(|(name, limit, of, _)| *name == cell.workload && *limit == judged.limit && *of == demand)
        {
            Some((.., cells)) => cells.push(cell),
            None => all.push((&cell.workload, judged.limit, demand, vec![cell])),
        }
    }
    let said = all.iter().take(MAX_GROUPS).map(|(name, limit, demand, cells)| {
        let asks = demand.map(|rate| format!("; one accelerator that never waits takes {} MB/s", quantity(rate)));
        let is_met = |cell: &&&WorkloadCell| cell.judged.iter().all(|judged| judged.is_met || !judged.is_decisive);
        format!(
            "{name} requires an AU of {} %: {} of {} reach it{}.",
            given(100.0 * limit),
            cells.iter().filter(is_met).count(),
            count(cells.len() as u64, "cell"),
            asks.unwrap_or_default()
        )
    });
    said.collect()
}

/// Cells of a study that were asked for a utilisation and missed it.
fn missed(run: &Run<'_>) -> Option<String> {
    let is_asked = |cell: &StudyCell| {
        let spec = run.spec().experiments.iter().find(|spec| spec.name == cell.experiment);
        cell.level("threshold").is_some() || spec.is_some_and(|spec| spec.settings.contains_key("threshold"))
    };
    let is_missed = |cell: &WorkloadCell| cell.judged.iter().any(|judged| judged.is_decisive && !judged.is_met);
    let asked = || run.cells_of::<WorkloadCell>().filter(|(of, _)| is_asked(of));
    let names: Vec<String> = asked().filter(|(_, cell)| is_missed(cell)).map(|(of, _)| run.name_of(of)).collect();
    let n = asked().count() as u64;
    (n > 0).then(|| match names.is_empty() {
        true => format!("All of {} reached the required AU.", count(n, "cell")),
        false => format!(
            "{} of {} missed the required AU: {}.",
            names.len(),
            count(n, "cell"),
            names.iter().take(MAX_GROUPS).cloned().collect::<Vec<_>>().join("; ")
        ),
    })
}

fn of_group_named(group: &Group<'_>) -> String {
    match group.levels.is_empty() {
        true => format!("{}: {}", capital(group.experiment), group.said()),
        false => format!("{}, {}: {}", capital(group.experiment), crate::level::all(&group.levels), group.said()),
    }
}

fn judged(cell: &WorkloadCell) -> Option<String> {
    let word = |judged: &Judged| {
        let value = judged.value.map_or("–".to_owned(), percent);
        let kept = match (judged.value, judged.is_met) {
            (None, _) => "unknown",
            (_, true) => "met",
            (_, false) => "missed",
        };
        let how = if judged.is_decisive { "" } else { " (for comparison)" };
        let name = crate::metric::name(&judged.what);
        format!("{name} {value}, at least {} % required: {kept}{how}", given(100.0 * judged.limit))
    };
    let words: Vec<String> = cell.judged.iter().map(word).collect();
    (!words.is_empty()).then(|| format!("Thresholds: {}.", words.join("; ")))
}

/// What the cells of a figure say of processes, group by group.
pub(crate) fn of_group(run: &Run<'_>, cells: &[&StudyCell]) -> String {
    let groups = processes::groups(run);
    let of =
        |group: &&Group<'_>| group.counts.iter().all(|count| cells.iter().any(|cell| std::ptr::eq(*cell, count.cell)));
    let found: Vec<&Group<'_>> = groups.iter().filter(of).collect();
    match found.as_slice() {
        [one] => one.said(),
        several => {
            let said = several.iter().map(|group| {
                let name = crate::level::all(&group.levels);
                format!("{name}: {}", group.said())
            });
            said.collect::<Vec<_>>().join(" ")
        }
    }
}
