//! What workloads say: how busy their accelerators were over whole epochs, what held them up, what DLIO's arithmetic makes of
//! it, and why a peak is not there.

use forebay_record::{StudyCell, WorkloadCell};
use forebay_units::count;

use crate::number::{brief_seconds, capital, given, listed, percent, quantity};
use crate::processes::{self, Group};
use crate::run::Run;

/// An accelerator that is used less than this waits enough to speak of it.
const BUSY: f64 = 0.95;
/// Groups that are spoken of one by one.
const MAX_GROUPS: usize = 6;

fn au(cell: &StudyCell) -> Option<f64> {
    cell.metric("au_epoch").map(|found| found.value)
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
        return Some(format!("Over whole epochs accelerators were used {low} to {high}, which single runs vary by."));
    }
    let why = match cause(least.1) {
        Some(what) if least.2 < BUSY => format!(", held up mostly by {what}"),
        _ => String::new(),
    };
    Some(format!(
        "Over whole epochs accelerators were used {} ({}{why}) to {} ({}).",
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
        return of_saves(cell);
    }
    let Some(whole) = au(of) else { return format!("{} ran: {rates}.", capital(&cell.workload)) };
    let why = match cause(cell) {
        Some(what) if whole < BUSY => format!("; what held them up most is {what}"),
        _ => String::new(),
    };
    format!("The accelerators were used {} over whole epochs ({rates}){why}.", percent(whole))
}

/// A run that only saved and restored: size, time and rate of the slowest rank.
fn of_saves(cell: &WorkloadCell) -> String {
    let one = |is_restore: bool, what: &str| {
        let saves: Vec<_> = cell.saves.iter().filter(|save| save.is_restore == is_restore).collect();
        let (bytes, taken_s) =
            (saves.iter().map(|save| save.bytes).sum::<u64>(), saves.iter().map(|save| save.seconds).sum::<f64>());
        let largest = saves.iter().map(|save| save.bytes).max()?;
        let rate = if taken_s > 0.0 && bytes > 0 {
            format!(", {}/s", crate::number::bytes((bytes as f64 / taken_s) as u64))
        } else {
            String::new()
        };
        let each = brief_seconds(taken_s / saves.len() as f64);
        Some(format!("{} of {} took {each} each{rate}", count(saves.len() as u64, what), crate::number::bytes(largest)))
    };
    let said: Vec<String> = [one(false, "checkpoint"), one(true, "restore")].into_iter().flatten().collect();
    format!("{}, by the slowest rank.", said.join("; "))
}

/// What most of the stall is charged to, in words.
fn cause(cell: &WorkloadCell) -> Option<&'static str> {
    let stalls = cell.totals.stall_by_cause.iter().map(|(cause, seconds)| (cause.describe(), *seconds));
    let all = stalls.chain([("checkpoints", cell.totals.checkpoint_s)]).filter(|(_, seconds)| *seconds > 0.0);
    all.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(name, _)| name)
}

/// What it rests on.
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
        findings.extend(crate::workload::saved_in(cell).map(|said| format!("{said}.")));
        findings.extend((!cell.lever.advice.is_empty()).then(|| cell.lever.advice.clone()));
        findings.extend(judged(cell));
    } else {
        findings.extend(missed(run));
    }
    findings
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
        true => format!("The utilisation that was asked for was reached by all of {}.", count(n, "cell")),
        false => format!(
            "{} of {} missed the utilisation that was asked for: {}.",
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

/// Every limit that was not kept, or that all were.
fn judged(cell: &WorkloadCell) -> Option<String> {
    let decisive: Vec<_> = cell.judged.iter().filter(|judged| judged.is_decisive).collect();
    let word = |judged: &&forebay_record::Judged| {
        let value = judged.value.map_or("–".to_owned(), percent);
        let kept = if judged.is_met { "met" } else { "missed" };
        let name = crate::metric::name(&judged.what);
        format!("{name} {kept}: {value}, where at least {} % is asked for", given(100.0 * judged.limit))
    };
    let words: Vec<String> = decisive.iter().map(word).collect();
    (!words.is_empty()).then(|| format!("Limits: {}.", listed(&words)))
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
