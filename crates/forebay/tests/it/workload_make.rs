//! `forebay workload make`: the data of a workload.

use crate::dir::Dir;
use crate::process::{Running, more_threads_than_cores};
use crate::workload::with_tiny;

#[test]
fn make_writes_the_files_of_the_workload_and_goes_on_where_it_stopped() {
    let dir = with_tiny();
    let said = dir.met("workload make tiny.yaml --data set");
    assert!(said.starts_with("set: 8 files made, ") && said.ends_with("/s\n"), "{said}");
    let names = dir.names("set/train");
    assert_eq!(names.len(), 8);
    assert_eq!(names[0], "img_0_of_8.npz");
    let before = dir.tree("set");
    assert_eq!(dir.met("workload make tiny.yaml --data set"), "set: nothing to make; 8 files already there\n");
    std::fs::remove_file(dir.path("set/train/img_3_of_8.npz")).unwrap();
    let said = dir.met("workload make tiny.yaml --data set");
    assert!(said.starts_with("set: 1 file made, ") && said.ends_with("; 7 already there\n"), "{said}");
    assert_eq!(dir.tree("set"), before, "the same bytes");
}

#[test]
fn without_a_folder_data_is_made_where_the_workload_says() {
    let dir = with_tiny();
    let said = dir.met("workload make tiny.yaml ++workload.dataset.num_files_train=3");
    assert!(said.starts_with("data/tiny: 3 files made, "), "{said}");
    assert_eq!(dir.names("data/tiny/train").len(), 3);
}

#[test]
fn a_billion_files_are_refused_with_their_number_at_once() {
    let dir = with_tiny();
    let ran = dir.run("workload make tiny.yaml --data set ++workload.dataset.num_files_train=1000000000");
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.starts_with("forebay: set: ") && ran.stderr.contains(", but only "), "{}", ran.stderr);
    assert!(!dir.path("set").exists());
}

#[test]
fn a_dry_run_foresees_that_there_is_no_room() {
    let dir = with_tiny();
    let huge = "++workload.dataset.record_length_bytes=900000000000000";
    let ran = dir.run(&format!("workload make tiny.yaml --data set --dry-run {huge}"));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), "set: 8 train npz files, 7200.00 TB of values\n"));
    assert!(ran.stderr.contains(", but only ") && !dir.path("set").exists(), "{}", ran.stderr);
}

#[test]
fn a_dry_run_says_what_would_be_made_and_makes_nothing() {
    let dir = with_tiny();
    let line = "workload make tiny.yaml --data set --dry-run ++workload.dataset.num_files_eval=1";
    assert_eq!(dir.met(line), "set: 8 train npz files, 32.8 KB of values; 1 valid npz file, 4.1 KB of values\n");
    assert!(!dir.path("set").exists());
}

#[test]
fn smaller_records_and_those_of_the_imitated_loader_are_made_as_a_run_reads_them() {
    let dir = with_tiny();
    let line = "workload make tiny.yaml --data set --dry-run ++workload.dataset.record_length_bytes_stdev=400";
    let sizes = ["", "--shrink-bytes 4", "--dlio-decode-mb-per-s 9"].map(|flags| dir.met(&format!("{line} {flags}")));
    assert!(sizes[1] != sizes[0] && sizes[2] != sizes[0] && sizes[2] != sizes[1], "{sizes:?}");
    assert!(dir.refused(&format!("{line} --accelerators 2")).contains("--accelerators"), "it changes no data");
}

#[test]
fn data_of_another_workload_is_not_written_over() {
    let dir = with_tiny();
    dir.met("workload make tiny.yaml --data set");
    let before = dir.tree("set");
    let said = dir.refused("workload make tiny.yaml --data set ++workload.dataset.record_length_bytes=16384");
    assert!(said.starts_with("forebay: set: "), "{said}");
    assert_eq!(dir.tree("set"), before);
}

#[test]
fn so_many_threads_make_it_and_an_interrupted_one_goes_on() {
    let dir = with_tiny();
    let big = "++workload.dataset.num_files_train=20000 ++workload.dataset.record_length_bytes=65536";
    let n = more_threads_than_cores();
    let mut running = Running::start(&dir, &format!("workload make tiny.yaml --data set --threads {n} {big}"));
    running.wait_until("a file", |_| dir.path("set/train").exists());
    running.wait_until("the threads", |running| running.threads("forebay:").len() >= n);
    running.signal(libc::SIGINT);
    let ran = running.finish();
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), "forebay: stopped before the end\n"));
    assert!(dir.names("set/train").len() < 20_000);
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let dir = with_tiny();
    dir.write("file", b"x");
    let said = dir.refused("workload make tiny.yaml --data file/set");
    assert!(said.starts_with("forebay: ") && said.contains("file/set"), "{said}");
    assert_eq!(Dir::read(&dir, "file"), b"x");
}

#[test]
fn a_workload_that_only_saves_has_no_data_to_make() {
    let dir = Dir::new();
    assert_eq!(
        dir.met("workload make llama_7b --data set").lines().collect::<Vec<_>>(),
        ["llama_7b: nothing to make: this workload reads no data"]
    );
    assert!(!dir.path("set").exists());
}
