//! What checkpoints say: how long training stands still for one, how near saves come to the storage, and what a burst
//! buffer is worth beside what was published.

use forebay_record::{CheckpointCell, ProbeCell, ProbeMode, StudyCell, TrainCell};

use crate::level;
use crate::number::{brief_seconds, given, percent, quantity, times};
use crate::published::Published;
use crate::run::Run;
use crate::saves;
use crate::stall;

const MAX_CELLS: usize = 3;
/// A restore that is faster than cold sequential reads by more than this comes from a cache.
const ABOVE_PROBE: f64 = 1.25;

pub(super) fn headline(run: &Run<'_>) -> Option<String> {
    // One that is written behind the training's back is as durable as late as the one before it.
    let known = || run.cells_of::<CheckpointCell>().filter(|(_, cell)| cell.save_mb_per_s().is_some());
    let (of, best) = fastest(known().filter(|(_, cell)| cell.mode != "async")).or_else(|| fastest(known()))?;
    let mut text = format!(
        "A checkpoint of {} is durable after {} ({}, {} MB/s{})",
        crate::number::bytes(best.bytes),
        brief_seconds(best.durable_fast_s?),
        best.mode,
        quantity(best.save_mb_per_s()?),
        of_ceiling(best.save_efficiency(), "of the ceiling")
    );
    let shortest = run.cells_of::<CheckpointCell>().min_by(|a, b| a.1.stall_s.total_cmp(&b.1.stall_s));
    let is_shorter = |(other, cell): &(&StudyCell, &CheckpointCell)| {
        let is_less = cell.mode != best.mode && cell.stall_s < best.stall_s;
        is_less && run.differ(&[of, other], best.stall_s / cell.stall_s)
    };
    if let Some((_, cell)) = shortest.filter(is_shorter) {
        text.push_str(&format!("; in mode {}, training stalls for {}", cell.mode, brief_seconds(cell.stall_s)));
    }
    Some(text + ".")
}

/// What a burst buffer is worth to a training, in short; `None` where none was tried or it is worth nothing.
pub(super) fn brief(run: &Run<'_>) -> Option<String> {
    let ratios = run.cells_of::<TrainCell>().filter(|(of, _)| stall::mode(of) == Some("burst"));
    let best = ratios.filter_map(|(of, _)| stall::judged(run, of)).max_by(f64::total_cmp)?;
    (best > 1.0).then(|| format!("A burst buffer makes the stall per checkpoint {} shorter.", times(best)))
}

/// The cell whose saves are durable at the highest rate.
fn fastest<'a>(
    cells: impl Iterator<Item = (&'a StudyCell, &'a CheckpointCell)>,
) -> Option<(&'a StudyCell, &'a CheckpointCell)> {
    let rate = |cell: &CheckpointCell| cell.save_mb_per_s().unwrap_or(0.0);
    cells.max_by(|a, b| rate(a.1).total_cmp(&rate(b.1)))
}

fn of_ceiling(share: Option<f64>, what: &str) -> String {
    share.map(|share| format!(", {} {what}", percent(share))).unwrap_or_default()
}

pub(super) fn findings(run: &Run<'_>, published: &[Published<'_>]) -> Vec<String> {
    let cells: Vec<&StudyCell> = run.study.cells.iter().collect();
    let mut findings = shorter(run, published, &cells);
    findings.extend(restores(run));
    findings.extend(copies(run));
    findings.extend(trained(run));
    findings
}

/// What each mode beside direct is worth, with the published ratio beside ours.
pub(crate) fn shorter(run: &Run<'_>, published: &[Published<'_>], cells: &[&StudyCell]) -> Vec<String> {
    let cells = cells.iter().copied().filter(|cell| cell.error.is_none());
    let mut found: Vec<(&StudyCell, f64)> = cells.filter_map(|cell| Some((cell, stall::judged(run, cell)?))).collect();
    let theirs = |cell: &StudyCell| stall::published(run, published, cell);
    // Those that something is published of come first.
    found.sort_by_key(|(cell, _)| theirs(cell).is_none());
    let mut said: Vec<(&str, Option<&str>)> = Vec::new();
    found.retain(|(cell, _)| {
        let of = (cell.experiment.as_str(), stall::mode(cell));
        let is_first = !said.contains(&of);
        said.push(of);
        is_first
    });
    let sentence = |(cell, ratio): (&StudyCell, f64)| {
        let theirs = theirs(cell)
            .map(|row| {
                let shorter = if ratio < 1.0 { " shorter" } else { "" };
                format!(" ({}: {}×{shorter})", row.word(), given(row.reference.value))
            })
            .unwrap_or_default();
        let stall = |cell: &StudyCell| stall::stall_s(cell).map_or("–".to_owned(), brief_seconds);
        let direct = stall::direct(run, cell).map(&stall).unwrap_or_default();
        let (word, ratio) = if ratio >= 1.0 { ("shorter", ratio) } else { ("longer", 1.0 / ratio) };
        let which = if stall::mode(cell) == Some("burst") { "A burst buffer" } else { "Async saving" };
        let at = if cell.factors.is_empty() { String::new() } else { format!(" ({})", level::all(&cell.factors)) };
        format!(
            "{which}{at} makes the stall per checkpoint {} {word}{theirs}: {} instead of {direct} with direct saving.",
            times(ratio),
            stall(cell)
        )
    };
    found.into_iter().take(MAX_CELLS).map(sentence).collect()
}

fn restores(run: &Run<'_>) -> Option<String> {
    let rate = |cell: &CheckpointCell| cell.restore_mb_per_s().unwrap_or(0.0);
    let known = run.cells_of::<CheckpointCell>().filter(|(_, cell)| cell.restore_mb_per_s().is_some());
    let (of, best) = known.max_by(|a, b| rate(a.1).total_cmp(&rate(b.1)))?;
    let above = probed(run, of).filter(|most| rate(best) > ABOVE_PROBE * most).map(|most| {
        format!(
            " That is more than the probe's {} MB/s of sequential reads there: what was just saved may come from a cache below \
             the file system.",
            quantity(most)
        )
    });
    Some(format!(
        "Restores reach {} MB/s, with every byte verified{} ({}).{}",
        quantity(rate(best)),
        of_ceiling(best.restore_efficiency(), "of the ceiling"),
        level::all(&of.factors),
        above.unwrap_or_default()
    ))
}

/// The best sequential read that the same study probed on the tier of a cell.
fn probed(run: &Run<'_>, of: &StudyCell) -> Option<f64> {
    let same = |(other, probe): &(&StudyCell, &ProbeCell)| {
        probe.mode == ProbeMode::SequentialRead && other.level("tier") == of.level("tier")
    };
    run.cells_of::<ProbeCell>().filter(same).map(|(_, probe)| probe.mb_per_s).reduce(f64::max)
}

/// How near an async stall comes to the copy that it is.
fn copies(run: &Run<'_>) -> Option<String> {
    let (cell, ratio) = run
        .cells_of::<CheckpointCell>()
        .filter_map(|(_, cell)| Some((cell, cell.stall_over_copy()?)))
        .min_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(format!(
        "In mode {}, the stall is {} the time of a plain copy of the state in memory.",
        cell.mode,
        times(ratio)
    ))
}

/// Of a training: what its checkpoints cost; of several, the least and the most.
fn trained(run: &Run<'_>) -> Vec<String> {
    let with = |cell: &TrainCell| cell.checkpoints.as_ref().is_some_and(|saved| !saved.saves.is_empty());
    let cells: Vec<(&StudyCell, &TrainCell)> =
        run.cells_of::<TrainCell>().filter(|(_, cell)| with(cell) || cell.resumed_from.is_some()).collect();
    if let [(_, cell)] = cells.as_slice() {
        return saves::paragraph(cell);
    }
    let share = |of: &StudyCell| {
        let share = of.value(&TrainCell::CHECKPOINT_S)? / of.value(&TrainCell::WALL_S)?;
        Some(share).filter(|share| share.is_finite())
    };
    let shares: Vec<(&StudyCell, f64)> = cells.iter().filter_map(|(of, _)| Some((*of, share(of)?))).collect();
    let least = shares.iter().min_by(|a, b| a.1.total_cmp(&b.1));
    let most = shares.iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let are_apart = |(least, most): &(&(&StudyCell, f64), &(&StudyCell, f64))| {
        shares.len() > 1 && run.differ(&[least.0, most.0], most.1 / least.1)
    };
    least.zip(most).filter(are_apart).map(of_several).into_iter().collect()
}

fn of_several((least, most): (&(&StudyCell, f64), &(&StudyCell, f64))) -> String {
    format!(
        "Checkpoints took {} ({}) to {} ({}) of the run time.",
        percent(least.1),
        level::all(&least.0.factors),
        percent(most.1),
        level::all(&most.0.factors)
    )
}
