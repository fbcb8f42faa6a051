//! Assembles the record of a run from the reports of all ranks.

use forebay_record::{DatasetNote, Disturbed, Judged, Medium, Record, TierKind, WorkloadCell, WorkloadTotals};
use forebay_units::{PathText, count};
use forebay_workload::Part;

use super::lever::lever;
use super::place::checkpoint_place;
use super::plan::Plan;
use super::prepare;
use super::rank_report::RankReport;
use super::read::Seeds;
use super::totals::{Run, all, recorded, state_of};
use super::warnings::warnings;

/// Prefix of the note on a stopped run, by which readers of records recognise it.
pub const INTERRUPTED: &str = "interrupted";

/// Above this many steps, the record keeps only sums and percentiles.
pub(super) const MOST_STEPS: u64 = 200_000;

pub(super) struct Known<'a> {
    pub(super) plan: &'a Plan,
    pub(super) totals: forebay_workload::Plan,
    pub(super) seeds: Seeds,
    /// For display.
    pub(super) storage: String,
}

pub(super) fn record(
    known: &Known<'_>,
    reports: &[RankReport],
    mut record: Record<WorkloadCell>,
) -> Record<WorkloadCell> {
    let workload = &known.plan.workload;
    if workload.workflow.train {
        record.dataset = dataset(known);
    }
    let cell = cell(known, reports);
    record.notes.extend(known.plan.settings.notes().chain(notes(&cell, reports)));
    record.cells.push(cell);
    record
}

fn dataset(known: &Known<'_>) -> DatasetNote {
    let workload = &known.plan.workload;
    DatasetNote {
        path: known.plan.data.escaped().into_owned(),
        packing: workload.dataset.format.name().to_owned(),
        n_samples: known.totals.samples_train,
        n_files: workload.dataset.n_files_train,
    }
}

fn cell(known: &Known<'_>, reports: &[RankReport]) -> WorkloadCell {
    let (plan, workload) = (known.plan, &known.plan.workload);
    let run = Run { workload, n_steps: known.totals.steps_per_epoch, reports };
    let mut totals = run.totals();
    let evidence = run.evidence();
    totals.warnings = warnings(plan, run.n_steps, reports, &totals, state_of(&evidence));
    let tier = plan.tier.as_ref().map(|profile| (profile.name.as_str(), TierKind::Shaped));
    let cache = (totals.bytes_moved > 0).then(|| state_of(&evidence));
    let medium = Medium { cache, ..Medium::new(known.storage.clone(), tier, vec![evidence]) };
    let trains = workload.workflow.train;
    let with_steps = totals.steps <= MOST_STEPS;
    let mut epochs_of: Vec<_> = run.epochs().map(|epoch| recorded(workload, run.n_steps, epoch, with_steps)).collect();
    epochs_of.sort_by_key(|epoch| (epoch.epoch, epoch.accelerator));
    let n_cores = reports.iter().map(|report| report.process.n_cores).min().unwrap_or(1);
    WorkloadCell {
        workload: workload.name.clone(),
        format: if trains { workload.dataset.format.name().to_owned() } else { String::new() },
        n_files: if trains { workload.dataset.n_files(Part::Train) } else { 0 },
        samples_per_file: if trains { workload.dataset.n_samples_per_file } else { 0 },
        record_length_bytes: if trains { workload.dataset.record_length_bytes } else { 0.0 },
        batch: workload.reader.batch_size,
        read_threads: workload.reader.read_threads,
        prefetch: workload.reader.prefetch_size,
        computation_s: workload.train.computation_time.mean(),
        epochs: if trains { workload.train.epochs } else { 0 },
        steps_per_epoch: if trains { run.n_steps } else { 0 },
        order: prepare::order(workload, known.seeds),
        medium,
        demand_bytes_per_s: known.totals.demand_bytes_per_s,
        // A stopped run has not completed the work that a threshold applies to.
        judged: if trains && !is_stopped(reports) { judged(plan, &totals) } else { Vec::new() },
        lever: lever(workload, &totals, &run.stalls(|epoch| &epoch.stalls), n_cores),
        processes: reports.iter().map(|report| report.process.clone()).collect(),
        epochs_of,
        saves: run.saves(),
        checkpoint_place: checkpoint_place(plan),
        reads: reports.first().and_then(|report| report.reads.clone()),
        failures: Vec::new(),
        worker_time: run.worker_time(),
        made_by: None,
        disturbed: Disturbed::together(reports.iter().filter_map(|report| report.disturbed)),
        runs: Vec::new(),
        totals,
    }
}

/// Utilisation of whole epochs is compared with the user's threshold or the workload's; DLIO's figure is only shown
/// beside it.
fn judged(plan: &Plan, totals: &WorkloadTotals) -> Vec<Judged> {
    let judge = |what: &str, value: Option<f64>, limit: f64, is_decisive| Judged {
        what: what.to_owned(),
        value,
        limit,
        is_met: value.is_some_and(|value| value >= limit),
        is_decisive,
    };
    let stated = plan.workload.limits.au;
    let wanted = plan.settings.threshold.unwrap_or(stated);
    vec![
        judge(WorkloadCell::AU_EPOCH.info.name, totals.au_epoch, wanted, true),
        judge(WorkloadCell::AU_DLIO.info.name, totals.au_dlio, stated, false),
    ]
}

fn notes(cell: &WorkloadCell, reports: &[RankReport]) -> Vec<String> {
    let of_ranks = reports.iter().flat_map(|report| {
        let rank = report.process.rank;
        report.notes.iter().map(move |note| if rank == 0 { note.clone() } else { format!("rank {rank}: {note}") })
    });
    let mut notes: Vec<String> = of_ranks.collect();
    if is_stopped(reports) {
        notes.push(format!("{INTERRUPTED}: the completed steps are kept, but not compared with a threshold"));
    }
    if cell.totals.steps > MOST_STEPS {
        notes.push(format!(
            "{}, more than {MOST_STEPS}: the record keeps only sums and percentiles",
            count(cell.totals.steps, "step")
        ));
    }
    notes.extend(restored_note(reports));
    notes
}

fn is_stopped(reports: &[RankReport]) -> bool {
    reports.iter().any(|report| report.is_stopped)
}

/// The note on where restored checkpoints came from.
fn restored_note(reports: &[RankReport]) -> Option<String> {
    let evidence = all(reports.iter().filter_map(|report| report.restored.clone()));
    let from_memory = (evidence.bytes_read > 0).then(|| evidence.from_memory());
    from_memory.map(|share| match share {
        Some(_) if evidence.resident_before.is_none_or(|share| share > 0.05) => format!(
            "{} of the restored checkpoints was in memory before the restore: evicting them failed",
            evidence.resident_before.map_or("an unknown share".to_owned(), |share| format!("{:.0} %", 100.0 * share))
        ),
        Some(share) if share <= 0.05 => {
            "checkpoints were restored from the device: they were evicted first, and the block layer counted the reads"
                .to_owned()
        }
        Some(share) => format!(
            "{:.0} % of the restored checkpoints came from memory although they were evicted first; the file \
             system may be in memory",
            100.0 * share
        ),
        None => "checkpoints were restored; whether from the device is unknown, because the kernel does not report it"
            .to_owned(),
    })
}
