//! Errors found before a run.

use forebay_workload::{Format, Part};

use super::super::foresee;
use super::{Plan, Solo, plan, workload};

fn said(plan: &Plan) -> String {
    foresee(plan, &Solo).expect_err("it cannot be run").to_string()
}

#[test]
fn what_can_be_run_is_not_complained_of_and_nothing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let mut workload = workload(64, 1);
    workload.workflow.checkpoint = true;
    foresee(&plan(workload, dir.path(), 2), &Solo).unwrap();
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn data_that_is_missing_or_of_another_format_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let mut plan = plan(workload(8, 1), dir.path(), 1);
    plan.workload.dataset.format = Format::Npz;
    assert!(said(&plan).contains("img_0_of_8.npz, one of 8 files, is missing"), "{}", said(&plan));
    std::fs::create_dir_all(plan.data.join("train")).unwrap();
    for file in 0..8 {
        std::fs::write(plan.data.join(plan.workload.dataset.path_of(Part::Train, file)), "no archive").unwrap();
    }
    assert!(said(&plan).contains("img_0_of_8.npz"), "{}", said(&plan));
    std::fs::remove_file(plan.data.join("train/img_5_of_8.npz")).unwrap();
    assert!(said(&plan).contains("img_5_of_8.npz, one of 8 files, is missing"), "{}", said(&plan));
}

#[test]
fn data_that_there_is_no_room_to_make_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let mut plan = plan(workload(8, 1), dir.path(), 1);
    plan.workload.workflow.generate_data = true;
    foresee(&plan, &Solo).unwrap();
    plan.workload.dataset.format = Format::Npz;
    foresee(&plan, &Solo).unwrap();
    plan.workload.dataset.record_length_bytes = 9e14;
    assert!(said(&plan).contains(", but only "), "{}", said(&plan));
}

#[test]
fn checkpoints_without_room_and_folders_that_cannot_be_written_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let mut plan = plan(workload(64, 1), dir.path(), 1);
    plan.workload.workflow.checkpoint = true;
    plan.workload.model.size_bytes = 1 << 60;
    assert!(said(&plan).contains("checkpoints need "), "{}", said(&plan));
    std::fs::write(dir.path().join("file"), "").unwrap();
    let at_file = format!("writing to {}", dir.path().join("file").display());
    plan.checkpoints.dir = dir.path().join("file/saves");
    assert_eq!(said(&plan), at_file);
    plan.workload.workflow.checkpoint = false;
    foresee(&plan, &Solo).unwrap();
    plan.out = Some(dir.path().join("file/results"));
    assert_eq!(said(&plan), at_file);
}

#[test]
fn more_steps_than_there_is_data_for_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let mut plan = plan(workload(64, 1), dir.path(), 1);
    plan.workload.train.max_steps = Some(9);
    assert!(said(&plan).contains("total_training_steps"), "{}", said(&plan));
}
