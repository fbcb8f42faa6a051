//! The cell of a replay, and notes that set it beside the traced job.

use std::collections::BTreeMap;
use std::path::Path;

use forebay_measure::{file_system_of, usage};
use forebay_record::{
    CacheEvidence, CacheState, Cause, CheckpointPlace, DatasetNote, Judged, Lever, Medium, Quantiles, Record,
    WorkloadCell, WorkloadEpoch, WorkloadRank, WorkloadTotals,
};
use forebay_units::{Bytes, PathText, count, group_digits};
use forebay_workload::replay::{FileOrder, Replay, ReplayFiles};

use super::super::cell::{INTERRUPTED, MOST_STEPS};
use super::ReplayPlan;
use super::fetch::{Done, Files};
use super::passes::Played;

/// A difference in bytes or calls above this is worth a warning.
const TOLERATED: f64 = 0.01;
/// Below this fraction of the time there is no lever.
const WORTH: f64 = 0.01;

pub(super) struct Known<'a> {
    pub(super) plan: &'a ReplayPlan,
    pub(super) files: &'a [Files],
    pub(super) evidence: CacheEvidence,
    pub(super) checkpoints: &'a Path,
    pub(super) is_scratch: bool,
    pub(super) cpu_s: f64,
    pub(super) age_s: Option<f64>,
}

impl Known<'_> {
    pub(super) fn add_to(&self, record: &mut Record<WorkloadCell>, played: Played) {
        let replay = &self.plan.replay;
        let (done, is_stopped) = (played.done, played.is_stopped);
        let n_files = replay.loader.iter().flat_map(|loader| &loader.files).map(|files| files.files).sum();
        record.dataset = DatasetNote {
            path: self.plan.data.escaped().into_owned(),
            packing: "replay".to_owned(),
            n_samples: replay.loader.iter().map(|loader| loader.samples).sum(),
            n_files,
        };
        let cell = self.cell(played, n_files);
        record.notes.push(format!("A traced job was played again: {}", replay.job));
        if is_stopped {
            record
                .notes
                .push(format!("{INTERRUPTED}: the completed steps are kept, but not compared with a threshold"));
        } else {
            record.notes.extend(compared(replay, &cell.totals, &done));
        }
        record.cells.push(cell);
    }

    fn cell(&self, played: Played, n_files: u64) -> WorkloadCell {
        let replay = &self.plan.replay;
        let is_stopped = played.is_stopped;
        let first = &replay.loader[replay.passes[0]];
        let totals = self.totals(&played);
        let system = file_system_of(&self.plan.data).map_or(String::new(), |(system, _)| format!(" ({system})"));
        let medium = Medium::new(
            format!("plain calls, {}{system}", self.plan.data.escaped()),
            None,
            vec![self.evidence.clone()],
        );
        let process = WorkloadRank {
            n_cores: usage::allowed_cores().len().max(1) as u64,
            accelerators: 1,
            bytes_moved: totals.bytes_moved,
            bytes_device: totals.bytes_device,
            peak_rss_bytes: totals.peak_rss_bytes,
            ..WorkloadRank::default()
        };
        let samples: u64 = replay.loader.iter().map(|loader| loader.samples).sum();
        let mut epochs_of = played.epochs;
        if totals.steps > MOST_STEPS {
            epochs_of.iter_mut().for_each(|epoch| {
                (epoch.load, epoch.compute, epoch.barrier) = Default::default();
            });
        }
        WorkloadCell {
            workload: self.plan.name.clone(),
            format: "replay".to_owned(),
            n_files,
            record_length_bytes: bytes_read(replay) as f64 / samples.max(1) as f64,
            batch: samples / replay.n_steps().max(1),
            read_threads: first.workers,
            prefetch: first.workers * first.prefetch,
            computation_s: first.compute_s.iter().sum::<f64>() / first.compute_s.len() as f64,
            epochs: replay.passes.len() as u64,
            steps_per_epoch: first.steps,
            order: order(replay),
            medium,
            judged: if is_stopped { Vec::new() } else { self.judged(&totals) },
            lever: lever(replay, &totals),
            processes: vec![process],
            epochs_of,
            checkpoint_place: (!played.saves.is_empty()).then(|| self.checkpoint_place()),
            saves: played.saves,
            totals,
            ..WorkloadCell::default()
        }
    }

    fn totals(&self, played: &Played) -> WorkloadTotals {
        let sum = |of: fn(&WorkloadEpoch) -> f64| played.epochs.iter().map(of).sum::<f64>();
        let (wall_s, compute_s) = (sum(|epoch| epoch.wall_s), sum(|epoch| epoch.compute_s));
        let first_s = sum(|epoch| epoch.first_batch_s);
        let share = |of: f64| (of > 1e-6).then_some(compute_s / of);
        let rate = |amount: f64| if wall_s > 0.0 { amount / wall_s } else { 0.0 };
        let bytes_moved = played.done.bytes;
        let bytes_device = self.evidence.block_bytes.filter(|_| bytes_moved > 0);
        let mut stall_by_cause = played.stalls.by_cause();
        stall_by_cause.insert(Cause::Barrier, 0.0);
        let steps = || played.epochs.iter().flat_map(|epoch| epoch.load.iter().zip(&epoch.compute));
        let n_epochs = played.epochs.len().max(1) as f64;
        let mut totals = WorkloadTotals {
            au_epoch: share(wall_s),
            au_steady: share(wall_s - first_s),
            samples_per_s: rate(played.samples as f64),
            mb_per_s_moved: rate(bytes_moved as f64 / 1e6),
            mb_per_s_device: bytes_device.map(|bytes| rate(bytes as f64 / 1e6)),
            first_batch_s: first_s / n_epochs,
            first_step_s: self
                .age_s
                .zip(played.epochs.first())
                .map(|(age, first)| age + first.start_s + first.first_batch_s),
            stall_by_cause,
            steps: played.epochs.iter().map(|epoch| epoch.n_steps).sum(),
            ranks: 1,
            accelerators: 1,
            samples: played.samples,
            bytes_moved,
            bytes_device,
            wall_s,
            accelerator_s: wall_s,
            wait_s: sum(|epoch| epoch.wait_s),
            compute_s,
            checkpoint_s: sum(|epoch| epoch.checkpoint_s),
            other_s: sum(|epoch| epoch.other_s),
            load: Quantiles::of(steps().map(|(load, _)| *load).collect()),
            step: Quantiles::of(steps().map(|(load, compute)| load + compute).collect()),
            peak_rss_bytes: usage::peak_resident_bytes(),
            cpu_s: Some(self.cpu_s),
            ..WorkloadTotals::default()
        };
        totals.warnings = self.warnings();
        totals
    }

    fn judged(&self, totals: &WorkloadTotals) -> Vec<Judged> {
        let judge = |limit: f64| Judged {
            what: WorkloadCell::AU_EPOCH.info.name.to_owned(),
            value: totals.au_epoch,
            limit,
            is_met: totals.au_epoch.is_some_and(|au| au >= limit),
            is_decisive: true,
        };
        self.plan.threshold.into_iter().map(judge).collect()
    }

    fn warnings(&self) -> Vec<String> {
        let pairs =
            self.plan.replay.loader.iter().zip(self.files).flat_map(|(loader, of)| loader.files.iter().zip(&of.found));
        let others = pairs.filter_map(|(files, found)| {
            let bytes = found.iter().map(|file| file.bytes).sum();
            is_other(bytes, files.bytes).then(|| other_files(files, bytes))
        });
        let is_warm = self.evidence.bytes_read > 0 && self.evidence.state() == CacheState::Warm;
        let warm = is_warm.then(|| {
            "the data came from the page cache: the waits show this machine's memory, not its storage".to_owned()
        });
        others.chain(warm).collect()
    }

    fn checkpoint_place(&self) -> CheckpointPlace {
        let system = file_system_of(self.checkpoints).map(|(system, _)| system).unwrap_or_default();
        CheckpointPlace {
            path: self.checkpoints.escaped().into_owned(),
            medium: Medium::new(system, None, Vec::new()),
            is_with_data: None,
            is_removed: self.is_scratch,
        }
    }
}

fn other_files(files: &ReplayFiles, bytes: u64) -> String {
    format!(
        "the {} have {}, but those of the traced job had {}: bytes and waits are not its own",
        count(files.files, &format!("{} file", super::data::kind(files))),
        Bytes(bytes),
        Bytes(files.bytes)
    )
}

fn is_other(found: u64, wanted: u64) -> bool {
    found.abs_diff(wanted) as f64 > TOLERATED * wanted as f64
}

fn bytes_read(replay: &Replay) -> u64 {
    replay.loader.iter().flat_map(|loader| &loader.files).map(|files| files.bytes_read).sum()
}

fn order(replay: &Replay) -> String {
    let mut all: Vec<FileOrder> =
        replay.loader.iter().flat_map(|loader| &loader.files).map(|files| files.order).collect();
    all.dedup();
    match all.as_slice() {
        [FileOrder::Random] => "files: random".to_owned(),
        [FileOrder::Sequential] => "files: by name".to_owned(),
        [] => "no files".to_owned(),
        _ => "files: random and by name".to_owned(),
    }
}

/// The replay beside the traced job.
fn compared(replay: &Replay, totals: &WorkloadTotals, done: &Done) -> Vec<String> {
    let percent = |part: f64, of: f64| if of > 0.0 { format!("{:.1} %", 100.0 * part / of) } else { "–".to_owned() };
    let traced = &replay.traced;
    let sum = |of: fn(&ReplayFiles) -> u64| replay.loader.iter().flat_map(|loader| &loader.files).map(of).sum::<u64>();
    let attributes: u64 = replay.loader.iter().map(|loader| loader.stats + loader.fstats).sum();
    vec![
        format!(
            "Of its loop, this run waited {} and computed {}; the traced job {} and {}.",
            percent(totals.wait_s, totals.wall_s),
            percent(totals.compute_s, totals.wall_s),
            percent(traced.wait_s, traced.loop_s),
            percent(traced.compute_s, traced.loop_s)
        ),
        format!(
            "Calls of the fetches: {} opens, {} reads of {}, {} of attributes; of the traced job: {}, {} of {}, {}.",
            group_digits(done.opens),
            group_digits(done.reads),
            Bytes(done.bytes),
            group_digits(done.attributes),
            group_digits(sum(|files| files.opens)),
            group_digits(sum(|files| files.reads)),
            Bytes(sum(|files| files.bytes_read)),
            group_digits(attributes)
        ),
    ]
}

/// The change that would help most. All but prefetching is a bound.
fn lever(replay: &Replay, totals: &WorkloadTotals) -> Lever {
    let workers = replay.loader.iter().map(|loader| loader.workers).max().unwrap_or(0);
    let of = |cause: Cause| totals.stall_by_cause.get(&cause).copied().unwrap_or(0.0);
    let more = format!("num_workers={} in the job: more workers share the work on its samples", workers + 1);
    let all: BTreeMap<&str, (f64, String)> = BTreeMap::from([
        (
            "prefetch",
            (
                of(Cause::Prefetch),
                "num_workers=1 in the job: prepare batches while the accelerator computes".to_owned(),
            ),
        ),
        ("storage", (of(Cause::Storage), "faster storage, or fewer and larger files".to_owned())),
        ("preprocess", (of(Cause::Preprocess), more)),
        ("checkpoint", (totals.checkpoint_s, "save asynchronously, or to faster storage".to_owned())),
        ("start", (of(Cause::Other), "keep the workers from pass to pass: persistent_workers=True".to_owned())),
    ]);
    let largest = all.into_iter().max_by(|a, b| a.1.0.total_cmp(&b.1.0));
    match largest {
        Some((name, (seconds, advice))) if seconds > WORTH * totals.wall_s => {
            let saves_s = seconds.min(totals.wall_s);
            let wall_s = totals.wall_s - saves_s;
            Lever { name: name.to_owned(), advice, saves_s, wall_s, is_bound: name != "prefetch", ..Lever::default() }
        }
        _ => Lever {
            name: "none".to_owned(),
            advice: "the accelerators are the bottleneck".to_owned(),
            wall_s: totals.wall_s,
            ..Lever::default()
        },
    }
}
