//! Warnings about conditions that change the meaning of a run's numbers.

use std::collections::BTreeMap;

use forebay_record::{CacheState, WorkloadTotals};
use forebay_units::{Bytes, count, format_seconds};
use forebay_workload::{Part, Workload};

use super::place::checkpoint_warning;
use super::plan::Plan;
use super::rank_report::RankReport;
use super::times::{Epoch, Evaluated};
use super::totals::is_amplified;

/// Below this, the first step of an epoch, which DLIO leaves out, is more than 2 % of the epoch.
const FEW_STEPS: u64 = 50;
/// Tolerated ratio of actual to planned computation time.
const CLOCK_BOUND: f64 = 1.02;

pub(super) fn warnings(
    plan: &Plan,
    n_steps: u64,
    reports: &[RankReport],
    totals: &WorkloadTotals,
    state: CacheState,
) -> Vec<String> {
    let workload = &plan.workload;
    let trains = workload.workflow.train;
    let training = [
        trains.then(|| no_steps(totals)).flatten(),
        trains.then(|| few_steps(n_steps)).flatten(),
        (trains && totals.bytes_moved > 0).then(|| caches(plan, totals, state)).flatten(),
        (trains && totals.bytes_moved > 0 && state != CacheState::Cold)
            .then(|| fits_in_memory(workload, totals, reports))
            .flatten(),
        (trains && is_amplified(totals.bytes_device, totals.bytes_moved)).then(|| amplified(totals)),
        otherwise(reports),
        clock_bound(reports),
        devices(plan, reports),
    ];
    let saves = reports.iter().flat_map(|report| &report.saves).any(|save| !save.is_restore);
    let saving = (saves && !workload.checkpoint.fsync).then(|| {
        "the workload does not ask for fsync (checkpoint.fsync); forebay syncs anyway, so its saves take longer than DLIO's"
            .to_owned()
    });
    training
        .into_iter()
        .flatten()
        .chain(pinned(workload, reports))
        .chain(checkpoint_warning(plan))
        .chain(saving)
        .collect()
}

fn no_steps(totals: &WorkloadTotals) -> Option<String> {
    (totals.steps == 0).then(|| "the run made no step, so it measured nothing".to_owned())
}

fn few_steps(n_steps: u64) -> Option<String> {
    (n_steps < FEW_STEPS).then(|| {
        format!(
            "only {} per epoch: DLIO leaves out the first step, which waits for the whole prefetch, so its AU \
             hides that wait; AU of the whole epoch does not. With {FEW_STEPS} or more steps the two agree",
            count(n_steps, "step")
        )
    })
}

fn caches(plan: &Plan, totals: &WorkloadTotals, state: CacheState) -> Option<String> {
    let is_known = totals.bytes_device.is_some();
    match (plan.settings.cold, state) {
        (true, CacheState::Warm | CacheState::Mixed) if is_known => Some(
            "a cold cache was requested, but more than 5 % of the bytes came from memory: the files may be on a file system in \
             memory, another process may have read them too, or the run made more than one pass over them"
                .to_owned(),
        ),
        // An emulated device has its own speed, wherever the bytes come from.
        _ if plan.tier.is_some() => None,
        (_, CacheState::Warm) => Some(
            "the data came from the page cache: the rates show this machine's memory and cores, not its storage"
                .to_owned(),
        ),
        _ => None,
    }
}

/// Host name to memory, as reported by one of its processes.
fn hosts(reports: &[RankReport]) -> BTreeMap<&str, Option<u64>> {
    reports.iter().map(|report| (report.process.host.as_str(), report.memory_bytes)).collect()
}

fn fits_in_memory(workload: &Workload, totals: &WorkloadTotals, reports: &[RankReport]) -> Option<String> {
    let hosts = hosts(reports);
    // Files may be larger than their values, so the bytes moved count.
    let moved = totals.bytes_moved / workload.train.epochs.max(1);
    let bytes = workload.dataset.bytes(Part::Train).max(moved) / (hosts.len() as u64).max(1);
    let least = hosts.values().copied().collect::<Option<Vec<u64>>>()?.into_iter().min()?;
    (bytes <= least).then(|| {
        format!(
            "the data fits in memory ({} per host with {} of memory): after the first epoch, or after its generation, it may come \
             from the page cache; data of five times the memory rules that out",
            Bytes(bytes),
            Bytes(least)
        )
    })
}

fn amplified(totals: &WorkloadTotals) -> String {
    let device = totals.bytes_device.unwrap_or(0);
    format!(
        "block devices delivered {}, but only {} were read: the kernel reads ahead, or other parts of this process read too; the \
         device rate includes all of this and does not show how much of the data was in memory",
        Bytes(device),
        Bytes(totals.bytes_moved)
    )
}

fn otherwise(reports: &[RankReport]) -> Option<String> {
    let first = reports.iter().find(|report| !report.otherwise.is_empty())?;
    Some(of_other_data(&first.otherwise))
}

/// A warning if the data on disk was made with other settings than the plan's.
pub fn data_warning(plan: &Plan) -> Option<String> {
    let differs = super::prepare::otherwise(plan);
    (!differs.is_empty()).then(|| of_other_data(&differs))
}

fn of_other_data(differs: &[String]) -> String {
    format!(
        "the data was made with other settings ({}): give `make` and `run` the same. Bytes and rates are those of the data \
         on disk; DLIO's use the configured size and are wrong here",
        differs.join("; ")
    )
}

/// Every process emulates its own device; they do not share one.
fn devices(plan: &Plan, reports: &[RankReport]) -> Option<String> {
    let profile = plan.tier.as_ref().filter(|_| reports.len() > 1)?;
    Some(format!(
        "{} processes, each with its own emulated {}: together they get {} times the rate of one device",
        reports.len(),
        profile.name,
        reports.len()
    ))
}

fn clock_bound(reports: &[RankReport]) -> Option<String> {
    let sum = |ns: fn(&Epoch) -> u64| reports.iter().flat_map(|report| &report.epochs).map(ns).sum::<u64>() as f64;
    let evaluated = |of: fn(&Evaluated) -> u64| {
        let evaluations = reports.iter().flat_map(|report| &report.epochs).filter_map(|epoch| epoch.evaluated.as_ref());
        evaluations.map(of).sum::<u64>() as f64
    };
    let drawn = sum(|epoch| epoch.drawn_ns) + evaluated(|done| done.drawn_ns);
    let late = sum(|epoch| epoch.late_ns) + evaluated(|done| done.late_ns);
    (drawn > 0.0 && drawn + late > CLOCK_BOUND * drawn).then(|| {
        format!(
            "the emulated accelerators woke late: {} on {} of computing ({:.1} %), since no core was free in time. With real \
             ones, AU and rate would be higher; a smaller --shrink-time, fewer accelerators or more cores help",
            format_seconds(late / 1e9),
            format_seconds(drawn / 1e9),
            100.0 * late / drawn
        )
    })
}

/// Processes with too few cores on a machine with more. One core is always too few: the accelerators need it too.
fn pinned(workload: &Workload, reports: &[RankReport]) -> Vec<String> {
    let readers = |report: &RankReport| report.process.accelerators.max(1) * workload.reader.read_threads.max(1);
    let is_pinned = |report: &&RankReport| {
        let n_cores = report.cores.len() as u64;
        n_cores > 0 && n_cores < report.n_online && (n_cores == 1 || n_cores < readers(report))
    };
    let mut texts = Vec::new();
    let few: Vec<&RankReport> = reports.iter().filter(is_pinned).collect();
    if let Some(first) = few.first() {
        let (who, n_cores) = (first.process.rank, first.cores.len() as u64);
        let others = if few.len() > 1 { format!(" and {} more", few.len() - 1) } else { String::new() };
        texts.push(format!(
            "rank {who}{others} may use {} of {} for {}: its launcher pinned it (mpirun \
             --bind-to none, srun --cpus-per-task), so decoding is slower than this machine allows",
            count(n_cores, "core"),
            first.n_online,
            count(readers(first), "read thread")
        ));
    }
    let mut on: BTreeMap<(&str, u32), Vec<u64>> = BTreeMap::new();
    for report in reports.iter().filter(|report| report.cores.len() == 1 && report.n_online > 1) {
        on.entry((&report.process.host, report.cores[0])).or_default().push(report.process.rank);
    }
    for ((host, core), ranks) in on.into_iter().filter(|(_, ranks)| ranks.len() > 1) {
        let ranks: Vec<String> = ranks.iter().map(u64::to_string).collect();
        texts.push(format!("ranks {} are all pinned to core {core} of {host} and take turns", ranks.join(", ")));
    }
    texts
}

#[cfg(test)]
mod tests {
    use forebay_measure::Place;
    use forebay_record::{CacheEvidence, WorkloadRank};
    use forebay_workload::Time;

    use super::super::settings::WorkloadSettings;
    use super::super::times::Saved;
    use super::super::totals::state_of;
    use super::*;

    fn plan() -> Plan {
        let mut workload = Workload::default();
        workload.train.computation_time = Time::Normal { mean: 0.001, stdev: 0.0 };
        Plan {
            settings: WorkloadSettings::default(),
            workload,
            data: "data".into(),
            checkpoints: Place::new("checkpoints"),
            keeps_checkpoints: true,
            access_log: None,
            tier: None,
            out: None,
        }
    }

    fn report(rank: u64, cores: &[u32], drawn_ns: u64) -> RankReport {
        let process = WorkloadRank { rank, host: "node7".to_owned(), ..WorkloadRank::default() };
        let epochs = vec![Epoch { drawn_ns, late_ns: 1_000_000 - drawn_ns, ..Epoch::default() }];
        RankReport {
            process,
            cores: cores.to_vec(),
            n_online: 8,
            memory_bytes: Some(1 << 40),
            epochs,
            ..RankReport::default()
        }
    }

    fn totals() -> WorkloadTotals {
        WorkloadTotals { steps: 100, bytes_moved: 1_000, bytes_device: Some(1_000), ..WorkloadTotals::default() }
    }

    fn of(plan: &Plan, n_steps: u64, reports: &[RankReport], state: CacheState) -> Vec<String> {
        warnings(plan, n_steps, reports, &totals(), state)
    }

    #[test]
    fn a_long_cold_run_on_all_cores_needs_no_warning() {
        assert_eq!(of(&plan(), 50, &[report(0, &[0, 1, 2, 3], 1_000_000)], CacheState::Cold), Vec::<String>::new());
    }

    #[test]
    fn few_steps_are_warned_of() {
        let texts = of(&plan(), 49, &[report(0, &[0, 1], 1_000_000)], CacheState::Cold);
        assert!(texts.len() == 1 && texts[0].starts_with("only 49 steps per epoch"), "{texts:?}");
    }

    #[test]
    fn data_that_fits_in_memory_is_warned_of_unless_it_came_from_the_device() {
        let texts = of(&plan(), 50, &[report(0, &[0, 1], 1_000_000)], CacheState::Mixed);
        assert!(texts.len() == 1 && texts[0].starts_with("the data fits in memory"), "{texts:?}");
        let small = RankReport { memory_bytes: Some(1_000), ..report(0, &[0, 1], 1_000_000) };
        assert_eq!(of(&plan(), 50, &[small], CacheState::Mixed), Vec::<String>::new());
    }

    #[test]
    fn one_core_of_many_and_fewer_cores_than_all_readers_are_too_few() {
        let mut plan = plan();
        plan.workload.reader.read_threads = 1;
        let texts = of(&plan, 50, &[report(0, &[3], 1_000_000)], CacheState::Cold);
        assert!(texts.len() == 1 && texts[0].contains("1 core of 8 for 1 read thread:"), "{texts:?}");
        let mut four = report(0, &[0, 1], 1_000_000);
        four.process.accelerators = 4;
        let texts = of(&plan, 50, &[four], CacheState::Cold);
        assert!(texts.len() == 1 && texts[0].contains("2 cores of 8 for 4 read threads:"), "{texts:?}");
    }

    #[test]
    fn bytes_that_were_read_ahead_prove_nothing_and_are_warned_of() {
        let totals = WorkloadTotals { bytes_device: Some(1_500), ..totals() };
        let texts = warnings(&plan(), 50, &[report(0, &[0, 1], 1_000_000)], &totals, CacheState::Mixed);
        assert!(
            texts.iter().any(|text| text.starts_with("block devices delivered 1.5 KB, but only 1.0 KB were read")),
            "{texts:?}"
        );
        let evidence =
            |resident| CacheEvidence { resident_before: resident, block_bytes: Some(1_500), bytes_read: 1_000 };
        let states = [None, Some(0.5), Some(0.0)].map(|resident| state_of(&evidence(resident)));
        assert_eq!(states, [CacheState::Mixed, CacheState::Mixed, CacheState::Cold]);
    }

    #[test]
    fn an_evaluation_that_takes_too_long_is_warned_of() {
        let mut report = report(0, &[0, 1], 1_000_000);
        report.epochs[0].evaluated = Some(Evaluated { drawn_ns: 1_000_000, late_ns: 200_000, ..Evaluated::default() });
        let texts = of(&plan(), 50, &[report], CacheState::Cold);
        assert!(texts.len() == 1 && texts[0].contains("10.0 %"), "{texts:?}");
    }

    #[test]
    fn data_from_the_page_cache_is_warned_of() {
        let texts = of(&plan(), 50, &[report(0, &[0, 1], 1_000_000)], CacheState::Warm);
        assert!(texts[0].starts_with("the data came from the page cache"), "{texts:?}");
        let mut cold = plan();
        cold.settings.cold = true;
        let texts = of(&cold, 50, &[report(0, &[0, 1], 1_000_000)], CacheState::Warm);
        assert!(texts[0].starts_with("a cold cache was requested"), "{texts:?}");
    }

    #[test]
    fn an_emulation_that_takes_too_long_is_warned_of() {
        let texts = of(&plan(), 50, &[report(0, &[0, 1], 970_000)], CacheState::Cold);
        assert!(
            texts.len() == 1
                && texts[0].starts_with("the emulated accelerators woke late")
                && texts[0].contains("3.1 %"),
            "{texts:?}"
        );
    }

    #[test]
    fn ranks_that_were_pinned_are_warned_of() {
        let mut plan = plan();
        plan.workload.reader.read_threads = 4;
        let texts = of(&plan, 50, &[report(0, &[2], 1_000_000), report(1, &[2], 1_000_000)], CacheState::Cold);
        assert_eq!(texts.len(), 2, "{texts:?}");
        assert!(texts[0].starts_with("rank 0 and 1 more may use 1 core of 8 for 4 read threads"), "{texts:?}");
        assert_eq!(texts[1], "ranks 0, 1 are all pinned to core 2 of node7 and take turns");
        let all = RankReport { n_online: 2, ..report(0, &[0, 1], 1_000_000) };
        assert_eq!(of(&plan, 50, &[all], CacheState::Cold), Vec::<String>::new(), "a small machine is not pinned");
    }

    #[test]
    fn checkpoints_on_another_device_than_the_data_are_warned_of() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let mut plan = Plan { data: dir.path().to_owned(), ..plan() };
        plan.workload.workflow.checkpoint = true;
        plan.workload.checkpoint.fsync = true;
        plan.checkpoints = Place::new(dir.path().join("saves"));
        let of = |plan: &Plan| of(plan, 50, &[report(0, &[0, 1], 1_000_000)], CacheState::Cold);
        assert_eq!(of(&plan), Vec::<String>::new(), "the same device");
        plan.tier = "hdd".parse().ok();
        let texts = of(&plan);
        assert!(texts.len() == 1 && texts[0].starts_with("the emulated hdd applies to the data only"), "{texts:?}");
        plan.checkpoints.shaped.clone_from(&plan.tier);
        assert_eq!(of(&plan), Vec::<String>::new(), "each is emulated");
        (plan.tier, plan.checkpoints) = (None, Place::new("/proc/saves"));
        let texts = of(&plan);
        assert!(
            texts.len() == 1 && texts[0].starts_with("checkpoints and data are on different file systems"),
            "{texts:?}"
        );
        assert!(texts[0].contains("/proc/saves is on proc on proc"), "{texts:?}");
        plan.workload.dataset.format = forebay_workload::Format::Synthetic;
        assert_eq!(of(&plan), Vec::<String>::new(), "nothing is read");
    }

    #[test]
    fn a_run_without_a_step_and_a_save_without_fsync_are_warned_of() {
        let mut plan = plan();
        plan.workload.workflow.checkpoint = true;
        let none = WorkloadTotals::default();
        let report = report(0, &[0, 1], 1_000_000);
        let saved = RankReport { saves: vec![Saved::default()], ..report.clone() };
        assert_eq!(warnings(&plan, 50, &[report], &none, CacheState::Cold).len(), 1, "nothing was saved");
        let texts = warnings(&plan, 50, &[saved], &none, CacheState::Cold);
        assert_eq!(texts.len(), 2, "{texts:?}");
        assert!(
            texts[0].starts_with("the run made no step") && texts[1].starts_with("the workload does not ask for fsync"),
            "{texts:?}"
        );
    }
}
