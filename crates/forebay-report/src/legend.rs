//! What the columns of the cells' table mean, as far as a run has them, and the tables of what a cell has several of.

use forebay_record::{
    CheckpointCell, Epoch, IngestCell, ProbeCell, ProbeMode, Quantiles, StudyCell, TrainCell, WorkloadCell,
};
use forebay_units::format_seconds;

use crate::basis;
use crate::data::{Data, Value};
use crate::number::percent;
use crate::run::Run;
use crate::table::Align::{Left, Right};

const MB: &str = "MB are 10^6 bytes.";
const SPREAD: &str = "± is half the range of the repeats over their median.";
const COLD: &str = "A cell is cold when at most 5 % of its bytes came from memory, by the block layer's count, in every repeat; the \
                    columns beside it hold the largest shares found.";

/// Sentences on the columns.
pub(crate) fn lines(run: &Run<'_>) -> Vec<String> {
    if run.study.cells.is_empty() {
        return Vec::new();
    }
    let mut said = vec![MB];
    said.extend((run.spreads().next().is_some()).then_some(SPREAD));
    said.extend((run.caches().next().is_some()).then_some(COLD));
    if run.cells_of::<IngestCell>().any(|(_, cell)| cell.floor_images_per_s.is_some()) {
        said.push("The harness alone is the same pipeline on null storage without work.");
    }
    said.extend(run.study.cells.iter().any(|cell| cell.disturbed().is_some()).then_some(basis::LEGEND));
    said.extend(of_probes(run));
    if run.cells_of::<TrainCell>().next().is_some() {
        said.push(
            "Of training, AU is computing over the wall clock without validation, in the steady state also without the first wait; \
             DLIO leaves out checkpoints and the first step of every epoch. The wait is that of the accelerator after its first \
             batch, the cost of I/O the time over as many steps on a batch in memory, and the lever what would help most.",
        );
    }
    if run.cells_of::<WorkloadCell>().next().is_some() {
        said.push(
            "Of workloads, AU is computing over the whole time of the epochs, in the steady state without the wait for the first batch \
             of every epoch; DLIO leaves out the first step of every epoch, two steps in its rates, and takes the configured length \
             of samples.",
        );
    }
    said.extend(of_checkpoints(run));
    let mut said: Vec<String> = said.into_iter().map(str::to_owned).collect();
    let mut mixes: Vec<&str> = run.cells_of::<ProbeCell>().filter_map(|(_, cell)| cell.mix.as_deref()).collect();
    mixes.dedup();
    said.extend(mixes.into_iter().filter(|_| !run.is_study()).map(|mix| format!("Sizes: {mix}.")));
    said
}

fn of_probes(run: &Run<'_>) -> Vec<&'static str> {
    let any = |is: fn(&ProbeCell) -> bool| run.cells_of::<ProbeCell>().any(|(_, cell)| is(cell));
    let mut said = Vec::new();
    said.extend(any(|_| true).then_some("Latencies are those of single requests over all kept repeats."));
    said.extend(any(|cell| !cell.latency_us.is_known()).then_some(
        "An emulated device takes writes ahead as a drive's cache does, so that single ones have no latency.",
    ));
    said.extend(any(|cell| cell.mode == ProbeMode::SequentialWrite).then_some("A write's rate includes its fsync."));
    said
}

fn of_checkpoints(run: &Run<'_>) -> Vec<&'static str> {
    let any = |is: fn(&CheckpointCell) -> bool| run.cells_of::<CheckpointCell>().any(|(_, cell)| is(cell));
    if !any(|_| true) {
        return Vec::new();
    }
    let mut said = vec![
        "Times of a checkpoint count from the moment it is asked for: until training goes on (stall), until it survives a power cut \
         on the first tier it is written to, and until it does on the last. A restore verifies every byte.",
        match any(|cell| cell.ceiling_mb_per_s.is_some()) {
            true => "The ceiling of a save is what the first tier takes without us: O_DIRECT, then a sync.",
            false => "The storage's ceiling was not measured: how near the saves come to it is not known.",
        },
    ];
    if any(|cell| cell.read_ceiling_mb_per_s.is_some()) {
        said.push("The ceiling of a restore is what the tier that is read gives without us.");
    }
    if any(is_too_short) {
        said.push("A save or restore of less than 10 ms is too short to be set beside a ceiling.");
    }
    if any(|cell| cell.stall_over_copy().is_some()) {
        said.push(match any(|cell| cell.device.is_some()) {
            true => "A copy is a plain one from the device into memory locked for it: the floor of an async stall.",
            false => "A copy is a plain one in memory that was touched before: the floor of an async stall.",
        });
    }
    if any(|cell| cell.memory_bytes.is_some()) {
        said.push("Memory beyond the state leaves out the copies that the benchmark restores into and compares with.");
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
    [("Losses", losses(run)), ("Steps", steps(run))].into_iter().filter(|(_, data)| !data.is_empty()).collect()
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
    let mut data = Data::new(&[&[("at", "cell", Left), ("what", "a step's", Left)], &heads[..]].concat());
    for (of, cell) in run.cells_of::<WorkloadCell>().filter(|(_, cell)| cell.totals.steps > 0) {
        for (what, times) in [("wait for its batch", &cell.totals.load), ("whole time", &cell.totals.step)] {
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
