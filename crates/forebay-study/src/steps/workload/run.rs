//! Running a workload cell.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

use forebay_emulation::ranks::Solo;
use forebay_emulation::{self as workload, Event, Plan};
use forebay_measure::Cache;
use forebay_measure::Place;
use forebay_record::{Environment, Record, WorkloadCell, WorkloadTotals};
use forebay_units::PathText;

use super::WorkloadSettings;
use crate::steps::{Failed, Progress, Stage, StepResult};

/// Runs a cell on the data in a folder, with its checkpoints in another, which is empty before each run and gone at the end.
pub(in crate::steps) fn run(
    settings: &WorkloadSettings,
    data: PathBuf,
    checkpoints: PathBuf,
    on: Stage,
    observe: &mut dyn FnMut(Progress),
    cancel: &AtomicBool,
) -> Result<StepResult, Failed> {
    let (warmups, repeats) = (on.warmups, on.repeats);
    let plan = plan(settings, data, &checkpoints, on)?;
    let (mut runs, mut notes) = (Vec::new(), note(settings));
    for round in 0..warmups + repeats {
        let _swept = Swept::new(checkpoints.clone())?;
        let name = name_of(round, warmups, repeats);
        let mut tell = |what: String| observe(Progress::Repeat { what: format!("{name}{what}") });
        let record = run_observed(&plan, &mut tell, cancel)?.ok_or("the only rank had no record")?;
        if cancel.load(Ordering::Relaxed) {
            break;
        }
        if round >= warmups {
            runs.extend(record.cells.into_iter().map(of_cell));
            let new = record.notes.into_iter().filter(|note| !notes.contains(note)).collect::<Vec<_>>();
            notes.extend(new);
        }
    }
    match middle(runs) {
        Some(cell) => Ok(StepResult { measured: Some(cell.into()), notes }),
        None => Err("no run was finished".into()),
    }
}

/// What a round is called before what it does; nothing where there is one.
fn name_of(round: usize, warmups: usize, repeats: usize) -> String {
    match round.checked_sub(warmups) {
        None => format!("warm-up {} of {warmups}, ", round + 1),
        Some(_) if repeats == 1 => String::new(),
        Some(repeat) => format!("repeat {} of {repeats}, ", repeat + 1),
    }
}

/// Without what is of the process, which has run other cells before.
fn of_cell(mut cell: WorkloadCell) -> WorkloadCell {
    (cell.totals.first_step_s, cell.totals.peak_rss_bytes) = (None, None);
    cell.processes.iter_mut().for_each(|process| process.peak_rss_bytes = None);
    cell
}

/// The run in the middle by its utilisation over whole epochs, with the totals of all.
pub(super) fn middle(mut runs: Vec<WorkloadCell>) -> Option<WorkloadCell> {
    let all: Vec<WorkloadTotals> = runs.iter().map(|run| run.totals.clone()).collect();
    // What only saves has no utilisation, and its time is as good.
    let by = |run: &WorkloadCell| run.totals.au_epoch.unwrap_or(run.totals.wall_s);
    runs.sort_by(|a, b| by(a).total_cmp(&by(b)));
    let cell = runs.into_iter().nth(all.len().saturating_sub(1) / 2)?;
    Some(WorkloadCell { runs: if all.len() > 1 { all } else { Vec::new() }, ..cell })
}

/// Runs the plan on a thread of its own: its accelerators speak to an observer of all threads, a study has one of this one.
fn run_observed(
    plan: &Plan,
    tell: &mut dyn FnMut(String),
    cancel: &AtomicBool,
) -> Result<Option<Record<WorkloadCell>>, workload::Error> {
    let (sender, events) = mpsc::channel();
    thread::scope(|scope| {
        // Where and by which command it ran stands in the study's own head.
        let run = |hear: &(dyn Fn(Event) + Sync)| {
            workload::run(plan, &Solo, Environment::default(), Vec::new(), hear, cancel)
        };
        let runs = thread::Builder::new().name("forebay:workload".to_owned()).spawn_scoped(scope, move || {
            let hear = |event: Event| {
                // Nobody listens any more only when the study itself is ending.
                let _ = words(event).map(|what| sender.send(what));
            };
            run(&hear)
        });
        // Where the system has no thread to spare, it runs on this one, unheard.
        let Ok(runs) = runs else { return run(&|_| {}) };
        events.iter().for_each(tell);
        runs.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn words(event: Event) -> Option<String> {
    match event {
        Event::Preparing { what } => Some(what),
        Event::Epoch { epoch, of, n_steps } => Some(format!("epoch {epoch} of {of}, {n_steps} steps")),
        Event::Evaluating { epoch } => Some(format!("evaluating after epoch {epoch}")),
        _ => None,
    }
}

/// The plan of a cell.
pub(super) fn plan(settings: &WorkloadSettings, data: PathBuf, saves: &Path, on: Stage) -> Result<Plan, String> {
    Ok(Plan {
        workload: settings.read()?,
        data,
        checkpoints: Place::new(saves),
        // The cell itself removes them.
        keeps_checkpoints: true,
        accelerators: settings.all_accelerators(),
        threshold: settings.threshold,
        access_log: None,
        verify: true,
        cache: if settings.cold { Cache::Cold } else { Cache::Warm },
        tier: on.shaped,
        out: None,
    })
}

/// What a reader must know of the cell.
pub(super) fn note(settings: &WorkloadSettings) -> Vec<String> {
    let n = settings.processes;
    let processes = (n > 1).then(|| {
        format!("{n} processes are emulated accelerators of one process here, each with threads and batches of its own")
    });
    let loader = settings.dlio_decode_mb_per_s.map(|rate| {
        format!(
            "DLIO's PyTorch loader is imitated: every worker makes whole batches of files in order, whatever shuffles say, and those \
             of a process decode {rate} MB/s together; files have the sizes that DLIO draws, and their time is waited for, not \
             computed"
        )
    });
    let (bytes, time) = (settings.shrink_bytes, settings.shrink_time);
    let shrunk = (bytes > 1.0 || time > 1.0).then(|| {
        let rate = forebay_units::group_digits((bytes / time).max(1.0).round() as u64);
        let rates = if bytes > time { format!("; a rate is 1/{rate} of what it stands for") } else { String::new() };
        let what = match (bytes > 1.0, time > 1.0) {
            (true, true) => format!("records are 1/{bytes} and times 1/{time}"),
            (true, false) => format!("records are 1/{bytes}"),
            _ => format!("times are 1/{time}"),
        };
        format!("{what} of what the workload says{rates}")
    });
    processes.into_iter().chain(loader).chain(shrunk).collect()
}

/// A folder that is empty at first and goes with its cell.
struct Swept(PathBuf);

impl Swept {
    fn new(path: PathBuf) -> Result<Self, Failed> {
        let failed = |error: std::io::Error| format!("cannot empty {}: {error}", path.escaped());
        if path.exists() {
            fs::remove_dir_all(&path).map_err(failed)?;
        }
        fs::create_dir_all(&path).map_err(failed)?;
        Ok(Self(path))
    }
}

impl Drop for Swept {
    fn drop(&mut self) {
        // Where this fails, the next run has another try.
        let _ = fs::remove_dir_all(&self.0);
    }
}
