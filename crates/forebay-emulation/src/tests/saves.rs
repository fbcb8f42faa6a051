//! Runs that save and restore.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use forebay_checkpoint::{LocalFs, Tier};

use super::*;

fn saving(n_files: u64, epochs: u64) -> Workload {
    let mut workload = workload(n_files, epochs);
    workload.workflow.checkpoint = true;
    workload.model.size_bytes = 300_000;
    workload
}

/// The checkpoints of a rank.
fn names(dir: &Path, rank: u64) -> Vec<PathBuf> {
    let tier = Tier::new(std::sync::Arc::new(LocalFs), dir.join(format!("checkpoints/rank-{rank:04}")));
    tier.names().unwrap_or_default().into_iter().map(|name| tier.path_of(name)).collect()
}

#[test]
fn a_save_after_some_steps_ends_a_block_and_counts_to_the_epoch() {
    let dir = tempfile::tempdir().unwrap();
    let mut workload = saving(64 * 2, 2);
    workload.checkpoint.steps_between = Some(3);
    workload.checkpoint.rank_sync = true;
    let cell = cell_of(&plan(workload, dir.path(), 2));
    adds_up(&cell);
    let saved: Vec<(u64, u64, u64)> = cell.saves.iter().map(|save| (save.epoch, save.step, save.bytes)).collect();
    assert_eq!(saved, [(1, 3, 300_000), (1, 6, 300_000), (2, 3, 300_000), (2, 6, 300_000)]);
    assert!(
        cell.saves
            .iter()
            .all(|save| save.is_durable && save.seconds >= save.seconds_rank_0 && save.seconds_rank_0 > 0.0)
    );
    assert!(cell.epochs_of.iter().all(|epoch| epoch.saved_after == [3, 6] && epoch.checkpoint_s > 0.0), "{cell:?}");
    assert_eq!(names(dir.path(), 0).len(), 2, "the two newest stay");
    assert_eq!(names(dir.path(), 1).len(), 0, "only the first rank has the flat state");
    assert!(cell.totals.warnings.iter().any(|text| text.starts_with("the workload does not ask for fsync")));
}

#[test]
fn all_stand_still_for_a_checkpoint_that_one_of_them_saves() {
    let dir = tempfile::tempdir().unwrap();
    for steps_between in [None, Some(4)] {
        let mut workload = saving(64 * 2, 2);
        workload.model.size_bytes = 32 << 20;
        workload.checkpoint.steps_between = steps_between;
        let cell = cell_of(&plan(workload, dir.path(), 2));
        adds_up(&cell);
        let saved: f64 = cell.saves.iter().map(|save| save.seconds).sum();
        let stood_still = |accelerator| {
            let epochs = cell.epochs_of.iter().filter(|epoch| epoch.accelerator == accelerator);
            epochs.map(|epoch| epoch.checkpoint_s).sum::<f64>()
        };
        assert!((0..2).all(|i| stood_still(i) >= saved), "{saved} {} {}", stood_still(0), stood_still(1));
    }
}

#[test]
fn a_save_after_epochs_comes_when_the_workload_says() {
    let dir = tempfile::tempdir().unwrap();
    let mut workload = saving(64, 5);
    workload.checkpoint.after_epoch = 2;
    workload.checkpoint.epochs_between = 2;
    workload.checkpoint.all_ranks = true;
    workload.checkpoint.fsync = true;
    let cell = cell_of(&plan(workload, dir.path(), 2));
    adds_up(&cell);
    let saved: Vec<(u64, u64, u64)> = cell.saves.iter().map(|save| (save.epoch, save.step, save.bytes)).collect();
    assert_eq!(saved, [(2, 4, 600_000), (4, 4, 600_000)]);
    assert!(!cell.totals.warnings.iter().any(|text| text.contains("fsync")));
    assert_eq!((names(dir.path(), 0).len(), names(dir.path(), 1).len()), (2, 2));
}

#[test]
fn a_run_that_only_saves_reads_back_what_it_wrote_also_what_others_did() {
    let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let mut workload = saving(64, 1);
    workload.workflow.train = false;
    workload.checkpoint.all_ranks = true;
    workload.checkpoint.n_write = 3;
    workload.checkpoint.n_read = 2;
    workload.checkpoint.recovery_rank_shift = true;
    let plan = Plan { out: Some(dir.path().join("out")), ..plan(workload, dir.path(), 2) };
    let record = run_it(&plan).unwrap();
    let cell = &record.cells[0];
    assert_eq!(cell.saves.iter().map(|save| save.is_restore).collect::<Vec<_>>(), [false, false, false, true, true]);
    assert!(cell.saves.iter().filter(|save| save.is_restore).all(|save| save.bytes >= 600_000 && save.seconds > 0.0));
    assert_eq!((names(dir.path(), 0).len(), cell.totals.steps, cell.judged.len()), (2, 0, 0));
    assert!(record.notes.iter().any(|note| note.contains("were restored from the device")), "{:?}", record.notes);
    let summary: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(dir.path().join("out/summary.json")).unwrap()).unwrap();
    assert!(summary["metric"]["load_checkpoint_io_mean_GB_per_second"].as_f64().unwrap() > 0.0);
    // Each rank reads what another one wrote; if it is damaged, the reader reports it.
    let damaged = names(dir.path(), 1).remove(1);
    let file = std::fs::read_dir(&damaged).unwrap().map(|entry| entry.unwrap().path());
    let file = file.max_by_key(|path| path.metadata().unwrap().len()).unwrap();
    let mut bytes = std::fs::read(&file).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let mut again = plan.clone();
    again.workload.checkpoint.n_write = 0;
    let error = run_it(&again).unwrap_err().to_string();
    assert!(error.contains("accelerator 0") && error.contains("rank-0001"), "{error}");
}

#[test]
fn a_second_run_saves_after_the_first_ones_and_keeps_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let mut workload = saving(64, 2);
    workload.checkpoint.fsync = true;
    let plan = plan(workload, dir.path(), 1);
    cell_of(&plan);
    let first = names(dir.path(), 0);
    cell_of(&plan);
    let second = names(dir.path(), 0);
    assert_eq!((first.len(), second.len()), (2, 2));
    assert!(second[0] > first[1], "{first:?} {second:?}");
}

#[test]
fn checkpoints_that_are_not_there_or_have_no_room_are_said() {
    let dir = tempfile::tempdir().unwrap();
    let mut workload = saving(64, 1);
    workload.workflow.train = false;
    workload.checkpoint.n_read = 1;
    let error = run_it(&plan(workload.clone(), dir.path(), 1)).unwrap_err().to_string();
    assert!(error.contains("0 of the 1 checkpoints"), "{error}");
    workload.model.size_bytes = 1 << 60;
    workload.checkpoint.n_write = 1;
    let error = run_it(&plan(workload, dir.path(), 1)).unwrap_err().to_string();
    assert!(error.contains("checkpoints need") && error.contains("are free"), "{error}");
}

#[test]
fn checkpoints_that_do_not_stay_go_with_the_run_and_those_of_a_killed_one_with_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let left = dir.path().join(".forebay-checkpoints-1-0/rank-0000");
    std::fs::create_dir_all(left).unwrap();
    let mut plan = plan(saving(64, 2), dir.path(), 2);
    (plan.checkpoints.dir, plan.keeps_checkpoints) = (dir.path().to_owned(), false);
    let cell = cell_of(&plan);
    assert_eq!(cell.saves.len(), 2);
    let place = cell.checkpoint_place.unwrap();
    assert_eq!((place.path, place.is_removed), (dir.path().display().to_string(), true));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left");
    // Nor if the run fails.
    plan.workload.dataset.format = forebay_workload::Format::Npz;
    run_it(&plan).unwrap_err();
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_device_that_is_emulated_for_checkpoints_holds_them_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut workload = saving(64, 1);
    workload.model.size_bytes = 20_000_000;
    let mut plan = plan(workload, dir.path(), 1);
    plan.checkpoints.shaped = "hdd".parse().ok();
    let cell = cell_of(&plan);
    let place = cell.checkpoint_place.unwrap();
    assert_eq!(
        (place.medium.tier.as_deref(), place.medium.kind),
        (Some("hdd"), Some(forebay_record::TierKind::Shaped))
    );
    let rate = cell.saves[0].bytes as f64 / cell.saves[0].seconds;
    let most = plan.checkpoints.shaped.unwrap().write_bytes_per_s as f64;
    assert!(rate <= most, "{rate} of {most}");
}

/// Runs two saves, and stops the run as soon as the first has begun to write.
fn stopped_in_the_first_save(workload: &Workload, dir: &Path) -> Record<WorkloadCell> {
    let plan = plan(workload.clone(), dir, 1);
    let (stop, has_ended) = (AtomicBool::new(false), AtomicBool::new(false));
    let folder = plan.checkpoints.dir.join("rank-0000");
    let is_saving = || {
        let names = std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
        names.into_iter().any(|name| name.to_string_lossy().starts_with(".staging-"))
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_saving() && !has_ended.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            stop.store(true, Ordering::Relaxed);
        });
        let ran = run_observed(&plan, &|_| {}, &stop);
        has_ended.store(true, Ordering::Relaxed);
        ran.unwrap()
    })
}

#[test]
fn a_save_under_way_ends_when_the_run_is_stopped_and_counts_for_nothing() {
    let mut workload = saving(64, 1);
    workload.workflow.train = false;
    workload.checkpoint.n_write = 2;
    for rank_sync in [false, true] {
        workload.checkpoint.rank_sync = rank_sync;
        // A small save may be written before the stop is noticed; then try a larger one.
        let stopped = [26, 28, 30].into_iter().find_map(|log| {
            let dir = tempfile::tempdir().unwrap();
            workload.model.size_bytes = 1 << log;
            let record = stopped_in_the_first_save(&workload, dir.path());
            (record.cells[0].saves.is_empty()).then_some((record, dir))
        });
        let (record, dir) = stopped.expect("a gibibyte is not written before the stop is noticed");
        assert!(record.notes.iter().any(|note| note.starts_with("interrupted")), "{:?}", record.notes);
        let left = std::fs::read_dir(dir.path().join("checkpoints/rank-0000")).unwrap();
        let left: Vec<_> =
            left.map(|entry| entry.unwrap().file_name()).filter(|name| name != ".forebay.lock").collect();
        assert!(left.is_empty(), "{left:?}");
    }
}
