//! What the columns of the cells' table mean, as far as a run has them, and the tables of what a cell has several of.

use forebay_record::{
    CheckpointCell, Epoch, IngestCell, ProbeCell, ProbeMode, Quantiles, StudyCell, TrainCell, Word, WorkloadCell,
};
use forebay_units::format_seconds;

use crate::basis;
use crate::data::{Data, Value};
use crate::number::percent;
use crate::run::Run;
use crate::table::Align::{Left, Right};
use crate::traced;
use crate::tuned;

/// Of tuning: its columns are not those of other cells.
const TUNING: &str = "± after a predicted time is the error of the prediction; after the gain, it comes from the ranges of both runs' \
                      repeats. Noise is what a difference must exceed for a change to be kept.";

pub(crate) fn lines(run: &Run<'_>) -> Vec<String> {
    if run.study.cells.is_empty() {
        return Vec::new();
    }
    let mut said = vec![Word::MB.sentence];
    let of_tuning = (!tuned::path(run).is_empty()).then_some(TUNING);
    said.extend(of_tuning.or((run.spreads().next().is_some()).then_some(Word::SPREAD.sentence)));
    said.extend((run.caches().next().is_some()).then_some(Word::COLD.sentence));
    if run.cells_of::<IngestCell>().any(|(_, cell)| cell.floor_images_per_s.is_some()) {
        said.push(Word::HARNESS_ALONE.sentence);
    }
    said.extend(run.study.cells.iter().any(|cell| cell.disturbed().is_some()).then_some(basis::LEGEND));
    said.extend(of_probes(run));
    said.extend(of_accelerators(run));
    said.extend(of_checkpoints(run));
    let mut said: Vec<String> = said.into_iter().map(str::to_owned).collect();
    let mut mixes: Vec<&str> = run.cells_of::<ProbeCell>().filter_map(|(_, cell)| cell.mix.as_deref()).collect();
    mixes.dedup();
    said.extend(mixes.into_iter().filter(|_| !run.is_study()).map(sizes));
    said
}

fn of_accelerators(run: &Run<'_>) -> Vec<&'static str> {
    let is_trained = run.cells_of::<TrainCell>().next().is_some();
    let is_workload = run.cells_of::<WorkloadCell>().next().is_some();
    let mut said = Vec::new();
    if is_trained || is_workload {
        said.extend([Word::AU, Word::AU_STEADY, Word::AU_DLIO].map(|word| word.sentence));
    }
    said.extend(is_trained.then_some(Word::COST_OF_IO.sentence));
    said.extend(is_workload.then_some("DLIO's rates exclude two steps and use the configured sample size."));
    said.extend((is_trained || is_workload).then_some(Word::LEVER.sentence));
    said
}

fn of_probes(run: &Run<'_>) -> Vec<&'static str> {
    let any = |is: fn(&ProbeCell) -> bool| run.cells_of::<ProbeCell>().any(|(_, cell)| is(cell));
    let mut said = Vec::new();
    let has_several = run.study.cells.iter().any(|cell| cell.measured_as::<ProbeCell>().count() > 1);
    said.extend(
        (run.is_study() && has_several).then_some("A cell of a probe holds several measurements, each in a row."),
    );
    said.extend(any(|_| true).then_some("Latencies are of single requests over all repeats."));
    said.extend(
        any(|cell| !cell.latency_us.is_known())
            .then_some("An emulated device buffers writes like a drive's cache, so single writes have no latency."),
    );
    said.extend(any(|cell| cell.mode == ProbeMode::SequentialWrite).then_some("Write rates include the fsync."));
    said
}

/// The sizes of a probe's requests or files: a mix as fio writes it, or a dataset's.
fn sizes(mix: &str) -> String {
    if mix.contains(':') && mix.contains('/') && !mix.contains(' ') {
        return format!("Request sizes and their shares in %: {mix}.");
    }
    format!("Sizes: {mix}.")
}

fn of_checkpoints(run: &Run<'_>) -> Vec<&'static str> {
    let any = |is: fn(&CheckpointCell) -> bool| run.cells_of::<CheckpointCell>().any(|(_, cell)| is(cell));
    if !any(|_| true) {
        return Vec::new();
    }
    let mut said = vec![
        "Times count from the request for a checkpoint: until training continues (stall), and until the checkpoint is durable on \
         the first and on the last tier.",
        Word::DURABLE.sentence,
        "Restores verify every byte. They read what was just saved, past the page cache; a cache of the device or a hypervisor \
         may still hold it, so a restore can be faster than a probe's cold reads.",
        match any(|cell| cell.ceiling_mb_per_s.is_some()) {
            true => "The save ceiling is the first tier's own rate with O_DIRECT and a final sync.",
            false => "The storage's ceiling was not measured.",
        },
    ];
    if any(|cell| cell.read_ceiling_mb_per_s.is_some()) {
        said.push("The restore ceiling is the read rate of the tier restored from.");
    }
    if any(is_too_short) {
        said.push("Saves and restores under 10 ms are too short to compare with a ceiling.");
    }
    if any(|cell| cell.stall_over_copy().is_some()) {
        said.push(match any(|cell| cell.device.is_some()) {
            true => {
                "Copy: the time of a plain copy from the device into pinned memory, to compare an async stall with."
            }
            false => "Copy: the time of a plain copy of the state in memory, to compare an async stall with.",
        });
    }
    if any(|cell| cell.memory_bytes.is_some()) {
        said.push("Memory beyond the state excludes the benchmark's own copies of it.");
    }
    said
}

/// Whether a ceiling is known and a share of it is not.
fn is_too_short(cell: &CheckpointCell) -> bool {
    let saved = cell.save_mb_per_s().and(cell.ceiling_mb_per_s).is_some() && cell.save_efficiency().is_none();
    let restored = cell.restore_mb_per_s().and(cell.read_ceiling_mb_per_s).is_some();
    saved || (restored && cell.restore_efficiency().is_none())
}

/// Of a single record, losses epoch by epoch, and how long steps took.
pub(crate) fn tables(run: &Run<'_>) -> Vec<(&'static str, Data)> {
    if run.is_study() {
        return Vec::new();
    }
    let own = [("Losses", losses(run)), ("Steps", steps(run))].into_iter().filter(|(_, data)| !data.is_empty());
    own.chain(traced::tables(run)).collect()
}

fn losses(run: &Run<'_>) -> Data {
    let heads = [("at", "cell", Left), ("epoch", "epoch", Right), ("n_steps", "steps", Right)];
    let judged = [("validation_loss", "validation loss", Right), ("accuracy", "accuracy", Right)];
    let mut data = Data::new(&[&heads[..], &[("loss", "mean loss", Right)], &judged].concat());
    data.column("n_held_out", "held out", Right);
    let has_loss = |epoch: &Epoch| epoch.loss.is_some() || epoch.validation.is_some();
    for (of, cell) in run.cells_of::<TrainCell>().filter(|(_, cell)| cell.epochs.iter().any(has_loss)) {
        for (i, epoch) in cell.epochs.iter().enumerate() {
            let loss = |loss: Option<f32>| Value::maybe(loss.map(f64::from), |loss| format!("{loss:.4}"));
            let judged = epoch.validation;
            data.row(vec![
                name(run, of),
                Value::count(i as u64 + 1),
                Value::count(epoch.n_steps),
                loss(epoch.loss),
                loss(judged.and_then(|judged| judged.loss)),
                Value::maybe(judged.map(|judged| judged.accuracy), percent),
                judged.map_or(Value::Unknown, |judged| Value::count(judged.n_samples)),
            ]);
        }
    }
    data
}

fn steps(run: &Run<'_>) -> Data {
    let heads = ["mean", "p50", "p90", "p99", "max"].map(|head| (head, head, Right));
    let mut data = Data::new(&[&[("at", "cell", Left), ("what", "per step", Left)], &heads[..]].concat());
    for (of, cell) in run.cells_of::<WorkloadCell>().filter(|(_, cell)| cell.totals.steps > 0) {
        for (what, times) in [("wait for batch", &cell.totals.load), ("whole time", &cell.totals.step)] {
            let Quantiles { mean, p50, p90, p99, max } = *times;
            let times = [mean, p50, p90, p99, max].map(|seconds| Value::number(seconds, format_seconds));
            data.row([vec![name(run, of), Value::text(what)], times.to_vec()].concat());
        }
    }
    data
}

/// The cell that a row is of, where there are several.
fn name(run: &Run<'_>, cell: &StudyCell) -> Value {
    if run.study.cells.len() > 1 { Value::text(run.name_of(cell)) } else { Value::Unknown }
}
