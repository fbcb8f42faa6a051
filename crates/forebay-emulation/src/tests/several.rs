//! Several processes, which are threads here and communicate through memory.

use std::sync::atomic::Ordering;

use forebay_ranks::Threads;

use super::*;

type Outcome = Result<Option<Record<WorkloadCell>>, Error>;

/// Runs a plan per rank; with `stops`, the last rank stops after some steps.
fn run_all(plans: &[Plan], stops: bool) -> Vec<Outcome> {
    let one = |ranks: &dyn forebay_ranks::Ranks| {
        let (rank, stop) = (ranks.rank() as usize, AtomicBool::new(false));
        let observe = |event| {
            if stops && rank + 1 == plans.len() && matches!(event, Event::Step { step, .. } if step >= 2) {
                stop.store(true, Ordering::Relaxed);
            }
        };
        let record = Record::new(Vec::new(), Environment::default());
        run(&plans[rank], ranks, record, Observer::new(&observe, &stop))
    };
    Threads::run(plans.len(), one)
}

#[test]
fn ranks_share_the_work_and_the_first_has_the_record() {
    let dir = tempfile::tempdir().unwrap();
    let mut workload = workload(8 * 4 * 3, 2);
    workload.workflow.checkpoint = true;
    workload.checkpoint.all_ranks = true;
    workload.checkpoint.fsync = true;
    let log = Some(dir.path().join("out"));
    let plan = Plan { access_log: log.clone(), out: log, ..plan(workload, dir.path(), 2) };
    let mut ended = run_all(&[plan.clone(), plan], false);
    assert!(ended.pop().unwrap().unwrap().is_none());
    let cell = ended.pop().unwrap().unwrap().unwrap().cells.remove(0);
    adds_up(&cell);
    assert_eq!((cell.totals.ranks, cell.totals.accelerators, cell.totals.steps), (2, 4, 4 * 3 * 2));
    assert_eq!(cell.processes.iter().map(|rank| rank.rank).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(cell.saves.iter().map(|save| save.bytes).collect::<Vec<_>>(), [4 * 10_240; 2]);
    let read = |rank: u64| {
        let text = std::fs::read_to_string(dir.path().join(format!("out/access-{rank}.csv"))).unwrap();
        let files = text.lines().skip(1).map(|line| line.split(',').nth(4).unwrap().parse::<u64>().unwrap());
        files.collect::<std::collections::BTreeSet<_>>()
    };
    assert!(read(0).is_disjoint(&read(1)) && read(0).len() + read(1).len() == 96);
    for name in ["summary.json", "0_output.json", "3_output.json", "3_per_epoch_stats.json"] {
        assert!(dir.path().join("out").join(name).exists(), "{name}");
    }
}

#[test]
fn ranks_that_were_started_otherwise_end_all() {
    let dir = tempfile::tempdir().unwrap();
    let first = plan(workload(64, 1), dir.path(), 2);
    let mut second = first.clone();
    second.workload.reader.batch_size = 4;
    let texts: Vec<String> =
        run_all(&[first, second], false).into_iter().map(|end| end.unwrap_err().to_string()).collect();
    assert!(texts.iter().all(|text| text.contains("batch_size: 8") && text.contains("batch_size: 4")), "{texts:?}");
    assert!(texts[0].starts_with("rank 1 on ") && texts[0].contains(" failed: "), "{texts:?}");
}

#[test]
fn data_that_one_rank_misses_ends_all_with_its_reason() {
    let dir = tempfile::tempdir().unwrap();
    let mut made = workload(64, 1);
    made.dataset.format = Format::Npy;
    forebay_dataset::make_records(&made, &dir.path().join("data"), 0, 1, &forebay_dataset::Control::default()).unwrap();
    let first = plan(made, dir.path(), 1);
    let second = Plan { data: dir.path().join("elsewhere"), ..first.clone() };
    for end in run_all(&[first, second], false) {
        let text = end.unwrap_err().to_string();
        assert!(text.contains("elsewhere") && text.contains("forebay workload make"), "{text}");
    }
}

#[test]
fn one_rank_that_is_to_stop_stops_all_at_the_same_step() {
    let dir = tempfile::tempdir().unwrap();
    let mut workload = workload(8 * 2 * 5_000, 1);
    workload.train.computation_time = Time::Normal { mean: 0.002, stdev: 0.0 };
    let plan = plan(workload, dir.path(), 1);
    let record = run_all(&[plan.clone(), plan], true).remove(0).unwrap().unwrap();
    assert_eq!(record.notes, ["interrupted: the completed steps are kept, but not compared with a threshold"]);
    assert_eq!(record.cells[0].judged, [], "a stopped run is not judged");
    let epochs = &record.cells[0].epochs_of;
    assert_eq!(epochs.len(), 2);
    assert!(epochs[0].n_steps == epochs[1].n_steps && (2..4_000).contains(&epochs[0].n_steps), "{epochs:?}");
}
